use serde::{Deserialize, Deserializer, Serialize};

/// An element of the page, described so that a person finds it again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Node {
    pub selector: String,
    /// The opening tag, shortened.
    pub snippet: String,
    /// What a visitor would call it: its text, or its alternative text, or else the selector.
    pub label: String,
    /// The way from the document to it, as DevTools writes it: `1,HTML,1,BODY,…`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Where it was when it was looked at; none where it takes no place.
    pub rect: Option<Rect>,
    /// The part of `rect` that the scrollers and clips around it leave to be seen, of no size where they
    /// leave nothing; none where they leave all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Rect>,
}

impl Node {
    /// Where a picture of the page shows it.
    pub fn in_picture(&self) -> Option<Rect> {
        self.seen.or(self.rect)
    }
}

/// In CSS pixels from the top left of the viewport.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rect {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Rect {
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// `null` where JavaScript had nothing to say reads as the type's own nothing.
pub(super) fn or_default<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
