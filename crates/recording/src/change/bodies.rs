//! Changes of headers and contents of responses.

use memchr::memmem;

use super::editor::Editor;
use super::{ChangeProblem, Effect, Pattern};
use crate::BodyError;
use crate::body::NewContent;
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
        Ok(self.edit_bodies(&indexes, |_, _| Ok(Some(text.as_bytes().to_vec()))))
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
            let replaced = replaced(content, from.as_bytes(), to.as_bytes());
            replaced.map(Some).map_err(|it| it.to_string())
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
fn replaced(content: &[u8], from: &[u8], to: &[u8]) -> Result<Vec<u8>, BodyError> {
    let mut output = NewContent::default();
    let mut end = 0;
    for start in memmem::find_iter(content, from) {
        output.push(&content[end..start])?;
        output.push(to)?;
        end = start + from.len();
    }
    output.push(&content[end..])?;
    Ok(output.finish())
}
