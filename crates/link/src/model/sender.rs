use super::PAYLOAD_BYTES;
use super::congestion::{AckProgress, Congestion, CongestionPhase};
use super::pacer::PacketPacer;
use super::receiver::Ack;
use super::rtt::{MAX_TIMEOUT_NS, RoundTrips};
use super::scoreboard::{AckInfo, Scoreboard, Segment};

/// A packet passed to the line.
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
    /// The application has closed; the end is sent after the last byte.
    Closing,
    Sent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alarm {
    /// Send one packet to provoke an acknowledgement (tail loss probe, RFC 8985).
    Probe,
    Timeout,
}

/// The sender of one flow: splits the application's data into packets and decides when each is
/// sent. Positions count payload bytes; the end of the stream counts as one.
#[derive(Debug)]
pub(super) struct Sender {
    congestion: Congestion,
    board: Scoreboard,
    rtts: RoundTrips,
    phase: CongestionPhase,
    unsent_bytes: u64,
    next: u64,
    end: End,
    window_edge: u64,
    /// Bytes to buffer beyond the window.
    ahead_bytes: u64,
    pacer: PacketPacer,
    alarm: Option<(u64, Alarm)>,
    /// Time of the next check for losses.
    next_loss_check_ns: Option<u64>,
    consecutive_timeouts: u32,
    first_resend_ns: u64,
    probe_now: bool,
    /// Position of the flow when a probe was sent that is not yet acknowledged.
    probed_at: Option<u64>,
}

impl Sender {
    pub(super) fn new(
        now_ns: u64,
        rtt_ns: u64,
        window_edge: u64,
        ahead_bytes: u64,
        seed: u64,
    ) -> Self {
        Self {
            congestion: Congestion::new(now_ns, rtt_ns, seed),
            board: Scoreboard::default(),
            rtts: RoundTrips::new(rtt_ns),
            phase: CongestionPhase::Open,
            unsent_bytes: 0,
            next: 0,
            end: End::Open,
            window_edge,
            ahead_bytes,
            pacer: PacketPacer::default(),
            alarm: None,
            next_loss_check_ns: None,
            consecutive_timeouts: 0,
            first_resend_ns: 0,
            probe_now: false,
            probed_at: None,
        }
    }

    /// Removes all limits of window and pacing.
    pub(super) fn remove_limits(&mut self, ahead_bytes: u64) {
        self.congestion = Congestion::Unlimited;
        self.pacer = PacketPacer::default();
        self.ahead_bytes = ahead_bytes;
    }

    /// Returns the bytes that the sender can accept now.
    pub(super) fn capacity(&self) -> u64 {
        if self.end != End::Open {
            return 0;
        }
        let acked = self.board.acked_upto().unwrap_or(self.next);
        let buffered = self.next - acked + self.unsent_bytes;
        // Linux lets a socket buffer three windows while it repairs losses.
        let max_buffered =
            3 * self.congestion.window() * u64::from(PAYLOAD_BYTES) + self.ahead_bytes;
        let ahead = self.ahead_bytes.saturating_sub(self.unsent_bytes);
        ahead.min(max_buffered.saturating_sub(buffered))
    }

    pub(super) fn write(&mut self, bytes: u64) {
        let was_idle = self.unsent_bytes < u64::from(PAYLOAD_BYTES)
            && self.board.in_flight() < self.congestion.window()
            && !self.board.has_lost();
        if was_idle {
            self.board.mark_app_limited();
        }
        self.unsent_bytes += bytes;
    }

    pub(super) fn close(&mut self) {
        if self.end == End::Open {
            self.end = End::Closing;
        }
    }

    /// Returns the next packet that may be sent now; to be called until `None`.
    pub(super) fn next_packet(&mut self, now_ns: u64) -> Option<Outgoing> {
        if std::mem::take(&mut self.probe_now) {
            return self.probe(now_ns);
        }
        let may_send = self.has_something_to_send()
            && self.board.in_flight() < self.congestion.window()
            && self.pacer.allows(now_ns, self.congestion.burst());
        if !may_send {
            return None;
        }
        let packet = match self.board.resend_lost(now_ns) {
            Some(segment) => segment.into(),
            None => self.next_segment(now_ns)?,
        };
        self.record_sent(now_ns, packet);
        Some(packet)
    }

    fn has_something_to_send(&self) -> bool {
        self.board.has_lost() || self.unsent_bytes > 0 || self.end == End::Closing
    }

    fn probe(&mut self, now_ns: u64) -> Option<Outgoing> {
        let packet = self
            .next_segment(now_ns)
            .or_else(|| self.board.resend_last(now_ns).map(Outgoing::from))?;
        self.record_sent(now_ns, packet);
        self.probed_at = Some(self.next);
        self.alarm = Some((now_ns + self.rtts.timeout_ns(), Alarm::Timeout));
        Some(packet)
    }

