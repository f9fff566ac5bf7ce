//! `compare`: compares two pages by visiting them in turn.

use plumbline_agent::{AuditEvent, Auditor, VisitEvent};
use plumbline_model::comparison::{Answer, Comparison, is_second_first};
use plumbline_model::media::ReportMedia;
use plumbline_report::comparison::{ComparedPages, ComparisonFormat, conditions_text, evidence};
use plumbline_report::contract::iso8601_ms;
use plumbline_seam::{AuditOutput, Order};

use crate::args::{CompareArgs, ComparisonOutput};
use crate::clock::now;
use crate::exit::Exit;
use crate::local_auditor::prepare;
use crate::progress_line::ProgressLine;
use crate::standard_output as out;
use crate::visit_options;

/// Runs `plumbline compare`.
pub async fn run(args: CompareArgs) -> Result<Exit, Exit> {
    let options = visit_options::resolve(args.state, false)?;
    let urls: [String; 2] = args
        .urls
        .try_into()
        .map_err(|_| Exit::usage("two URLs are compared"))?;
    let (auditor, orders, _) = prepare(args.conditions, urls, options)?;
    let mut pairs = Vec::new();
    let (comparison, last) = loop {
        let progress = (!args.quiet).then(|| {
            let number = u32::try_from(pairs.len() + 1).unwrap_or(u32::MAX);
            ProgressLine::start(number, args.max_pairs.into())
        });
        let pair = visit_pair(&auditor, &orders, pairs.len(), progress.as_ref()).await?;
        drop(progress);
        pairs.push([pair[0].report.clone(), pair[1].report.clone()]);
        // Differences are tested after every second pair.
        let is_last_test = pairs.len() + 2 > args.max_pairs.into();
        if let Some(comparison) = Comparison::of(&pairs)
            && (comparison.is_decided() || is_last_test)
        {
            break (comparison, pair);
        }
    };
    let [first, second] = &last;
    let compared = ComparedPages {
        urls: orders.map(|order| order.url),
        conditions: conditions_text(&first.report),
        made_at: iso8601_ms(now().0),
        comparison,
        evidence: match (media(first)?, media(second)?) {
            (Some(first), Some(second)) => evidence([&first, &second]),
            _ => Vec::new(),
        },
    };
    let text = compared.render(match args.output {
        None => ComparisonFormat::Text,
        Some(ComparisonOutput::Json) => ComparisonFormat::Json,
        Some(ComparisonOutput::Markdown) => ComparisonFormat::Markdown,
        Some(ComparisonOutput::Junit) => ComparisonFormat::Junit,
    });
    match &args.output_path {
        None => out::text(text)?,
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Exit::failed(format!("{}: {error}", path.display())))?,
    }
    if args.fail_if_slower && compared.comparison.shows(Answer::Slower) {
        return Ok(Exit::OverBudget);
    }
    Ok(Exit::Done)
}

/// Visits both pages once. A page that cannot be measured ends the comparison.
async fn visit_pair(
    auditor: &Auditor,
    orders: &[Order; 2],
    pair: usize,
    progress: Option<&ProgressLine>,
) -> Result<[AuditOutput; 2], Exit> {
    let observe = |AuditEvent { visit, event }: AuditEvent<'_>| {
        if let (VisitEvent::PhaseStarted(phase), Some(progress)) = (event, progress) {
            progress.show(phase, visit);
        }
    };
    let visit = async |order: &Order| {
        let output = auditor.audit_run(order, &observe).await;
        let output = output.map_err(Exit::failed)?;
        match &output.report.error {
            None => Ok(output),
            Some(error) => Err(Exit::failed(format!(
                "{} could not be measured: {}: {}",
                order.url, error.code, error.message
            ))),
        }
    };
    let [first, second] = orders;
    if is_second_first(pair) {
        let second = visit(second).await?;
        Ok([visit(first).await?, second])
    } else {
        let first = visit(first).await?;
        Ok([first, visit(second).await?])
    }
}

fn media(output: &AuditOutput) -> Result<Option<ReportMedia>, Exit> {
    let packed = output.media.as_deref();
    packed
        .map(ReportMedia::unpack)
        .transpose()
        .map_err(Exit::failed)
}
