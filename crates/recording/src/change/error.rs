//! Errors of changes.

use crate::InvalidRecording;
use crate::html::SelectorError;

/// A change that cannot be applied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("change {number} ({change}): {problem}")]
pub struct ChangeError {
    /// The position of the change, which begins with 1.
    pub number: usize,
    /// The change as a text.
    pub change: String,
    pub problem: ChangeProblem,
}

/// The reason why a change cannot be applied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChangeProblem {
    #[error("it affects nothing in the recording{}", .reason.as_ref().map(|it| format!(": {it}")).unwrap_or_default())]
    NoEffect { reason: Option<String> },
    #[error("the pattern is empty")]
    EmptyPattern,
    #[error("`ms` is a number between 0 and {max}")]
    Delay { max: u32 },
    #[error("`{0}` is not the name of a header")]
    HeaderName(String),
    #[error("the value of a header is one line")]
    HeaderValue,
    #[error("the header `{0}` describes how the body is sent and cannot be changed")]
    FramingHeader(String),
    #[error("`from` is empty")]
    EmptyText,
    #[error("`{0}` is not the name of an attribute")]
    AttributeName(String),
    #[error("`quality` is a number between 1 and 100")]
    Quality,
    #[error("`maxWidth` is at least 1")]
    Width,
    #[error("the recording has no main document")]
    NoMainDocument,
    #[error("the changed recording cannot be replayed: {0}")]
    Invalid(#[from] InvalidRecording),
    #[error(transparent)]
    Selector(#[from] SelectorError),
}
