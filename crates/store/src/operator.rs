//! What operators see and decide.

use crate::{Account, Timestamp};

/// Which finished audits are to be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Those accepted before this time.
    pub accepted_before: Option<Timestamp>,
    /// All but so many of each account's newest.
    pub keep_per_account: Option<u64>,
}

/// What one round of forgetting removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PurgeResult {
    /// Whose evidence, kept elsewhere, is to go as well.
    pub audits: Vec<PurgedAudit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgedAudit {
    pub audit_id: String,
    /// The attempt that finished it.
    pub attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountSummary {
    pub account: Account,
    /// Usable or not.
    pub keys: u64,
    /// Ever accepted.
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
    /// Who holds it, and until when.
    pub lease: Option<(String, Timestamp)>,
}
