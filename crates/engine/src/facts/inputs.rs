use plumbline_model::check::Node;
use serde::Deserialize;

use super::ArtifactFact;
use super::null::or_default;

/// Every `<input>`, `<textarea>` and `<select>` of the main document.
#[derive(Debug, Default, Deserialize)]
pub struct Inputs(pub Vec<Input>);

impl ArtifactFact for Inputs {
    const NAME: &'static str = "inputs";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Input {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// True if the page cancelled a paste event that was sent to the element.
    #[serde(deserialize_with = "or_default")]
    pub prevents_paste: bool,
    pub node: Node,
}
