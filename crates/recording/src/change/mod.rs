//! Experiments: changes of a recording, as data.
//!
//! A change applies to what was recorded. Requests that the page makes only because of a change are
//! not in the recording, and a replay counts them as such.
//!
//! Documents that get markup or other URLs lose their content security policy, which could forbid
//! them: what it blocked is not in the recording anyway. Scripts and style sheets that are edited
//! lose the `integrity` attributes with which documents name them.

mod blocking;
mod bodies;
mod compression;
mod document;
mod editor;
mod error;
mod first_party;
mod minification;
mod pattern;
mod pictures;
mod policy;
mod stylesheet;
mod traffic;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Protocol, Recording};
use editor::Editor;
pub use error::{ChangeError, ChangeProblem};
pub use pattern::{ExactPattern, HostPattern, HostsPattern, Pattern};

/// The most changes of an experiment.
pub const MAX_CHANGES: usize = 200;

/// One change of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Change {
    /// Requests fail at once, as if the page did not make them.
    Block { pattern: Pattern },
    /// A server accepts no connection and never answers: a single point of failure. The host may
    /// begin with `*.`, which includes the domain itself.
    Blackhole { host: String },
    /// Responses come later.
    Delay { pattern: Pattern, ms: u32 },
    /// Responses begin at most so long after their requests.
    AnswerWithin { pattern: Pattern, ms: u32 },
    /// Responses have a header with this value only.
    SetHeader {
        pattern: Pattern,
        name: String,
        value: String,
    },
    /// Responses lack a header.
    RemoveHeader { pattern: Pattern, name: String },
    /// Responses have another content.
    ReplaceBody { pattern: Pattern, text: String },
    /// A text is replaced wherever it occurs in the content of responses.
    ReplaceText {
        pattern: Pattern,
        from: String,
        to: String,
    },
    /// Markup is inserted at the beginning of the head, by default of the main document.
    InsertHead {
        html: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<Pattern>,
    },
    /// Elements have an attribute with this value, by default in the main document.
    SetAttribute {
        selector: String,
        name: String,
        value: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<Pattern>,
    },
    /// Elements lack an attribute, by default in the main document.
    RemoveAttribute {
        selector: String,
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<Pattern>,
    },
    /// Links of the main document to style sheets are replaced by their contents.
    InlineStylesheet { pattern: Pattern },
    /// Requests to hosts, each of which may begin with `*.`, go to the server of the main document.
    /// URLs that scripts put together are not changed.
    ServeFromFirstParty { hosts: Vec<String> },
    /// Scripts and style sheets lose comments and blanks, by default all. Those in documents, and
    /// scripts that are not understood for certain, stay as they are.
    Minify {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<Pattern>,
    },
    /// JPEG pictures are encoded with a quality between 1 and 100, and PNG pictures without loss
    /// and with 8 bits for each colour, by default all. Those that would not have fewer bytes stay
    /// as they are. Pictures of other formats and animations are not changed, which is noted.
    RecompressImages {
        quality: u8,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<Pattern>,
    },
    /// JPEG and PNG pictures are at most as wide, by default all. A picture whose size the page
    /// does not set is then shown smaller. Wider pictures of other formats, animations, and PNG
    /// pictures that would have more bytes are not changed, which is noted.
    ResizeImages {
        max_width: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<Pattern>,
    },
    /// Texts that were sent without compression are compressed, as the browser accepts it, by
    /// default all.
    CompressText {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<Pattern>,
    },
    /// Servers use a protocol. HTTP/2 needs TLS. The host may begin with `*.`; the default is all.
    SetProtocol {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        protocol: Protocol,
    },
}

/// Formats a change as its type, with the pattern, the host or the selector that it has.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { pattern } => write!(f, "block {pattern}"),
            Self::Blackhole { host } => write!(f, "blackhole {host}"),
            Self::Delay { pattern, ms } => write!(f, "delay {pattern} by {ms} ms"),
            Self::AnswerWithin { pattern, ms } => write!(f, "answerWithin {ms} ms {pattern}"),
            Self::SetHeader { pattern, name, .. } => write!(f, "setHeader {name} of {pattern}"),
            Self::RemoveHeader { pattern, name } => write!(f, "removeHeader {name} of {pattern}"),
            Self::ReplaceBody { pattern, .. } => write!(f, "replaceBody {pattern}"),
            Self::ReplaceText { pattern, .. } => write!(f, "replaceText {pattern}"),
            Self::InsertHead { .. } => write!(f, "insertHead"),
            Self::SetAttribute { selector, name, .. } => {
                write!(f, "setAttribute {name} of {selector}")
            }
            Self::RemoveAttribute { selector, name, .. } => {
                write!(f, "removeAttribute {name} of {selector}")
            }
            Self::InlineStylesheet { pattern } => write!(f, "inlineStylesheet {pattern}"),
            Self::ServeFromFirstParty { hosts } => {
                write!(f, "serveFromFirstParty {}", hosts.join(", "))
            }
            Self::Minify { .. } => write!(f, "minify"),
            Self::RecompressImages { quality, .. } => {
                write!(f, "recompressImages with quality {quality}")
            }
            Self::ResizeImages { max_width, .. } => {
                write!(f, "resizeImages to a width of {max_width}")
            }
            Self::CompressText { .. } => write!(f, "compressText"),
            Self::SetProtocol { host, .. } => {
                write!(
                    f,
                    "setProtocol of {}",
                    host.as_deref().unwrap_or("all servers")
                )
            }
        }
    }
}

