use plumbline_model::check::{Node, Rect};
use serde::Deserialize;

use super::ArtifactFact;
use super::null::or_default;

/// Every `<img>` of the main document.
#[derive(Debug, Default, Deserialize)]
pub struct Images(pub Vec<Image>);

impl ArtifactFact for Images {
    const NAME: &'static str = "images";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// The URL that the browser chose from `srcset` and `<source>`.
    #[serde(deserialize_with = "or_default")]
    pub src: String,
    #[serde(deserialize_with = "or_default")]
    pub srcset: String,
    /// The displayed size in CSS pixels, without border and padding.
    pub displayed: Size,
    /// The natural size of the file in pixels, if known.
    pub natural: Option<Size>,
    /// The unrounded rectangle with border and padding.
    pub rect: Rect,
    /// The computed `object-fit`.
    #[serde(deserialize_with = "or_default")]
    pub object_fit: String,
    /// The computed `image-rendering`.
    #[serde(deserialize_with = "or_default")]
    pub image_rendering: String,
    pub node: Node,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Size {
    pub width: f64,
    pub height: f64,
}
