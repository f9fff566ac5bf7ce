//! The part of a report that lists show, stored beside the audit so that lists read no reports.

/// The figures of one completed audit, as JSON texts. A store does not look into them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSummary {
    /// Scores and metrics in the form in which the API shows them; `None` if the page could not be
    /// measured.
    pub lab_data: Option<String>,
    /// The summary that the service's pages read.
    pub summary: String,
    /// The URL of the measured document, if the request was redirected to another page.
    pub final_url: Option<String>,
}

/// A completed audit that has a report and no summary, because an earlier version finished it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsummarizedAudit {
    pub tracking_id: String,
    /// The report in JSON.
    pub report: String,
}