/// A recording after changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    pub recording: Recording,
    /// The effect of each change, in their order.
    pub effects: Vec<Effect>,
}

/// The extent to which a change affects a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Effect {
    /// The number of exchanges that differ.
    pub exchanges: usize,
    /// The number of servers that differ.
    pub endpoints: usize,
    /// Sentences about what was left out or also changed.
    pub notes: Vec<String>,
}

impl Recording {
    /// Applies changes in their order. A change that affects nothing is an error, since its
    /// experiment would measure nothing.
    pub fn with_changes(&self, changes: &[Change]) -> Result<Changed, ChangeError> {
        let mut editor = Editor::new(self.clone());
        let mut effects = Vec::new();
        for (number, change) in (1..).zip(changes) {
            let error = |problem| ChangeError {
                number,
                change: change.to_string(),
                problem,
            };
            let effect = editor.apply(change).map_err(error)?;
            if effect.is_none() {
                let reason = effect.notes.into_iter().next();
                return Err(error(ChangeProblem::NoEffect { reason }));
            }
            // Larger bodies and copies of exchanges may exceed the limits.
            let validity = editor.recording.check();
            validity.map_err(|reason| error(reason.into()))?;
            effects.push(effect);
        }
        let recording = editor.finish();
        Ok(Changed { recording, effects })
    }

    /// Returns those changes that affect something if they are applied in their order, and
    /// sentences about why others do not.
    pub(crate) fn effective(&self, mut changes: Vec<Change>) -> (Vec<Change>, Vec<String>) {
        let mut editor = Editor::new(self.clone());
        let mut left_out = Vec::new();
        changes.retain(|change| {
            let Ok(effect) = editor.apply(change) else {
                return false;
            };
            let is_effective = !effect.is_none();
            if !is_effective {
                left_out.extend(effect.notes);
            }
            is_effective
        });
        // Several changes may not apply to a file for the same reason.
        let mut distinct = BTreeSet::new();
        left_out.retain(|sentence| distinct.insert(sentence.clone()));
        (changes, left_out)
    }
}

impl Effect {
    /// Returns whether nothing differs.
    fn is_none(&self) -> bool {
        self.exchanges == 0 && self.endpoints == 0
    }
}

impl Editor {
    fn apply(&mut self, change: &Change) -> Result<Effect, ChangeProblem> {
        match change {
            Change::Block { pattern } => self.block(pattern),
            Change::Blackhole { host } => self.blackhole(host),
            Change::Delay { pattern, ms } => self.delay(pattern, *ms),
            Change::AnswerWithin { pattern, ms } => self.answer_within(pattern, *ms),
            Change::SetHeader {
                pattern,
                name,
                value,
            } => self.set_header(pattern, name, value),
            Change::RemoveHeader { pattern, name } => self.remove_header(pattern, name),
            Change::ReplaceBody { pattern, text } => self.replace_body(pattern, text),
            Change::ReplaceText { pattern, from, to } => self.replace_text(pattern, from, to),
            Change::InsertHead { html, pattern } => self.insert_head(html, pattern.as_ref()),
            Change::SetAttribute {
                selector,
                name,
                value,
                pattern,
            } => self.set_attribute(selector, name, value, pattern.as_ref()),
            Change::RemoveAttribute {
                selector,
                name,
                pattern,
            } => self.remove_attribute(selector, name, pattern.as_ref()),
            Change::InlineStylesheet { pattern } => self.inline_stylesheet(pattern),
            Change::ServeFromFirstParty { hosts } => self.serve_from_first_party(hosts),
            Change::Minify { pattern } => self.minify(pattern.as_ref()),
            Change::RecompressImages { quality, pattern } => {
                self.recompress_images(pattern.as_ref(), *quality)
            }
            Change::ResizeImages { max_width, pattern } => {
                self.resize_images(pattern.as_ref(), *max_width)
            }
            Change::CompressText { pattern } => self.compress_text(pattern.as_ref()),
            Change::SetProtocol { host, protocol } => self.set_protocol(host.as_deref(), *protocol),
        }
    }
}

#[cfg(test)]
mod tests;
