//! The agent inside a server, which gets its jobs from the dispatcher of the same process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plumbline_bundle::Phase;
use plumbline_model::report::Report;
use plumbline_seam::{
    Announcement, AuditOutput, Evidence, Job, LeaseState, MadeSession, NextJob, Replay,
    ReturnReason, VisitNumber, Work, WorkError,
};
use plumbline_store::{
    AgentPresence, AgentProcess, AttemptState, Lease, ProcessSet, ReleaseReason, StoreError,
    Timestamp,
};
use tokio::time::sleep;

use super::{AgentSlot, Dispatcher};

/// The backoff after a failed call, doubling from `MIN_BACKOFF` to `MAX_BACKOFF`.
const MIN_BACKOFF: Duration = Duration::from_millis(200);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// The dispatcher as the agent in its own process uses it.
pub struct EmbeddedAgent {
    dispatcher: Arc<Dispatcher>,
    presence: AgentPresence,
}

#[async_trait]
impl Work for EmbeddedAgent {
    async fn next_job(&self, slot: u32, max_wait: Duration) -> Result<NextJob, WorkError> {
        let lease = self.dispatcher.lease(&self.slot(slot), max_wait).await;
        let Some(lease) = lease.map_err(failed)? else {
            return Ok(NextJob::None);
        };
        let job = self.dispatcher.job(&lease).await.map_err(failed)?;
        Ok(job.map_or(NextJob::None, |job| NextJob::Job(Box::new(job))))
    }

    async fn release_slot(&self, slot: u32) -> Result<(), WorkError> {
        let released = self.dispatcher.release_slot(&self.slot(slot)).await;
        released.map_err(failed)
    }

    async fn heartbeat(&self, job: &Job) -> Result<LeaseState, WorkError> {
        let Some(lease) = self.lease_of(job).await? else {
            self.remove_phase(job);
            return Ok(LeaseState::Lost);
        };
        let recorded = self.dispatcher.record_presence(&self.presence).await;
        recorded.map_err(failed)?;
        self.dispatcher.heartbeat(&lease).await.map_err(failed)
    }

    fn report_progress(
        &self,
        job: &Job,
        phase: Phase,
        visit: VisitNumber,
        document_url: Option<&str>,
    ) {
        let id = &job.attempt.tracking_id;
        self.dispatcher.record_phase(id, phase, Some(visit));
        if let Some(url) = document_url {
            self.dispatcher.record_document(id, &job.order.device, url);
        }
    }

    async fn recording(&self, _job: &Job, replay: &Replay) -> Result<Option<Vec<u8>>, WorkError> {
        let recording = self.dispatcher.recording(replay).await;
        recording.map_err(|error| WorkError::Failed(error.to_string()))
    }

    async fn finish(&self, job: &Job, output: AuditOutput) -> Result<LeaseState, WorkError> {
        let Some(lease) = retry(job, || self.lease_of(job)).await else {
            self.remove_phase(job);
            return Ok(LeaseState::Lost);
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
        let session = output.session.as_ref();
        Ok(retry(job, || self.complete(job, &output.report, session)).await)
    }

    async fn return_job(&self, job: &Job, reason: ReturnReason) -> Result<LeaseState, WorkError> {
        let Some(lease) = self.lease_of(job).await? else {
            return Ok(LeaseState::Lost);
        };
        let reason = ReleaseReason::Returned(reason);
        let released = self.dispatcher.release(&lease, reason).await;
        released.map_err(failed)
    }
}

impl EmbeddedAgent {
    /// Creates the agent of the server with this id. The announced process has a name that no other
    /// process of the server has.
    pub fn new(dispatcher: Arc<Dispatcher>, server_id: String, announcement: Announcement) -> Self {
        let presence = AgentPresence {
            process: AgentProcess::Embedded {
                server_id: Some(server_id),
                name: announcement.process,
            },
            agent_id: None,
            location: announcement.location,
            chromium: announcement.chromium,
            host_index: announcement.host_index,
            slots: announcement.slots,
            version: announcement.version,
            seen_at: Timestamp(0),
        };
        Self {
            dispatcher,
            presence,
        }
    }

    fn slot(&self, index: u32) -> AgentSlot {
        AgentSlot {
            agent: self.presence.clone(),
            index,
            scope: None,
        }
    }

    /// Removes the phase of an audit whose lease is lost. It may have been reported after the audit
    /// was cancelled.
    fn remove_phase(&self, job: &Job) {
        self.dispatcher
            .parts
            .phases
            .remove(&job.attempt.tracking_id);
    }

    async fn state_of(&self, job: &Job) -> Result<AttemptState, WorkError> {
        let holder = ProcessSet::Single(self.presence.process.clone());
        let attempt = &job.attempt;
        let state = self
            .dispatcher
            .attempt_state(&holder, &attempt.tracking_id, attempt.number);
        state.await.map_err(failed)
    }

    async fn lease_of(&self, job: &Job) -> Result<Option<Lease>, WorkError> {
        Ok(match self.state_of(job).await? {
            AttemptState::Held(lease) => Some(*lease),
            AttemptState::Finished | AttemptState::Lost => None,
        })
    }

