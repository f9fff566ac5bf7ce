use super::{Phase, Progress};
use crate::model::INITIAL_WINDOW;

/// Growth constant of RFC 9438, in packets per cubic second.
const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// Additive growth that is as fast as Reno's with this beta (RFC 9438, 4.3).
const RENO_ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC with HyStart and proportional rate reduction.
#[derive(Debug)]
pub(in crate::model) struct Cubic {
    pub(super) window: u64,
    threshold: u64,
    grown: f64,
    last_max: f64,
    epoch: Option<Epoch>,
    start: HyStart,
    reduction: Option<Reduction>,
    /// Window and threshold before the last reduction, to be restored if it was spurious.
    before_reduction: (u64, u64),
}

#[derive(Debug)]
struct Epoch {
    began_ns: u64,
    origin: f64,
    k_s: f64,
    reno_window: f64,
}

/// Proportional rate reduction (RFC 6937): the window shrinks as acknowledgements arrive.
#[derive(Debug)]
struct Reduction {
    from: u64,
    delivered: u64,
    sent: u64,
}

impl Cubic {
    pub(super) fn new() -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: u64::MAX,
            grown: 0.0,
            last_max: 0.0,
            epoch: None,
            start: HyStart::default(),
            reduction: None,
            before_reduction: (0, 0),
        }
    }

    pub(super) fn acknowledged(&mut self, p: &Progress<'_>) {
        let acked = p.ack_info.newly_delivered;
        if self.reduction.is_some() {
            return self.reduce(p);
        }
        if acked == 0 {
            return;
        }
        if self.window < self.threshold
            && matches!(p.phase, Phase::Open)
            && self.start.leaves_slow_start(p, self.window)
        {
            self.threshold = self.window;
        }
        if !p.window_limited {
            return;
        }
        if self.window < self.threshold {
            self.window = (self.window + acked).min(self.threshold);
        } else {
            self.avoid_congestion(p.now_ns, acked as f64, p.min_rtt_ns);
        }
    }

    pub(super) fn start_recovery(&mut self) {
        self.cut();
        self.reduction = Some(Reduction {
            from: self.window,
            delivered: 0,
            sent: 0,
        });
    }

    pub(super) fn handle_timeout(&mut self) {
        self.cut();
        self.reduction = None;
        self.last_max = 0.0;
        self.window = 1;
    }

    pub(super) fn sent(&mut self, packets: u64) {
        if let Some(reduction) = &mut self.reduction {
            reduction.sent += packets;
        }
    }

    /// Halves the window after an idle period for each timeout that passed, down to the initial
    /// window.
    pub(super) fn resume(&mut self, now_ns: u64, idle_ns: u64, timeout_ns: u64) {
        if let Some(epoch) = &mut self.epoch {
            epoch.began_ns = (epoch.began_ns + idle_ns).min(now_ns);
        }
        if idle_ns <= timeout_ns {
            return;
        }
        if self.threshold != u64::MAX {
            self.threshold = self.threshold.max(self.window * 3 / 4);
        }
        let halvings = ((idle_ns - 1) / timeout_ns).min(63) as u32;
        let floor = INITIAL_WINDOW.min(self.window);
        self.window = (self.window >> halvings).max(floor);
        self.grown = 0.0;
    }

    pub(super) fn undo(&mut self) {
        let (window, threshold) = self.before_reduction;
        self.window = self.window.max(window);
        self.threshold = self.threshold.max(threshold);
    }

    fn cut(&mut self) {
        self.before_reduction = (self.window, self.threshold);
        let window = self.window as f64;
        // Fast convergence: a shrinking flow leaves room for new ones.
        self.last_max = if window < self.last_max {
            window * (1.0 + BETA) / 2.0
        } else {
            window
        };
        self.threshold = ((window * BETA) as u64).max(2);
        self.epoch = None;
    }

    fn reduce(&mut self, p: &Progress<'_>) {
        let Some(reduction) = &mut self.reduction else {
            return;
        };
        if p.phase == Phase::Open {
            self.reduction = None;
            self.window = self.threshold;
            return;
        }
        let acked = p.ack_info.newly_delivered;
        reduction.delivered += acked;
        let may_send = if p.in_flight > self.threshold {
            (reduction.delivered * self.threshold)
                .div_ceil(reduction.from)
                .saturating_sub(reduction.sent)
        } else {
            let owed = reduction
                .delivered
                .saturating_sub(reduction.sent)
                .max(acked)
                + 1;
            owed.min(self.threshold - p.in_flight)
        };
        let least = u64::from(reduction.sent == 0);
        self.window = p.in_flight + may_send.max(least);
    }

    fn avoid_congestion(&mut self, now_ns: u64, acked: f64, min_rtt_ns: u64) {
        let window = self.window as f64;
        let last_max = self.last_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            began_ns: now_ns,
            origin: last_max.max(window),
            k_s: ((last_max - window).max(0.0) / C).cbrt(),
            reno_window: window,
        });
        let t_s = (now_ns - epoch.began_ns + min_rtt_ns) as f64 / 1e9;
        let target = epoch.origin + C * (t_s - epoch.k_s).powi(3);
        epoch.reno_window += RENO_ALPHA * acked / window;
        // Growth is limited to 50 % per round trip.
        let target = target.max(epoch.reno_window).min(window * 1.5);
        let per_packet = if target > window {
            (target - window) / window
        } else {
            1.0 / (100.0 * window)
        };
        self.grown += acked * per_packet;
        let whole = self.grown.floor();
        self.window += whole as u64;
        self.grown -= whole;
    }
}

/// Leaves slow start before the queue overflows: when round trips grow, or when closely spaced
/// acknowledgements span half a round trip.
#[derive(Debug, Default)]
struct HyStart {
    round_ends_at: u64,
    round_began_ns: u64,
    last_ack_ns: u64,
    /// Minimum round trip of data packets only: those of the handshake are smaller and faster.
    delay_min_ns: Option<u64>,
    round_min_ns: u64,
    samples: u32,
}

const HYSTART_LOW_WINDOW: u64 = 16;
const HYSTART_SAMPLES: u32 = 8;
const HYSTART_ACK_GAP_NS: u64 = 2_000_000;

impl HyStart {
    fn leaves_slow_start(&mut self, p: &Progress<'_>, window: u64) -> bool {
        let Some(rtt_ns) = p.ack_info.fresh_rtt_ns else {
            return false;
        };
        let delay_min_ns = self.delay_min_ns.map_or(rtt_ns, |d| d.min(rtt_ns));
        self.delay_min_ns = Some(delay_min_ns);
        let new_round = p
            .ack_info
            .rate
            .is_some_and(|s| s.prior_delivered >= self.round_ends_at);
        if new_round {
            self.round_ends_at = p.delivered;
            self.round_began_ns = p.now_ns;
            self.last_ack_ns = p.now_ns;
            self.round_min_ns = u64::MAX;
            self.samples = 0;
        }
        if window < HYSTART_LOW_WINDOW {
            return false;
        }
        let mut leave = false;
        if p.now_ns - self.last_ack_ns <= HYSTART_ACK_GAP_NS {
            self.last_ack_ns = p.now_ns;
            leave |= p.now_ns - self.round_began_ns > delay_min_ns / 2;
        }
        self.round_min_ns = self.round_min_ns.min(rtt_ns);
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
        } else {
            let margin_ns = (delay_min_ns / 8).clamp(4_000_000, 16_000_000);
            leave |= self.round_min_ns > delay_min_ns + margin_ns;
        }
        leave
    }
}
