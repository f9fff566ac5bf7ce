use super::bbr_filters::{AckAggregation, MaxFilter};
use super::{AckProgress, CongestionPhase};
use crate::model::line::Random;
use crate::model::{INITIAL_WINDOW, PAYLOAD_BYTES};

/// Startup gain of 2/ln 2, the smallest that doubles the sending rate every round.
const HIGH_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const MIN_WINDOW: u64 = 4;
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
const MIN_RTT_WINDOW_NS: u64 = 10_000_000_000;
const PROBE_RTT_NS: u64 = 200_000_000;
/// Pacing stays 1 % below the estimate, so that queues drain.
const PACING_MARGIN: f64 = 0.99;
/// Rate in bytes per second below which single packets are sent.
const SINGLE_PACKET_RATE: f64 = 1_200_000.0 / 8.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BbrMode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00) as in Linux, which the hosts of
/// the packet-level emulator run. It paces, keeps the queue short and does not restart after an
/// idle period.
#[derive(Debug)]
pub(in crate::model) struct Bbr {
    pub(super) window: u64,
    pub(super) pacing_rate: f64,
    mode: BbrMode,
    rates: MaxFilter,
    min_rtt_ns: u64,
    min_rtt_at_ns: u64,
    round: u64,
    round_ends_at: u64,
    round_start: bool,
    full_rate: f64,
    full_rounds: u32,
    full: bool,
    cycle_index: usize,
    cycle_at_ns: u64,
    restarting: bool,
    probe_rtt_until_ns: Option<u64>,
    probe_rtt_round_done: bool,
    saved_window: u64,
    conserving: bool,
    was_recovering: bool,
    ack_aggregation: AckAggregation,
    random: Random,
}

impl Bbr {
    pub(super) fn new(now_ns: u64, rtt_ns: u64, seed: u64) -> Self {
        let rtt_s = (rtt_ns.max(1000)) as f64 / 1e9;
        let rate = INITIAL_WINDOW as f64 / rtt_s;
        Self {
            window: INITIAL_WINDOW,
            pacing_rate: pacing(rate, HIGH_GAIN),
            mode: BbrMode::Startup,
            rates: MaxFilter::default(),
            min_rtt_ns: rtt_ns,
            min_rtt_at_ns: now_ns,
            round: 0,
            round_ends_at: 0,
            round_start: false,
            full_rate: 0.0,
            full_rounds: 0,
            full: false,
            cycle_index: 0,
            cycle_at_ns: 0,
            restarting: false,
            probe_rtt_until_ns: None,
            probe_rtt_round_done: false,
            saved_window: 0,
            conserving: false,
            was_recovering: false,
            ack_aggregation: AckAggregation::new(now_ns),
            random: Random(seed),
        }
    }

    pub(super) fn probes_rtt(&self) -> bool {
        self.mode == BbrMode::ProbeRtt
    }

    /// Returns the packets of one burst; Linux sends about a millisecond's worth at once.
    pub(super) fn burst(&self) -> u64 {
        let min = if self.pacing_rate < SINGLE_PACKET_RATE {
            1
        } else {
            2
        };
        let per_ms = self.pacing_rate / 1024.0 / f64::from(PAYLOAD_BYTES);
        (per_ms as u64).clamp(min, 44)
    }

    pub(super) fn acknowledged(&mut self, p: &AckProgress<'_>) {
        self.update_rate(p);
        self.ack_aggregation
            .update(p, self.rates.max, self.round_start, self.window);
        if self.mode == BbrMode::ProbeBandwidth && self.phase_is_over(p) {
            self.next_phase(p.now_ns);
        }
        self.look_for_full_pipe(p);
        self.drain(p);
        self.update_min_rtt(p);
        self.set_pacing(self.rates.max, self.pacing_gain());
        self.set_window(p);
    }

    pub(super) fn start_recovery(&mut self) {
        self.save_window();
    }

    pub(super) fn handle_timeout(&mut self) {
        self.save_window();
        self.was_recovering = true;
        self.full_rate = 0.0;
        self.round_start = true;
        self.window = 1;
    }

