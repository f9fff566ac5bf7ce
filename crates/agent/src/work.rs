use std::time::Duration;

use async_trait::async_trait;
use plumbline_browser::VisitEvent;

use crate::{Audited, Order};

/// One audit that this agent holds, for now.
#[derive(Debug, Clone)]
pub struct Job {
    pub tracking_id: String,
    /// The fencing token: results of an older attempt are refused.
    pub attempt: u32,
    pub order: Order,
    /// How often the page is to be audited; the report is the median run's.
    pub runs: u32,
    /// Tried too often already: it must be ended, not visited.
    pub exhausted: bool,
    /// How often it is to be confirmed; well below the lease's length.
    pub heartbeat_every: Duration,
}

/// What there is to do.
#[derive(Debug)]
pub enum Next {
    Job(Job),
    /// Nothing yet: ask again.
    Nothing,
    /// Nothing any more: this agent is to finish what runs, and to leave.
    Leave,
}

/// Whether a job is still ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    Held,
    Lost,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// May pass: to be tried again.
    #[error("{0}")]
    Failed(String),
    /// Will not pass: who is refused may as well leave.
    #[error("{0}")]
    Refused(String),
}

/// Where audits come from and reports go to.
#[async_trait]
pub trait Work: Send + Sync + 'static {
    /// The next audit for a slot, waiting up to `at_most` for one. A slot does one audit at a time:
    /// what it was given before, it no longer works on.
    async fn next(&self, slot: u32, at_most: Duration) -> Result<Next, WorkError>;

    /// Says that a slot asks for nothing more: what it was given and never heard of goes back.
    async fn leave(&self, slot: u32) -> Result<(), WorkError>;

    /// Says that the job is still being worked on.
    async fn heartbeat(&self, job: &Job) -> Result<Hold, WorkError>;

    /// Says how far the job is: a courtesy to who waits for it, and to who asks around about the page meanwhile.
    /// Must not block.
    fn reached(&self, job: &Job, step: VisitEvent<'_>);

    /// Hands in what an audit came to: of a measured page, or of one that cannot be.
    async fn finish(&self, job: &Job, audited: Audited) -> Result<Hold, WorkError>;

    /// Gives the job back because of a fault of ours.
    async fn fault(&self, job: &Job) -> Result<Hold, WorkError>;

    /// Gives the job back because this agent is being stopped.
    async fn drained(&self, job: &Job) -> Result<Hold, WorkError>;
}
