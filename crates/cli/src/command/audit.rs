//! `audit`: audits one page without a server.

use std::io::IsTerminal;
use std::sync::Arc;

use plumbline_agent::{AuditEvent, Auditor, VisitEvent};
use plumbline_bundle::Bundle;
use plumbline_field::UnsharedQuota;
use plumbline_model::interval::intervals;
use plumbline_model::report::Report;
use plumbline_model::runs::{representative, spread};
use plumbline_report::terminal::{self, Colors};
use plumbline_report::{ExportSource, Format, JunitOptions};
use plumbline_seam::{AuditOutput, Interactions, Order};

use crate::args::AuditArgs;
use crate::budget;
use crate::clock::now;
use crate::exit::Exit;
use crate::field_data::FieldData;
use crate::local_auditor::prepare;
use crate::opener;
use crate::output::{self, Outputs};
use crate::progress_line::{Count, ProgressLine};
use crate::recording_files::RecordingFile;
use crate::settings::FieldSettings;
use crate::standard_output as out;
use crate::visit_options;

/// Runs `plumbline audit`.
pub async fn run(args: AuditArgs) -> Result<Exit, Exit> {
    let budget = args.budget.as_deref();
    let budget = budget.map(|path| budget::read(path, args.budget_by_interval));
    let budget = budget.transpose()?;
    let default_formats: &[Format] = if args.json { &[Format::Json] } else { &[] };
    let outputs = Outputs::resolve(args.output, default_formats)?;
    outputs.check_destination()?;
    if let Some(path) = &args.bundle {
        output::check_file(path, "--bundle")?;
    }
    let mut options =
        visit_options::resolve(args.state, args.flow.as_deref(), args.allow_error_status)?;
    options.quick |= args.quick;
    options.profile |= args.profile;
    if outputs.contain(Format::Profile) && !options.profile {
        return Err(Exit::usage("--output profile requires --profile"));
    }
    if let Some(number) = args.interactions {
        options.interactions = Interactions::of(number.into()).unwrap_or_default();
    }
    if args.recording.is_some() {
        visit_options::refuse_with_recording(&options)?;
    }
    let recording = args.recording.as_deref().map(RecordingFile::read);
    let recording = recording.transpose()?;
    let url = match (args.url, &recording) {
        (_, Some(file)) => {
            options.replay = file.replay(Vec::new(), args.repeatable);
            file.recording.url.clone()
        }
        (Some(url), None) => url,
        (None, None) => return Err(Exit::usage("a URL or a recording is needed")),
    };
    let (auditor, [order], targets) = prepare(args.conditions, [url], options)?;
    if let Some(file) = &recording {
        file.provide_to(&auditor);
    }
    let field = FieldSettings::resolve(&args.field, &targets)?;
    let catalog = Arc::clone(&auditor.catalog);
    let field = FieldData::new(field, catalog, Arc::new(UnsharedQuota));
    field.begin(TRACKING_ID, &order.url, &order.device);
    let mut runs = Vec::new();
    let progress = (!args.quiet).then(|| ProgressLine::start(&auditor.cpu, Count::Runs(args.runs)));
    for number in 1..=args.runs {
        if let Some(progress) = &progress {
            progress.set_run(number);
        }
        let observe = |AuditEvent { visit, event }: AuditEvent<'_>| match event {
            VisitEvent::PhaseStarted(phase) => {
                if let Some(progress) = &progress {
                    progress.show(phase, visit);
                }
            }
            VisitEvent::DocumentLoaded(url) => field.arrived(TRACKING_ID, &order.device, url),
            VisitEvent::StepEnded(_) | VisitEvent::ConsentEnded { .. } => {}
        };
        let audited = if args.runs == 1 {
            auditor.audit(&order, &observe).await
        } else {
            auditor.audit_run(&order, &observe).await
        };
        let audited = audited.map_err(Exit::failed)?;
        let run = Run::new(audited);
        let is_measured = run.report.error.is_none();
        runs.push(run);
        if !is_measured {
            // Without all measurements there is no median, and no budget to check.
            break;
        }
    }
    let is_measured = runs.iter().all(|run| run.report.error.is_none());
    let reports: Vec<Report> = runs.iter().map(|run| run.report.clone()).collect();
    let chosen = chosen_run(&reports);
    if args.runs > 1 && is_measured {
        let all: Vec<&Report> = reports.iter().collect();
        // The budget may be checked against another run than the one that is shown.
        for run in &mut runs {
            run.report.intervals = intervals(&run.report, &all);
        }
    }
    if let Some(run) = runs.get_mut(chosen) {
        if args.runs > 1 {
            let observe = |AuditEvent { visit, event }: AuditEvent<'_>| {
                if let (Some(progress), VisitEvent::PhaseStarted(phase)) = (&progress, event) {
                    progress.show(phase, visit);
                }
            };
            run.measure_after(&auditor, &order, &observe).await?;
        }
        field.add_to(&mut run.report, TRACKING_ID);
        if args.runs > 1 && is_measured {
            run.report.runs = Some(spread(&reports, args.runs, chosen));
        }
    }
    drop(progress);
    let Some(run) = runs.get(chosen) else {
        return Err(Exit::failed("no run was made"));
    };
    if let (Some(path), Some(bundle)) = (&args.bundle, &run.packed) {
        std::fs::write(path, bundle)
            .map_err(|error| Exit::failed(format!("{}: {error}", path.display())))?;
    }
    let prints_text = !outputs.use_standard_output() && !args.quiet;
    if prints_text {
        if runs.len() > 1 && !is_measured {
            let (number, count) = (chosen + 1, runs.len());
            out::line(format_args!("Showing run {number} of {count} (failed)\n"))?;
        }
        out::text(terminal::render(&run.report, colors()))?;
        if outputs.is_empty() && !args.open && std::io::stdout().is_terminal() {
            out::line(
                "\nFor the whole report as a web page, add: --open (or: --output html --output-path \
                 FILE)",
            )?;
        }
    }
    let budget = match budget.filter(|_| is_measured) {
        None => None,
        Some(budget) => {
            let results: Result<Vec<_>, _> = runs.iter().map(Run::lighthouse).collect();
            Some(budget::check(&budget, &results?))
        }
    };
    let result = budget.as_ref().map(|budget| &budget.result);
    let html_file = run.with_source(|source| {
        let file = outputs.write(source, result)?;
        if args.open && file.is_none() {
            return output::write_html(source).map(Some);
        }
        Ok(file)
    })??;
    if let Some(file) = html_file.filter(|_| args.open)
        && let Err(error) = opener::open(&file).await
    {
        // The audit was made, and its exit code tells its result.
        eprintln!("plumbline: --open: {error}");
    }
    if let Some(error) = &run.report.error {
        // The text contains the reason.
        let reason = (!prints_text).then(|| terminal::not_measured(error));
        return Ok(Exit::Failed(reason));
    }
    match budget {
        None => Ok(Exit::Done),
        Some(budget) if args.quiet => budget.exit(),
        Some(budget) => budget.print(runs.len(), &outputs),
    }
}

