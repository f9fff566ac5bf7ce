//! The plain records that go in and out of a store.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{AuditSummary, KeyDigest};

/// Milliseconds since the Unix epoch, UTC. Always passed in: a store reads no clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    pub fn plus(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_add(by.as_millis().try_into().unwrap_or(i64::MAX)),
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub id: String,
    pub name: String,
    pub credits: i64,
    pub created_at: Timestamp,
}

/// A key as stored: never the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: String,
    pub account_id: String,
    pub account_name: String,
    /// The balance of the key's account.
    pub credits: i64,
    pub digest: KeyDigest,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl KeyRecord {
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// An audit to be accepted. Ids are made by the caller so that it can answer with them.
#[derive(Debug, Clone)]
pub struct NewAudit {
    pub account_id: String,
    pub tracking_id: String,
    /// The id that the report will have; told to nobody before the audit is completed.
    pub audit_id: String,
    pub order: AuditOrder,
    pub options: AuditOptions,
    pub accepted_at: Timestamp,
}

/// What a client may ask for beyond the order itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOptions {
    /// How often the page is visited; an audit costs as many credits.
    pub runs: u32,
    /// Where to say that the audit is completed.
    pub webhook: Option<String>,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self {
            runs: 1,
            webhook: None,
        }
    }
}

/// What a client ordered: ids are those of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditOrder {
    pub url: String,
    pub device: String,
    pub network: String,
    pub location: String,
}

/// How far an audit is, as a client sees it: it never goes backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditState {
    /// Never leased yet.
    NotStarted,
    /// Leased at least once, also while it waits for its next attempt.
    InProgress,
    Completed,
}

/// Why an audit ended without measurements; `code` is one of the API's closed list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditError {
    pub code: String,
    pub message: String,
}

/// What the status operation answers from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditStatus {
    pub tracking_id: String,
    pub audit_id: String,
    pub url: String,
    pub state: AuditState,
    pub error: Option<AuditError>,
}

/// A finished report as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReport {
    pub audit_id: String,
    pub tracking_id: String,
    /// The one that finished.
    pub attempt: u32,
    pub order: AuditOrder,
    pub created_at: Timestamp,
    pub error: Option<AuditError>,
    /// JSON text, as `finish` got it.
    pub report: String,
}

/// The right to work on one audit until a time. `attempt` fences: only the newest may finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub tracking_id: String,
    pub audit_id: String,
    pub attempt: u32,
    pub owner: String,
    pub expires_at: Timestamp,
    pub order: AuditOrder,
    /// How often the page is to be visited.
    pub runs: u32,
    /// Earlier attempts that ended by a fault of ours: handed back as such, never heard of again until
    /// their lease expired, or held by a process that died.
    pub faults: u32,
}

/// An audit is tried again up to two times after a fault of ours.
pub const MAX_FAULTS: u32 = 3;

/// However an audit comes back (being handed back by a process that is stopped counts as no fault), it is not tried
/// more often than this.
pub const MAX_ATTEMPTS: u32 = 30;

impl Lease {
    /// Whether the audit has been tried often enough. Who gets such a lease must not visit the page
    /// again but finish the audit as the API's `INTERNAL` error, which gives the credit back.
    ///
    /// A store leases an exhausted audit like any other, so that ending it is fenced, and survives a
    /// crash, like any other work.
    pub fn is_exhausted(&self) -> bool {
        self.faults >= MAX_FAULTS || self.attempt > MAX_ATTEMPTS
    }
}

/// Whether a lease still belongs to who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    Held,
    /// Taken over, finished, or handed back: stop, and keep the result to yourself. Expiry alone
    /// loses nothing as long as nobody else has leased the audit.
    Lost,
}

/// How an audit ended.
#[derive(Debug, Clone)]
pub struct FinishedAudit {
    pub report: String,
    /// Set when there are no measurements: the credits go back in the same transaction.
    pub error: Option<AuditError>,
    pub finished_at: Timestamp,
    /// The part of the report that lists show; without one, the audit is listed without figures until
    /// [`crate::Store::store_summary`] adds it.
    pub summary: Option<AuditSummary>,
}

/// Why a lease is given up before the audit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseReason {
    /// The agent is being stopped; nobody's fault, counts against nothing.
    Drained,
    /// A fault of ours: counted, see [`Lease::is_exhausted`].
    Fault,
    /// Nobody has said that they have it: only while no heartbeat has moved [`Lease::expires_at`] since it was leased. Counts
    /// against nothing.
    Unconfirmed,
}

/// One change of an account's balance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    pub amount: i64,
    pub reason: LedgerReason,
    /// The audit that was charged or refunded, unless it has been deleted.
    pub tracking_id: Option<String>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerReason {
    /// What the account was created with.
    Opening,
    /// Credits added or taken by an operator.
    Adjustment,
    /// An audit was accepted.
    Audit,
    /// It ended without measurements.
    Refund,
}

/// The queue as an operator sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueDepth {
    pub waiting: u64,
    /// Leased, also where the lease has expired and nobody has taken over yet.
    pub running: u64,
}
