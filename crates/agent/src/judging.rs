//! Turns evidence into a report, with a deadline.
//!
//! Judging is pure computation on a thread of its own, and Rust cannot end a thread from outside. So it is asked to stop when
//! its time is over, and looks for that between one step and the next. Nobody waits for the step it is in: the slot is free
//! at once, and what the thread comes to is dropped. As such a thread still holds its evidence, only a few may be judging.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumbline_bundle::{Bundle, Failure, FailureCode, Phase, PhaseTiming};
use plumbline_engine::report::Conditions;
use plumbline_engine::{evaluate_with_media, not_measured, store_conditions};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::{AuditFault, Audited};

/// A page of the largest evidence that is kept takes a few seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// In the whole process, those among them that nobody waits for any more: each holds its evidence and all that is known of it.
const AT_A_TIME: usize = 2;
static PLACES: Semaphore = Semaphore::const_new(AT_A_TIME);

/// Judges a visit. A page whose evidence takes too long is a report with an error.
pub(crate) async fn judge(bundle: Bundle, conditions: Conditions) -> Result<Audited, AuditFault> {
    judge_with(DEADLINE, audited, bundle, conditions).await
}

/// What judges; none when it was stopped.
type Judge = fn(Bundle, Conditions, &AtomicBool) -> Result<Option<Audited>, AuditFault>;

async fn judge_with(
    deadline: Duration,
    judge: Judge,
    bundle: Bundle,
    conditions: Conditions,
) -> Result<Audited, AuditFault> {
    // Who has the places is told to stop at a deadline of its own.
    let place = timeout(2 * DEADLINE, PLACES.acquire()).await;
    let Ok(Ok(place)) = place else {
        return Err(AuditFault("no thread was free for judging".to_owned()));
    };
    let unfinished = {
        let message = format!(
            "The page does too much while it loads to be measured: what it did could not be judged within {} s.",
            deadline.as_secs()
        );
        let failure = Failure::new(FailureCode::TooLarge, message);
        not_measured(&bundle.requested_url, conditions.clone(), failure)
    };
    let stop = Stop::default();
    let stopped = Arc::clone(&stop.0);
    let judging = spawn_blocking(move || {
        let _place = place;
        judge(bundle, conditions, &stopped)
    });
    match timeout(deadline, judging).await {
        Ok(Ok(Ok(Some(audited)))) => Ok(audited),
        Ok(Ok(Ok(None))) | Err(_) => Ok(unfinished.into()),
        Ok(Ok(Err(fault))) => Err(fault),
        Ok(Err(_)) => Err(AuditFault("judging panicked".to_owned())),
    }
}

/// Asks the thread to stop when nobody waits for it any more, however that came.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn audited(
    mut bundle: Bundle,
    conditions: Conditions,
    stop: &AtomicBool,
) -> Result<Option<Audited>, AuditFault> {
    let started = Instant::now();
    store_conditions(&mut bundle, &conditions).map_err(AuditFault::of)?;
    let Some((mut report, shown)) = evaluate_with_media(&bundle, conditions, stop) else {
        return Ok(None);
    };
    report.timings.push(PhaseTiming {
        phase: Phase::Judging,
        ms: started.elapsed().as_secs_f64() * 1000.0,
    });
    let shown = shown.map(|shown| shown.pack()).transpose();
    let shown = shown.map_err(AuditFault::of)?;
    let bundle = bundle.pack().map_err(AuditFault::of)?;
    Ok(Some(Audited {
        report,
        bundle: Some(bundle),
        media: shown,
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plumbline_bundle::{BrowserIdentity, FORMAT, MainDocument};
    use plumbline_catalog::{BUILT_IN, Catalog};

    use super::*;
    use crate::Order;

    fn visited() -> (Bundle, Conditions) {
        let order = Order {
            url: "https://example.com/".to_owned(),
            device: "mobile".to_owned(),
            network: "mobileSlow4g".to_owned(),
            location: "us-tx".to_owned(),
        };
        let catalog = Catalog::load(BUILT_IN).unwrap();
        let resolved = crate::conditions::resolve(&catalog, "us-tx", &order).unwrap();
        let bundle = Bundle {
            format: FORMAT,
            requested_url: order.url.clone(),
            final_url: order.url,
            document: MainDocument::default(),
            browser: BrowserIdentity::default(),
            trace: br#"{"traceEvents":[]}"#.to_vec(),
            log: b"[]".to_vec(),
            screenshot: None,
            artifacts: BTreeMap::new(),
            warnings: Vec::new(),
            timings: Vec::new(),
        };
        (bundle, resolved.conditions)
    }

    /// Goes on until it is asked to stop.
    fn endless(_: Bundle, _: Conditions, stop: &AtomicBool) -> Result<Option<Audited>, AuditFault> {
        while !stop.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Ok(None)
    }

    #[tokio::test]
    async fn what_cannot_be_judged_in_time_is_too_large_and_leaves_its_place() {
        // More often than there are places: each is free again because its thread was asked to stop.
        for _ in 0..=AT_A_TIME {
            let (bundle, conditions) = visited();
            let deadline = Duration::from_millis(10);
            let judged = judge_with(deadline, endless, bundle, conditions).await;
            let report = judged.unwrap().report;
            assert_eq!(report.error.unwrap().code, FailureCode::TooLarge);
            assert_eq!(report.requested_url, "https://example.com/");
        }
    }

    #[test]
    fn who_is_asked_to_stop_comes_to_nothing() {
        let (bundle, conditions) = visited();
        let audited = audited(bundle, conditions, &AtomicBool::new(true));
        assert!(audited.unwrap().is_none());
    }

    #[tokio::test]
    async fn what_can_be_judged_in_time_is_a_report_with_its_evidence() {
        let (bundle, conditions) = visited();
        let audited = judge(bundle, conditions).await.unwrap();
        assert!(audited.bundle.is_some());
        // A trace without events.
        assert_eq!(audited.report.error.unwrap().code, FailureCode::Internal);
    }
}
