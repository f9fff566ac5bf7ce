use serde::Deserialize;

use super::ArtifactFact;

/// The result of navigating away from the page and back.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackForward {
    /// True if the page was restored from the back/forward cache.
    pub was_restored: bool,
    /// The reasons why it was not restored, by frame.
    pub reasons: Vec<NotRestored>,
}

impl ArtifactFact for BackForward {
    const NAME: &'static str = "back-forward-cache";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NotRestored {
    /// The reason's name in the DevTools protocol: `MainResourceHasCacheControlNoStore` …
    pub reason: String,
    /// The kind of reason: `PageSupportNeeded`, `SupportPending` or `Circumstantial`.
    pub kind: String,
    /// The frame's URL, if the browser reported it.
    pub frame_url: Option<String>,
}
