//! The seam between agent and server, for an agent in the server's own process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plumbline_agent::{Audited, Hold, Job, Next, Order, Step, Work, WorkError};
use plumbline_seam::Evidence;
use plumbline_server::{Asker, Desk};
use plumbline_store::{HandBack, Hold as Kept, Lease, Sighting, Standing, StoreError};

pub struct StoreWork {
    pub desk: Arc<Desk>,
    /// This agent, under a name that no other process has.
    pub agent: Sighting,
}

#[async_trait]
impl Work for StoreWork {
    async fn next(&self, slot: u32, at_most: Duration) -> Result<Next, WorkError> {
        let lease = self.desk.lease(&self.asker(slot), at_most).await;
        Ok(match lease.map_err(failed)? {
            Some(lease) => Next::Job(self.job(lease)),
            None => Next::Nothing,
        })
    }

    async fn leave(&self, slot: u32) -> Result<(), WorkError> {
        self.desk.leave(&self.asker(slot)).await.map_err(failed)
    }

    async fn heartbeat(&self, job: &Job) -> Result<Hold, WorkError> {
        match self.lease_of(job).await? {
            Some(lease) => {
                self.desk.see(&self.agent).await.map_err(failed)?;
                held(self.desk.heartbeat(&lease).await)
            }
            None => Ok(Hold::Lost),
        }
    }

    fn reached(&self, job: &Job, step: Step<'_>) {
        match step {
            Step::Entered(phase) => self.desk.reached(&job.tracking_id, phase),
            Step::Arrived(url) => self.desk.arrived(&job.tracking_id, &job.order.device, url),
        }
    }

    async fn finish(&self, job: &Job, audited: Audited) -> Result<Hold, WorkError> {
        let Some(lease) = self.lease_of(job).await? else {
            return Ok(Hold::Lost);
        };
        for (kind, bytes) in [
            (Evidence::Bundle, audited.bundle),
            (Evidence::Exhibits, audited.exhibits),
        ] {
            // A full disk, or a bucket out of reach, costs the evidence, not the audit.
            if let Some(bytes) = bytes
                && let Err(error) = self.desk.keep(&lease, kind, bytes).await
            {
                tracing::error!(%error, "evidence could not be kept");
            }
        }
        held(self.desk.finish(&lease, audited.report).await)
    }

    async fn fault(&self, job: &Job) -> Result<Hold, WorkError> {
        self.hand_back(job, HandBack::Fault).await
    }

    async fn drained(&self, job: &Job) -> Result<Hold, WorkError> {
        self.hand_back(job, HandBack::Drained).await
    }
}

impl StoreWork {
    fn asker(&self, slot: u32) -> Asker {
        Asker {
            agent: self.agent.clone(),
            slot,
        }
    }

    fn job(&self, lease: Lease) -> Job {
        Job {
            attempt: lease.attempt,
            exhausted: lease.exhausted(),
            runs: lease.runs,
            heartbeat_every: self.desk.heartbeat_every(),
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
        let standing = self.desk.standing(process, &job.tracking_id, job.attempt);
        Ok(match standing.await.map_err(failed)? {
            Standing::Held(lease) => Some(lease),
            Standing::Finished | Standing::Lost => None,
        })
    }

    async fn hand_back(&self, job: &Job, why: HandBack) -> Result<Hold, WorkError> {
        match self.lease_of(job).await? {
            Some(lease) => held(self.desk.hand_back(&lease, why).await),
            None => Ok(Hold::Lost),
        }
    }
}

fn held(answer: Result<Kept, StoreError>) -> Result<Hold, WorkError> {
    match answer.map_err(failed)? {
        Kept::Held => Ok(Hold::Held),
        Kept::Lost => Ok(Hold::Lost),
    }
}

fn failed(error: StoreError) -> WorkError {
    WorkError::Failed(error.to_string())
}
