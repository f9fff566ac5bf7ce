//! Checks before the first audit that a page can connect only to what the guard allows.
//!
//! The built-in page is visited in the same way as audited pages. It tries HTTP, WebSockets, WebRTC
//! and WebTransport to addresses of this machine that the guard forbids, where this process
//! listens. If anything arrives, or Chromium offers an address for UDP, browsers on this machine
//! are not isolated.

mod probes;
mod site;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use plumbline_browser::{CorePace, Launcher, NetworkPath, Throttle, VisitPlan, visit};
use plumbline_catalog::{Catalog, Device};
use plumbline_link::{Guard, LineProfile, Link, LinkConfig, Target};
use tokio::time::timeout;

use probes::Probes;
use site::TestSite;

/// The time from the start of the browser until the page has reported, usually 1 to 2 s, and 5 s
/// without a page clock.
const DEADLINE: Duration = Duration::from_secs(45);

/// The reason why no audit may be made on this machine.
#[derive(Debug, thiserror::Error)]
pub enum SelfCheckError {
    #[error("pages can bypass the guard on this machine: {}", .0.join("; "))]
    Leak(Vec<String>),
    #[error("the self-check of network isolation failed to run: {0}")]
    NotCarriedOut(String),
}

impl SelfCheckError {
    fn not_carried_out(error: impl std::fmt::Display) -> Self {
        Self::NotCarriedOut(error.to_string())
    }
}

/// Visits the built-in page with a browser of this launcher.
pub fn self_check<'a>(
    launcher: &'a Launcher,
    catalog: &'a Catalog,
) -> BoxFuture<'a, Result<(), SelfCheckError>> {
    Box::pin(async move {
        let device = catalog.devices().first();
        let device =
            device.ok_or_else(|| SelfCheckError::not_carried_out("no device in the catalog"))?;
        timeout(DEADLINE, check(launcher, device.clone()))
            .await
            .unwrap_or_else(|_| {
                let reason = format!("the page did not report within {} s", DEADLINE.as_secs());
                Err(SelfCheckError::NotCarriedOut(reason))
            })
    })
}

async fn check(launcher: &Launcher, device: Device) -> Result<(), SelfCheckError> {
    let probes = Probes::open().map_err(SelfCheckError::not_carried_out)?;
    let page = include_str!("page.html").replace("PROBES", &probes.as_json());
    let site = TestSite::open(page)
        .await
        .map_err(SelfCheckError::not_carried_out)?;
    let only_the_site: Target = site
        .address()
        .to_string()
        .parse()
        .map_err(SelfCheckError::not_carried_out)?;
    let guard = Arc::new(Guard::new(vec![only_the_site]));
    let mut browser = launcher
        .launch()
        .await
        .map_err(SelfCheckError::not_carried_out)?;
    // The page mostly waits for packets that must not be sent. On a clock of its own, these waits
    // pass at once whenever nothing is under way.
    let throttle = if browser.sees_clock() {
        let nominal = CorePace::default();
        Throttle::ByClock { rate: 1.0, nominal }
    } else {
        Throttle::NONE
    };
    browser.wait_for_turn(throttle).await;
    let config = LinkConfig {
        expects_refusals: true,
        clock: Some(Arc::clone(browser.clock())),
        ..LinkConfig::new(LineProfile::UNLIMITED, guard)
    };
    let link = Link::open(config).map_err(SelfCheckError::not_carried_out)?;
    let plan = VisitPlan {
        network: NetworkPath::Proxy(link.address()),
        throttle,
        deadline: DEADLINE,
        ..VisitPlan::new(format!("http://{}/", site.address()), device)
    };
    let report = tokio::select! {
        report = site.report() => report,
        visit = visit(browser, &plan, &|_| {}) => Err(match visit {
            Ok(_) => "the page did not report".to_owned(),
            Err(error) => error.to_string(),
        }),
    };
    let report = report.map_err(SelfCheckError::NotCarriedOut)?;
    link.close().await;
    let mut leaks = probes.arrivals();
    if report.candidates > 0 {
        leaks.push(format!(
            "Chromium offered {} addresses for WebRTC",
            report.candidates
        ));
    }
    if !leaks.is_empty() {
        return Err(SelfCheckError::Leak(leaks));
    }
    if report.error.is_empty() {
        Ok(())
    } else {
        Err(SelfCheckError::NotCarriedOut(report.error))
    }
}
