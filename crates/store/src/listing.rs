//! Records of paginated lists of audits.

use crate::{AuditError, AuditState, Order, Timestamp};

/// A filter of audits. An audit must match everything that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub url: Option<String>,
    pub device: Option<String>,
    pub network: Option<String>,
    pub location: Option<String>,
    pub state: Option<AuditState>,
    /// A label that the audit has, among others.
    pub label: Option<String>,
    /// A part of the URL, in any case.
    pub url_part: Option<String>,
    /// The earliest time of acceptance.
    pub from: Option<Timestamp>,
    /// The end of the time of acceptance, exclusive.
    pub to: Option<Timestamp>,
}

impl AuditFilter {
    pub fn matches(&self, audit: &AuditEntry) -> bool {
        let same =
            |filter: &Option<String>, value: &str| filter.as_ref().is_none_or(|f| f == value);
        same(&self.url, &audit.order.url)
            && same(&self.device, &audit.order.device)
            && same(&self.network, &audit.order.network)
            && same(&self.location, &audit.order.location)
            && self.state.is_none_or(|state| state == audit.state)
            && self
                .label
                .as_ref()
                .is_none_or(|label| audit.labels.contains(label))
            && self
                .url_part
                .as_ref()
                .is_none_or(|part| contains(&audit.order.url, part))
            && self.from.is_none_or(|from| audit.accepted_at >= from)
            && self.to.is_none_or(|to| audit.accepted_at < to)
    }
}

/// Whether a text contains a part, in any case.
fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

/// The position of an audit in the list of its account, by time of acceptance, then by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListCursor {
    pub accepted_at: Timestamp,
    /// The number of the audit within the account, from 1.
    pub number: i64,
}

/// An audit in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub tracking_id: String,
    pub audit_id: String,
    pub batch_id: Option<String>,
    pub order: Order,
    pub runs: u32,
    pub labels: Vec<String>,
    pub state: AuditState,
    pub error: Option<AuditError>,
    pub accepted_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// The number of the audit within the account, from 1.
    pub number: i64,
    /// The scores and metrics as JSON text, see [`crate::AuditSummary::lab_data`].
    pub lab_data: Option<String>,
    /// The URL of the measured document, if the request was redirected to another page.
    pub final_url: Option<String>,
}

/// An audit that visited the recording of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayAudit {
    pub audit: AuditEntry,
    /// See [`crate::AuditSummary::summary`]; `None` before the audit is completed and summarized.
    pub summary: Option<String>,
}

/// A page of a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    pub audits: Vec<AuditEntry>,
    /// The cursor of the next page; `None` on the last one. A short page can have a next one,
    /// because a store examines a limited number of audits for each page.
    pub next: Option<ListCursor>,
}

/// Audits that were accepted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub id: String,
    pub accepted_at: Timestamp,
    /// The number of accepted audits, including those deleted since.
    pub accepted: u64,
    /// The audits that are not deleted, in the order of the submission.
    pub audits: Vec<AuditEntry>,
}
