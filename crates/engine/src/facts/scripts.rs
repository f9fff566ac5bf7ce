use serde::Deserialize;

use super::Artifact;
use super::node::or_default;

/// Every script that the page's main target parsed, evaluated text of our own excluded.
#[derive(Debug, Default, Deserialize)]
pub struct Scripts(pub Vec<Script>);

impl Scripts {
    /// Whether there is anything to read: an empty script has nothing that could be missing.
    pub fn has_text(&self) -> bool {
        self.0.iter().any(|script| script.length > 0)
    }
}

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
    /// The frame that it ran in.
    #[serde(deserialize_with = "or_default")]
    pub frame: String,
    pub is_inline: bool,
    /// The length without whitespace and comments; none where the text was not read.
    pub token_length: Option<u64>,
    /// The beginning of an inline script.
    #[serde(deserialize_with = "or_default")]
    pub preview: String,
    /// How much of it ran; none where that was not counted.
    pub coverage: Option<Coverage>,
    /// What of it is for browsers of the past; none where nothing is.
    pub legacy: Option<Legacy>,
}

/// In UTF-16 units.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Coverage {
    pub total: u64,
    pub unused: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Legacy {
    /// Of the script's text.
    pub bytes: f64,
    pub signals: Vec<LegacySignal>,
}

/// A polyfill or transform and where it begins; lines and columns from 0.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LegacySignal {
    pub name: String,
    pub line: u32,
    pub column: u32,
}

impl Script {
    /// Whether its text was read at all: bundles of earlier versions hold no figures of it.
    pub fn was_read(&self) -> bool {
        self.token_length.is_some()
    }
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
    /// What the script was built from; none where the map was not read or is not this script's.
    pub modules: Option<Vec<Module>>,
    /// In functions that were not called and came from no source, in UTF-16 units.
    #[serde(deserialize_with = "or_default")]
    pub unmapped_unused: u64,
}

/// What of a script came from one source, in UTF-16 units of the script.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Module {
    #[serde(deserialize_with = "or_default")]
    pub source: String,
    #[serde(deserialize_with = "or_default")]
    pub length: u64,
    /// Of it, in functions that were not called.
    #[serde(deserialize_with = "or_default")]
    pub unused: u64,
}
