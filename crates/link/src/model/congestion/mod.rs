//! Congestion control: how much data a sender may have in flight, and how fast it may send.

mod bbr;
mod bbr_filters;

use super::scoreboard::AckInfo;
use bbr::Bbr;

/// Recovery state of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CongestionPhase {
    Open,
    /// Repairs losses that acknowledgements revealed, until this position is acknowledged.
    Recovery(u64),
    /// Repairs losses after a timeout, until this position is acknowledged.
    Timeout(u64),
}

/// Input of congestion control with each acknowledgement.
#[derive(Debug)]
pub(super) struct AckProgress<'a> {
    pub(super) now_ns: u64,
    pub(super) ack_info: &'a AckInfo,
    /// Packets delivered since the start of the connection.
    pub(super) delivered: u64,
    /// Packets in flight before this acknowledgement.
    pub(super) prior_in_flight: u64,
    pub(super) in_flight: u64,
    pub(super) phase: CongestionPhase,
    pub(super) min_rtt_ns: u64,
    /// Time at which pacing allows the next packet.
    pub(super) next_send_ns: u64,
}

#[derive(Debug)]
pub(super) enum Congestion {
    Bbr(Box<Bbr>),
    /// No congestion control, on a line without limits.
    Unlimited,
}

/// Window in packets on a line without limits, more than any real line holds.
const UNLIMITED_WINDOW: u64 = 1 << 20;

impl Congestion {
    pub(super) fn new(now_ns: u64, rtt_ns: u64, seed: u64) -> Self {
        Self::Bbr(Box::new(Bbr::new(now_ns, rtt_ns, seed)))
    }

    /// Returns the packets that may be in flight.
    pub(super) fn window(&self) -> u64 {
        match self {
            Self::Bbr(c) => c.window,
            Self::Unlimited => UNLIMITED_WINDOW,
        }
    }

    /// Returns the pacing rate in bytes of payload per second; `None` sends as soon as the window
    /// allows.
    pub(super) fn pacing_rate(&self) -> Option<f64> {
        match self {
            Self::Bbr(c) => Some(c.pacing_rate),
            Self::Unlimited => None,
        }
    }

    /// Returns the packets that are sent back to back in one burst.
    pub(super) fn burst(&self) -> u64 {
        match self {
            Self::Bbr(c) => c.burst(),
            Self::Unlimited => u64::MAX,
        }
    }

    pub(super) fn acknowledged(&mut self, progress: &AckProgress<'_>) {
        match self {
            Self::Bbr(c) => c.acknowledged(progress),
            Self::Unlimited => {}
        }
    }

    /// Starts a recovery after detected losses.
    pub(super) fn start_recovery(&mut self) {
        match self {
            Self::Bbr(c) => c.start_recovery(),
            Self::Unlimited => {}
        }
    }

    /// Handles a timeout: no packet counts as in flight any more.
    pub(super) fn handle_timeout(&mut self) {
        match self {
            Self::Bbr(c) => c.handle_timeout(),
            Self::Unlimited => {}
        }
    }

    /// Reverts the last timeout, which was spurious.
    pub(super) fn undo(&mut self) {
        match self {
            Self::Bbr(c) => c.undo(),
            Self::Unlimited => {}
        }
    }

    /// Resumes sending with nothing in flight.
    pub(super) fn resume(&mut self, now_ns: u64, app_limited: bool) {
        if let Self::Bbr(bbr) = self
            && app_limited
        {
            bbr.resume(now_ns);
        }
    }

    /// Returns true if the algorithm itself currently causes low rates.
    pub(super) fn is_self_limited(&self) -> bool {
        matches!(self, Self::Bbr(c) if c.probes_rtt())
    }
}
