use std::time::Duration;

use async_trait::async_trait;
use plumbline_browser::VisitEvent;

use crate::{AuditOutput, Order};

/// An audit that this agent has leased.
#[derive(Debug, Clone)]
pub struct Job {
    pub tracking_id: String,
    /// The fencing token: results of an older attempt are refused.
    pub attempt: u32,
    pub order: Order,
    /// The number of runs; the median run is reported.
    pub runs: u32,
    /// Whether the audit was tried too often: it must be finished with an error, not visited.
    pub exhausted: bool,
    /// The interval of heartbeats, well below the duration of the lease.
    pub heartbeat_every: Duration,
}

/// The response to a request for a job.
#[derive(Debug)]
pub enum NextJob {
    Job(Job),
    /// There is no job yet; request one again.
    None,
    /// There will be no more jobs: the agent finishes its running audits and exits.
    Drain,
}

/// Whether this agent still holds the lease of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    Held,
    Lost,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// A temporary failure; the request can be repeated.
    #[error("{0}")]
    Failed(String),
    /// A permanent refusal; the agent exits.
    #[error("{0}")]
    Refused(String),
}

/// The source of jobs and the receiver of reports.
#[async_trait]
pub trait Work: Send + Sync + 'static {
    /// Returns the next job of a slot, waiting up to `max_wait` for one. A slot performs one audit
    /// at a time, so a job that it was given before goes back to the queue.
    async fn next_job(&self, slot: u32, max_wait: Duration) -> Result<NextJob, WorkError>;

    /// Announces that a slot requests no more jobs. A job that was sent to the slot but did not
    /// arrive goes back to the queue.
    async fn release_slot(&self, slot: u32) -> Result<(), WorkError>;

    /// Extends the lease of a job that is being worked on.
    async fn heartbeat(&self, job: &Job) -> Result<Hold, WorkError>;

    /// Reports the progress of a job, for clients that wait and for the request of field data. It
    /// is optional information, and the method must not block.
    fn report_progress(&self, job: &Job, event: VisitEvent<'_>);

    /// Delivers the report and the evidence of an audit, also of a page that cannot be measured.
    async fn finish(&self, job: &Job, output: AuditOutput) -> Result<Hold, WorkError>;

    /// Returns the job to the queue because of an internal fault.
    async fn return_faulted(&self, job: &Job) -> Result<Hold, WorkError>;

    /// Returns the job to the queue because this agent is being stopped.
    async fn return_drained(&self, job: &Job) -> Result<Hold, WorkError>;
}
