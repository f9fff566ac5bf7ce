use serde::Deserialize;

use super::Artifact;

/// What happened when the browser left the page and came back.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackForward {
    /// The page was still there.
    pub was_restored: bool,
    /// Why it was not, by frame.
    pub reasons: Vec<NotRestored>,
}

impl Artifact for BackForward {
    const NAME: &'static str = "back-forward-cache";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NotRestored {
    /// The protocol's word: `MainResourceHasCacheControlNoStore` …
    pub reason: String,
    /// `PageSupportNeeded`, `SupportPending` or `Circumstantial`.
    pub kind: String,
    /// The frame's address; none where the browser did not say which frame it was.
    pub frame_url: Option<String>,
}
