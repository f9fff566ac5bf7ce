//! Types of the model's interface.

/// The direction of a flow or a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    /// Direction from the browser to the server.
    Up,
    /// Direction from the server to the browser.
    Down,
}

impl Direction {
    pub(crate) fn opposite(self) -> Self {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(super) u64);

/// Parameters of the line.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// Downlink rate; `None` is no limit.
    pub(crate) down_kbps: Option<f64>,
    pub(crate) up_kbps: Option<f64>,
    pub(crate) rtt_ns: u64,
    /// Fraction of packets lost in each direction.
    pub(crate) loss_share: f64,
    pub(crate) seed: u64,
}

impl Setup {
    pub(super) fn without_limits(&self) -> Self {
        Self {
            down_kbps: None,
            up_kbps: None,
            rtt_ns: 0,
            loss_share: 0.0,
            ..self.clone()
        }
    }

    pub(super) fn kbps(&self, direction: Direction) -> Option<f64> {
        match direction {
            Direction::Up => self.up_kbps,
            Direction::Down => self.down_kbps,
        }
    }
}

/// An event for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// The next bytes of the flow have arrived.
    Delivered(ConnectionId, Direction, u64),
    /// The flow's end has arrived.
    Ended(ConnectionId, Direction),
    /// The other host has reset the connection; only delivered data counts.
    Reset(ConnectionId, Direction),
    /// The flow's sender may accept more bytes, see [`super::NetworkModel::capacity`].
    Capacity(ConnectionId, Direction),
    /// The message with this tag has arrived.
    Message(u64),
}
