use plumbline_model::check::Node;
use serde::Deserialize;

use super::ArtifactFact;
use super::null::or_default;

/// Every `<img>` of the main document outside shadow trees, with the attributes and rules that set
/// its size.
#[derive(Debug, Default, Deserialize)]
pub struct ImageSizing(pub Vec<SizedImage>);

impl ArtifactFact for ImageSizing {
    const NAME: &'static str = "image-sizing";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SizedImage {
    #[serde(deserialize_with = "or_default")]
    pub src: String,
    pub width_attribute: Option<String>,
    pub height_attribute: Option<String>,
    /// The computed `position`, that of the `<picture>` if it is inside one.
    #[serde(deserialize_with = "or_default")]
    pub position: String,
    /// The CSS rules; `None` if they were not read because they cannot matter or time was up.
    pub rules: Option<SizingRules>,
    pub node: Node,
}

/// The winning CSS declarations for the size of an image.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SizingRules {
    pub width: Option<String>,
    pub height: Option<String>,
    pub aspect_ratio: Option<String>,
}
