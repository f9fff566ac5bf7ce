//! The trait through which an agent gets jobs.

use std::time::Duration;

use async_trait::async_trait;
use plumbline_bundle::Phase;
use plumbline_model::report::Report;

use crate::{Job, LeaseState, MadeSession, Replay, ReturnReason, VisitNumber};

/// The source of jobs and the receiver of reports: a server in the same process, or one on another
/// machine.
#[async_trait]
pub trait Work: Send + Sync + 'static {
    /// Returns the next job of a slot, waiting up to `max_wait` for one. A slot performs one audit
    /// at a time, so a job that it was given before goes back to the queue.
    async fn next_job(&self, slot: u32, max_wait: Duration) -> Result<NextJob, WorkError>;

    /// Announces that a slot requests no more jobs. A job that was sent to the slot but did not
    /// arrive goes back to the queue.
    async fn release_slot(&self, slot: u32) -> Result<(), WorkError>;

    /// Extends the lease of a job that is being worked on.
    async fn heartbeat(&self, job: &Job) -> Result<LeaseState, WorkError>;

    /// Reports the phase of a job and its visit, and the URL of the page's document after redirects
    /// once it is known. It is optional information, and the method must not block.
    fn report_progress(
        &self,
        job: &Job,
        phase: Phase,
        visit: VisitNumber,
        document_url: Option<&str>,
    );

    /// Returns the packed recording that a job replays; `None` if it was deleted.
    async fn recording(&self, job: &Job, replay: &Replay) -> Result<Option<Vec<u8>>, WorkError>;

    /// Delivers the report and the evidence of an audit, also of a page that cannot be measured.
    async fn finish(&self, job: &Job, output: AuditOutput) -> Result<LeaseState, WorkError>;

    /// Returns a job to the queue before its end.
    async fn return_job(&self, job: &Job, reason: ReturnReason) -> Result<LeaseState, WorkError>;
}

/// The response to a request for a job.
#[derive(Debug)]
pub enum NextJob {
    Job(Box<Job>),
    /// There is no job yet; request one again.
    None,
    /// There will be no more jobs: the agent finishes its running audits and exits.
    Drain,
}

/// The reason why a request of an agent failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// A temporary failure; the request can be repeated.
    #[error("{0}")]
    Failed(String),
    /// A permanent refusal; the agent exits.
    #[error("{0}")]
    Refused(String),
}

/// The result of an audit: the report and, if there is any, the evidence that it was made from.
#[derive(Debug)]
pub struct AuditOutput {
    pub report: Report,
    /// A packed bundle.
    pub bundle: Option<Vec<u8>>,
    /// Packed media, which web pages show besides the report.
    pub media: Option<Vec<u8>>,
    /// The state of the order's saved session, if it was made.
    pub session: Option<MadeSession>,
}

impl From<Report> for AuditOutput {
    fn from(report: Report) -> Self {
        Self {
            report,
            bundle: None,
            media: None,
            session: None,
        }
    }
}
