//! Records of webhook deliveries.

use std::time::Duration;

use crate::{AuditStatus, Timestamp};

/// One attempt to deliver a webhook. `attempt` is a fencing token, as in a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub account_id: String,
    /// The URL of the webhook.
    pub webhook: String,
    pub event: DeliveryEvent,
    /// The audit that has ended; for a batch, the one that ended last, or another one if that was
    /// deleted.
    pub audit: AuditStatus,
    /// The scores and metrics as JSON text, see [`crate::AuditSummary::lab_data`].
    pub lab_data: Option<String>,
    pub finished_at: Timestamp,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

/// The event that a webhook reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryEvent {
    AuditCompleted,
    /// The last audit of the batch with this id has ended. This webhook is due when that of the
    /// audit was delivered or given up.
    BatchCompleted(String),
}

impl DeliveryEvent {
    pub(crate) fn new(batch_id: Option<String>) -> Self {
        batch_id.map_or(Self::AuditCompleted, Self::BatchCompleted)
    }

    pub(crate) fn is_batch(&self) -> bool {
        matches!(self, Self::BatchCompleted(_))
    }
}

/// First attempts and retries are claimed separately, so that retries never delay first attempts.
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
    /// The account that was served last. Accounts take turns in the order of their ids, beginning
    /// after this one.
    pub after_account: String,
    /// How long an attempt may stay unsettled before the webhook is due again.
    pub hold: Duration,
    pub limit: u32,
}

/// The response to a [`DeliveryClaim`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimedDeliveries {
    /// The claimed webhooks, in turn by account.
    pub deliveries: Vec<Delivery>,
    /// Whether a due webhook was not claimed because its account or its receiver has the maximum
    /// number of active attempts, or because of the claim's limit.
    pub has_more_due: bool,
    /// When to claim again without a notification: the next webhook of either lane is due then, or
    /// notifications may have been missed.
    pub next_claim_at: Option<Timestamp>,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// The attempt failed with this error and is repeated at this time.
    RetryAt(Timestamp, String),
    GivenUp(String),
}

/// The number of stored webhooks that are pending or were given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryDepth {
    pub pending: u64,
    pub given_up: u64,
}
