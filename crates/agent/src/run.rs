//! The loop: lease, visit with a heartbeat beside it, finish.

use std::sync::Arc;
use std::time::Duration;

use plumbline_bundle::Phase;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::{AuditFault, Audited, Auditor, Hold, Job, Work};

/// How long one attempt to get work may take; only bounds how late a drain is noticed.
const POLL: Duration = Duration::from_secs(5);
/// After the seam itself failed: long enough not to storm it, short enough not to be missed.
const AFTER_ERROR: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
pub struct AgentSettings {
    /// How many audits run at a time.
    pub slots: usize,
    /// How often a held job is confirmed; well below the lease's length.
    pub heartbeat_every: Duration,
    /// How long running audits may go on after a drain began, before they are handed back.
    pub drain_grace: Duration,
}

/// Works until `drain` turns true and what runs has been finished or handed back.
pub async fn run(
    work: Arc<dyn Work>,
    auditor: Arc<Auditor>,
    settings: AgentSettings,
    drain: watch::Receiver<bool>,
) {
    let mut slots = JoinSet::new();
    for _ in 0..settings.slots.max(1) {
        slots.spawn(
            Slot {
                work: Arc::clone(&work),
                auditor: Arc::clone(&auditor),
                settings,
                drain: drain.clone(),
            }
            .work(),
        );
    }
    while slots.join_next().await.is_some() {}
}

struct Slot {
    work: Arc<dyn Work>,
    auditor: Arc<Auditor>,
    settings: AgentSettings,
    drain: watch::Receiver<bool>,
}

impl Slot {
    async fn work(mut self) {
        while !*self.drain.borrow() {
            let next = tokio::select! {
                next = self.work.next(POLL) => next,
                // An error means that nobody can drain us any more: the process is going.
                _ = self.drain.wait_for(|drain| *drain) => break,
            };
            match next {
                Ok(Some(job)) => self.attempt(&job).await,
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "could not get work");
                    sleep(AFTER_ERROR).await;
                }
            }
        }
    }

    async fn attempt(&mut self, job: &Job) {
        let started = Instant::now();
        let (id, attempt) = (job.tracking_id.as_str(), job.attempt);
        tracing::info!(audit = id, attempt, url = %job.order.url, "audit begins");
        let ended = self.audit_while_held(job).await;
        let handed_in = match ended {
            Ended::Audited(audited) => self.work.finish(job, *audited).await,
            Ended::Fault(fault) => {
                tracing::error!(audit = id, attempt, %fault, "audit failed by a fault of ours");
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

    /// The audit itself, given up when the lease is lost or the drain's grace is over. Dropping
    /// the audit's future ends its browser.
    async fn audit_while_held(&mut self, job: &Job) -> Ended {
        if job.exhausted {
            return match self.auditor.exhausted(&job.order) {
                Ok(audited) => Ended::Audited(Box::new(audited)),
                Err(fault) => Ended::Fault(fault),
            };
        }
        let mut drain = self.drain.clone();
        let grace = self.settings.drain_grace;
        let drained = async {
            // An error means the sender is gone: the process is going, hand back as well.
            let _ = drain.wait_for(|drain| *drain).await;
            sleep(grace).await;
        };
        let progress = |phase: Phase| self.work.reached(job, phase);
        tokio::select! {
            result = self.auditor.audit_several(&job.order, job.runs, &progress) => match result {
                Ok(audited) => Ended::Audited(Box::new(audited)),
                Err(fault) => Ended::Fault(fault),
            },
            () = self.lost(job) => Ended::Lost,
            () = drained => Ended::Drained,
        }
    }

    /// Confirms the job again and again; returns once it is no longer ours.
    async fn lost(&self, job: &Job) {
        let every = self.settings.heartbeat_every;
        loop {
            sleep(every).await;
            match timeout(every, self.work.heartbeat(job)).await {
                Ok(Ok(Hold::Held)) => {}
                Ok(Ok(Hold::Lost)) => return,
                // The lease outlives a few missed beats; who takes over fences us out.
                Ok(Err(error)) => tracing::warn!(audit = %job.tracking_id, %error, "no heartbeat"),
                Err(_) => tracing::warn!(audit = %job.tracking_id, "heartbeat took too long"),
            }
        }
    }
}

enum Ended {
    Audited(Box<Audited>),
    Fault(AuditFault),
    Drained,
    Lost,
}
