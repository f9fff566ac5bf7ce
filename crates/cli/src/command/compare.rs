//! `compare`: compares two pages by visiting them in turn.

use std::path::Path;

use plumbline_agent::{AuditEvent, Auditor, VisitEvent};
use plumbline_bundle::Encoding;
use plumbline_model::comparison::Answer;
use plumbline_report::comparison::{ComparisonFormat, ComparisonReport};
use plumbline_seam::Order;

use crate::args::{CompareArgs, ComparisonArgs, ComparisonOutput};
use crate::clock::now;
use crate::exit::Exit;
use crate::local_auditor::prepare;
use crate::output::write_text;
use crate::progress_line::{Count, ProgressLine};
use crate::recording_files::RecordingFile;
use crate::visit_options;

/// Runs `plumbline compare`, on two pages or on two recordings.
pub async fn run(args: CompareArgs) -> Result<Exit, Exit> {
    let mut options = visit_options::resolve(args.state, None, false)?;
    visit_options::refuse_later_measurements(&options, "comparison")?;
    if args.recordings {
        visit_options::refuse_with_recording(&options)?;
    }
    options.quick |= args.comparison.quick;
    let pages: [String; 2] = args
        .pages
        .try_into()
        .map_err(|_| Exit::usage("two pages are compared"))?;
    let mut files = Vec::new();
    if args.recordings {
        for path in &pages {
            files.push(RecordingFile::read(Path::new(path))?);
        }
    }
    let urls = match &files[..] {
        [first, second] => {
            options.replay = first.replay(Vec::new(), args.repeatable);
            options.replay_second = second.replay(Vec::new(), args.repeatable);
            [first, second].map(|file| file.recording.url.clone())
        }
        _ => pages,
    };
    let (auditor, [mut order, second], _) = prepare(args.conditions, urls, options)?;
    for file in &files {
        file.provide_to(&auditor);
    }
    order.options.compare_with = Some(second.url);
    compare(&auditor, &order, &args.comparison).await
}

/// Performs a comparison and writes its result.
pub async fn compare(
    auditor: &Auditor,
    order: &Order,
    args: &ComparisonArgs,
) -> Result<Exit, Exit> {
    let max_pairs = u32::from(args.max_pairs);
    let progress =
        (!args.quiet).then(|| ProgressLine::start(&auditor.cpu, Count::Pairs(max_pairs)));
    let observe = |AuditEvent { visit, event }: AuditEvent<'_>| {
        if let (VisitEvent::PhaseStarted(phase), Some(progress)) = (event, &progress) {
            progress.set_run(visit.run);
            progress.show(phase, visit);
        }
    };
    let audit = auditor.audit_runs(order, max_pairs, Encoding::Container, &observe);
    let output = audit.await.map_err(Exit::failed)?;
    drop(progress);
    let report = &output.report;
    if let Some(error) = &report.error {
        return Err(Exit::failed(format!("{} ({})", error.message, error.code)));
    }
    let compared = ComparisonReport::of(report, now().0)
        .ok_or_else(|| Exit::failed("the pages were not compared"))?;
    let text = compared.render(match args.output {
        None => ComparisonFormat::Text,
        Some(ComparisonOutput::Json) => ComparisonFormat::Json,
        Some(ComparisonOutput::Markdown) => ComparisonFormat::Markdown,
        Some(ComparisonOutput::Junit) => ComparisonFormat::Junit,
    });
    write_text(args.output_path.as_deref(), text)?;
    let comparison = &compared.compared.comparison;
    if args.fail_if_slower && comparison.shows(Answer::Slower) {
        return Ok(Exit::OverBudget);
    }
    Ok(Exit::Done)
}
