//! Implements `Work` for an agent in the server's own process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plumbline_agent::{AuditOutput, Hold, Job, NextJob, Order, VisitEvent, Work, WorkError};
use plumbline_model::report::Report;
use plumbline_seam::Evidence;
use plumbline_server::{AgentSlot, Dispatcher};
use plumbline_store::{
    AgentPresence, AttemptState, Hold as Kept, Lease, ReleaseReason, StoreError,
};
use tokio::time::sleep;

/// The backoff after a failed call, doubling from `MIN_BACKOFF` to `MAX_BACKOFF`.
const MIN_BACKOFF: Duration = Duration::from_millis(200);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Calls the server in the same process for work.
pub struct StoreWork {
    pub dispatcher: Arc<Dispatcher>,
    /// This agent, with a unique process name.
    pub agent: AgentPresence,
}

#[async_trait]
impl Work for StoreWork {
    async fn next_job(&self, slot: u32, at_most: Duration) -> Result<NextJob, WorkError> {
        let lease = self.dispatcher.lease(&self.agent_slot(slot), at_most).await;
        Ok(match lease.map_err(failed)? {
            Some(lease) => NextJob::Job(self.job(lease)),
            None => NextJob::None,
        })
    }

    async fn release_slot(&self, slot: u32) -> Result<(), WorkError> {
        self.dispatcher
            .release_slot(&self.agent_slot(slot))
            .await
            .map_err(failed)
    }

    async fn heartbeat(&self, job: &Job) -> Result<Hold, WorkError> {
        match self.lease_of(job).await? {
            Some(lease) => {
                self.dispatcher
                    .record_presence(&self.agent)
                    .await
                    .map_err(failed)?;
                held(self.dispatcher.heartbeat(&lease).await)
            }
            None => Ok(Hold::Lost),
        }
    }

    fn report_progress(&self, job: &Job, event: VisitEvent<'_>) {
        match event {
            VisitEvent::PhaseStarted(phase) => {
                self.dispatcher.record_phase(&job.tracking_id, phase);
            }
            VisitEvent::DocumentLoaded(url) => {
                self.dispatcher
                    .record_document(&job.tracking_id, &job.order.device, url);
            }
        }
    }

    async fn finish(&self, job: &Job, output: AuditOutput) -> Result<Hold, WorkError> {
        let Some(lease) = retry(job, || self.lease_of(job)).await else {
            return Ok(Hold::Lost);
        };
        for (kind, bytes) in [
            (Evidence::Bundle, output.bundle),
            (Evidence::ReportMedia, output.media),
        ] {
            // If the disk is full or the bucket unreachable, the evidence is lost, but not the
            // audit.
            if let Some(bytes) = bytes
                && let Err(error) = self.dispatcher.store_evidence(&lease, kind, bytes).await
            {
                tracing::error!(%error, "failed to store evidence");
            }
        }
        Ok(retry(job, || self.complete(job, &output.report)).await)
    }

    async fn return_faulted(&self, job: &Job) -> Result<Hold, WorkError> {
        self.hand_back(job, ReleaseReason::Fault).await
    }

    async fn return_drained(&self, job: &Job) -> Result<Hold, WorkError> {
        self.hand_back(job, ReleaseReason::Drained).await
    }
}

impl StoreWork {
    fn agent_slot(&self, slot: u32) -> AgentSlot {
        AgentSlot {
            agent: self.agent.clone(),
            index: slot,
            scope: None,
        }
    }

    fn job(&self, lease: Lease) -> Job {
        Job {
            attempt: lease.attempt,
            exhausted: lease.is_exhausted(),
            runs: lease.runs,
            heartbeat_every: self.dispatcher.heartbeat_interval(),
            tracking_id: lease.tracking_id,
            order: Order {
                url: lease.order.url,
                device: lease.order.device,
                network: lease.order.network,
                location: lease.order.location,
            },
        }
    }

    async fn lease_of(&self, job: &Job) -> Result<Option<Lease>, WorkError> {
        let process = &self.agent.process;
        let state = self
            .dispatcher
            .attempt_state(process, &job.tracking_id, job.attempt);
        Ok(match state.await.map_err(failed)? {
            AttemptState::Held(lease) => Some(lease),
            AttemptState::Finished | AttemptState::Lost => None,
        })
    }

    /// Finishes an audit. Doing so again for a finished attempt succeeds, because the first
    /// response may have been lost.
    async fn complete(&self, job: &Job, report: &Report) -> Result<Hold, WorkError> {
        let process = &self.agent.process;
        let state = self
            .dispatcher
            .attempt_state(process, &job.tracking_id, job.attempt);
        match state.await.map_err(failed)? {
            AttemptState::Held(lease) => held(self.dispatcher.finish(&lease, report.clone()).await),
            AttemptState::Finished => Ok(Hold::Held),
            AttemptState::Lost => Ok(Hold::Lost),
        }
    }

