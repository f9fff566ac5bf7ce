use serde::Deserialize;

use super::ArtifactFact;
use super::null::or_default;

/// Every script that the page's main target parsed, except those that the visit itself evaluated.
#[derive(Debug, Default, Deserialize)]
pub struct Scripts(pub Vec<Script>);

impl Scripts {
    /// Returns whether any script has text; an empty one has no figures that could be missing.
    pub fn has_text(&self) -> bool {
        self.0.iter().any(|script| script.length > 0)
    }
}

impl ArtifactFact for Scripts {
    const NAME: &'static str = "scripts";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Script {
    /// The URL of the script, or of the document if it is inline.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// The length in UTF-16 code units, as V8 counts.
    #[serde(deserialize_with = "or_default")]
    pub length: u64,
    /// The source map; `None` if the script refers to none.
    pub source_map: Option<SourceMap>,
    /// The id of the frame that the script ran in.
    #[serde(deserialize_with = "or_default")]
    pub frame: String,
    pub is_inline: bool,
    /// The length without whitespace and comments; `None` if the text was not gathered.
    pub token_length: Option<u64>,
    /// The beginning of an inline script.
    #[serde(deserialize_with = "or_default")]
    pub preview: String,
    /// The code coverage; `None` if it was not gathered.
    pub coverage: Option<Coverage>,
    /// The polyfills and transforms that current browsers do not need, if any.
    pub legacy: Option<Legacy>,
}

/// The code coverage of a script in UTF-16 code units.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Coverage {
    pub total: u64,
    pub unused: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Legacy {
    /// The estimated bytes of the script's text that they take.
    pub bytes: f64,
    pub signals: Vec<LegacySignal>,
}

/// A polyfill or transform and its position; lines and columns are counted from 0.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LegacySignal {
    pub name: String,
    pub line: u32,
    pub column: u32,
}

impl Script {
    /// Returns whether the text was gathered; bundles of earlier versions have no figures of it.
    pub fn was_read(&self) -> bool {
        self.token_length.is_some()
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceMap {
    /// The URL of the map; `None` if it is inline in the script.
    pub url: Option<String>,
    /// The reason why the map could not be fetched or parsed.
    pub error: Option<String>,
    /// The number of sources without content.
    #[serde(deserialize_with = "or_default")]
    pub sources_without_content: u32,
    /// The modules of the script; `None` if the map was not read or does not belong to this script.
    pub modules: Option<Vec<Module>>,
    /// The length of unmapped code in functions that were not called, in UTF-16 code units.
    #[serde(deserialize_with = "or_default")]
    pub unmapped_unused: u64,
}

/// The part of a script that comes from one source, in UTF-16 code units of the script.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Module {
    #[serde(deserialize_with = "or_default")]
    pub source: String,
    #[serde(deserialize_with = "or_default")]
    pub length: u64,
    /// The length of its functions that were not called.
    #[serde(deserialize_with = "or_default")]
    pub unused: u64,
}
