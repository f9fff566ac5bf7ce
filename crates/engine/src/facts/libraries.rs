use serde::Deserialize;

use super::ArtifactFact;
use super::null::or_default;

/// The front-end libraries that were detected in the page.
#[derive(Debug, Default, Deserialize)]
pub struct Libraries(pub Vec<Library>);

impl ArtifactFact for Libraries {
    const NAME: &'static str = "libraries";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Library {
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    pub version: Option<String>,
}
