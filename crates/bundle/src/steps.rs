use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use crate::{Artifact, Bundle, Screenshot};

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

impl StepRecords {
    /// Name of the artifact in a bundle.
    pub const ARTIFACT: &str = "steps";

    /// Stores the records in the bundle of the visit, if there are any.
    pub fn store_in(&self, bundle: &mut Bundle) -> Result<(), serde_json::Error> {
        if !self.0.is_empty() {
            let artifact = Artifact::Gathered(to_raw_value(self)?);
            bundle.artifacts.insert(Self::ARTIFACT.to_owned(), artifact);
        }
        Ok(())
    }

    /// Returns the records that [`StepRecords::store_in`] stored; empty if they are missing or
    /// unreadable.
    pub fn stored_in(bundle: &Bundle) -> Self {
        match bundle.artifacts.get(Self::ARTIFACT) {
            Some(Artifact::Gathered(raw)) => serde_json::from_str(raw.get()).unwrap_or_default(),
            _ => Self::default(),
        }
    }
}
