//! Records for operators: retention, account summaries and the queue.

use crate::{Account, LeaseOwner, Timestamp};

/// Decides which finished audits are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Audits accepted before this time are deleted.
    pub accepted_before: Option<Timestamp>,
    /// The number of each account's newest audits that are kept.
    pub keep_per_account: Option<u64>,
}

/// The result of one purge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PurgeResult {
    /// The deleted audits. Their evidence is stored elsewhere and must be deleted as well.
    pub audits: Vec<PurgedAudit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgedAudit {
    pub audit_id: String,
    /// The attempt that finished the audit.
    pub attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountSummary {
    pub account: Account,
    /// The number of keys, usable or not.
    pub keys: u64,
    /// The number of audits ever accepted.
    pub audits: u64,
    pub unfinished: u64,
}

/// An unfinished audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedAudit {
    pub tracking_id: String,
    pub account_id: String,
    pub url: String,
    pub accepted_at: Timestamp,
    pub attempt: u32,
    pub faults: u32,
    /// The owner of the lease and its expiry.
    pub lease: Option<(LeaseOwner, Timestamp)>,
}
