//! The part of a report that lists show. It is stored beside the audit, so that a list of audits
//! reads no reports.

use plumbline_engine::report::{Conditions, Metrics, Report, Scores};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract;

/// The figures and conditions of a report. Its JSON is a part of the report's JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportSummary {
    #[serde(default)]
    pub final_url: Option<String>,
    pub scores: Scores,
    pub metrics: Option<Metrics>,
    pub conditions: Conditions,
}

impl ReportSummary {
    /// Returns the scores and metrics as the API shows them; `None` if nothing was measured.
    pub fn lab_data(&self) -> Option<Value> {
        let metrics = self.metrics.as_ref()?;
        Some(contract::figures(&self.scores, Some(metrics)))
    }
}

impl From<&Report> for ReportSummary {
    fn from(report: &Report) -> Self {
        Self {
            final_url: report.final_url.clone(),
            scores: report.scores,
            metrics: report.metrics.clone(),
            conditions: report.conditions.clone(),
        }
    }
}
