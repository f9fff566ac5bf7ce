//! `audit`: one page, now, with no server.

use std::io::{IsTerminal, Write};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use plumbline_agent::{AuditOutput, Auditor, Cpu, Order, VisitEvent};
use plumbline_browser::Pool;
use plumbline_bundle::{Bundle, Phase};
use plumbline_catalog::Catalog;
use plumbline_engine::report::Report;
use plumbline_field::UnsharedQuota;
use plumbline_link::Target;
use plumbline_report::budget::median_run;
use plumbline_report::{ExportSource, Format};
use url::Url;

use crate::args::AuditArgs;
use crate::budget;
use crate::clock::now;
use crate::exit::Exit;
use crate::field_data::FieldData;
use crate::https_client::HttpsClient;
use crate::output::Outputs;
use crate::settings::{FieldSettings, TargetSettings, calibration_file, launch_options};
use crate::standard_output as out;

pub async fn run(args: AuditArgs) -> Result<Exit, Exit> {
    let budget = args.budget.as_deref().map(budget::read).transpose()?;
    let by_default: &[Format] = if args.json { &[Format::Json] } else { &[] };
    let outputs = Outputs::resolve(args.output, by_default)?;
    let named_targets = !args.targets.allow_target.is_empty();
    let mut targets = TargetSettings::resolve(args.targets, args.stands_at)?;
    let field = FieldSettings::resolve(&args.field, &targets)?;
    let order = Order {
        url: args.url,
        device: args.device,
        network: args.network,
        location: args.location.unwrap_or_else(|| targets.stands_at.clone()),
    };
    let url = check(&order, &targets.catalog)?;
    if !named_targets {
        // Who types the URL owns the machine: what is named may be visited, and nothing beyond it.
        targets.allow.extend(target_of(&url));
    }
    let guard = Arc::new(targets.guard()?);
    let TargetSettings {
        stands_at, catalog, ..
    } = targets;
    let launcher = super::serve::find_browser(launch_options(args.browser))?;
    let catalog = Arc::new(catalog);
    let (known, alone) = (Arc::clone(&catalog), Arc::new(UnsharedQuota));
    let field = FieldData::new(field, known, alone, HttpsClient::new);
    field.begin(ONLY, &order.url, &order.device);
    let auditor = Auditor {
        cpu: Cpu::new(launcher.clone(), calibration_file()),
        // Often one visit is enough: a spare would start beside it and never be used.
        browsers: Pool::start(launcher, 0),
        catalog,
        guard,
        agent_location: stands_at,
        max_visits: plumbline_agent::MAX_VISITS,
    };
    let mut runs = Vec::new();
    for turn in 1..=args.runs {
        let progress = Progress::start(turn, args.runs);
        let observe = |event: VisitEvent<'_>| match event {
            VisitEvent::PhaseStarted(phase) => progress.show(phase),
            VisitEvent::DocumentLoaded(url) => field.arrived(ONLY, &order.device, url),
        };
        let audited = match args.runs {
            1 => auditor.audit(&order, &observe).await,
            _ => auditor.audit_run(&order, &observe).await,
        };
        let audited = audited.map_err(Exit::failed)?;
        progress.end();
        let run = Run::new(audited);
        let is_measured = run.report.error.is_none();
        runs.push(run);
        if !is_measured {
            // A page that cannot be measured every time has no median, and no budget to keep.
            break;
        }
    }
    let is_measured = runs.iter().all(|run| run.report.error.is_none());
    let results = if budget.is_some() || runs.len() > 1 {
        runs.iter()
            .map(Run::lighthouse)
            .collect::<Result<Vec<_>, _>>()?
    } else {
        Vec::new()
    };
    let last = runs.len().saturating_sub(1);
    let chosen = if is_measured {
        median_run(&results).unwrap_or(last)
    } else {
        last
    };
    if let Some(run) = runs.get_mut(chosen) {
        field.add_to(&mut run.report, ONLY);
    }
    let Some(run) = runs.get(chosen) else {
        return Err(Exit::failed("nothing was audited"));
    };
    if let (Some(path), Some(bundle)) = (&args.bundle, &run.packed) {
        std::fs::write(path, bundle)
            .map_err(|error| Exit::failed(format!("{}: {error}", path.display())))?;
    }
    if !outputs.takes_standard_output() {
        if runs.len() > 1 {
            let (run, all) = (chosen + 1, runs.len());
            out::line(format_args!("Run {run} of {all} stands for all.\n"))?;
        }
        out::text(plumbline_report::terminal::render(&run.report))?;
    }
    run.with_subject(|subject| outputs.write(subject))??;
    if !is_measured {
        return Ok(Exit::Failed(None));
    }
    let Some(budget) = budget else {
        return Ok(Exit::Done);
    };
    budget::hold(&budget, &results, &outputs)
}

