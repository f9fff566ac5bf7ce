//! The seam between agent and store, for an agent in the server's own process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use plumbline_agent::{Audited, Hold, Job, Order, Work, WorkError};
use plumbline_bundle::Phase;
use plumbline_engine::report::Report;
use plumbline_server::{AuditFigures, Metrics, Phases};
use plumbline_store::{
    AuditError, FileBlobs, Finished, HandBack, Hold as Kept, Lease, Seat, Store, StoreError,
    random_text,
};
use tokio::task::spawn_blocking;

use crate::clock::now;
use crate::retention::KeptBlobs;

/// How an agent inside a server signs its leases, followed by the server's id. One server runs on a data
/// directory at a time, so a lease signed like this by anybody else belongs to a process that is dead.
pub const OWNER_PREFIX: &str = "embedded-";

/// Outlives three missed heartbeats.
const LEASE: Duration = Duration::from_secs(30);
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(8);

pub struct StoreWork {
    store: Arc<dyn Store>,
    blobs: KeptBlobs,
    phases: Phases,
    seat: Seat,
    metrics: Arc<Metrics>,
    /// Leases behind the jobs that are out, by tracking id and attempt.
    held: Mutex<HashMap<(String, u32), Lease>>,
}

impl StoreWork {
    pub fn new(
        store: Arc<dyn Store>,
        blobs: KeptBlobs,
        phases: Phases,
        metrics: Arc<Metrics>,
        owner_prefix: &str,
    ) -> Result<Self, WorkError> {
        let mark = random_text(12).map_err(|error| WorkError(error.to_string()))?;
        Ok(Self {
            store,
            blobs,
            phases,
            seat: Seat::anywhere(format!("{owner_prefix}{mark}")),
            metrics,
            held: Mutex::default(),
        })
    }

    fn lease_of(&self, job: &Job) -> Option<Lease> {
        self.held().get(&id_of(job)).cloned()
    }

    /// Whatever comes of it, a lease that is being ended is no longer ours.
    fn take_lease_of(&self, job: &Job) -> Option<Lease> {
        self.held().remove(&id_of(job))
    }

    fn held(&self) -> MutexGuard<'_, HashMap<(String, u32), Lease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before the report, so that a report's evidence is there when the report is. What a lost lease
    /// leaves behind goes when it is old. A full disk costs the evidence, not the audit.
    async fn keep(&self, blobs: &FileBlobs, audit_id: String, bytes: Vec<u8>) {
        let blobs = blobs.clone();
        let kept = spawn_blocking(move || blobs.put(&audit_id, &bytes)).await;
        match kept {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "evidence could not be kept"),
            Err(error) => tracing::error!(%error, "evidence could not be kept"),
        }
    }

    async fn hand_back(&self, job: &Job, why: HandBack) -> Result<Hold, WorkError> {
        self.phases.ended(&job.tracking_id);
        match self.take_lease_of(job) {
            Some(lease) => held(self.store.hand_back(&lease, why).await),
            None => Ok(Hold::Lost),
        }
    }
}

#[async_trait]
impl Work for StoreWork {
    async fn next(&self, at_most: Duration) -> Result<Option<Job>, WorkError> {
        let mut lease = self.try_lease().await?;
        if lease.is_none() {
            self.store.work_arrives(&self.seat, at_most).await;
            lease = self.try_lease().await?;
        }
        Ok(lease.map(|lease| {
            let job = Job {
                tracking_id: lease.tracking_id.clone(),
                attempt: lease.attempt,
                exhausted: lease.exhausted(),
                runs: lease.runs,
                order: Order {
                    url: lease.order.url.clone(),
                    device: lease.order.device.clone(),
                    network: lease.order.network.clone(),
                    location: lease.order.location.clone(),
                },
            };
            self.held().insert(id_of(&job), lease);
            job
        }))
    }

    async fn heartbeat(&self, job: &Job) -> Result<Hold, WorkError> {
        match self.lease_of(job) {
            Some(lease) => held(self.store.heartbeat(&lease, now().plus(LEASE)).await),
            None => Ok(Hold::Lost),
        }
    }

    fn reached(&self, job: &Job, phase: Phase) {
        self.phases.reached(&job.tracking_id, phase);
    }

    async fn finish(&self, job: &Job, audited: Audited) -> Result<Hold, WorkError> {
        let Some(lease) = self.take_lease_of(job) else {
            return Ok(Hold::Lost);
        };
        let Audited {
            report,
            bundle,
            exhibits,
        } = audited;
        for (blobs, bytes) in [
            (&self.blobs.bundles, bundle),
            (&self.blobs.exhibits, exhibits),
        ] {
            if let Some(bytes) = bytes {
                self.keep(blobs, lease.audit_id.clone(), bytes).await;
            }
        }
        let figures = figures(&report);
        let finished = Finished {
            report: serde_json::to_string(&report).map_err(|error| WorkError(error.to_string()))?,
            error: report.error.map(|failure| AuditError {
                code: failure.code.to_string(),
                message: failure.message,
            }),
            finished_at: now(),
        };
        let hold = held(self.store.finish(&lease, finished).await);
        self.phases.ended(&job.tracking_id);
        let hold = hold?;
        if hold == Hold::Held {
            self.metrics.audit_finished(&figures);
        }
        Ok(hold)
    }

    async fn fault(&self, job: &Job) -> Result<Hold, WorkError> {
        self.metrics.audit_faulted();
        self.hand_back(job, HandBack::Fault).await
    }

    async fn drained(&self, job: &Job) -> Result<Hold, WorkError> {
        self.metrics.audit_handed_back();
        self.hand_back(job, HandBack::Drained).await
    }
}

impl StoreWork {
    async fn try_lease(&self) -> Result<Option<Lease>, WorkError> {
        self.store
            .lease(&self.seat, now(), LEASE)
            .await
            .map_err(|error| WorkError(error.to_string()))
    }
}

fn figures(report: &Report) -> AuditFigures {
    let cpu = &report.conditions.cpu;
    let outcome = report.error.as_ref().map(|error| error.code.to_string());
    AuditFigures {
        outcome: outcome.unwrap_or_else(|| "measured".to_owned()),
        phases: report
            .timings
            .iter()
            .map(|timing| {
                let ms = timing.ms.max(0.0);
                (
                    timing.phase.as_str().to_owned(),
                    Duration::from_secs_f64(ms / 1000.0),
                )
            })
            .collect(),
        contention: cpu.contention.map(|contention| contention.share),
        visits: cpu.visits,
    }
}

fn id_of(job: &Job) -> (String, u32) {
    (job.tracking_id.clone(), job.attempt)
}

fn held(answer: Result<Kept, StoreError>) -> Result<Hold, WorkError> {
    match answer {
        Ok(Kept::Held) => Ok(Hold::Held),
        Ok(Kept::Lost) => Ok(Hold::Lost),
        Err(error) => Err(WorkError(error.to_string())),
    }
}
