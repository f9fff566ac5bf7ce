//! What is handed in to be audited: one audit, or a batch of them, accepted whole or not at all.

use std::time::Duration;

use crate::{NewAudit, Timestamp};

/// Audits of one account, accepted together.
#[derive(Debug, Clone)]
pub struct Submission {
    pub account_id: String,
    /// Not empty. All of them belong to `account_id`.
    pub audits: Vec<NewAudit>,
    /// Set when they are to be found together afterwards.
    pub batch_id: Option<String>,
    /// How many unfinished audits the account may have, these included.
    pub max_unfinished: Option<u64>,
    /// How many of the account's audits may have failed lately.
    pub failures: Option<FailureLimit>,
    pub idempotency: Option<IdempotencyRecord>,
    pub accepted_at: Timestamp,
}

impl Submission {
    pub fn single(audit: NewAudit) -> Self {
        Self {
            account_id: audit.account_id.clone(),
            accepted_at: audit.accepted_at,
            audits: vec![audit],
            batch_id: None,
            max_unfinished: None,
            failures: None,
            idempotency: None,
        }
    }

    /// Credits that all of it costs.
    pub fn cost(&self) -> i64 {
        self.audits
            .iter()
            .map(|audit| i64::from(audit.options.runs))
            .sum()
    }
}

/// A bound on audits that ended without measurements: those are refunded, so credits do not bound them.
/// Deleted ones count as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureLimit {
    /// At least 1.
    pub max_failures: u32,
    /// How long a failed audit counts.
    pub window: Duration,
}

impl FailureLimit {
    /// Failures at this time or earlier no longer count.
    pub(crate) fn since(&self, now: Timestamp) -> i64 {
        let window = i64::try_from(self.window.as_millis()).unwrap_or(i64::MAX);
        now.0.saturating_sub(window)
    }

    /// How many newer failures there are when the oldest that counts fills the limit.
    pub(crate) fn newer(&self) -> i64 {
        i64::from(self.max_failures) - 1
    }
}

/// Makes a submission repeatable: for as long as it is remembered, the same key brings the first
/// answer and accepts nothing again.
#[derive(Debug, Clone)]
pub struct IdempotencyRecord {
    /// The client's; keys of two accounts never meet.
    pub key: String,
    /// Of what was asked for: another digest under the same key is a mistake.
    pub digest: [u8; 32],
    /// What the client is answered, now and again.
    pub reply: String,
    pub until: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceptance {
    Accepted,
    InsufficientCredits,
    /// The account has too many unfinished audits.
    TooManyUnfinished,
    /// Too many of the account's audits have failed lately; at this time one fewer counts.
    TooManyFailed(Timestamp),
    /// Accepted earlier, under the same idempotency key: this was the reply.
    Replayed(String),
    /// The idempotency key stands for something else.
    KeyReused,
}
