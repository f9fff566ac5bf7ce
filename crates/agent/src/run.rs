//! The work loop of each slot: lease, visit while sending heartbeats, finish.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use plumbline_browser::VisitEvent;
use plumbline_bundle::{Failure, FailureCode, Phase};
use plumbline_recording::Recording;
use plumbline_seam::{AuditOutput, Job, LeaseState, NextJob, ReturnReason, Work, WorkError};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument;

use crate::redaction::{Redacted, Site};
use crate::{AuditEvent, AuditFault, Auditor};

/// How long one request for a job may wait.
const POLL: Duration = Duration::from_secs(25);
/// Backoff after a failed request for a job, doubling from `MIN_BACKOFF` to `MAX_BACKOFF`. Jitter
/// adds up to the same time again.
const MIN_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(15);
/// Deadline of delivering a report with its evidence, over any connection.
const DELIVERY_DEADLINE: Duration = Duration::from_secs(10 * 60);
/// Maximum time to get a recording.
const RECORDING_DEADLINE: Duration = Duration::from_secs(5 * 60);
/// Deadline of releasing a slot. If it fails, the lease expires instead.
const RELEASE_DEADLINE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub struct AgentSettings {
    /// The number of audits that run at the same time.
    pub slots: u32,
    /// How long running audits may continue after a drain began, before they are returned.
    pub drain_grace: Duration,
}

/// Works until `drain` turns true or the server drains the agent, and all running audits have been
/// finished or returned. An error is a permanent refusal.
pub fn run(
    work: Arc<dyn Work>,
    auditor: Arc<Auditor>,
    settings: AgentSettings,
    drain: watch::Receiver<bool>,
) -> BoxFuture<'static, Result<(), WorkError>> {
    Box::pin(async move {
        let mut slots = JoinSet::new();
        for number in 0..settings.slots.max(1) {
            slots.spawn(
                Slot {
                    number,
                    work: Arc::clone(&work),
                    auditor: Arc::clone(&auditor),
                    settings,
                    drain: drain.clone(),
                }
                .work(),
            );
        }
        let mut result = Ok(());
        while let Some(slot) = slots.join_next().await {
            match slot {
                Ok(Ok(())) => {}
                Ok(Err(refusal)) => result = Err(refusal),
                Err(panic) => tracing::error!(%panic, "slot task panicked"),
            }
        }
        result
    })
}

struct Slot {
    number: u32,
    work: Arc<dyn Work>,
    auditor: Arc<Auditor>,
    settings: AgentSettings,
    drain: watch::Receiver<bool>,
}

