//! Judges the evidence of a visit on a blocking thread, with a deadline.
//!
//! Judging is pure computation, and Rust cannot end a thread from outside. At the deadline a flag
//! asks the thread to stop, which it checks between steps. The slot does not wait for the current
//! step: it is free at once, and the result of the thread is dropped. Because such a thread still
//! holds its evidence, only a few judge at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumbline_bundle::{Bundle, Failure, FailureCode, Phase, PhaseTiming, ProfileRecords, Record};
use plumbline_engine::{evaluate_with_media, profile as profile_records};
use plumbline_model::report::{Conditions, Report};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::AuditFault;
use crate::held_evidence::{HeldEvidence, JudgedVisit};

/// Deadline of judging one visit. The largest evidence that is accepted takes a few seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// Total size of the traces that are judged at the same time in the process, including those whose
/// result is no longer awaited: judging needs several times as much memory as the text of a trace.
/// Ordinary traces have a few megabytes, so several are judged at once; the largest only alone.
const MAX_TRACES_KB: u32 = 40_000;
static PERMITS: Semaphore = Semaphore::const_new(MAX_TRACES_KB as usize);

/// Judges a visit. A page whose evidence takes too long gets a report with an error.
pub(crate) async fn judge(
    bundle: Bundle,
    conditions: Conditions,
) -> Result<JudgedVisit, AuditFault> {
    judge_with(DEADLINE, judge_bundle, bundle, conditions).await
}

/// A function that judges a visit; it returns `None` when it was stopped.
type Judge = fn(Bundle, Conditions, &AtomicBool) -> Result<Option<JudgedVisit>, AuditFault>;

async fn judge_with(
    deadline: Duration,
    judge: Judge,
    bundle: Bundle,
    conditions: Conditions,
) -> Result<JudgedVisit, AuditFault> {
    let permit = permit_for(&bundle.trace).await?;
    let timed_out = {
        let message = format!(
            "The page does too much while it loads to be measured: \
             its trace could not be judged within {} s.",
            deadline.as_secs()
        );
        let failure = Failure::new(FailureCode::TooLarge, message);
        Report::failed(&bundle.requested_url, conditions.clone(), failure)
    };
    let stop_on_drop = StopOnDrop::default();
    let stop = Arc::clone(&stop_on_drop.0);
    let task = spawn_blocking(move || {
        let _permit = permit;
        judge(bundle, conditions, &stop)
    });
    match timeout(deadline, task).await {
        Ok(Ok(Ok(Some(output)))) => Ok(output),
        Ok(Ok(Ok(None))) | Err(_) => Ok(timed_out.into()),
        Ok(Ok(Err(fault))) => Err(fault),
        Ok(Err(_)) => Err(AuditFault("judging panicked".to_owned())),
    }
}

/// Waits until a trace may be parsed beside those that are.
async fn permit_for(trace: &[u8]) -> Result<SemaphorePermit<'static>, AuditFault> {
    // The threads that hold the permits stop at their own deadlines.
    let trace_kb = u32::try_from(trace.len() / 1000).unwrap_or(u32::MAX);
    let permits = PERMITS.acquire_many(trace_kb.clamp(1, MAX_TRACES_KB));
    match timeout(2 * DEADLINE, permits).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(AuditFault("no thread was free for judging".to_owned())),
    }
}

/// Computes the records of a load with a profiler from its trace, and returns both.
pub(crate) async fn profile(trace: Vec<u8>) -> Result<(Vec<u8>, ProfileRecords), AuditFault> {
    let permit = permit_for(&trace).await?;
    let task = spawn_blocking(move || {
        let _permit = permit;
        let records = profile_records(&trace).unwrap_or_else(|error| {
            ProfileRecords::failed(format!("The trace of the profiler is unreadable: {error}."))
        });
        (trace, records)
    });
    match timeout(DEADLINE, task).await {
        Ok(Ok(analysed)) => Ok(analysed),
        Ok(Err(_)) => Err(AuditFault("reading a profile panicked".to_owned())),
        Err(_) => Err(AuditFault(
            "the profile could not be read in time".to_owned(),
        )),
    }
}

