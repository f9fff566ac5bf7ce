use super::PAYLOAD_BYTES;
use super::congestion::{Algorithm, Congestion, Phase, Progress};
use super::pacer::Pacer;
use super::receiver::Ack;
use super::rtt::{MAX_TIMEOUT_NS, RoundTrips};
use super::scoreboard::{Lesson, Scoreboard, Segment};
use super::window_usage::WindowUsage;

/// A packet handed to the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) payload_bytes: u32,
}

impl From<Segment> for Outgoing {
    fn from(segment: Segment) -> Self {
        Self {
            start: segment.start,
            end: segment.end,
            payload_bytes: segment.payload_bytes,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// The application has closed; the end goes out after the last byte.
    Closing,
    Sent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alarm {
    /// Send one packet to provoke an acknowledgement (tail loss probe, RFC 8985).
    Probe,
    Timeout,
}

/// The sending end of one flow: cuts what the application offers into packets and decides when
/// each may leave. Positions count payload bytes; the end of the stream counts as one.
#[derive(Debug)]
pub(super) struct Sender {
    congestion: Congestion,
    board: Scoreboard,
    rtts: RoundTrips,
    phase: Phase,
    unsent_bytes: u64,
    next: u64,
    end: End,
    window_edge: u64,
    /// Bytes to hold ready beyond what the window lets out.
    ahead_bytes: u64,
    pacer: Pacer,
    alarm: Option<(u64, Alarm)>,
    /// When to look again for losses that time will prove.
    look_again_ns: Option<u64>,
    timeouts_in_row: u32,
    first_resend_ns: u64,
    probe_now: bool,
    /// How far the flow had come when a probe was sent whose answer is still out.
    probed_at: Option<u64>,
    last_sent_ns: u64,
    usage: WindowUsage,
}

impl Sender {
    pub(super) fn new(
        algorithm: Algorithm,
        now_ns: u64,
        rtt_ns: u64,
        window_edge: u64,
        ahead_bytes: u64,
        seed: u64,
    ) -> Self {
        Self {
            congestion: Congestion::new(algorithm, now_ns, rtt_ns, seed),
            board: Scoreboard::default(),
            rtts: RoundTrips::new(rtt_ns),
            phase: Phase::Open,
            unsent_bytes: 0,
            next: 0,
            end: End::Open,
            window_edge,
            ahead_bytes,
            pacer: Pacer::default(),
            alarm: None,
            look_again_ns: None,
            timeouts_in_row: 0,
            first_resend_ns: 0,
            probe_now: false,
            probed_at: None,
            last_sent_ns: now_ns,
            usage: WindowUsage::default(),
        }
    }

    /// The line has no limits any more: neither window nor pace holds this sender back.
    pub(super) fn lift(&mut self, ahead_bytes: u64) {
        self.congestion = Congestion::Unrestrained;
        self.pacer = Pacer::default();
        self.ahead_bytes = ahead_bytes;
    }

    /// Bytes the sender would like to be offered now.
    pub(super) fn room(&self) -> u64 {
        if self.end != End::Open {
            return 0;
        }
        let acked = self.board.acked_upto().unwrap_or(self.next);
        let held = self.next - acked + self.unsent_bytes;
        // Linux lets a socket hold three windows while it repairs losses.
        let most = 3 * self.congestion.window() * u64::from(PAYLOAD_BYTES) + self.ahead_bytes;
        let ahead = self.ahead_bytes.saturating_sub(self.unsent_bytes);
        ahead.min(most.saturating_sub(held))
    }

    pub(super) fn offer(&mut self, bytes: u64) {
        let ran_dry = self.unsent_bytes < u64::from(PAYLOAD_BYTES)
            && self.board.in_flight() < self.congestion.window()
            && !self.board.has_lost();
        if ran_dry {
            self.board.mark_app_limited();
        }
        self.unsent_bytes += bytes;
    }

    pub(super) fn close(&mut self) {
        if self.end == End::Open {
            self.end = End::Closing;
        }
    }

    /// The next packet that may leave now; call until `None`.
    pub(super) fn next_packet(&mut self, now_ns: u64) -> Option<Outgoing> {
        if std::mem::take(&mut self.probe_now) {
            return self.probe(now_ns);
        }
        if !self.has_something_to_send() {
            self.usage.stopped(&self.board, self.next, false);
            return None;
        }
        if self.board.in_flight() >= self.congestion.window() {
            self.usage.stopped(&self.board, self.next, true);
            return None;
        }
        if !self.pacer.allows(now_ns, self.congestion.burst()) {
            return None;
        }
        let packet = match self.board.resend_lost(now_ns) {
            Some(segment) => segment.into(),
            None => self.cut(now_ns)?,
        };
        self.left(now_ns, packet);
        Some(packet)
    }

    fn has_something_to_send(&self) -> bool {
        self.board.has_lost() || self.unsent_bytes > 0 || self.end == End::Closing
    }

    fn probe(&mut self, now_ns: u64) -> Option<Outgoing> {
        let packet = self
            .cut(now_ns)
            .or_else(|| self.board.resend_last(now_ns).map(Outgoing::from))?;
        self.left(now_ns, packet);
        self.probed_at = Some(self.next);
        self.alarm = Some((now_ns + self.rtts.timeout_ns(), Alarm::Timeout));
        Some(packet)
    }

    fn cut(&mut self, now_ns: u64) -> Option<Outgoing> {
        let payload = self.unsent_bytes.min(u64::from(PAYLOAD_BYTES));
        let with_end = self.end == End::Closing && payload == self.unsent_bytes;
        if payload == 0 && !with_end || self.next + payload > self.window_edge {
            return None;
        }
        if self.board.is_empty() {
            self.resume(now_ns);
        }
        let (start, end) = (self.next, self.next + payload + u64::from(with_end));
        let payload_bytes = payload as u32;
        self.board.add(now_ns, start, end, payload_bytes);
        self.next = end;
        self.unsent_bytes -= payload;
        if with_end {
            self.end = End::Sent;
        }
        Some(Outgoing {
            start,
            end,
            payload_bytes,
        })
    }

    fn resume(&mut self, now_ns: u64) {
        let idle_ns = now_ns - self.last_sent_ns;
        let (timeout_ns, limited) = (self.rtts.timeout_ns(), self.board.app_limited());
        self.congestion
            .resuming(now_ns, idle_ns, timeout_ns, limited);
    }

    fn left(&mut self, now_ns: u64, packet: Outgoing) {
        self.last_sent_ns = now_ns;
        self.congestion.sent(1);
        if let Some(rate) = self.congestion.pacing_rate() {
            self.pacer.charge(now_ns, packet.payload_bytes, rate);
        }
        if self.alarm.is_none() {
            self.set_alarm(now_ns);
        }
    }

    pub(super) fn acknowledged(&mut self, now_ns: u64, ack: &Ack) {
        self.window_edge = self.window_edge.max(ack.window_edge);
        let prior_in_flight = self.board.in_flight();
        let mut lesson = self.board.acknowledge(now_ns, ack);
        if let Some(rtt_ns) = lesson.rtt_ns {
            self.rtts.add(rtt_ns);
        }
        if let Some(rtt_ns) = lesson.fresh_rtt_ns {
            self.rtts.min_ns = self.rtts.min_ns.min(rtt_ns);
        }
        if lesson.cumulative && self.timeout_was_needless(ack.echo_ns) {
            self.board.unlose();
            self.phase = Phase::Open;
            self.congestion.undo();
        }
        if self.board.sacked() > 0 || self.phase != Phase::Open {
            lesson.newly_lost = self.find_lost(now_ns);
        }
        if self.probed_at.is_some_and(|at| ack.upto >= at) {
            self.probed_at = None;
        }
        self.change_phase(ack.upto, lesson.newly_lost);
        self.tell_congestion(now_ns, &lesson, prior_in_flight);
        if lesson.newly_delivered > 0 {
            self.timeouts_in_row = 0;
            self.set_alarm(now_ns);
        }
    }

    /// The acknowledgement answers a packet sent before the first one that was sent again: the
    /// first sending had not been lost, only slow (Eifel, RFC 3522).
    fn timeout_was_needless(&self, echo_ns: u64) -> bool {
        matches!(self.phase, Phase::Timeout(_)) && echo_ns < self.first_resend_ns
    }

    fn find_lost(&mut self, now_ns: u64) -> u64 {
        // RFC 8985: wait a little for reordered packets until three arrived out of order.
        let sure = self.phase != Phase::Open || self.board.sacked() >= 3;
        let patience_ns = if sure {
            0
        } else {
            (self.rtts.min_ns / 4).min(self.rtts.smoothed_ns / 8)
        };
        let (found, again_ns) = self.board.find_lost(now_ns, patience_ns);
        self.look_again_ns = again_ns;
        found
    }

    fn change_phase(&mut self, acked_upto: u64, newly_lost: u64) {
        if let Phase::Recovery(until) | Phase::Timeout(until) = self.phase
            && acked_upto >= until
        {
            self.phase = Phase::Open;
        }
        if self.phase == Phase::Open && newly_lost > 0 {
            self.phase = Phase::Recovery(self.next);
            self.congestion.losing();
        }
    }

    fn tell_congestion(&mut self, now_ns: u64, lesson: &Lesson, prior_in_flight: u64) {
        let window = self.congestion.window();
        self.congestion.acknowledged(&Progress {
            now_ns,
            lesson,
            delivered: self.board.delivered,
            prior_in_flight,
            in_flight: self.board.in_flight(),
            phase: self.phase,
            min_rtt_ns: self.rtts.min_ns,
            window_limited: self.usage.limited || window < 2 * self.usage.most,
            next_send_ns: self.pacer.next_ns,
        });
        if self.congestion.holds_back() {
            self.board.mark_app_limited();
        }
    }

    fn set_alarm(&mut self, now_ns: u64) {
        if self.board.is_empty() {
            self.alarm = None;
            return;
        }
        let timeout_ns =
            (self.rtts.timeout_ns() << self.timeouts_in_row.min(8)).min(MAX_TIMEOUT_NS);
        let calm = self.phase == Phase::Open && self.board.sacked() == 0;
        // A lone packet's acknowledgement may be delayed by up to 200 ms.
        let slack_ns = if self.board.in_flight() == 1 {
            200_000_000
        } else {
            2_000_000
        };
        let probe_ns = 2 * self.rtts.smoothed_ns + slack_ns;
        // A probe comes before any timeout, once.
        let may_probe = calm && self.probed_at.is_none();
        self.alarm = Some(if may_probe {
            (now_ns + probe_ns.min(timeout_ns), Alarm::Probe)
        } else {
            (now_ns + timeout_ns, Alarm::Timeout)
        });
    }

    /// When something is to be done without an acknowledgement.
    pub(super) fn wake_ns(&self, now_ns: u64) -> Option<u64> {
        let may_pace = self.has_something_to_send()
            && self.board.in_flight() < self.congestion.window()
            && (self.board.has_lost() || self.next < self.window_edge);
        let pace_ns = (may_pace && self.pacer.next_ns > now_ns).then_some(self.pacer.next_ns);
        [self.alarm.map(|(at, _)| at), self.look_again_ns, pace_ns]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn wake(&mut self, now_ns: u64) {
        if self.look_again_ns.is_some_and(|at| at <= now_ns) {
            let found = self.find_lost(now_ns);
            self.change_phase(0, found);
        }
        let Some((at_ns, alarm)) = self.alarm else {
            return;
        };
        if at_ns > now_ns {
            return;
        }
        self.alarm = None;
        match alarm {
            Alarm::Probe => self.probe_now = true,
            Alarm::Timeout => {
                if !matches!(self.phase, Phase::Timeout(_)) {
                    self.first_resend_ns = now_ns;
                }
                self.timeouts_in_row += 1;
                self.board.lose_all();
                self.phase = Phase::Timeout(self.next);
                self.congestion.timed_out();
                self.set_alarm(now_ns);
            }
        }
    }
}
