//! Past audits, page by page.

use crate::{AuditError, AuditOrder, AuditState, Timestamp};

/// Which audits are listed: those that fit everything that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub url: Option<String>,
    pub device: Option<String>,
    pub network: Option<String>,
    pub location: Option<String>,
    pub state: Option<AuditState>,
    /// Accepted at this time or later.
    pub from: Option<Timestamp>,
    /// Accepted before this time.
    pub to: Option<Timestamp>,
}

impl AuditFilter {
    pub fn matches(&self, audit: &AuditEntry) -> bool {
        let same = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|w| w == is);
        same(&self.url, &audit.order.url)
            && same(&self.device, &audit.order.device)
            && same(&self.network, &audit.order.network)
            && same(&self.location, &audit.order.location)
            && self.state.is_none_or(|state| state == audit.state)
            && self.from.is_none_or(|from| audit.accepted_at >= from)
            && self.to.is_none_or(|to| audit.accepted_at < to)
    }
}

/// Where an audit stands in its account's list: by time of acceptance, then by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListCursor {
    pub accepted_at: Timestamp,
    /// 1, 2, 3 … within the account.
    pub number: i64,
}

/// An audit as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub tracking_id: String,
    pub audit_id: String,
    pub batch_id: Option<String>,
    pub order: AuditOrder,
    pub runs: u32,
    pub state: AuditState,
    pub error: Option<AuditError>,
    pub accepted_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// Within the account.
    pub number: i64,
    /// The scores and metrics as JSON text, see [`crate::AuditSummary::lab_data`].
    pub lab_data: Option<String>,
}

/// A page, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    pub audits: Vec<AuditEntry>,
    /// Where the next page goes on, unless this was the last. A page can be short and still have a
    /// next one: a store looks at a bounded number of audits for each.
    pub next: Option<ListCursor>,
}

/// Audits that were accepted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub id: String,
    pub accepted_at: Timestamp,
    /// How many were accepted; `audits` lacks those that have been deleted since.
    pub accepted: u64,
    /// In the order in which they were handed in.
    pub audits: Vec<AuditEntry>,
}
