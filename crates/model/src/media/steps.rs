//! Steps before the visit, as a report page shows them.

use plumbline_bundle::{Screenshot, StepRecord, StepRecords};
use serde::{Deserialize, Serialize};

use super::{FORMAT, Picture, ReportMedia};

/// One step before the visit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepEntry {
    pub title: String,
    /// The URL of the document after the step.
    pub url: String,
    pub ms: f64,
    /// The reason why the step failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The page after the step.
    pub picture: Option<Picture>,
}

impl From<StepRecord> for StepEntry {
    fn from(record: StepRecord) -> Self {
        Self {
            title: record.title,
            url: record.url,
            ms: record.ms.round(),
            error: record.error,
            picture: record.screenshot.map(Picture::from),
        }
    }
}

impl From<Screenshot> for Picture {
    fn from(screenshot: Screenshot) -> Self {
        Self {
            mime_type: screenshot.mime_type,
            width_px: screenshot.width_px,
            height_px: screenshot.height_px,
            data: screenshot.data,
        }
    }
}

impl ReportMedia {
    /// Creates the media of an audit that ended before its page was measured; `None` if there were
    /// no steps.
    pub fn of_steps(records: StepRecords) -> Option<Self> {
        let steps: Vec<StepEntry> = records.0.into_iter().map(StepEntry::from).collect();
        (!steps.is_empty()).then(|| Self {
            format: FORMAT,
            steps,
            ..Self::default()
        })
    }
}
