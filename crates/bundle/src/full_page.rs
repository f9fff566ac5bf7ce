use serde::{Deserialize, Serialize};

/// A picture of the whole page, an artifact; sizes are CSS pixels, which are the picture's pixels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FullPagePicture {
    pub mime_type: String,
    pub width: f64,
    pub height: f64,
    /// Scroll position of the page: elements are measured relative to the viewport, the picture is
    /// not.
    pub scrolled_x: f64,
    pub scrolled_y: f64,
    /// The file in Base64.
    pub data: String,
}

impl FullPagePicture {
    /// Name of the artifact in a bundle.
    pub const ARTIFACT: &str = "full-page-picture";
}
