use serde::Deserialize;

use super::Artifact;
use super::node::or_default;

/// The main document as a whole, and the window it stands in.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Page {
    /// What the address bar shows: a script may have changed it since the document came.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// `CSS1Compat` or `BackCompat`.
    #[serde(deserialize_with = "or_default")]
    pub compat_mode: String,
    pub doctype: Option<Doctype>,
    /// The layout viewport, in CSS pixels.
    pub inner_width: f64,
    pub inner_height: f64,
    /// The window, in CSS pixels.
    pub outer_width: f64,
    pub device_pixel_ratio: f64,
}

impl Artifact for Page {
    const NAME: &'static str = "page";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Doctype {
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub public_id: String,
    #[serde(deserialize_with = "or_default")]
    pub system_id: String,
}
