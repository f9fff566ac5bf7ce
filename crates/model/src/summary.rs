//! The part of a report that lists show. It is stored beside the audit, so that a list of audits
//! reads no reports.

use crate::comparison::Comparison;
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
    pub scores: Scores,
    pub metrics: Option<Metrics>,
    #[serde(default, skip_serializing_if = "Intervals::is_empty")]
    pub intervals: Intervals,
    pub conditions: Conditions,
    /// The result of a comparison; `None` if the audit is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

impl From<&Report> for ReportSummary {
    fn from(report: &Report) -> Self {
        Self {
            requested_url: report.requested_url.clone(),
            final_url: report.final_url.clone(),
            scores: report.scores,
            metrics: report.metrics.clone(),
            intervals: report.intervals.clone(),
            conditions: report.conditions.clone(),
            comparison: report.comparison.as_ref().map(|it| it.comparison.clone()),
        }
    }
}