/// What the one audit of this process is called where others have tracking ids.
const ONLY: &str = "audit";

/// One audit of several. The evidence stays packed until it is needed.
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

    fn with_subject<T>(&self, then: impl FnOnce(&ExportSource) -> T) -> Result<T, Exit> {
        let bundle = self.packed.as_deref().map(Bundle::unpack).transpose();
        let bundle = bundle.map_err(Exit::failed)?;
        Ok(then(&ExportSource {
            report: &self.report,
            bundle: bundle.as_ref(),
            made_at_ms: self.made_at_ms,
        }))
    }

    fn lighthouse(&self) -> Result<serde_json::Value, Exit> {
        self.with_subject(plumbline_report::lighthouse::result)
    }
}

fn check(order: &Order, catalog: &Catalog) -> Result<Url, Exit> {
    let known = |ids: Vec<&str>| ids.join(", ");
    if catalog.device(&order.device).is_none() {
        let ids = catalog.devices().iter().map(|d| d.id.as_str()).collect();
        return Err(Exit::usage(format!(
            "no device `{}`; there are {}",
            order.device,
            known(ids)
        )));
    }
    if catalog.network(&order.network).is_none() {
        let ids = catalog.networks().iter().map(|n| n.id.as_str()).collect();
        return Err(Exit::usage(format!(
            "no network `{}`; there are {}",
            order.network,
            known(ids)
        )));
    }
    if catalog.location(&order.location).is_none() {
        let ids = catalog.locations().iter().map(|l| l.id.as_str()).collect();
        return Err(Exit::usage(format!(
            "no location `{}`; there are {}",
            order.location,
            known(ids)
        )));
    }
    let url = Url::parse(&order.url)
        .map_err(|error| Exit::usage(format!("`{}` is no URL: {error}", order.url)))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Exit::usage(format!(
            "`{}` is neither http nor https",
            order.url
        )));
    }
    Ok(url)
}

fn target_of(url: &Url) -> Option<Target> {
    let target = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
    Target::from_str(&target).ok()
}

/// One line on standard error that follows the audit; several where it is no terminal.
struct Progress {
    started: Instant,
    overwrite: bool,
    /// Empty for the only run.
    turn: String,
}

impl Progress {
    fn start(turn: u32, of: u32) -> Self {
        Self {
            started: Instant::now(),
            overwrite: std::io::stderr().is_terminal(),
            turn: match of {
                1 => String::new(),
                _ => format!("run {turn} of {of}  "),
            },
        }
    }

    fn show(&self, phase: Phase) {
        let turn = &self.turn;
        let seconds = self.started.elapsed().as_secs_f64();
        let mut err = std::io::stderr().lock();
        // Progress is a courtesy: a closed standard error must not end the audit.
        let _ = if self.overwrite {
            write!(err, "\r\x1b[K{turn}{seconds:5.1} s  {}", phase.as_str())
        } else {
            writeln!(err, "{turn}{seconds:5.1} s  {}", phase.as_str())
        };
        let _ = err.flush();
    }

    fn end(&self) {
        if self.overwrite {
            eprint!("\r\x1b[K");
        }
    }
}
