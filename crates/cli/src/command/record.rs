//! `record`: visits a page once and writes its traffic to a file.

use plumbline_agent::{AuditEvent, VisitEvent};
use plumbline_bundle::{Bundle, BundleParts};
use plumbline_recording::Recording;
use plumbline_report::terminal;

use crate::args::RecordArgs;
use crate::exit::Exit;
use crate::local_auditor::prepare;
use crate::progress_line::{Count, ProgressLine};
use crate::recording_files;
use crate::standard_output as out;
use crate::visit_options;

/// Runs `plumbline record`.
pub async fn run(args: RecordArgs) -> Result<Exit, Exit> {
    let mut options = visit_options::resolve(args.state, None, args.allow_error_status)?;
    visit_options::refuse_later_measurements(&options, "recording")?;
    options.quick = true;
    options.record = true;
    let (auditor, [order], _) = prepare(args.conditions, [args.url], options)?;
    let progress = (!args.quiet).then(|| ProgressLine::start(&auditor.cpu, Count::Runs(1)));
    let observe = |AuditEvent { visit, event }: AuditEvent<'_>| {
        if let (VisitEvent::PhaseStarted(phase), Some(progress)) = (event, &progress) {
            progress.show(phase, visit);
        }
    };
    let output = auditor.audit(&order, &observe).await;
    let output = output.map_err(Exit::failed)?;
    drop(progress);
    if let Some(error) = &output.report.error {
        return Err(Exit::failed(terminal::not_measured(error)));
    }
    let bundle = output.bundle.unwrap_or_default();
    let bundle = Bundle::unpack_parts(&bundle, BundleParts::RECORDING).map_err(Exit::failed)?;
    let Some(packed) = bundle.recording else {
        return Err(Exit::failed(bundle.warnings.join(" ")));
    };
    let recording = Recording::unpack(&packed).map_err(Exit::failed)?;
    let bytes = recording_files::write(&recording, &args.output_path)?;
    if !args.quiet {
        out::line(format_args!(
            "{}: {} requests to {} servers, {} kB",
            args.output_path.display(),
            recording.exchanges.len(),
            recording.endpoints.len(),
            bytes.div_ceil(1000),
        ))?;
    }
    Ok(Exit::Done)
}
