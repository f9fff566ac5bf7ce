//! The network as a pure state machine: data in at one end, and its arrival times at the other. No
//! sockets and no clock: time is a number of nanoseconds since the link opened, passed in.
//!
//! Per direction there is one `line` of the profile's rate, shared by all connections packet by
//! packet, with a drop-tail queue before it and half of the round trip after it. The hosts at its
//! ends implement TCP as Linux does: `sender` (slow start, pacing, recovery) and `receiver`
//! (acknowledgements, windows). Acknowledgements travel over the other line and use its capacity. A
//! handshake and a name lookup are messages ([`NetworkModel::message`]), one in each direction.
//!
//! The model counts bytes; its caller stores them. It never reorders: delivered bytes are always
//! the next ones of the flow.

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

#[cfg(test)]
mod tests;

pub(crate) use network::{HANDSHAKE_WIRE_BYTES, NetworkModel};
pub(crate) use terms::{ConnectionId, Direction, Output, Setup};

/// Payload of a packet of 1,500 bytes, without IP and TCP headers with timestamps.
pub(crate) const PAYLOAD_BYTES: u32 = 1448;
pub(crate) const HEADER_BYTES: u32 = 52;
/// Initial window in packets (RFC 6928).
pub(crate) const INITIAL_WINDOW: u64 = 10;
