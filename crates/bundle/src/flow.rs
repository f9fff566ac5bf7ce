use serde::{Deserialize, Serialize};

use crate::{InteractionTiming, Record, Screenshot};

/// The measured steps after a visit, an artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowRecords {
    /// The steps that were measured, in order. One that failed is the last.
    #[serde(default)]
    pub steps: Vec<FlowStepRecord>,
    /// The reason why steps are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One measured step. Times are in milliseconds on the clock of the page, since the beginning of
/// the step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowStepRecord {
    /// A short description, without the value that is filled in.
    pub title: String,
    pub kind: FlowStepKind,
    /// URL of the document after the step; empty if there was none.
    pub url: String,
    /// End of the last request, long task and interaction; 0 if there was none.
    pub settled_ms: f64,
    /// Number of requests.
    pub requests: u32,
    /// Number of transferred bytes, including headers.
    pub transfer_bytes: u64,
    /// Number of tasks of more than 50 ms on the main thread.
    pub long_tasks: u32,
    /// Time of long tasks beyond 50 ms each; after a navigation, of those after the first paint.
    pub tbt_ms: f64,
    /// Cumulative Layout Shift: the largest sum of shifts in a session window, without those that
    /// follow an input within 500 ms.
    pub cls: f64,
    /// First Contentful Paint of a navigation, or of a soft navigation if the browser reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fcp_ms: Option<f64>,
    /// Largest Contentful Paint of a navigation, or of a soft navigation if the browser reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lcp_ms: Option<f64>,
    /// The slowest interaction; `None` if the step is none, or if it left its document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction: Option<InteractionTiming>,
    /// The reason why the step failed. Its figures are 0 then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The page after the step; `None` if it could not be taken, or if there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<Screenshot>,
}

/// The kind of a measured step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FlowStepKind {
    /// Another document was loaded.
    Navigation,
    /// The URL has changed within the document.
    SoftNavigation,
    /// Anything else, such as opening a menu.
    #[default]
    Timespan,
}

impl FlowStepKind {
    /// Returns the name for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Navigation => "navigation",
            Self::SoftNavigation => "soft navigation",
            Self::Timespan => "timespan",
        }
    }
}

impl Record for FlowRecords {
    const ARTIFACT: &'static str = "flow";
}

impl FlowRecords {
    /// Creates the records of a flow that could not begin.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self {
            error: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Removes the screenshots and returns them, one for each step.
    pub fn take_screenshots(&mut self) -> Vec<Option<Screenshot>> {
        let steps = self.steps.iter_mut();
        steps.map(|step| step.screenshot.take()).collect()
    }
}
