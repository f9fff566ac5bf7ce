//! Webhooks: what is to be told to whom, until it was.

use crate::{AuditStatus, Timestamp};

/// One attempt to tell that an audit is completed. `attempt` fences, as in a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub account_id: String,
    /// Where to.
    pub webhook: String,
    pub audit: AuditStatus,
    pub finished_at: Timestamp,
    /// 1 for the first.
    pub attempt: u32,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    Delivered,
    /// To be tried again at this time.
    Again(Timestamp, String),
    GivenUp(String),
}

/// How many webhooks are on their way, and how many were given up, as far as they are still kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryDepth {
    pub pending: u64,
    pub given_up: u64,
}