    async fn complete(
        &self,
        job: &Job,
        report: &Report,
        session: Option<&MadeSession>,
    ) -> Result<LeaseState, WorkError> {
        let state = self.state_of(job).await?;
        let finished = self
            .dispatcher
            .finish_attempt(state, report.clone(), session)
            .await;
        finished.map_err(failed)
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
                let audit = &job.attempt.tracking_id;
                tracing::warn!(audit, %error, "failed to submit the report, retrying");
                sleep(backoff).await;
                backoff = (backoff * 2).min(MAX_BACKOFF);
            }
        }
    }
}

fn failed(error: StoreError) -> WorkError {
    WorkError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use plumbline_seam::VisitReason;
    use plumbline_store::{
        AuditError, AuditOptions, AuditSummary, Cancellation, CancelledAudit, FileBlobs, NewAudit,
        Order, SqliteStore, Store, Submission, Timestamp,
    };
    use tokio::time::timeout;

    use super::*;
    use crate::{AuditPhases, DispatcherParts, Metrics};

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
            order: Order {
                url: "https://example.com/".to_owned(),
                device: "mobile".to_owned(),
                network: "cable".to_owned(),
                location: "eu".to_owned(),
                options: plumbline_store::VisitOptions::default(),
            },
            options: AuditOptions::default(),
            accepted_at: NOW,
        }
    }

    /// An embedded agent with a job, whose store is in a temporary directory.
    struct TestAgent {
        work: EmbeddedAgent,
        job: Job,
        store: Arc<SqliteStore>,
        account_id: String,
        dir: tempfile::TempDir,
    }

    impl TestAgent {
        async fn with_job() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let store = Arc::new(SqliteStore::open(&dir.path().join("store.db")).unwrap());
            let account = store.create_account("tests", 1, NOW).await.unwrap();
            store
                .submit(Submission::single(new_audit(account.id.clone())))
                .await
                .unwrap();
            let blobs = Arc::new(FileBlobs::open(&dir.path().join("blobs")).unwrap());
            let work = EmbeddedAgent::new(
                Arc::new(Dispatcher::new(DispatcherParts {
                    store: store.clone(),
                    agents: store.clone(),
                    bundles: blobs.clone(),
                    media: blobs,
                    phases: AuditPhases::of_store(&*store),
                    metrics: Arc::new(Metrics::default()),
                    clock: Arc::new(|| NOW),
                    lease: Duration::from_secs(30),
                    locations: vec!["eu".to_owned()],
                    simulate: true,
                    vault: None,
                    observers: Vec::new(),
                })),
                "tests".to_owned(),
                Announcement {
                    process: "embedded".to_owned(),
                    location: "eu".to_owned(),
                    chromium: "none".to_owned(),
                    host_index: None,
                    slots: 1,
                    version: "0".to_owned(),
                },
            );
            let Ok(NextJob::Job(job)) = work.next_job(0, TEST_TIMEOUT).await else {
                panic!("there is a job");
            };
            Self {
                work,
                job: *job,
                store,
                account_id: account.id,
                dir,
            }
        }
    }

    #[tokio::test]
    async fn a_phase_that_is_reported_after_the_audit_was_cancelled_is_removed() {
        let agent = TestAgent::with_job().await;
        let cancellation = Cancellation {
            account_id: agent.account_id,
            audits: vec![CancelledAudit {
                tracking_id: "trk_1".to_owned(),
                order: agent.job.order.clone(),
                report: "{}".to_owned(),
                summary: AuditSummary {
                    lab_data: None,
                    summary: "null".to_owned(),
                    final_url: None,
                },
            }],
            error: AuditError {
                code: "CANCELLED".to_owned(),
                message: "cancelled".to_owned(),
            },
            at: NOW,
        };
        let cancelled = agent.store.cancel(cancellation).await.unwrap();
        assert_eq!(cancelled, ["trk_1"]);
        let visit = VisitNumber {
            run: 1,
            number: 1,
            max: 3,
            reason: VisitReason::First,
        };
        let (work, job) = (&agent.work, &agent.job);
        work.report_progress(job, Phase::Loading, visit, None);
        assert!(agent.store.progress().phase("trk_1").is_some());
        assert_eq!(work.heartbeat(job).await.unwrap(), LeaseState::Lost);
        assert_eq!(agent.store.progress().phase("trk_1"), None);
    }

    #[tokio::test]
    async fn a_report_is_retried_until_the_store_can_write() {
        let TestAgent {
            work,
            job,
            store,
            account_id,
            dir,
        } = TestAgent::with_job().await;
        let file = dir.path().join("store.db");
        let database = rusqlite::Connection::open(&file).unwrap();
        database.execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON reports BEGIN SELECT RAISE(ABORT, 'no room'); END",
        )
        .unwrap();
        let output = AuditOutput {
            report: report(),
            bundle: None,
            media: None,
            session: None,
        };
        let mut finish = work.finish(&job, output);
        let early = timeout(Duration::from_millis(500), &mut finish).await;
        assert!(early.is_err(), "{early:?}");
        database.execute_batch("DROP TRIGGER full").unwrap();
        let result = timeout(TEST_TIMEOUT, finish).await.unwrap();
        assert_eq!(result.unwrap(), LeaseState::Held);
        let stored = store.report(&account_id, "aud_1").await.unwrap();
        assert!(stored.is_some());
        assert_eq!(store.queue_depth().await.unwrap().running, 0);
    }
}
