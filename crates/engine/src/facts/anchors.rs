use plumbline_model::check::Node;
use serde::Deserialize;

use super::ArtifactFact;
use super::null::or_default;

/// Every `<a>` of the main document, shadow trees included.
#[derive(Debug, Default, Deserialize)]
pub struct Anchors(pub Vec<Anchor>);

impl ArtifactFact for Anchors {
    const NAME: &'static str = "anchors";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Anchor {
    /// The resolved URL; empty if there is no `href` or it cannot be resolved.
    #[serde(deserialize_with = "or_default")]
    pub href: String,
    /// The `href` attribute as written.
    #[serde(deserialize_with = "or_default")]
    pub raw_href: String,
    #[serde(deserialize_with = "or_default")]
    pub role: String,
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    /// The visible text.
    #[serde(deserialize_with = "or_default")]
    pub text: String,
    /// The language of the text, if the page declares exactly one.
    pub text_lang: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub rel: String,
    #[serde(deserialize_with = "or_default")]
    pub attribute_names: Vec<String>,
    /// True if it has an event listener, set by attribute or by `addEventListener`. Gathered only
    /// for anchors without any attribute of a link.
    #[serde(deserialize_with = "or_default")]
    pub has_listener: bool,
    pub node: Node,
}
