use serde::Deserialize;

use super::node::or_default;
use super::{Artifact, Node, Rect};

/// Every `<img>` of the main document.
#[derive(Debug, Default, Deserialize)]
pub struct Images(pub Vec<Image>);

impl Artifact for Images {
    const NAME: &'static str = "images";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// The one that the browser chose among srcset and `<source>`.
    #[serde(deserialize_with = "or_default")]
    pub src: String,
    #[serde(deserialize_with = "or_default")]
    pub srcset: String,
    /// In CSS pixels, without border and padding.
    pub displayed: Size,
    /// The file's own size in pixels; none where it could not be had.
    pub natural: Option<Size>,
    /// With border and padding, unrounded.
    pub rect: Rect,
    /// Computed `object-fit`.
    #[serde(deserialize_with = "or_default")]
    pub object_fit: String,
    /// Computed `image-rendering`.
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
