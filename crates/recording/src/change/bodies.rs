//! Changes of headers and contents of responses.

use super::editor::Editor;
use super::{ChangeProblem, Effect, Pattern};
use crate::validity::{is_header_name, is_header_value};

/// Headers that describe how the body is sent, which would then be wrong.
const FRAMING_HEADERS: [&str; 5] = [
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "trailer",
];

impl Editor {
    /// Sets a header of responses.
    pub fn set_header(
        &mut self,
        pattern: &Pattern,
        name: &str,
        value: &str,
    ) -> Result<Effect, ChangeProblem> {
        let name = header_name(name)?;
        if !is_header_value(value) {
            return Err(ChangeProblem::HeaderValue);
        }
        let indexes = self.selected(pattern)?;
        Ok(self.change_responses(&indexes, |response| {
            let before = response.headers.clone();
            response.set_header(&name, value);
            response.headers != before
        }))
    }

    /// Removes a header of responses.
    pub fn remove_header(
        &mut self,
        pattern: &Pattern,
        name: &str,
    ) -> Result<Effect, ChangeProblem> {
        let name = header_name(name)?;
        let indexes = self.selected(pattern)?;
        Ok(self.change_responses(&indexes, |response| {
            let count = response.headers.len();
            response.remove_header(&name);
            response.headers.len() < count
        }))
    }

    /// Replaces the contents of responses.
    pub fn replace_body(&mut self, pattern: &Pattern, text: &str) -> Result<Effect, ChangeProblem> {
        let indexes = self.selected(pattern)?;
        Ok(self.edit_bodies(&indexes, |_, _| Some(text.as_bytes().to_vec())))
    }

    /// Replaces a text in the contents of responses.
    pub fn replace_text(
        &mut self,
        pattern: &Pattern,
        from: &str,
        to: &str,
    ) -> Result<Effect, ChangeProblem> {
        if from.is_empty() {
            return Err(ChangeProblem::EmptyText);
        }
        let indexes = self.selected(pattern)?;
        Ok(self.edit_bodies(&indexes, |_, content| {
            Some(replaced(content, from.as_bytes(), to.as_bytes()))
        }))
    }
}

/// Returns the name of a header in lower case, if it may be changed.
fn header_name(name: &str) -> Result<String, ChangeProblem> {
    let name = name.trim().to_ascii_lowercase();
    if !is_header_name(&name) {
        return Err(ChangeProblem::HeaderName(name));
    }
    if FRAMING_HEADERS.contains(&name.as_str()) {
        return Err(ChangeProblem::FramingHeader(name));
    }
    Ok(name)
}

/// Replaces all occurrences of a text that is not empty.
pub(super) fn replaced(content: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut output = Vec::with_capacity(content.len());
    let mut at = 0;
    while at < content.len() {
        if content[at..].starts_with(from) {
            output.extend_from_slice(to);
            at += from.len();
        } else {
            output.push(content[at]);
            at += 1;
        }
    }
    output
}
