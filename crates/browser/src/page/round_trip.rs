use serde::Deserialize;

use crate::protocol::ProtocolEvent;

/// Events of a navigation away from the page, or back to it.
#[derive(Default)]
pub(crate) struct RoundTrip {
    pub(crate) has_loaded: bool,
    /// Navigation type of the main frame's last document.
    pub(crate) navigation_type: Option<String>,
    pub(crate) cache_not_used: Option<CacheNotUsed>,
}

#[derive(Deserialize)]
struct FrameNavigated {
    frame: Frame,
    #[serde(default, rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    parent_id: Option<String>,
}

/// The event `Page.backForwardCacheNotUsed`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CacheNotUsed {
    #[serde(default)]
    pub(crate) not_restored_explanations: Vec<NotRestoredExplanation>,
    pub(crate) not_restored_explanations_tree: Option<NotRestoredFrame>,
}

/// The explanations of a frame and of the frames inside it.
#[derive(Deserialize)]
pub(crate) struct NotRestoredFrame {
    #[serde(default)]
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) explanations: Vec<NotRestoredExplanation>,
    #[serde(default)]
    pub(crate) children: Vec<NotRestoredFrame>,
}

#[derive(Deserialize)]
pub(crate) struct NotRestoredExplanation {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) reason: String,
}

impl RoundTrip {
    /// Records an event of the domain `Page`.
    pub(super) fn record(&mut self, event: &ProtocolEvent, name: &str) {
        match name {
            "loadEventFired" => self.has_loaded = true,
            "frameNavigated" => {
                if let Some(FrameNavigated { frame, kind }) = event.read()
                    && frame.parent_id.is_none()
                {
                    self.navigation_type = Some(kind);
                }
            }
            "backForwardCacheNotUsed" => self.cache_not_used = event.read(),
            _ => {}
        }
    }
}
