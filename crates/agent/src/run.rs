//! The loop: lease, visit with a heartbeat beside it, finish.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use plumbline_browser::VisitEvent;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument;

use crate::logged::{Redacted, Site};
use crate::{AuditFault, Audited, Auditor, Hold, Job, Next, Work, WorkError};

/// How long one attempt to get work may take.
const POLL: Duration = Duration::from_secs(25);
/// After the seam itself failed: long enough not to storm it, short enough not to be missed. Doubled
/// with every failure in a row, up to the second.
const AFTER_ERROR: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// For what an audit came to, over however bad a line.
const HAND_IN_WITHIN: Duration = Duration::from_secs(10 * 60);
/// For a slot to say that it leaves; if it cannot, a lease's expiry says it.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub struct AgentSettings {
    /// How many audits run at a time.
    pub slots: u32,
    /// How long running audits may go on after a drain began, before they are handed back.
    pub drain_grace: Duration,
}

/// Works until `drain` turns true, or the seam says to leave, and what runs has been finished or
/// handed back. An error is a refusal that will not pass.
pub async fn run(
    work: Arc<dyn Work>,
    auditor: Arc<Auditor>,
    settings: AgentSettings,
    drain: watch::Receiver<bool>,
) -> Result<(), WorkError> {
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
    let mut outcome = Ok(());
    while let Some(ended) = slots.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(refused)) => outcome = Err(refused),
            Err(panic) => tracing::error!(%panic, "a slot ended by a defect"),
        }
    }
    outcome
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
        let mut failures = 0;
        let mut drain = self.drain.clone();
        while !*self.drain.borrow() {
            let next = tokio::select! {
                next = self.work.next(self.number, POLL) => Some(next),
                // An error means that nobody can drain us any more: the process is going.
                _ = drain.wait_for(|drain| *drain) => None,
            };
            let Some(next) = next else {
                self.leave().await;
                break;
            };
            match next {
                Ok(Next::Job(job)) => {
                    failures = 0;
                    self.attempt(&job).await;
                }
                Ok(Next::Nothing) => failures = 0,
                Ok(Next::Leave) => break,
                Err(WorkError::Refused(reason)) => return Err(WorkError::Refused(reason)),
                Err(error) => {
                    tracing::warn!(%error, "could not get work");
                    tokio::select! {
                        () = sleep(after(failures)) => failures += 1,
                        _ = drain.wait_for(|drain| *drain) => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// What was given to us just when we stopped asking goes back at once.
    async fn leave(&self) {
        match timeout(LEAVE_WITHIN, self.work.leave(self.number)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "could not say that we leave"),
            Err(_) => tracing::warn!("could not say in time that we leave"),
        }
    }

    async fn attempt(&self, job: &Job) {
        let started = Instant::now();
        let (id, attempt) = (job.tracking_id.as_str(), job.attempt);
        tracing::info!(audit = id, attempt, site = %Site(&job.order.url), "audit begins");
        let ended = self.audit_while_held(job).await;
        let handed_in = match ended {
            Ended::Audited(audited) => self.hand_in(job, *audited).await,
            Ended::Fault(fault) => {
                let reason = Redacted(&fault);
                tracing::error!(audit = id, attempt, %reason, "audit failed by a fault of ours");
                self.work.fault(job).await
            }
            Ended::Drained => self.work.drained(job).await,
            Ended::Lost => Ok(Hold::Lost),
        };
        let seconds = started.elapsed().as_secs_f64();
        match handed_in {
            Ok(Hold::Held) => tracing::info!(audit = id, attempt, seconds, "audit ends"),
            Ok(Hold::Lost) => tracing::warn!(audit = id, attempt, "audit was taken from us"),
            Err(error) => tracing::error!(audit = id, attempt, %error, "could not hand in"),
        }
    }

    /// Handing in may take as long as the line is bad: the lease is kept meanwhile.
    async fn hand_in(&self, job: &Job, audited: Audited) -> Result<Hold, WorkError> {
        tokio::select! {
            finished = timeout(HAND_IN_WITHIN, self.work.finish(job, audited)) => match finished {
                Ok(Ok(hold)) => Ok(hold),
                failed => {
                    let why = match failed {
                        Ok(Err(error)) => error.to_string(),
                        _ => "it took too long".to_owned(),
                    };
                    tracing::error!(audit = %job.tracking_id, why, "report not handed in");
                    self.work.fault(job).await
                }
            },
            () = self.lost(job) => Ok(Hold::Lost),
            () = self.drained() => self.work.drained(job).await,
        }
    }

    /// Returns when a drain's grace is over.
    async fn drained(&self) {
        let mut drain = self.drain.clone();
        // An error means the sender is gone: the process is going, hand back as well.
        let _ = drain.wait_for(|drain| *drain).await;
        sleep(self.settings.drain_grace).await;
    }

    /// The audit itself, given up when the lease is lost or the drain's grace is over. Dropping
    /// the audit's future ends its browser.
    async fn audit_while_held(&self, job: &Job) -> Ended {
        if job.exhausted {
            return match self.auditor.exhausted(&job.order) {
                Ok(audited) => Ended::Audited(Box::new(audited)),
                Err(fault) => Ended::Fault(fault),
            };
        }
        let progress = |step: VisitEvent<'_>| self.work.reached(job, step);
        // So that what is logged on the way, by the link for instance, says which audit it is of.
        let span = tracing::info_span!("visiting", audit = %job.tracking_id);
        let audit = self.auditor.audit_several(&job.order, job.runs, &progress);
        tokio::select! {
            result = audit.instrument(span) => match result {
                Ok(audited) => Ended::Audited(Box::new(audited)),
                Err(fault) => Ended::Fault(fault),
            },
            () = self.lost(job) => Ended::Lost,
            () = self.drained() => Ended::Drained,
        }
    }

    /// Confirms the job again and again; returns once it is no longer ours.
    async fn lost(&self, job: &Job) {
        let every = job.heartbeat_every;
        loop {
            sleep(every).await;
            match timeout(every, self.work.heartbeat(job)).await {
                Ok(Ok(Hold::Held)) => {}
                Ok(Ok(Hold::Lost)) | Ok(Err(WorkError::Refused(_))) => return,
                // The lease outlives a few missed beats; who takes over fences us out.
                Ok(Err(error)) => tracing::warn!(audit = %job.tracking_id, %error, "no heartbeat"),
                Err(_) => tracing::warn!(audit = %job.tracking_id, "heartbeat took too long"),
            }
        }
    }
}

/// How long to wait after so many failures in a row; spread, so that many agents do not come at once.
fn after(failures: u32) -> Duration {
    let [least, most] = AFTER_ERROR;
    let wait = least
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(most);
    let share = RandomState::new().hash_one(failures) % 1000;
    wait.mul_f64(0.5 + share as f64 / 2000.0)
}

enum Ended {
    Audited(Box<Audited>),
    Fault(AuditFault),
    Drained,
    Lost,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_within_bounds() {
        for failures in 0..100 {
            let [least, most] = AFTER_ERROR;
            let wait = after(failures);
            assert!(wait >= least / 2 && wait <= most, "{failures}: {wait:?}");
        }
        assert!(after(20) > after(0));
    }
}
