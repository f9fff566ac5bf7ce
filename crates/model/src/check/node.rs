use serde::{Deserialize, Serialize};

/// An element of the page, described so that a person can find it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Node {
    pub selector: String,
    /// The opening tag, shortened.
    pub snippet: String,
    /// A readable label: the text, the alternative text, or the selector.
    pub label: String,
    /// The path from the document to the element in the notation of DevTools: `1,HTML,1,BODY,…`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The rectangle of the element when it was gathered; `None` if it has no box.
    pub rect: Option<Rect>,
    /// The part of `rect` that ancestors with scrolling or clipping leave visible, with size 0 if
    /// nothing is visible; `None` if all of it is visible.
    #[serde(rename = "seen", skip_serializing_if = "Option::is_none")]
    pub visible_rect: Option<Rect>,
}

impl Node {
    /// Returns the rectangle of the element in a screenshot of the page.
    pub fn rect_in_screenshot(&self) -> Option<Rect> {
        self.visible_rect.or(self.rect)
    }
}

/// A rectangle in CSS pixels from the top left of the viewport.
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
