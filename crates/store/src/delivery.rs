//! Webhooks: what is to be told to whom, until it was.

use std::time::Duration;

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

/// First attempts and retries are claimed apart, so that retries never delay first attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryLane {
    /// Webhooks that were never attempted.
    First,
    /// Webhooks whose earlier attempts failed or were never settled.
    Retry,
}

/// A request for due webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryClaim {
    pub lane: DeliveryLane,
    /// The account that was served last: accounts take turns in the order of their ids, beginning
    /// after this one.
    pub after_account: String,
    /// How long an attempt may stay unsettled before the webhook is due again.
    pub hold: Duration,
    pub limit: u32,
}

/// The answer to a [`DeliveryClaim`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimedDeliveries {
    /// The claimed webhooks, in turn by account.
    pub deliveries: Vec<Delivery>,
    /// Whether a due webhook was left because its account or its receiver has as many attempts
    /// under way as it may have, or because the claim asked for no more.
    pub has_more_due: bool,
    /// When to claim again though nothing was announced: the next webhook falls due then, in either
    /// lane, or announcements may have been missed.
    pub next_claim_at: Option<Timestamp>,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// To be tried again at this time.
    RetryAt(Timestamp, String),
    GivenUp(String),
}

/// How many webhooks are on their way, and how many were given up, as far as they are still kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryDepth {
    pub pending: u64,
    pub given_up: u64,
}
