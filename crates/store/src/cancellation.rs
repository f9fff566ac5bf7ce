//! Records of audits that are ended before they are measured.

use crate::{AuditError, AuditSummary, Order, Timestamp};

/// Audits of one account to be ended before they are measured.
#[derive(Debug, Clone)]
pub struct Cancellation {
    pub account_id: String,
    pub audits: Vec<CancelledAudit>,
    /// The error with which the audits are completed.
    pub error: AuditError,
    pub at: Timestamp,
}

/// One audit of a [`Cancellation`].
#[derive(Debug, Clone)]
pub struct CancelledAudit {
    pub tracking_id: String,
    /// The order, whose state loses its values.
    pub order: Order,
    /// The report, which says that the audit was cancelled.
    pub report: String,
    pub summary: AuditSummary,
}