impl Slot {
    async fn work(self) -> Result<(), WorkError> {
        let mut delays = backoff();
        let mut drain = self.drain.clone();
        while !*self.drain.borrow() {
            let next = tokio::select! {
                next = self.work.next_job(self.number, POLL) => Some(next),
                // An error means that the sender is gone because the process is exiting.
                _ = drain.wait_for(|drain| *drain) => None,
            };
            let Some(next) = next else {
                self.release().await;
                break;
            };
            match next {
                Ok(NextJob::Job(job)) => {
                    delays = backoff();
                    self.attempt(&job).await;
                }
                Ok(NextJob::None) => delays = backoff(),
                Ok(NextJob::Drain) => break,
                Err(WorkError::Refused(reason)) => return Err(WorkError::Refused(reason)),
                Err(error) => {
                    tracing::warn!(%error, "failed to request a job");
                    // There is always another delay, because their number is not limited.
                    let delay = delays.next().unwrap_or(MAX_BACKOFF);
                    tokio::select! {
                        () = sleep(delay) => {}
                        _ = drain.wait_for(|drain| *drain) => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Releases the slot, so that a job that was just being sent to it goes back at once.
    async fn release(&self) {
        match timeout(RELEASE_DEADLINE, self.work.release_slot(self.number)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "failed to release slot on shutdown"),
            Err(_) => tracing::warn!("releasing the slot on shutdown timed out"),
        }
    }

    async fn attempt(&self, job: &Job) {
        let started = Instant::now();
        let (id, attempt) = (job.attempt.tracking_id.as_str(), job.attempt.number);
        tracing::info!(audit = id, attempt, site = %Site(&job.order.url), "audit started");
        let result = match self.audit_while_held(job).await {
            AttemptEnd::Audited(output) => self.deliver(job, *output).await,
            AttemptEnd::Fault(fault) => {
                let reason = Redacted(&fault);
                tracing::error!(audit = id, attempt, %reason, "audit failed with an internal error");
                self.work.return_job(job, ReturnReason::Fault).await
            }
            AttemptEnd::Drained => self.work.return_job(job, ReturnReason::Drained).await,
            AttemptEnd::Lost => Ok(LeaseState::Lost),
        };
        let seconds = started.elapsed().as_secs_f64();
        match result {
            Ok(LeaseState::Held) => tracing::info!(audit = id, attempt, seconds, "audit finished"),
            Ok(LeaseState::Lost) => tracing::warn!(audit = id, attempt, "audit lease was lost"),
            Err(error) => {
                tracing::error!(audit = id, attempt, %error, "failed to deliver the result");
            }
        }
    }

    /// Delivers a report. On a slow connection that takes long, so the lease is extended meanwhile.
    async fn deliver(&self, job: &Job, output: AuditOutput) -> Result<LeaseState, WorkError> {
        tokio::select! {
            result = timeout(DELIVERY_DEADLINE, self.work.finish(job, output)) => {
                let reason = match result {
                    Ok(Ok(hold)) => return Ok(hold),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "timed out".to_owned(),
                };
                tracing::error!(audit = %job.attempt.tracking_id, reason, "failed to deliver the report");
                self.work.return_job(job, ReturnReason::Fault).await
            },
            () = self.lease_lost(job) => Ok(LeaseState::Lost),
            () = self.drain_grace_ended() => self.work.return_job(job, ReturnReason::Drained).await,
        }
    }

    /// Returns when the grace period of a drain is over.
    async fn drain_grace_ended(&self) {
        let mut drain = self.drain.clone();
        // An error means that the sender is gone because the process is exiting: also a drain.
        let _ = drain.wait_for(|drain| *drain).await;
        sleep(self.settings.drain_grace).await;
    }

    /// Performs the audit, and cancels it when the lease is lost or the grace period of a drain is
    /// over. Dropping the future of the audit ends its browser.
    async fn audit_while_held(&self, job: &Job) -> AttemptEnd {
        if job.exhausted {
            return self.auditor.exhausted(&job.order).into();
        }
        if let Some(reason) = &job.precondition_failure {
            let failure = Failure::new(FailureCode::PreconditionFailed, reason);
            return self.auditor.failed(&job.order, failure).into();
        }
        let progress = |AuditEvent { visit, event }: AuditEvent<'_>| match event {
            VisitEvent::PhaseStarted(phase) => {
                self.work.report_progress(job, phase, visit, None);
            }
            VisitEvent::DocumentLoaded(url) => {
                let phase = Phase::Loading;
                self.work.report_progress(job, phase, visit, Some(url));
            }
            VisitEvent::StepEnded(_) | VisitEvent::ConsentEnded { .. } => {}
        };
        // Log lines from below, for instance from the link, then name the audit.
        let span = tracing::info_span!("visiting", audit = %job.attempt.tracking_id);
        let audit = async {
            // Kept until the end of the audit.
            let _recordings = self.recordings(job).await?;
            let encoding = job.encoding();
            self.auditor
                .audit_runs(&job.order, job.runs, encoding, &progress)
                .await
        };
        // A panic, which is logged, must not end the slot.
        let audit = AssertUnwindSafe(audit.instrument(span)).catch_unwind();
        tokio::select! {
            result = audit => match result {
                Ok(Ok(output)) => output.into(),
                Ok(Err(fault)) => AttemptEnd::Fault(fault),
                Err(_) => AttemptEnd::Fault(AuditFault("the audit panicked".to_owned())),
            },
            () = self.lease_lost(job) => AttemptEnd::Lost,
            () = self.drain_grace_ended() => AttemptEnd::Drained,
        }
    }

    /// Gets the recordings that a job replays. One that was deleted is missing, which the audit
    /// reports.
    async fn recordings(&self, job: &Job) -> Result<Vec<Arc<Recording>>, AuditFault> {
        let interception = &self.auditor.interception;
        let mut recordings = Vec::new();
        for replay in job.order.options.replays() {
            let id = &replay.recording;
            if let Some(recording) = interception.recording(id) {
                recordings.push(recording);
                continue;
            }
            let packed = timeout(RECORDING_DEADLINE, self.work.recording(job, replay)).await;
            let Some(packed) = packed.map_err(AuditFault::of)?.map_err(AuditFault::of)? else {
                continue;
            };
            let unpack = spawn_blocking(move || Recording::unpack(&packed));
            let recording = unpack.await.map_err(AuditFault::of)?;
            let recording = Arc::new(recording.map_err(AuditFault::of)?);
            interception.provide(id, &recording);
            recordings.push(recording);
        }
        Ok(recordings)
    }

    /// Sends heartbeats, and returns when the lease of the job is lost.
    async fn lease_lost(&self, job: &Job) {
        let every = job.heartbeat_interval();
        loop {
            sleep(every).await;
            match timeout(every, self.work.heartbeat(job)).await {
                Ok(Ok(LeaseState::Held)) => {}
                Ok(Ok(LeaseState::Lost)) | Ok(Err(WorkError::Refused(_))) => return,
                // The lease survives a few missed heartbeats. If another agent takes over, the
                // attempt number fences this one.
                Ok(Err(error)) => {
                    tracing::warn!(audit = %job.attempt.tracking_id, %error, "heartbeat failed");
                }
                Err(_) => tracing::warn!(audit = %job.attempt.tracking_id, "heartbeat timed out"),
            }
        }
    }
}

/// Returns the delays after failures in a row, with jitter, so that many agents do not retry at the
/// same moment.
fn backoff() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(MIN_BACKOFF)
        .with_max_delay(MAX_BACKOFF)
        .with_jitter()
        .without_max_times()
        .build()
}

/// How an attempt at an audit ended.
enum AttemptEnd {
    Audited(Box<AuditOutput>),
    Fault(AuditFault),
    Drained,
    Lost,
}

impl From<AuditOutput> for AttemptEnd {
    fn from(output: AuditOutput) -> Self {
        Self::Audited(Box::new(output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_grows_and_stays_within_its_bounds() {
        let delays: Vec<Duration> = backoff().take(100).collect();
        assert_eq!(delays.len(), 100);
        for delay in &delays {
            assert!((MIN_BACKOFF..=MAX_BACKOFF * 2).contains(delay), "{delay:?}");
        }
        assert!(delays[20] > delays[0]);
    }
}