/// Returns the index of the run to show: that with an error, which is the last one, else the one
/// that a server would choose.
fn chosen_run(runs: &[Report]) -> usize {
    let last = runs.len().saturating_sub(1);
    let is_measured = runs.iter().all(|run| run.error.is_none());
    if is_measured {
        representative(runs).unwrap_or(last)
    } else {
        last
    }
}

/// Returns whether standard output shows colours: if it is a terminal, and the environment (such as
/// NO_COLOR) does not forbid them.
fn colors() -> Colors {
    match anstream::AutoStream::choice(&std::io::stdout()) {
        anstream::ColorChoice::Never => Colors::None,
        _ => Colors::Ansi,
    }
}

/// The tracking id of the only audit of this process.
const TRACKING_ID: &str = "audit";

/// One run of an audit. The bundle stays packed until it is needed.
struct Run {
    report: Report,
    packed: Option<Vec<u8>>,
    made_at_ms: i64,
}

impl Run {
    fn new(audited: AuditOutput) -> Self {
        Self {
            report: audited.report,
            packed: audited.bundle,
            made_at_ms: now().0,
        }
    }

    /// Makes the measurements after the visits that the order asks for, if the page was measured.
    async fn measure_after(
        &mut self,
        auditor: &Auditor,
        order: &Order,
        observe: &(dyn Fn(AuditEvent<'_>) + Send + Sync),
    ) -> Result<(), Exit> {
        let output = AuditOutput {
            report: self.report.clone(),
            bundle: self.packed.take(),
            media: None,
            session: None,
        };
        let output = auditor.measure_after_runs(order, output, observe).await;
        let output = output.map_err(Exit::failed)?;
        (self.report, self.packed) = (output.report, output.bundle);
        Ok(())
    }

    /// Calls a function with the report and the unpacked bundle.
    fn with_source<T>(&self, then: impl FnOnce(&ExportSource) -> T) -> Result<T, Exit> {
        let bundle = self.packed.as_deref().map(Bundle::unpack).transpose();
        let bundle = bundle.map_err(Exit::failed)?;
        Ok(then(&ExportSource {
            report: &self.report,
            bundle: bundle.as_ref(),
            media: None,
            made_at_ms: self.made_at_ms,
            logo: None,
            junit: JunitOptions::default(),
        }))
    }

    fn lighthouse(&self) -> Result<serde_json::Value, Exit> {
        self.with_source(plumbline_report::lighthouse::result)
    }
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::{Failure, FailureCode};
    use serde_json::json;

    use super::*;

    fn report(fcp_ms: f64, tti_ms: f64) -> Report {
        let metric = |value: f64| json!({ "value": value, "score": 1.0 });
        let report = json!({
            "format": 1, "requestedUrl": "https://example.com/", "finalUrl": null,
            "conditions": {
                "device": { "id": "d", "name": "D", "mode": "mobile" },
                "network": { "id": "n", "name": "N", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0 },
                "location": { "id": "l", "name": "L", "mode": "agent", "addedRttMs": 0.0 },
                "cpu": { "rate": 1.0 },
            },
            "scores": {
                "performance": null, "accessibility": null, "seo": null, "bestPractices": null,
                "pwa": null,
            },
            "metrics": {
                "fcp": metric(fcp_ms), "lcp": null, "tbt": null, "cls": null, "si": null,
                "tti": metric(tti_ms),
            },
            "error": null, "document": null, "browser": null,
        });
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn the_command_shows_the_run_that_a_server_would_choose() {
        // Lighthouse CI would choose the first of these two; see `representative`.
        let runs = [report(1000.0, 6000.0), report(1000.0, 5000.0)];
        assert_eq!(representative(&runs), Some(1));
        assert_eq!(chosen_run(&runs), 1);
        let runs = [(900.0, 4000.0), (1000.0, 5000.0), (1100.0, 6000.0)];
        assert_eq!(chosen_run(&runs.map(|(fcp, tti)| report(fcp, tti))), 1);
    }

    #[test]
    fn a_run_that_could_not_be_measured_is_shown() {
        let failure = Failure::new(FailureCode::Timeout, "too late");
        let failed = Report {
            error: Some(failure),
            metrics: None,
            ..report(0.0, 0.0)
        };
        assert_eq!(chosen_run(&[report(1.0, 2.0), failed]), 1);
    }
}
