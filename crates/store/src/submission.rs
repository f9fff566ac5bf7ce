//! Submissions: one audit or a batch, accepted as a whole or not at all.

use std::time::Duration;

use crate::{NewAudit, Timestamp};

/// Audits of one account that are accepted together.
#[derive(Debug, Clone)]
pub struct Submission {
    pub account_id: String,
    /// The audits, at least one, which all belong to `account_id`.
    pub audits: Vec<NewAudit>,
    /// Set for a batch.
    pub batch_id: Option<String>,
    /// The maximum number of unfinished audits of the account, including these.
    pub max_unfinished: Option<u64>,
    /// The limit of recently failed audits of the account.
    pub failures: Option<FailureLimit>,
    pub idempotency: Option<IdempotencyRecord>,
    pub accepted_at: Timestamp,
}

impl Submission {
    /// Returns a submission of one audit, without limits.
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

    /// The total cost in credits.
    pub fn cost(&self) -> i64 {
        self.audits
            .iter()
            .map(|audit| i64::from(audit.options.runs))
            .sum()
    }
}

/// A limit on audits that end without measurements. These are refunded, so credits do not limit
/// them. Deleted audits count as well; audits that were cancelled before their first lease do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureLimit {
    /// The maximum number of failures, at least 1.
    pub max_failures: u32,
    /// The time during which a failed audit counts.
    pub window: Duration,
}

impl FailureLimit {
    /// Returns the start of the window; failures at this time or earlier no longer count.
    pub(crate) fn since(&self, now: Timestamp) -> i64 {
        let window = i64::try_from(self.window.as_millis()).unwrap_or(i64::MAX);
        now.0.saturating_sub(window)
    }

    /// Returns the number of failures that are newer than the one that reaches the limit.
    pub(crate) fn offset(&self) -> i64 {
        i64::from(self.max_failures) - 1
    }
}

/// Makes a submission idempotent: while it is stored, the same key returns the first reply and
/// accepts nothing again.
#[derive(Debug, Clone)]
pub struct IdempotencyRecord {
    /// The key that the client sent. Keys of different accounts are independent.
    pub key: String,
    /// The digest of the request. Another digest with the same key is an error of the client.
    pub digest: [u8; 32],
    /// The reply to the client, also when it repeats the request.
    pub reply: String,
    pub until: Timestamp,
}

impl IdempotencyRecord {
    /// Returns the decision on a request whose key was stored with this digest and reply.
    pub(crate) fn acceptance(&self, stored_digest: [u8; 32], stored_reply: String) -> Acceptance {
        if stored_digest == self.digest {
            Acceptance::Replayed(stored_reply)
        } else {
            Acceptance::KeyReused
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceptance {
    Accepted,
    InsufficientCredits,
    /// The account has too many unfinished audits.
    TooManyUnfinished,
    /// Too many audits of the account have failed recently; at this time one of them stops to
    /// count.
    TooManyFailed(Timestamp),
    /// The submission was accepted earlier with the same idempotency key, with this reply.
    Replayed(String),
    /// The idempotency key was used for a different submission.
    KeyReused,
}