    pub(super) fn undo(&mut self) {
        self.full_rate = 0.0;
        self.full_rounds = 0;
    }

    pub(super) fn resume(&mut self, now_ns: u64) {
        self.restarting = true;
        self.ack_aggregation.restart(now_ns);
        match self.mode {
            BbrMode::ProbeBandwidth => self.set_pacing(self.rates.max, 1.0),
            BbrMode::ProbeRtt => self.finish_probe_rtt(now_ns),
            BbrMode::Startup | BbrMode::Drain => {}
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            BbrMode::Startup => HIGH_GAIN,
            BbrMode::Drain => DRAIN_GAIN,
            BbrMode::ProbeBandwidth => CYCLE[self.cycle_index],
            BbrMode::ProbeRtt => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.mode {
            BbrMode::Startup | BbrMode::Drain => HIGH_GAIN,
            BbrMode::ProbeBandwidth => 2.0,
            BbrMode::ProbeRtt => 1.0,
        }
    }

    fn set_pacing(&mut self, rate: f64, gain: f64) {
        let rate = pacing(rate, gain);
        if self.full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn update_rate(&mut self, p: &AckProgress<'_>) {
        self.round_start = false;
        // A sample over less than a round trip contains packets that were acknowledged before.
        let Some(sample) = p.ack_info.rate.filter(|s| s.interval_ns >= p.min_rtt_ns) else {
            return;
        };
        if sample.interval_ns == 0 {
            return;
        }
        if sample.prior_delivered >= self.round_ends_at {
            self.round_ends_at = p.delivered;
            self.round += 1;
            self.round_start = true;
            self.conserving = false;
        }
        let rate = sample.delivered as f64 / (sample.interval_ns as f64 / 1e9);
        if !sample.app_limited || rate >= self.rates.max {
            self.rates.add(self.round, rate);
        }
    }

    /// Returns the packets that fit into the path, times `gain`.
    fn path_capacity(&self, gain: f64) -> u64 {
        let bdp = self.rates.max * self.min_rtt_ns as f64 / 1e9;
        (bdp * gain).ceil() as u64
    }

    /// Adds headroom for packets that are queued in the hosts rather than in the path.
    fn with_host_headroom(&self, packets: u64) -> u64 {
        let even = (packets + 3 * self.burst()).next_multiple_of(2);
        let probing_up = self.mode == BbrMode::ProbeBandwidth && self.cycle_index == 0;
        even + if probing_up { 2 } else { 0 }
    }

    fn in_network(&self, p: &AckProgress<'_>, in_flight: u64) -> u64 {
        let wait_s = p.next_send_ns.saturating_sub(p.now_ns) as f64 / 1e9;
        let leaving = (self.rates.max * wait_s) as u64;
        let entering = if self.pacing_gain() > 1.0 {
            self.burst()
        } else {
            0
        };
        (in_flight + entering).saturating_sub(leaving)
    }

    fn phase_is_over(&self, p: &AckProgress<'_>) -> bool {
        let full_length = p.now_ns - self.cycle_at_ns > self.min_rtt_ns;
        let gain = self.pacing_gain();
        if gain == 1.0 {
            return full_length;
        }
        let in_network = self.in_network(p, p.prior_in_flight);
        if gain > 1.0 {
            let reached = in_network >= self.with_host_headroom(self.path_capacity(gain));
            return full_length && (p.ack_info.newly_lost > 0 || reached);
        }
        full_length || in_network <= self.with_host_headroom(self.path_capacity(1.0))
    }

    fn next_phase(&mut self, now_ns: u64) {
        self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
        self.cycle_at_ns = now_ns;
    }

    fn probe_bandwidth(&mut self, now_ns: u64) {
        self.mode = BbrMode::ProbeBandwidth;
        // Any phase except draining, so that flows do not probe together.
        self.cycle_index = CYCLE.len() - 1 - (self.random.next_unit() * 7.0) as usize;
        self.next_phase(now_ns);
    }

    fn look_for_full_pipe(&mut self, p: &AckProgress<'_>) {
        let app_limited = p.ack_info.rate.is_some_and(|s| s.app_limited);
        if self.full || !self.round_start || app_limited {
            return;
        }
        if self.rates.max >= self.full_rate * FULL_GROWTH {
            self.full_rate = self.rates.max;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn drain(&mut self, p: &AckProgress<'_>) {
        if self.mode == BbrMode::Startup && self.full {
            self.mode = BbrMode::Drain;
        }
        let drained =
            || self.in_network(p, p.in_flight) <= self.with_host_headroom(self.path_capacity(1.0));
        if self.mode == BbrMode::Drain && drained() {
            self.probe_bandwidth(p.now_ns);
        }
    }

    fn update_min_rtt(&mut self, p: &AckProgress<'_>) {
        let expired = p.now_ns > self.min_rtt_at_ns + MIN_RTT_WINDOW_NS;
        if let Some(rtt_ns) = p.ack_info.fresh_rtt_ns
            && (rtt_ns <= self.min_rtt_ns || expired)
        {
            self.min_rtt_ns = rtt_ns;
            self.min_rtt_at_ns = p.now_ns;
        }
        if expired && !self.restarting && self.mode != BbrMode::ProbeRtt {
            self.save_window();
            self.mode = BbrMode::ProbeRtt;
            self.probe_rtt_until_ns = None;
        }
        if self.mode == BbrMode::ProbeRtt {
            if self.probe_rtt_until_ns.is_none() && p.in_flight <= MIN_WINDOW {
                self.probe_rtt_until_ns = Some(p.now_ns + PROBE_RTT_NS);
                self.probe_rtt_round_done = false;
                self.round_ends_at = p.delivered;
            } else if self.probe_rtt_until_ns.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.finish_probe_rtt(p.now_ns);
                }
            }
        }
        if p.ack_info.newly_delivered > 0 {
            self.restarting = false;
        }
    }

    fn finish_probe_rtt(&mut self, now_ns: u64) {
        if self.probe_rtt_until_ns.is_none_or(|until| now_ns <= until) {
            return;
        }
        self.min_rtt_at_ns = now_ns;
        self.window = self.window.max(self.saved_window);
        if self.full {
            self.probe_bandwidth(now_ns);
        } else {
            self.mode = BbrMode::Startup;
        }
    }

    fn save_window(&mut self) {
        self.saved_window = if self.was_recovering || self.mode == BbrMode::ProbeRtt {
            self.saved_window.max(self.window)
        } else {
            self.window
        };
    }

    fn set_window(&mut self, p: &AckProgress<'_>) {
        let acked = p.ack_info.newly_delivered;
        if acked > 0 && !self.recover(p) {
            let mut target = self.path_capacity(self.window_gain());
            if self.full {
                target += self.ack_aggregation.extra(self.rates.max);
            }
            let target = self.with_host_headroom(target);
            if self.full {
                self.window = (self.window + acked).min(target);
            } else if self.window < target || p.delivered < INITIAL_WINDOW {
                self.window += acked;
            }
            self.window = self.window.max(MIN_WINDOW);
        }
        if self.mode == BbrMode::ProbeRtt {
            self.window = self.window.min(MIN_WINDOW);
        }
    }

    /// Limits the window to one packet per acknowledged packet in the first round of a recovery;
    /// returns true during that round.
    fn recover(&mut self, p: &AckProgress<'_>) -> bool {
        let acked = p.ack_info.newly_delivered;
        self.window = self.window.saturating_sub(p.ack_info.newly_lost).max(1);
        let recovering = p.phase != CongestionPhase::Open;
        if matches!(p.phase, CongestionPhase::Recovery(_)) && !self.was_recovering {
            self.conserving = true;
            self.round_ends_at = p.delivered;
            self.window = p.in_flight + acked;
        } else if self.was_recovering && !recovering {
            self.window = self.window.max(self.saved_window);
            self.conserving = false;
        }
        self.was_recovering = recovering;
        if self.conserving {
            self.window = self.window.max(p.in_flight + acked);
        }
        self.conserving
    }
}

fn pacing(packets_per_s: f64, gain: f64) -> f64 {
    packets_per_s * f64::from(PAYLOAD_BYTES) * gain * PACING_MARGIN
}