    fn next_segment(&mut self, now_ns: u64) -> Option<Outgoing> {
        let payload = self.unsent_bytes.min(u64::from(PAYLOAD_BYTES));
        let with_end = self.end == End::Closing && payload == self.unsent_bytes;
        if payload == 0 && !with_end || self.next + payload > self.window_edge {
            return None;
        }
        if self.board.is_empty() {
            self.congestion.resume(now_ns, self.board.app_limited());
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

    fn record_sent(&mut self, now_ns: u64, packet: Outgoing) {
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
        let mut ack_info = self.board.acknowledge(now_ns, ack);
        if let Some(rtt_ns) = ack_info.rtt_ns {
            self.rtts.add(rtt_ns);
        }
        if let Some(rtt_ns) = ack_info.fresh_rtt_ns {
            self.rtts.min_ns = self.rtts.min_ns.min(rtt_ns);
        }
        if ack_info.cumulative && self.is_spurious_timeout(ack.echo_ns) {
            self.board.revert_lost();
            self.phase = CongestionPhase::Open;
            self.congestion.undo();
        }
        if self.board.sacked() > 0 || self.phase != CongestionPhase::Open {
            ack_info.newly_lost = self.find_lost(now_ns);
        }
        if self.probed_at.is_some_and(|at| ack.upto >= at) {
            self.probed_at = None;
        }
        self.change_phase(ack.upto, ack_info.newly_lost);
        self.update_congestion(now_ns, &ack_info, prior_in_flight);
        if ack_info.newly_delivered > 0 {
            self.consecutive_timeouts = 0;
            self.set_alarm(now_ns);
        }
    }

    /// Returns true if the acknowledgement is for a packet sent before the first retransmission:
    /// the original was slow, not lost (Eifel, RFC 3522).
    fn is_spurious_timeout(&self, echo_ns: u64) -> bool {
        matches!(self.phase, CongestionPhase::Timeout(_)) && echo_ns < self.first_resend_ns
    }

    fn find_lost(&mut self, now_ns: u64) -> u64 {
        // RFC 8985: wait briefly for reordered packets until three arrived out of order.
        let is_certain = self.phase != CongestionPhase::Open || self.board.sacked() >= 3;
        let tolerance_ns = if is_certain {
            0
        } else {
            (self.rtts.min_ns / 4).min(self.rtts.smoothed_ns / 8)
        };
        let (lost_count, again_ns) = self.board.find_lost(now_ns, tolerance_ns);
        self.next_loss_check_ns = again_ns;
        lost_count
    }

    fn change_phase(&mut self, acked_upto: u64, newly_lost: u64) {
        if let CongestionPhase::Recovery(until) | CongestionPhase::Timeout(until) = self.phase
            && acked_upto >= until
        {
            self.phase = CongestionPhase::Open;
        }
        if self.phase == CongestionPhase::Open && newly_lost > 0 {
            self.phase = CongestionPhase::Recovery(self.next);
            self.congestion.start_recovery();
        }
    }

    fn update_congestion(&mut self, now_ns: u64, ack_info: &AckInfo, prior_in_flight: u64) {
        self.congestion.acknowledged(&AckProgress {
            now_ns,
            ack_info,
            delivered: self.board.delivered,
            prior_in_flight,
            in_flight: self.board.in_flight(),
            phase: self.phase,
            min_rtt_ns: self.rtts.min_ns,
            next_send_ns: self.pacer.next_ns,
        });
        if self.congestion.is_self_limited() {
            self.board.mark_app_limited();
        }
    }

    fn set_alarm(&mut self, now_ns: u64) {
        if self.board.is_empty() {
            self.alarm = None;
            return;
        }
        let timeout_ns =
            (self.rtts.timeout_ns() << self.consecutive_timeouts.min(8)).min(MAX_TIMEOUT_NS);
        let is_undisturbed = self.phase == CongestionPhase::Open && self.board.sacked() == 0;
        // A single packet's acknowledgement may be delayed by up to 200 ms.
        let slack_ns = if self.board.in_flight() == 1 {
            200_000_000
        } else {
            2_000_000
        };
        let probe_ns = 2 * self.rtts.smoothed_ns + slack_ns;
        // One probe is sent before any timeout.
        let may_probe = is_undisturbed && self.probed_at.is_none();
        self.alarm = Some(if may_probe {
            (now_ns + probe_ns.min(timeout_ns), Alarm::Probe)
        } else {
            (now_ns + timeout_ns, Alarm::Timeout)
        });
    }

    /// Returns the time of the next action without an acknowledgement.
    pub(super) fn wake_ns(&self, now_ns: u64) -> Option<u64> {
        let may_pace = self.has_something_to_send()
            && self.board.in_flight() < self.congestion.window()
            && (self.board.has_lost() || self.next < self.window_edge);
        let pace_ns = (may_pace && self.pacer.next_ns > now_ns).then_some(self.pacer.next_ns);
        [
            self.alarm.map(|(at, _)| at),
            self.next_loss_check_ns,
            pace_ns,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(super) fn wake(&mut self, now_ns: u64) {
        if self.next_loss_check_ns.is_some_and(|at| at <= now_ns) {
            let lost_count = self.find_lost(now_ns);
            self.change_phase(0, lost_count);
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
                if !matches!(self.phase, CongestionPhase::Timeout(_)) {
                    self.first_resend_ns = now_ns;
                }
                self.consecutive_timeouts += 1;
                self.board.lose_all();
                self.phase = CongestionPhase::Timeout(self.next);
                self.congestion.handle_timeout();
                self.set_alarm(now_ns);
            }
        }
    }
}
