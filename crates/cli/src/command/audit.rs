//! `audit`: audits one page without a server.

use std::io::IsTerminal;
use std::str::FromStr;
use std::sync::Arc;

use plumbline_agent::{AuditEvent, Auditor, Cpu, VisitEvent};
use plumbline_browser::Pool;
use plumbline_bundle::Bundle;
use plumbline_catalog::Catalog;
use plumbline_field::UnsharedQuota;
use plumbline_link::Target;
use plumbline_model::report::Report;
use plumbline_model::runs::representative;
use plumbline_report::terminal::{self, Colors};
use plumbline_report::{ExportSource, Format, JunitOptions};
use plumbline_seam::{AuditOutput, Order};
use url::Url;

use crate::args::AuditArgs;
use crate::budget;
use crate::clock::now;
use crate::exit::Exit;
use crate::field_data::FieldData;
use crate::output::Outputs;
use crate::progress_line::ProgressLine;
use crate::settings::{FieldSettings, TargetSettings, calibration_file, launch_options};
use crate::standard_output as out;
use crate::suggestion::{unknown_id, with_scheme};
use crate::visit_options;

/// Runs `plumbline audit`.
pub async fn run(args: AuditArgs) -> Result<Exit, Exit> {
    let budget = args.budget.as_deref().map(budget::read).transpose()?;
    let default_formats: &[Format] = if args.json { &[Format::Json] } else { &[] };
    let outputs = Outputs::resolve(args.output, default_formats)?;
    let has_allowed_targets = !args.targets.allow_target.is_empty();
    let mut targets = TargetSettings::resolve(args.targets, args.agent_location)?;
    let field = FieldSettings::resolve(&args.field, &targets)?;
    let options = visit_options::resolve(args.state, args.allow_error_status)?;
    let order = Order {
        url: with_scheme(&args.url).map_or(args.url, String::from),
        device: args.device,
        network: args.network,
        location: args
            .location
            .unwrap_or_else(|| targets.agent_location.id.clone()),
        options,
    };
    let url = check(&order, &targets.catalog)?;
    if !has_allowed_targets {
        // The user of this command may visit any host: the one in the URL is allowed, and no
        // others.
        targets.allow.extend(target_of(&url));
    }
    let guard = Arc::new(targets.guard()?);
    let TargetSettings {
        agent_location,
        catalog,
        ..
    } = targets;
    let launcher = super::serve::find_browser(launch_options(args.browser))?;
    let catalog = Arc::new(catalog);
    let field = FieldData::new(field, Arc::clone(&catalog), Arc::new(UnsharedQuota));
    field.begin(TRACKING_ID, &order.url, &order.device);
    let auditor = Auditor {
        cpu: Cpu::new(launcher.clone(), calibration_file()),
        // One visit is often enough: a spare browser would be started and never used.
        browsers: Pool::start(launcher, 0),
        catalog,
        guard,
        agent_location,
        max_visits: plumbline_agent::MAX_VISITS,
    };
    let mut runs = Vec::new();
    for number in 1..=args.runs {
        let progress = (!args.quiet).then(|| ProgressLine::start(number, args.runs));
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
        drop(progress);
        let run = Run::new(audited);
        let is_measured = run.report.error.is_none();
        runs.push(run);
        if !is_measured {
            // Without all measurements there is no median, and no budget to check.
            break;
        }
    }
    let is_measured = runs.iter().all(|run| run.report.error.is_none());
    let reports = runs.iter().map(|run| run.report.clone());
    let chosen = chosen_run(&reports.collect::<Vec<_>>());
    if let Some(run) = runs.get_mut(chosen) {
        field.add_to(&mut run.report, TRACKING_ID);
    }
    let Some(run) = runs.get(chosen) else {
        return Err(Exit::failed("no run was made"));
    };
    if let (Some(path), Some(bundle)) = (&args.bundle, &run.packed) {
        std::fs::write(path, bundle)
            .map_err(|error| Exit::failed(format!("{}: {error}", path.display())))?;
    }
    if !outputs.use_standard_output() && !args.quiet {
        if runs.len() > 1 {
            let (number, count) = (chosen + 1, runs.len());
            let reason = if is_measured { "median" } else { "failed" };
            out::line(format_args!("Showing run {number} of {count} ({reason})\n"))?;
        }
        out::text(terminal::render(&run.report, colors()))?;
        if outputs.is_empty() && std::io::stdout().is_terminal() {
            out::line(
                "\nTo save the whole report as a web page, add: --output html --output-path FILE",
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
    run.with_source(|source| outputs.write(source, result))??;
    if !is_measured {
        return Ok(Exit::Failed(None));
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

    /// Calls a function with the report and the unpacked bundle.
    fn with_source<T>(&self, then: impl FnOnce(&ExportSource) -> T) -> Result<T, Exit> {
        let bundle = self.packed.as_deref().map(Bundle::unpack).transpose();
        let bundle = bundle.map_err(Exit::failed)?;
        Ok(then(&ExportSource {
            report: &self.report,
            bundle: bundle.as_ref(),
            media: None,
            made_at_ms: self.made_at_ms,
            junit: JunitOptions::default(),
        }))
    }

    fn lighthouse(&self) -> Result<serde_json::Value, Exit> {
        self.with_source(plumbline_report::lighthouse::result)
    }
}

/// Checks the ids and the URL of an order.
fn check(order: &Order, catalog: &Catalog) -> Result<Url, Exit> {
    if catalog.device(&order.device).is_none() {
        let ids = catalog.devices().iter().map(|device| device.id.as_str());
        return Err(Exit::usage(unknown_id("device", &order.device, ids)));
    }
    if catalog.network(&order.network).is_none() {
        let ids = catalog.networks().iter().map(|network| network.id.as_str());
        return Err(Exit::usage(unknown_id("network", &order.network, ids)));
    }
    if catalog.location(&order.location).is_none() {
        let ids = catalog
            .locations()
            .iter()
            .map(|location| location.id.as_str());
        return Err(Exit::usage(unknown_id("location", &order.location, ids)));
    }
    let url = Url::parse(&order.url);
    if let Ok(url) = &url
        && matches!(url.scheme(), "http" | "https")
    {
        return Ok(url.clone());
    }
    Err(Exit::usage(match url {
        Ok(_) => format!("`{}` is not an http or https URL", order.url),
        Err(error) => format!("`{}` is not a URL: {error}", order.url),
    }))
}

fn target_of(url: &Url) -> Option<Target> {
    let target = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
    Target::from_str(&target).ok()
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
