use serde::Deserialize;

use super::Artifact;
use super::node::or_default;

/// Every script that the page's main target parsed, evaluated text of our own excluded.
#[derive(Debug, Default, Deserialize)]
pub struct Scripts(pub Vec<Script>);

impl Artifact for Scripts {
    const NAME: &'static str = "scripts";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Script {
    /// Of the script, or of the document where it is inline.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// In UTF-16 units, as V8 counts.
    #[serde(deserialize_with = "or_default")]
    pub length: u64,
    /// None where the script names no map.
    pub source_map: Option<SourceMap>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceMap {
    /// None where the map is in the script itself.
    pub url: Option<String>,
    /// Why it could not be fetched or understood.
    pub error: Option<String>,
    /// How many of its sources come without their text.
    #[serde(deserialize_with = "or_default")]
    pub sources_without_content: u32,
}
