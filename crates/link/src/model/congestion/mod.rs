//! How much a sender may have on the way, and how fast it may send.

mod bbr;
mod bbr_filters;
mod cubic;

use super::scoreboard::Lesson;
use bbr::Bbr;
use cubic::Cubic;

/// The congestion control of the emulated hosts. Both are taken from Linux's behaviour, as the
/// hosts of the packet-level emulator are Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): paced, keeps the queue
    /// short, does not start over after a pause.
    #[default]
    Bbr,
    /// CUBIC with HyStart (RFC 9438, RFC 9406's predecessor): bursts, fills the queue, starts over
    /// after a pause.
    Cubic,
}

/// Where a sender stands after losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Repairing losses that acknowledgements showed, until this position is acknowledged.
    Recovery(u64),
    /// Repairing after a timeout, until this position is acknowledged.
    Timeout(u64),
}

/// What congestion control is told with each acknowledgement.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    pub(super) now_ns: u64,
    pub(super) lesson: &'a Lesson,
    /// Packets delivered since the connection began.
    pub(super) delivered: u64,
    /// Packets on the way before and after this acknowledgement.
    pub(super) prior_in_flight: u64,
    pub(super) in_flight: u64,
    pub(super) phase: Phase,
    pub(super) min_rtt_ns: u64,
    /// Whether the window, not the application, held the sender back.
    pub(super) window_limited: bool,
    /// The next moment that pacing allows a packet.
    pub(super) next_send_ns: u64,
}

#[derive(Debug)]
pub(super) enum Congestion {
    Bbr(Box<Bbr>),
    Cubic(Box<Cubic>),
    /// On a line whose limits are lifted.
    Unrestrained,
}

/// Packets: no line that is worth the name holds that many.
const UNRESTRAINED_WINDOW: u64 = 1 << 20;

impl Congestion {
    pub(super) fn new(algorithm: Algorithm, now_ns: u64, rtt_ns: u64, seed: u64) -> Self {
        match algorithm {
            Algorithm::Bbr => Self::Bbr(Box::new(Bbr::new(now_ns, rtt_ns, seed))),
            Algorithm::Cubic => Self::Cubic(Box::new(Cubic::new())),
        }
    }

    /// Packets that may be on the way.
    pub(super) fn window(&self) -> u64 {
        match self {
            Self::Bbr(c) => c.window,
            Self::Cubic(c) => c.window,
            Self::Unrestrained => UNRESTRAINED_WINDOW,
        }
    }

    /// Bytes of payload per second; `None` sends as soon as the window allows.
    pub(super) fn pacing_rate(&self) -> Option<f64> {
        match self {
            Self::Bbr(c) => Some(c.pacing_rate),
            Self::Cubic(_) | Self::Unrestrained => None,
        }
    }

    /// Packets that leave back to back in one go.
    pub(super) fn burst(&self) -> u64 {
        match self {
            Self::Bbr(c) => c.burst(),
            Self::Cubic(_) | Self::Unrestrained => u64::MAX,
        }
    }

    pub(super) fn acknowledged(&mut self, progress: &Progress<'_>) {
        match self {
            Self::Bbr(c) => c.acknowledged(progress),
            Self::Cubic(c) => c.acknowledged(progress),
            Self::Unrestrained => {}
        }
    }

    /// Losses came to light; a recovery begins.
    pub(super) fn losing(&mut self) {
        match self {
            Self::Bbr(c) => c.losing(),
            Self::Cubic(c) => c.losing(),
            Self::Unrestrained => {}
        }
    }

    /// Nothing is taken to be on its way any more.
    pub(super) fn timed_out(&mut self) {
        match self {
            Self::Bbr(c) => c.timed_out(),
            Self::Cubic(c) => c.timed_out(),
            Self::Unrestrained => {}
        }
    }

    /// The timeout was needless.
    pub(super) fn undo(&mut self) {
        match self {
            Self::Bbr(c) => c.undo(),
            Self::Cubic(c) => c.undo(),
            Self::Unrestrained => {}
        }
    }

    pub(super) fn sent(&mut self, packets: u64) {
        if let Self::Cubic(c) = self {
            c.sent(packets);
        }
    }

    /// Sending begins again with nothing on the way, after `idle_ns`.
    pub(super) fn resuming(
        &mut self,
        now_ns: u64,
        idle_ns: u64,
        timeout_ns: u64,
        app_limited: bool,
    ) {
        match self {
            Self::Bbr(c) if app_limited => c.resuming(now_ns),
            Self::Bbr(_) | Self::Unrestrained => {}
            Self::Cubic(c) => c.resuming(now_ns, idle_ns, timeout_ns),
        }
    }

    /// Whether low rates are of the algorithm's own making just now.
    pub(super) fn holds_back(&self) -> bool {
        matches!(self, Self::Bbr(c) if c.probes_rtt())
    }
}
