//! `compare`: compares two pages by visiting them in turn.

use plumbline_agent::{AuditEvent, VisitEvent};
use plumbline_bundle::Encoding;
use plumbline_model::comparison::Answer;
use plumbline_report::comparison::{ComparisonFormat, ComparisonReport};

use crate::args::{CompareArgs, ComparisonOutput};
use crate::clock::now;
use crate::exit::Exit;
use crate::local_auditor::prepare;
use crate::progress_line::ProgressLine;
use crate::standard_output as out;
use crate::visit_options;

/// Runs `plumbline compare`.
pub async fn run(args: CompareArgs) -> Result<Exit, Exit> {
    let mut options = visit_options::resolve(args.state, false)?;
    options.quick |= args.quick;
    let urls: [String; 2] = args
        .urls
        .try_into()
        .map_err(|_| Exit::usage("two URLs are compared"))?;
    let (auditor, [mut order, second], _) = prepare(args.conditions, urls, options)?;
    order.options.compare_with = Some(second.url);
    let max_pairs = u32::from(args.max_pairs);
    let progress = (!args.quiet).then(|| ProgressLine::start(1, max_pairs));
    let observe = |AuditEvent { visit, event }: AuditEvent<'_>| {
        if let (VisitEvent::PhaseStarted(phase), Some(progress)) = (event, &progress) {
            progress.set_run(visit.run);
            progress.show(phase, visit);
        }
    };
    let audit = auditor.audit_runs(&order, max_pairs, Encoding::Container, &observe);
    let output = audit.await.map_err(Exit::failed)?;
    drop(progress);
    let report = &output.report;
    if let Some(error) = &report.error {
        return Err(Exit::failed(format!(
            "a page could not be measured: {}: {}",
            error.code, error.message
        )));
    }
    let compared = ComparisonReport::of(report, now().0)
        .ok_or_else(|| Exit::failed("the pages were not compared"))?;
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
    let comparison = &compared.compared.comparison;
    if args.fail_if_slower && comparison.shows(Answer::Slower) {
        return Ok(Exit::OverBudget);
    }
    Ok(Exit::Done)
}
