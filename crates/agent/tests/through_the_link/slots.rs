//! A slot that gets jobs which it cannot perform.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use plumbline_agent::{AgentLocation, AgentSettings, Auditor, run};
use plumbline_browser::Pool;
use plumbline_bundle::{FailureCode, Phase};
use plumbline_catalog::{BUILT_IN, Catalog};
use plumbline_link::Guard;
use plumbline_model::report::LocationMode;
use plumbline_seam::{
    Attempt, AuditOutput, Job, LeaseState, NextJob, Order, Replay, ReturnReason, VisitNumber,
    VisitOptions, Work, WorkError,
};
use plumbline_traffic::RootCertStore;
use tokio::sync::watch;

use crate::recorded::replaying;
use crate::rig::{cpu, interception, launcher};

/// How a job ended.
#[derive(Debug, PartialEq)]
enum End {
    Finished(String, Option<FailureCode>, LocationMode),
    Returned(String, ReturnReason),
}

/// Gives its jobs one after the other. Getting a recording panics.
struct Jobs {
    left: Mutex<Vec<Job>>,
    ends: Mutex<Vec<End>>,
}

#[async_trait]
impl Work for Jobs {
    async fn next_job(&self, _: u32, _: Duration) -> Result<NextJob, WorkError> {
        let job = self.left.lock().unwrap().pop();
        Ok(job.map_or(NextJob::Drain, |job| NextJob::Job(Box::new(job))))
    }

    async fn release_slot(&self, _: u32) -> Result<(), WorkError> {
        Ok(())
    }

    async fn heartbeat(&self, _: &Job) -> Result<LeaseState, WorkError> {
        Ok(LeaseState::Held)
    }

    fn report_progress(&self, _: &Job, _: Phase, _: VisitNumber, _: Option<&str>) {}

    async fn recording(&self, _: &Job, _: &Replay) -> Result<Option<Vec<u8>>, WorkError> {
        panic!("a recording that cannot be got");
    }

    async fn finish(&self, job: &Job, output: AuditOutput) -> Result<LeaseState, WorkError> {
        let report = output.report;
        self.ends.lock().unwrap().push(End::Finished(
            job.attempt.tracking_id.clone(),
            report.error.map(|error| error.code),
            report.conditions.location.mode,
        ));
        Ok(LeaseState::Held)
    }

    async fn return_job(&self, job: &Job, reason: ReturnReason) -> Result<LeaseState, WorkError> {
        let id = job.attempt.tracking_id.clone();
        self.ends.lock().unwrap().push(End::Returned(id, reason));
        Ok(LeaseState::Held)
    }
}

fn job(id: &str, device: &str, options: VisitOptions, exhausted: bool) -> Job {
    Job {
        attempt: Attempt {
            tracking_id: id.to_owned(),
            number: 1,
        },
        order: Order {
            url: "http://example.com/".to_owned(),
            device: device.to_owned(),
            network: "wifi".to_owned(),
            location: "us-tx".to_owned(),
            options,
        },
        runs: 1,
        exhausted,
        heartbeat_ms: 60_000,
        lease_ms: 120_000,
        confirm_within_ms: None,
        containers: true,
        precondition_failure: None,
    }
}

#[tokio::test]
async fn a_slot_survives_a_panic_and_ends_audits_whose_device_is_unknown() {
    let auditor = Auditor {
        interception: interception(RootCertStore::empty()),
        browsers: Pool::start(launcher(), 0),
        agent_location: AgentLocation {
            id: "us-tx".to_owned(),
            is_stated: true,
        },
        max_visits: 1,
        catalog: Arc::new(Catalog::load(BUILT_IN).unwrap()),
        guard: Arc::new(Guard::new(Vec::new())),
        cpu: cpu(),
    };
    let jobs = Arc::new(Jobs {
        // The last one is given first.
        left: Mutex::new(vec![
            job("unknown", "removed", VisitOptions::default(), true),
            job("panic", "desktop", replaying(false), false),
        ]),
        ends: Mutex::default(),
    });
    let settings = AgentSettings {
        slots: 1,
        drain_grace: Duration::ZERO,
    };
    let (_drain, drained) = watch::channel(false);
    let work = Arc::clone(&jobs);
    run(work, Arc::new(auditor), settings, drained)
        .await
        .unwrap();
    let internal = Some(FailureCode::Internal);
    assert_eq!(
        *jobs.ends.lock().unwrap(),
        [
            End::Returned("panic".to_owned(), ReturnReason::Fault),
            End::Finished("unknown".to_owned(), internal, LocationMode::Requested),
        ]
    );
}
