//! The part of a report that lists show. It is stored beside the audit, so that a list of audits
//! reads no reports.

use plumbline_bundle::MainDocument;

use crate::comparison::Comparison;
use crate::document_urls::{DocumentUrls, redirected_to};
use crate::interval::Intervals;
use crate::report::{Conditions, Metrics, Report, Scores};
use serde::{Deserialize, Serialize};

/// The figures and conditions of a report. Its JSON is a part of the report's JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportSummary {
    #[serde(default)]
    pub requested_url: String,
    #[serde(default)]
    pub final_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_urls: Option<DocumentUrls>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<MainDocument>,
    pub scores: Scores,
    pub metrics: Option<Metrics>,
    #[serde(default, skip_serializing_if = "Intervals::is_empty")]
    pub intervals: Intervals,
    pub conditions: Conditions,
    /// The result of a comparison; `None` if the audit is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

impl ReportSummary {
    /// Returns the URL of the measured document if the request was redirected to another page. The
    /// requested URL is that of the audit, because earlier versions did not store it here.
    pub fn redirected_to(&self, requested_url: &str) -> Option<&str> {
        let urls = self.document_urls.as_ref();
        redirected_to(urls, requested_url, self.final_url.as_deref())
    }

    /// Returns the status of the document if it is that of an error.
    pub fn error_status(&self) -> Option<u16> {
        self.document.as_ref().and_then(MainDocument::error_status)
    }
}

impl From<&Report> for ReportSummary {
    fn from(report: &Report) -> Self {
        Self {
            requested_url: report.requested_url.clone(),
            final_url: report.final_url.clone(),
            document_urls: report.document_urls.clone(),
            document: report.document.clone(),
            scores: report.scores,
            metrics: report.metrics.clone(),
            intervals: report.intervals.clone(),
            conditions: report.conditions.clone(),
            comparison: report.comparison.as_ref().map(|it| it.comparison.clone()),
        }
    }
}
