use serde::Deserialize;

use super::ArtifactFact;
use super::null::or_default;

/// The console messages of the browser and the page, in order.
#[derive(Debug, Default, Deserialize)]
pub struct Console(pub Vec<ConsoleEntry>);

impl ArtifactFact for Console {
    const NAME: &'static str = "console";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsoleEntry {
    /// The source of the message: `network`, `security`, `violation`, `exception`, `console.error`
    /// …
    #[serde(deserialize_with = "or_default")]
    pub source: String,
    /// The severity: `error`, `warning` …
    #[serde(deserialize_with = "or_default")]
    pub level: String,
    #[serde(deserialize_with = "or_default")]
    pub text: String,
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// The line, counted from 0.
    pub line: Option<u32>,
    /// The column, counted from 0.
    pub column: Option<u32>,
}
