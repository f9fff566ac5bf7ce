use plumbline_model::check::Node;
use serde::Deserialize;

use super::ArtifactFact;
use super::null::or_default;

/// Every `<meta>` in the head of the main document.
#[derive(Debug, Default, Deserialize)]
pub struct Metas(pub Vec<Meta>);

impl ArtifactFact for Metas {
    const NAME: &'static str = "metas";
}

impl Metas {
    /// Returns the first element with this lower-case name.
    pub fn named(&self, name: &str) -> Option<&Meta> {
        self.0.iter().find(|meta| meta.name == name)
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// The name in lower case.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub content: String,
    #[serde(deserialize_with = "or_default")]
    pub property: String,
    /// The `http-equiv` attribute in lower case.
    #[serde(deserialize_with = "or_default")]
    pub http_equiv: String,
    #[serde(deserialize_with = "or_default")]
    pub charset: String,
    pub node: Node,
}
