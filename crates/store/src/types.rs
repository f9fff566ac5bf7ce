//! The plain records that a store takes and returns.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    AuditSummary, KeyDigest, LeaseOwner, MAX_INTERACTIVE_IN_A_ROW, Order, ReturnReason, StoreError,
    VisitOptions,
};

/// Milliseconds since the Unix epoch, UTC. Always an argument: a store does not read the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    pub fn plus(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(duration.as_millis().try_into().unwrap_or(i64::MAX)),
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

/// A key as it is stored, without its secret.
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

/// An audit to be accepted. The caller generates its ids.
#[derive(Debug, Clone)]
pub struct NewAudit {
    pub account_id: String,
    pub tracking_id: String,
    /// The id of the report; it is not published before the audit is completed.
    pub audit_id: String,
    pub order: Order,
    pub options: AuditOptions,
    pub accepted_at: Timestamp,
}

/// Returns the options of an order as they are stored; `None` if they are the defaults.
pub(crate) fn options_column(order: &Order) -> Result<Option<String>, StoreError> {
    write_options(&order.options)
}

/// Returns the options of an order as they are stored when its audit has ended: without the values
/// of its state, which are the client's secrets.
pub(crate) fn ended_options_column(order: &Order) -> Result<Option<String>, StoreError> {
    write_options(&order.options.without_values())
}

fn write_options(options: &VisitOptions) -> Result<Option<String>, StoreError> {
    if options.is_default() {
        return Ok(None);
    }
    let text = serde_json::to_string(options);
    text.map(Some)
        .map_err(|error| StoreError::Refused(error.to_string()))
}

/// Reads options that [`options_column`] returned.
pub(crate) fn read_options(column: Option<&str>) -> Result<VisitOptions, serde_json::Error> {
    column.map_or(Ok(VisitOptions::default()), serde_json::from_str)
}

/// Returns labels as they are stored; `None` if there are none.
pub(crate) fn labels_column(labels: &[String]) -> Result<Option<String>, StoreError> {
    if labels.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_string(labels);
    text.map(Some)
        .map_err(|error| StoreError::Refused(error.to_string()))
}

/// Reads labels that [`labels_column`] returned.
pub(crate) fn read_labels(column: Option<&str>) -> Result<Vec<String>, serde_json::Error> {
    column.map_or(Ok(Vec::new()), serde_json::from_str)
}

/// Options of an audit besides its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOptions {
    /// The number of runs; an audit costs as many credits.
    pub runs: u32,
    /// The URL to notify when the audit is completed.
    pub webhook: Option<String>,
    /// Labels by which the client finds the audit again, each once.
    pub labels: Vec<String>,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self {
            runs: 1,
            webhook: None,
            labels: Vec::new(),
        }
    }
}

/// The state of an audit as a client sees it. It never goes backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditState {
    /// The audit was never leased.
    NotStarted,
    /// The audit was leased at least once, even if it waits for its next attempt.
    InProgress,
    Completed,
}

/// The reason why an audit ended without measurements; `code` is one of the API's fixed codes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditError {
    pub code: String,
    pub message: String,
}

/// The data of the API's status operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditStatus {
    pub tracking_id: String,
    pub audit_id: String,
    pub url: String,
    pub state: AuditState,
    pub error: Option<AuditError>,
    /// The URL of the measured document, if the request was redirected to another page.
    pub final_url: Option<String>,
    pub runs: u32,
    pub labels: Vec<String>,
    pub accepted_at: Timestamp,
}

/// A report as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReport {
    pub account_id: String,
    pub audit_id: String,
    pub tracking_id: String,
    /// The attempt that finished the audit.
    pub attempt: u32,
    pub order: Order,
    pub created_at: Timestamp,
    pub error: Option<AuditError>,
    /// The JSON text that was passed to `finish`.
    pub report: String,
}

/// The right to work on an audit until a deadline. `attempt` is a fencing token: only the newest
/// attempt may finish the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub tracking_id: String,
    pub audit_id: String,
    pub attempt: u32,
    pub owner: LeaseOwner,
    pub expires_at: Timestamp,
    pub order: Order,
    /// The number of runs.
    pub runs: u32,
    /// The number of earlier attempts that ended with an internal fault: released as such, silent
    /// until their lease expired, or held by a process that died.
    pub faults: u32,
}

/// Number of faults after which an audit is not tried again.
pub const MAX_FAULTS: u32 = 3;

/// Maximum number of attempts, including those that are not faults, such as releases by a process
/// that is stopped.
pub const MAX_ATTEMPTS: u32 = 30;

impl Lease {
    /// Whether the audit has been tried too often. The holder of such a lease must not visit the
    /// page but finish the audit with the API's `INTERNAL` error, which refunds the credits.
    ///
    /// A store leases an exhausted audit like any other, so that finishing it is fenced and
    /// survives a crash like any other work.
    pub fn is_exhausted(&self) -> bool {
        self.faults >= MAX_FAULTS || self.attempt > MAX_ATTEMPTS
    }
}

/// The result of an audit.
#[derive(Debug, Clone)]
pub struct FinishedAudit {
    pub report: String,
    /// Set when there are no measurements; the credits are refunded in the same transaction.
    pub error: Option<AuditError>,
    pub finished_at: Timestamp,
    /// The part of the report that lists show; without one, the audit is listed without figures
    /// until [`crate::Store::store_summary`] adds it.
    pub summary: Option<AuditSummary>,
}

/// The reason why a lease is released before the audit is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseReason {
    /// The agent returned the audit. A fault is counted: see [`Lease::is_exhausted`].
    Returned(ReturnReason),
    /// The agent did not confirm that it received the audit. Applies only while no heartbeat has
    /// changed [`Lease::expires_at`] since it was leased, and does not count as a fault.
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
    /// The credits that the account was created with.
    Opening,
    /// Credits added or subtracted by an operator.
    Adjustment,
    /// The cost of an accepted audit.
    Audit,
    /// The cost of an audit that ended without measurements.
    Refund,
}

/// The place of a waiting audit in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePosition {
    /// The place, from 1. Accounts take turns, so audits that are accepted later may go first. It
    /// is too low for an account with more than a thousand audits ahead: clients ask often, and
    /// counting all of them would take too long.
    pub position: u64,
    /// The number of audits that are running.
    pub running: u64,
}

impl QueuePosition {
    /// Creates the position of an audit that has a place among those of its kind (single or batch),
    /// while so many single audits may go before it.
    pub(crate) fn new(place: i64, singles: i64, running: i64) -> Self {
        let singles_first = singles.min(place.saturating_mul(MAX_INTERACTIVE_IN_A_ROW));
        Self {
            position: place.saturating_add(singles_first).unsigned_abs(),
            running: running.unsigned_abs(),
        }
    }
}

/// The number of unfinished audits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueDepth {
    pub waiting: u64,
    /// The number of leased audits, including those whose lease has expired.
    pub running: u64,
}
