//! The traffic of a visit, kept so that it can be replayed without its servers.
//!
//! A [`Recording`] is plain data: which servers were connected to, and every request with its
//! response, as long after the request as it came. It is made and replayed elsewhere.
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        clippy::disallowed_types
    )
)]

mod address;
mod advice;
mod body;
mod change;
mod container;
mod css;
mod har;
mod html;
mod integrity;
mod matching;
mod minify;
mod picture;
mod recording;
mod redaction;
#[cfg(test)]
mod testing;
mod validity;

pub use advice::{AdviceError, Advised, MEASURABLE_CHECKS};
pub use body::BodyError;
pub use change::{
    Change, ChangeError, ChangeProblem, Changed, Effect, ExactPattern, HostPattern, HostsPattern,
    MAX_CHANGES, Pattern,
};
pub use container::RecordingError;
pub use har::HarError;
pub use html::SelectorError;
pub use matching::{Match, MatchKind, Matcher};
pub use recording::{
    BodyChunk, ConnectFailure, ConnectResult, Endpoint, Handling, Header, Protocol,
    RecordedEndpoint, RecordedExchange, RecordedResponse, Recording,
};
pub use redaction::Redaction;
pub use validity::{InvalidRecording, MAX_BODY_BYTES, MAX_EXCHANGES};
