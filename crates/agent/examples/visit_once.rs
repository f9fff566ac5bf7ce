//! Visits a page once and prints its metrics as one line of JSON, for benchmarks: through the link,
//! or directly over the network of this process (the packet-level reference).
//!
//! `visit_once URL NETWORK|direct [DEVICE]`

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use plumbline_browser::{
    CorePace, LaunchOptions, Launcher, NetworkPath, Pool, Throttle, VisitError, VisitPlan, visit,
};
use plumbline_catalog::{BUILT_IN, Catalog};
use plumbline_engine::metrics;
use plumbline_link::{Guard, LineProfile, Link, LinkConfig};
use plumbline_trace::{ProtocolLog, Trace};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(network)) = (args.next(), args.next()) else {
        return Err("usage: visit_once URL NETWORK|direct [DEVICE [RATE]]".into());
    };
    let device = args.next().unwrap_or_else(|| "mobile".to_owned());
    let rate: Option<f64> = args.next().map(|rate| rate.parse()).transpose()?;
    let nominal = CorePace::default();
    let throttle = match (rate, network.as_str()) {
        (None, _) => Throttle::NONE,
        (Some(rate), "direct") => Throttle::ByChromium { rate, nominal },
        (Some(rate), _) => Throttle::ByClock { rate, nominal },
    };
    let catalog = Catalog::load(BUILT_IN)?;
    let device = catalog.device(&device).ok_or("unknown device")?.clone();
    let launcher = Launcher::find(LaunchOptions {
        only_through_proxy: network != "direct",
        page_clock: matches!(throttle, Throttle::ByClock { .. }),
        ..LaunchOptions::default()
    })?;
    let mut browser = Pool::start(launcher, 1).take().await?;
    browser.wait_for_turn(throttle).await;
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
            Some(Link::open(LinkConfig {
                clock: rate.is_some().then(|| Arc::clone(browser.clock())),
                ..LinkConfig::new(profile, guard)
            })?)
        }
    };
    let plan = VisitPlan {
        network: link.as_ref().map_or(NetworkPath::Direct, |link| {
            NetworkPath::Proxy(link.address())
        }),
        deadline: Duration::from_secs(240),
        throttle,
        ..VisitPlan::new(&url, device)
    };
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
