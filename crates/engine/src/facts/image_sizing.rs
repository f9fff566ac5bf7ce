use serde::Deserialize;

use super::node::or_default;
use super::{Artifact, Node};

/// Every `<img>` of the main document outside shadow trees, with all that could give it a size.
#[derive(Debug, Default, Deserialize)]
pub struct ImageSizing(pub Vec<SizedImage>);

impl Artifact for ImageSizing {
    const NAME: &'static str = "image-sizing";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SizedImage {
    #[serde(deserialize_with = "or_default")]
    pub src: String,
    pub width_attribute: Option<String>,
    pub height_attribute: Option<String>,
    /// Computed `position`, of the `<picture>` where it is in one.
    #[serde(deserialize_with = "or_default")]
    pub position: String,
    /// What CSS says; none where it was not looked at, because it cannot matter or time was over.
    pub rules: Option<SizingRules>,
    pub node: Node,
}

/// The declarations that win; none where there is none.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SizingRules {
    pub width: Option<String>,
    pub height: Option<String>,
    pub aspect_ratio: Option<String>,
}
