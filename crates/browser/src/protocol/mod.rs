//! The DevTools protocol over a pair of pipes: NUL-separated JSON, flat sessions.
//!
//! Only the envelope of a message is read here. What is inside stays raw until somebody who knows
//! the message asks for it, so that events and fields of other versions do no harm.

mod budget;
mod client;
mod envelope;
mod messages;

use std::time::Duration;

pub(crate) use budget::{Excess, Held, MAX_HELD_BYTES, MAX_MESSAGE_BYTES};
pub(crate) use client::{Client, Events, connect};
pub(crate) use envelope::{Event, SessionId};

/// How long an ordinary call may take. None of them waits for the page or the network.
pub(crate) const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// Why a call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    #[error("the browser refused {method}: {reason}")]
    Refused {
        method: &'static str,
        reason: String,
    },
    #[error("the browser's answer to {method} was not understood: {reason}")]
    Misunderstood {
        method: &'static str,
        reason: String,
    },
    #[error("the browser did not answer {method} in time")]
    Late { method: &'static str },
    #[error("the page's process crashed")]
    Crashed,
    #[error("the page was closed")]
    Detached,
    #[error("the page is too large: {0}")]
    TooLarge(Excess),
    #[error("the browser ended")]
    Ended,
}
