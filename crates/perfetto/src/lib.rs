//! Converts the traces that Chromium records, in Perfetto's binary format, into JSON trace events.
//!
//! Chromium can write JSON itself, but takes up to a second of processor time for what takes a
//! fiftieth of that here. The events have the members that Chromium's own export gives them
//! (perfetto: src/trace_processor/export_json.cc), in order of time.
//!
//! A trace is a list of packets. The packets of a sequence, which one thread wrote, depend on each
//! other: names are written once, and times are differences. [`packets`] resolves that, [`events`]
//! joins the begin and the end of each slice and writes the events.

#![warn(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod arguments;
mod events;
mod json;
mod names;
mod packets;
mod schema;
mod sequence;
mod tracks;
mod wire;

use thiserror::Error;

/// The reason why a trace cannot be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConversionError {
    #[error("the trace is not in Perfetto's format")]
    Malformed,
    #[error("packets of the trace were lost")]
    Lost,
    /// The events would have more bytes than allowed.
    #[error("the trace is too large")]
    TooLarge,
}

/// Calls `add` with the JSON of each event, in order of time, until it returns an error.
///
/// The memory of a conversion is limited: names and arguments may have `max_bytes` each, and there
/// may be one event, track or name for every 50 of them. A trace beyond that is an error before the
/// first event.
pub fn convert<E: From<ConversionError>>(
    trace: &[u8],
    max_bytes: usize,
    add: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let recorded = packets::read(trace, max_bytes)?;
    events::write(&recorded, add)
}