    async fn hand_back(&self, job: &Job, reason: ReleaseReason) -> Result<Hold, WorkError> {
        match self.lease_of(job).await? {
            Some(lease) => held(self.dispatcher.release(&lease, reason).await),
            None => Ok(Hold::Lost),
        }
    }
}

/// Calls a function until the store responds, so that a report is not lost while a disk is full or
/// a database unavailable. The caller stops when the lease is lost or it takes too long.
async fn retry<T, F>(job: &Job, call: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, WorkError>>,
{
    let mut backoff = MIN_BACKOFF;
    loop {
        match call().await {
            Ok(value) => return value,
            Err(error) => {
                tracing::warn!(audit = job.tracking_id, %error, "failed to submit the report, retrying");
                sleep(backoff).await;
                backoff = (backoff * 2).min(MAX_BACKOFF);
            }
        }
    }
}

fn held(result: Result<Kept, StoreError>) -> Result<Hold, WorkError> {
    match result.map_err(failed)? {
        Kept::Held => Ok(Hold::Held),
        Kept::Lost => Ok(Hold::Lost),
    }
}

fn failed(error: StoreError) -> WorkError {
    WorkError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use plumbline_server::{DispatcherParts, Metrics, Phases};
    use plumbline_store::{
        AuditOptions, AuditOrder, FileBlobs, NewAudit, SqliteStore, Store, Submission, Timestamp,
    };
    use tokio::time::timeout;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);
    /// Much longer than anything in these tests takes.
    const TEST_TIMEOUT: Duration = Duration::from_secs(120);

    fn report() -> Report {
        serde_json::from_value(serde_json::json!({
            "format": 1,
            "requestedUrl": "https://example.com/",
            "finalUrl": "https://example.com/",
            "conditions": {
                "device": { "id": "mobile", "name": "Mobile", "mode": "mobile" },
                "network": { "id": "cable", "name": "Cable", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0 },
                "location": { "id": "eu", "name": "Frankfurt", "mode": "agent", "addedRttMs": 0.0 },
                "cpu": { "rate": 1.0, "deviceIndex": null, "hostIndex": null, "hostIndexAfter": null },
            },
            "scores": { "performance": 97 },
            "metrics": null, "error": null, "document": null, "browser": null,
        }))
        .unwrap()
    }

    fn new_audit(account_id: String) -> NewAudit {
        NewAudit {
            account_id,
            tracking_id: "trk_1".to_owned(),
            audit_id: "aud_1".to_owned(),
            order: AuditOrder {
                url: "https://example.com/".to_owned(),
                device: "mobile".to_owned(),
                network: "cable".to_owned(),
                location: "eu".to_owned(),
            },
            options: AuditOptions::default(),
            accepted_at: NOW,
        }
    }

    #[tokio::test]
    async fn a_report_is_retried_until_the_store_can_write() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("store.db");
        let store = Arc::new(SqliteStore::open(&file).unwrap());
        let account = store.create_account("tests", 1, NOW).await.unwrap();
        store
            .submit(Submission::single(new_audit(account.id.clone())))
            .await
            .unwrap();
        let blobs = Arc::new(FileBlobs::open(&dir.path().join("blobs")).unwrap());
        let work = StoreWork {
            dispatcher: Arc::new(Dispatcher::new(DispatcherParts {
                store: store.clone(),
                agents: store.clone(),
                bundles: blobs.clone(),
                media: blobs,
                phases: Phases::default(),
                metrics: Arc::new(Metrics::default()),
                clock: Arc::new(|| NOW),
                lease: Duration::from_secs(30),
                locations: vec!["eu".to_owned()],
                simulate: true,
                observers: Vec::new(),
            })),
            agent: AgentPresence {
                process: "embedded-tests".to_owned(),
                agent_id: None,
                location: "eu".to_owned(),
                chromium: "none".to_owned(),
                host_index: None,
                slots: 1,
                version: "0".to_owned(),
                seen_at: NOW,
            },
        };
        let Ok(NextJob::Job(job)) = work.next_job(0, TEST_TIMEOUT).await else {
            panic!("there is a job");
        };
        let database = rusqlite::Connection::open(&file).unwrap();
        database.execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON reports BEGIN SELECT RAISE(ABORT, 'no room'); END",
        )
        .unwrap();
        let output = AuditOutput {
            report: report(),
            bundle: None,
            media: None,
        };
        let mut finish = work.finish(&job, output);
        let early = timeout(Duration::from_millis(500), &mut finish).await;
        assert!(early.is_err(), "{early:?}");
        database.execute_batch("DROP TRIGGER full").unwrap();
        let result = timeout(TEST_TIMEOUT, finish).await.unwrap();
        assert_eq!(result.unwrap(), Hold::Held);
        let stored = store.report(&account.id, "aud_1").await.unwrap();
        assert!(stored.is_some());
        assert_eq!(store.queue_depth().await.unwrap().running, 0);
    }
}
