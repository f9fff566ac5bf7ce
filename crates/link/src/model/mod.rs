//! The network as a pure state machine: what is offered at one end, and when it comes out at the
//! other. No sockets, no clock: time is a number of nanoseconds since the link opened, passed in.
//!
//! Per direction there is one `line` of the profile's rate, shared by all connections packet by
//! packet, with a drop-tail queue in front and half of the round trip behind. The hosts at its ends
//! speak TCP as Linux does: `sender` (slow start, pacing, recovery) and `receiver`
//! (acknowledgements, windows). Acknowledgements travel the other line and take their place there.
//! A handshake and a name lookup are messages ([`Network::message`]), one each way.
//!
//! The model counts bytes; whoever drives it keeps them. It never reorders: what is delivered is
//! always the next bytes of the flow.

mod congestion;
mod connection;
mod event;
mod line;
mod network;
mod pacer;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;
mod terms;
mod window_usage;

#[cfg(test)]
mod tests;

pub use congestion::Algorithm;
pub(crate) use network::{HANDSHAKE_WIRE_BYTES, Network};
pub(crate) use terms::{ConnectionId, Output, Setup, Way};

/// What a packet of 1,500 bytes carries beside IP and TCP headers with timestamps.
pub(crate) const PAYLOAD_BYTES: u32 = 1448;
pub(crate) const HEADER_BYTES: u32 = 52;
/// RFC 6928.
pub(crate) const INITIAL_WINDOW: u64 = 10;
