use serde::Deserialize;

use super::ArtifactFact;
use super::null::or_default;

/// The main document and the window it is shown in.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageProperties {
    /// The URL in the address bar, which a script may have changed since the document was loaded.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// The value of `document.compatMode`: `CSS1Compat` or `BackCompat`.
    #[serde(deserialize_with = "or_default")]
    pub compat_mode: String,
    pub doctype: Option<Doctype>,
    /// The width of the layout viewport in CSS pixels.
    pub inner_width: f64,
    /// The height of the layout viewport in CSS pixels.
    pub inner_height: f64,
    /// The width of the window in CSS pixels.
    pub outer_width: f64,
    pub device_pixel_ratio: f64,
}

impl ArtifactFact for PageProperties {
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
