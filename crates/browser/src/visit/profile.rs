//! Loads a page once more with a sampling profiler, which says which functions the load spent its
//! time in. The profiler slows the page down, so that nothing of this load is a measurement.

use futures_util::future::BoxFuture;
use plumbline_bundle::{Phase, ProfileRecords};

use super::{OVERHEAD_DEADLINE, VisitEvent, expectation, load, open, parse_url};
use crate::follow_up;
use crate::gather::original_places;
use crate::launch::Browser;
use crate::page::{Purpose, TraceKind, VisitError};
use crate::plan::VisitPlan;

/// The records of a trace, with the trace itself. Their places in scripts have no originals.
pub type Analysis = BoxFuture<'static, Result<(Vec<u8>, ProfileRecords), String>>;

/// The result of a load with a profiler.
#[derive(Debug, Default)]
pub struct ProfiledLoad {
    pub records: ProfileRecords,
    /// Chromium's trace of the load; `None` if there is none.
    pub trace: Option<Vec<u8>>,
    /// Protocol events of the network domain during the load, as in a bundle; empty if there is no
    /// trace.
    pub log: Vec<u8>,
}

/// Loads the page of a plan with an unused browser and a profiler, has its trace analysed, adds the
/// places in the sources that scripts were built from, and ends the browser. It never fails: the
/// records contain the reason why something is missing.
pub fn profile<'a>(
    mut browser: Browser,
    plan: &'a VisitPlan,
    analyse: impl FnOnce(Vec<u8>) -> Analysis + Send + 'a,
    observer: &'a (dyn Fn(VisitEvent<'_>) + Send + Sync),
) -> BoxFuture<'a, ProfiledLoad> {
    Box::pin(async move {
        browser.wait_for_turn(plan.throttle).await;
        let mut profiled = ProfiledLoad::default();
        let timeout = plan.steps_deadline() + plan.deadline + OVERHEAD_DEADLINE;
        let performing = perform(&mut browser, plan, analyse, observer, &mut profiled);
        let result = tokio::time::timeout(timeout, performing).await;
        if let Some(error) = follow_up::end(browser, result).await {
            profiled.records.error.get_or_insert(error);
        }
        profiled
    })
}

async fn perform(
    browser: &mut Browser,
    plan: &VisitPlan,
    analyse: impl FnOnce(Vec<u8>) -> Analysis + Send,
    observer: &(dyn Fn(VisitEvent<'_>) + Send + Sync),
    profiled: &mut ProfiledLoad,
) -> Result<(), VisitError> {
    let url = parse_url(&plan.url)?;
    let (mut page, emulation) = open(browser, plan, observer, Purpose::Profile).await?;
    page.start_trace(TraceKind::Profile).await?;
    load(&mut page, plan, &url, observer).await?;
    emulation.finish_for_good();
    page.end_trace().await?;
    // The observer may change the conditions in this phase, because nothing is recorded any more.
    observer(VisitEvent::PhaseStarted(Phase::Gathering));
    page.stop_recording();
    page.disable_cpu_throttling();
    for expect in plan.session_expect.iter().chain(&plan.expect) {
        expectation::check(&mut page, expect).await?;
    }
    page.receive_trace().await?;
    let analysis = analyse(page.trace.take());
    let (trace, records) = page.drive(analysis).await.map_err(VisitError::Fault)?;
    *profiled = ProfiledLoad {
        records,
        trace: Some(trace),
        log: page.log.take(),
    };
    original_places::add(&mut page, &mut profiled.records).await;
    page.check_size()
}
