//! The DevTools protocol over a pair of pipes: NUL-separated JSON, flat sessions.
//!
//! Only the envelope of a message is parsed here. Its contents stay raw until a handler of that
//! message reads them, so that events and fields of other versions do not cause errors.

mod budget;
mod client;
mod envelope;
mod messages;

use std::time::Duration;

pub(crate) use budget::{LimitExceeded, MAX_HELD_BYTES, MAX_MESSAGE_BYTES, Reservation};
pub(crate) use client::{Client, ProtocolEvents, connect};
pub(crate) use envelope::{ProtocolEvent, SessionId};

/// Timeout of ordinary calls, none of which waits for the page or the network.
pub(crate) const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// An error of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    #[error("the browser refused {method}: {reason}")]
    Refused {
        method: &'static str,
        reason: String,
    },
    #[error("the browser's response to {method} is invalid: {reason}")]
    InvalidResponse {
        method: &'static str,
        reason: String,
    },
    #[error("the browser did not respond to {method} in time")]
    TimedOut { method: &'static str },
    #[error("the page's process crashed")]
    Crashed,
    #[error("the page was closed")]
    Detached,
    #[error("the page is too large: {0}")]
    TooLarge(LimitExceeded),
    #[error("the browser ended")]
    Ended,
}
