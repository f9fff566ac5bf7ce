use serde::Deserialize;

use super::Artifact;
use super::node::or_default;

/// Every style sheet of the page's main target; the same text twice is one.
#[derive(Debug, Default, Deserialize)]
pub struct StyleSheets(pub Vec<StyleSheet>);

impl Artifact for StyleSheets {
    const NAME: &'static str = "style-sheets";
}

/// Lengths in UTF-16 units.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StyleSheet {
    /// Of the sheet, or of the document where it is inline; empty where a script made it.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    pub is_inline: bool,
    pub length: f64,
    /// Without whitespace and comments.
    pub token_length: f64,
    /// Of the rules that match something on the page.
    pub used_length: f64,
    /// The beginning of a sheet without an address.
    #[serde(deserialize_with = "or_default")]
    pub preview: String,
}

impl StyleSheet {
    pub fn has_address(&self) -> bool {
        !self.is_inline && !self.url.is_empty()
    }
}