/// Asks the thread to stop when its result is no longer awaited, for whatever reason.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn judge_bundle(
    mut bundle: Bundle,
    conditions: Conditions,
    stop: &AtomicBool,
) -> Result<Option<JudgedVisit>, AuditFault> {
    let started = Instant::now();
    conditions.store_in(&mut bundle).map_err(AuditFault::of)?;
    let Some((mut report, media)) = evaluate_with_media(&bundle, conditions, stop) else {
        return Ok(None);
    };
    report.timings.push(PhaseTiming {
        phase: Phase::Judging,
        ms: started.elapsed().as_secs_f64() * 1000.0,
    });
    Ok(Some(JudgedVisit {
        report,
        evidence: Some(HeldEvidence::Unpacked {
            bundle: Some(Box::new(bundle)),
            media: media.map(Box::new),
        }),
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plumbline_browser::ProfiledLoad;
    use plumbline_bundle::{BrowserIdentity, Encoding, FORMAT, InteractionRecords, MainDocument};
    use plumbline_catalog::{BUILT_IN, Catalog};

    use super::*;
    use plumbline_seam::Order;

    fn visit() -> (Bundle, Conditions) {
        let order = Order {
            url: "https://example.com/".to_owned(),
            device: "mobile".to_owned(),
            network: "mobileSlow4g".to_owned(),
            location: "us-tx".to_owned(),
            options: plumbline_seam::VisitOptions::default(),
        };
        let catalog = Catalog::load(BUILT_IN).unwrap();
        let location = crate::AgentLocation {
            id: "us-tx".to_owned(),
            is_stated: false,
        };
        let resolved = crate::conditions::resolve(&catalog, &location, &order).unwrap();
        let bundle = Bundle {
            recording: None,
            profile_trace: None,
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

    /// Runs until it is asked to stop.
    fn endless(
        _: Bundle,
        _: Conditions,
        stop: &AtomicBool,
    ) -> Result<Option<JudgedVisit>, AuditFault> {
        while !stop.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Ok(None)
    }

    #[tokio::test]
    async fn a_page_that_cannot_be_judged_in_time_is_too_large_and_frees_its_permit() {
        // Only one trace of this size is judged at a time: the permits of the first are free again
        // because its thread was asked to stop.
        for _ in 0..2 {
            let (mut bundle, conditions) = visit();
            bundle.trace = vec![b' '; MAX_TRACES_KB as usize * 1000];
            let deadline = Duration::from_millis(10);
            let output = judge_with(deadline, endless, bundle, conditions).await;
            let report = output.unwrap().report;
            assert_eq!(report.error.unwrap().code, FailureCode::TooLarge);
            assert_eq!(report.requested_url, "https://example.com/");
        }
    }

    #[tokio::test]
    async fn evidence_is_packed_when_it_is_chosen_or_too_large_to_be_held() {
        let is_packed = async |trace_bytes: usize, visits: usize| {
            let (mut bundle, _) = visit();
            bundle.trace = vec![b' '; trace_bytes];
            let (_, conditions) = visit();
            let failure = Failure::new(FailureCode::Internal, "");
            let judged = JudgedVisit {
                report: Report::failed("https://example.com/", conditions, failure),
                evidence: Some(HeldEvidence::Unpacked {
                    bundle: Some(Box::new(bundle)),
                    media: None,
                }),
            };
            let held = judged.hold(visits, Encoding::GzipJson).await.unwrap();
            let is_packed = matches!(held.evidence, Some(HeldEvidence::Packed { .. }));
            let output = held.pack(Encoding::GzipJson).await.unwrap();
            let packed = output.bundle.unwrap();
            assert_eq!(packed[..2], [0x1f, 0x8b]);
            assert_eq!(Bundle::unpack(&packed).unwrap().trace.len(), trace_bytes);
            is_packed
        };
        assert!(!is_packed(1_000_000, 3).await);
        assert!(!is_packed(10_000_000, 3).await);
        assert!(is_packed(11_000_000, 3).await);
        assert!(is_packed(4_000_000, 9).await);
    }

    #[tokio::test]
    async fn interactions_are_part_of_the_bundle_and_of_a_report_that_is_judged_again() {
        // With so many visits, even the smallest evidence is packed before interactions are added.
        for visits in [1, 32_000_000] {
            let (bundle, conditions) = visit();
            let encoding = Encoding::Container;
            let judged = judge(bundle, conditions.clone()).await.unwrap();
            assert!(judged.report.responsiveness.is_none());
            let held = judged.hold(visits, encoding).await.unwrap();
            let records = InteractionRecords::failed("The page did not respond.");
            let complete = held.with_interactions(records.clone(), encoding).await;
            let output = complete.unwrap().pack(encoding).await.unwrap();
            let responsiveness = output.report.responsiveness.unwrap();
            assert_eq!(responsiveness.records, records);
            let bundle = Bundle::unpack(&output.bundle.unwrap()).unwrap();
            let again = judge(bundle, conditions).await.unwrap();
            assert_eq!(again.report.responsiveness.unwrap(), responsiveness);
        }
    }

    #[tokio::test]
    async fn a_profile_is_part_of_the_bundle_with_its_trace_and_of_a_report_that_is_judged_again() {
        let (bundle, conditions) = visit();
        let encoding = Encoding::Container;
        let judged = judge(bundle, conditions.clone()).await.unwrap();
        assert!(judged.report.profile.is_none());
        let profiled = ProfiledLoad {
            records: ProfileRecords::failed("The page did not respond."),
            trace: Some(b"{}".to_vec()),
            log: Vec::new(),
        };
        let complete = judged.with_profile(profiled, encoding).await;
        let output = complete.unwrap().pack(encoding).await.unwrap();
        let profile = output.report.profile.unwrap();
        assert_eq!(profile.error.as_deref(), Some("The page did not respond."));
        let bundle = Bundle::unpack(&output.bundle.unwrap()).unwrap();
        assert_eq!(bundle.profile_trace.as_deref(), Some(&b"{}"[..]));
        let again = judge(bundle, conditions).await.unwrap();
        assert_eq!(again.report.profile.unwrap(), profile);
    }

    #[tokio::test]
    async fn an_unreadable_trace_of_a_profiler_is_a_reason_in_the_records() {
        let (trace, records) = profile(b"no trace".to_vec()).await.unwrap();
        assert_eq!(trace, b"no trace");
        let error = records.error.unwrap();
        assert!(
            error.starts_with("The trace of the profiler is unreadable: "),
            "{error}"
        );
    }

    #[test]
    fn judging_that_is_stopped_returns_no_report() {
        let (bundle, conditions) = visit();
        let output = judge_bundle(bundle, conditions, &AtomicBool::new(true));
        assert!(output.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_page_that_is_judged_in_time_gets_a_report_with_its_evidence() {
        let (bundle, conditions) = visit();
        let output = judge(bundle, conditions).await.unwrap();
        let output = output.pack(Encoding::Container).await.unwrap();
        let packed = Bundle::unpack(&output.bundle.unwrap()).unwrap();
        assert_eq!(packed.requested_url, "https://example.com/");
        // The trace has no events.
        assert_eq!(output.report.error.unwrap().code, FailureCode::Internal);
    }
}
