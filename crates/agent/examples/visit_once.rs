//! Visits a page once and prints its metrics as one line of JSON, for benchmarks: through the link,
//! or directly over the network of this process (the packet-level reference).
//!
//! `visit_once URL NETWORK|direct [DEVICE]`

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use plumbline_browser::{LaunchOptions, Launcher, NetworkPath, Pool, VisitError, VisitPlan, visit};
use plumbline_catalog::{BUILT_IN, Catalog};
use plumbline_engine::metrics;
use plumbline_link::{Guard, LineProfile, Link, LinkConfig};
use plumbline_trace::{ProtocolLog, Trace};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(network)) = (args.next(), args.next()) else {
        return Err("usage: visit_once URL NETWORK|direct [DEVICE]".into());
    };
    let device = args.next().unwrap_or_else(|| "mobile".to_owned());
    let catalog = Catalog::load(BUILT_IN)?;
    let device = catalog.device(&device).ok_or("unknown device")?.clone();
    let link = match network.as_str() {
        "direct" => None,
        id => {
            let network = catalog.network(id).ok_or("unknown network")?;
            let profile = LineProfile {
                down_kbps: Some(network.down_kbps),
                up_kbps: Some(network.up_kbps),
                rtt_ms: network.rtt_ms,
                loss_pct: network.loss_pct,
            };
            let guard = Arc::new(Guard::new(vec!["127.0.0.0/8".parse()?]));
            Some(Link::open(LinkConfig::new(profile, guard))?)
        }
    };
    let launcher = Launcher::find(LaunchOptions {
        only_through_proxy: link.is_some(),
        ..LaunchOptions::default()
    })?;
    let plan = VisitPlan {
        network: link.as_ref().map_or(NetworkPath::Direct, |link| {
            NetworkPath::Proxy(link.address())
        }),
        deadline: Duration::from_secs(240),
        ..VisitPlan::new(&url, device)
    };
    let browser = Pool::start(launcher, 1).take().await?;
    let bundle = match visit(browser, &plan, &|_| {}).await {
        Ok(bundle) => bundle,
        Err(VisitError::Page(failure)) => return Err(failure.into()),
        Err(VisitError::Fault(reason)) => return Err(reason.into()),
    };
    let trace = Trace::read(&bundle.trace)?;
    let metrics = metrics::measure(&trace, Some(&ProtocolLog::read(&bundle.log)?));
    println!(
        "{}",
        json!({
            "fcp": metrics.fcp.ok(), "lcp": metrics.lcp.ok(), "si": metrics.si.ok(),
            "load": metrics.load_ms, "tbt": metrics.tbt.ok(),
        })
    );
    Ok(())
}
