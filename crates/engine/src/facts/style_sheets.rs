use serde::Deserialize;

use super::ArtifactFact;
use super::null::or_default;

/// Every style sheet of the page's main target, without duplicates.
#[derive(Debug, Default, Deserialize)]
pub struct StyleSheets(pub Vec<StyleSheet>);

impl ArtifactFact for StyleSheets {
    const NAME: &'static str = "style-sheets";
}

/// A style sheet; lengths are in UTF-16 code units.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StyleSheet {
    /// The URL of the sheet, or of the document if it is inline; empty if a script created it.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    pub is_inline: bool,
    pub length: f64,
    /// The length without whitespace and comments.
    pub token_length: f64,
    /// The length of the rules that match something on the page.
    pub used_length: f64,
    /// The beginning of a sheet without a URL.
    #[serde(deserialize_with = "or_default")]
    pub preview: String,
}

impl StyleSheet {
    pub fn has_url(&self) -> bool {
        !self.is_inline && !self.url.is_empty()
    }
}
