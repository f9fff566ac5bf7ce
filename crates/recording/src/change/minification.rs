//! Minifies scripts and style sheets.

use super::editor::Editor;
use super::{ChangeProblem, Effect, Pattern};
use crate::RecordedResponse;
use crate::minify::{minified_script, minified_sheet};

impl Editor {
    /// Removes comments and blanks from scripts and style sheets that have files of their own.
    pub fn minify(&mut self, pattern: Option<&Pattern>) -> Result<Effect, ChangeProblem> {
        let indexes = self.selected_or_all(pattern)?;
        Ok(self.edit_bodies(&indexes, |exchange, content| {
            let response = exchange.response.as_ref();
            let kind = response.map(RecordedResponse::media_type);
            let kind = kind.unwrap_or_default();
            let Ok(text) = std::str::from_utf8(content) else {
                return Ok(None);
            };
            let minified = if kind == "text/css" {
                minified_sheet(text)
            } else if kind.ends_with("javascript") || kind.ends_with("ecmascript") {
                minified_script(text)
            } else {
                None
            };
            let minified = minified.filter(|it| it.len() < content.len());
            Ok(minified.map(String::into_bytes))
        }))
    }
}
