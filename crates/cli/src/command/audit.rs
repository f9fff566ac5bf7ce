//! `audit`: one page, now, with no server.

use std::io::{IsTerminal, Write};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use plumbline_agent::{Auditor, Cpu, Order};
use plumbline_browser::Pool;
use plumbline_bundle::Phase;
use plumbline_catalog::Catalog;
use plumbline_link::{AllowTarget, Guard};
use url::Url;

use crate::args::AuditArgs;
use crate::exit::Exit;
use crate::out;
use crate::settings::{TargetSettings, calibration_file, launch_options};

pub async fn run(args: AuditArgs) -> Result<Exit, Exit> {
    let named_targets = !args.targets.allow_target.is_empty();
    let TargetSettings {
        mut allow,
        stands_at,
        catalog,
    } = TargetSettings::resolve(args.targets, args.stands_at)?;
    let order = Order {
        url: args.url,
        device: args.device,
        network: args.network,
        location: args.location.unwrap_or_else(|| stands_at.clone()),
    };
    let url = check(&order, &catalog)?;
    if !named_targets {
        // Who types the URL owns the machine: what is named may be visited, and nothing beyond it.
        allow.extend(target_of(&url));
    }
    let launcher = super::serve::find_browser(launch_options(args.browser))?;
    let auditor = Auditor {
        cpu: Cpu::new(launcher.clone(), calibration_file()),
        // One visit, as a rule: a spare would start beside it and never be used.
        browsers: Pool::start(launcher, 0),
        catalog: Arc::new(catalog),
        guard: Arc::new(Guard::new(allow)),
        stands_at,
    };
    let progress = Progress::start();
    let audited = auditor
        .audit(&order, &|phase| progress.show(phase))
        .await
        .map_err(Exit::failed)?;
    progress.end();
    let report = audited.report;
    if let (Some(path), Some(bundle)) = (&args.bundle, &audited.bundle) {
        std::fs::write(path, bundle)
            .map_err(|error| Exit::failed(format!("{}: {error}", path.display())))?;
    }
    if args.json {
        let text = serde_json::to_string_pretty(&report).map_err(Exit::failed)?;
        out::line(text)?;
    } else {
        out::text(plumbline_report::terminal::render(&report))?;
    }
    Ok(match report.error {
        None => Exit::Done,
        Some(_) => Exit::Failed(None),
    })
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

fn target_of(url: &Url) -> Option<AllowTarget> {
    let target = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
    AllowTarget::from_str(&target).ok()
}

/// One line on standard error that follows the audit; several where it is no terminal.
struct Progress {
    started: Instant,
    overwrite: bool,
}

impl Progress {
    fn start() -> Self {
        Self {
            started: Instant::now(),
            overwrite: std::io::stderr().is_terminal(),
        }
    }

    fn show(&self, phase: Phase) {
        let seconds = self.started.elapsed().as_secs_f64();
        let mut err = std::io::stderr().lock();
        // Progress is a courtesy: a closed standard error must not end the audit.
        let _ = if self.overwrite {
            write!(err, "\r\x1b[K{seconds:5.1} s  {}", phase.as_str())
        } else {
            writeln!(err, "{seconds:5.1} s  {}", phase.as_str())
        };
        let _ = err.flush();
    }

    fn end(&self) {
        if self.overwrite {
            eprint!("\r\x1b[K");
        }
    }
}
