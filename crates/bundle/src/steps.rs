use serde::{Deserialize, Serialize};

use crate::{Record, Screenshot};

/// A step before the visit, as it was performed. It contains no value that was filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRecord {
    /// A short description.
    pub title: String,
    /// URL of the document after the step; empty if there was none.
    pub url: String,
    /// Duration of the step.
    pub ms: f64,
    /// The reason why the step failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The page after the step; `None` if it could not be taken, or if there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<Screenshot>,
}

/// The records of all steps before a visit, an artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepRecords(pub Vec<StepRecord>);

impl Record for StepRecords {
    const ARTIFACT: &'static str = "steps";
}
