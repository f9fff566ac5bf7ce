//! A sender's packets in flight: which are acknowledged, which are lost, and the delivery rate.

use std::collections::VecDeque;

use super::receiver::Ack;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight,
    /// The packet arrived while an earlier one is missing.
    Sacked,
    /// The packet is lost and will be retransmitted.
    Lost,
}

/// A packet between its first transmission and its cumulative acknowledgement.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) payload_bytes: u32,
    sent_ns: u64,
    resent: bool,
    state: State,
    // Delivery rate state at the time of sending (draft-cheng-iccrg-delivery-rate-estimation).
    window_sent_ns: u64,
    delivered: u64,
    delivered_ns: u64,
    app_limited: bool,
}

/// Information gained from one acknowledgement.
#[derive(Debug, Default, Clone)]
pub(super) struct AckInfo {
    pub(super) newly_delivered: u64,
    pub(super) newly_lost: u64,
    pub(super) cumulative: bool,
    /// Round trip of the oldest newly acknowledged packet, for the timeout; after a retransmission,
    /// from the timestamp that the acknowledgement echoes.
    pub(super) rtt_ns: Option<u64>,
    /// Round trip of the newest acknowledged packet, for congestion control.
    pub(super) fresh_rtt_ns: Option<u64>,
    pub(super) rate: Option<RateSample>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RateSample {
    pub(super) prior_delivered: u64,
    pub(super) delivered: u64,
    pub(super) interval_ns: u64,
    pub(super) app_limited: bool,
}

#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<Segment>,
    in_flight: u64,
    sacked: u64,
    lost: u64,
    /// Packets delivered since the start of the connection.
    pub(super) delivered: u64,
    delivered_ns: u64,
    window_sent_ns: u64,
    /// Number of delivered packets until which rate samples are limited by the application.
    app_limited_until: u64,
    newest: Newest,
}

/// The most recently sent packet that has arrived: earlier ones that have not are lost, as the line
/// never reorders (RACK, RFC 8985).
#[derive(Debug, Default, Clone, Copy)]
struct Newest {
    sent_ns: u64,
    end: u64,
    rtt_ns: u64,
}

impl Scoreboard {
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(super) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    pub(super) fn sacked(&self) -> u64 {
        self.sacked
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn acked_upto(&self) -> Option<u64> {
        self.segments.front().map(|s| s.start)
    }

    pub(super) fn app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    pub(super) fn mark_app_limited(&mut self) {
        self.app_limited_until = (self.delivered + self.in_flight).max(1);
    }

    pub(super) fn add(&mut self, now_ns: u64, start: u64, end: u64, payload_bytes: u32) {
        if self.segments.is_empty() {
            self.window_sent_ns = now_ns;
            self.delivered_ns = now_ns;
        }
        self.in_flight += 1;
        self.segments.push_back(Segment {
            start,
            end,
            payload_bytes,
            sent_ns: now_ns,
            resent: false,
            state: State::InFlight,
            window_sent_ns: self.window_sent_ns,
            delivered: self.delivered,
            delivered_ns: self.delivered_ns,
            app_limited: self.app_limited(),
        });
    }

    /// Returns the first lost packet, marked as retransmitted now.
    pub(super) fn resend_lost(&mut self, now_ns: u64) -> Option<Segment> {
        let index = self.segments.iter().position(|s| s.state == State::Lost)?;
        self.lost -= 1;
        self.in_flight += 1;
        Some(self.resend(now_ns, index))
    }

    /// Returns the last packet, to be sent as a probe.
    pub(super) fn resend_last(&mut self, now_ns: u64) -> Option<Segment> {
        let index = self
            .segments
            .iter()
            .rposition(|s| s.state == State::InFlight)?;
        Some(self.resend(now_ns, index))
    }

    fn resend(&mut self, now_ns: u64, index: usize) -> Segment {
        let (window_sent_ns, delivered) = (self.window_sent_ns, self.delivered);
        let (delivered_ns, app_limited) = (self.delivered_ns, self.app_limited());
        let segment = &mut self.segments[index];
        segment.state = State::InFlight;
        segment.resent = true;
        segment.sent_ns = now_ns;
        segment.window_sent_ns = window_sent_ns;
        segment.delivered = delivered;
        segment.delivered_ns = delivered_ns;
        segment.app_limited = app_limited;
        segment.clone()
    }

    pub(super) fn acknowledge(&mut self, now_ns: u64, ack: &Ack) -> AckInfo {
        let mut tally = Tally::default();
        while self.segments.front().is_some_and(|s| s.end <= ack.upto) {
            let Some(segment) = self.segments.pop_front() else {
                break;
            };
            tally.ack_info.cumulative = true;
            match segment.state {
                State::Sacked => self.sacked -= 1,
                State::InFlight => self.in_flight -= 1,
                State::Lost => self.lost -= 1,
            }
            if segment.state != State::Sacked {
                tally.take(now_ns, &segment, true);
            }
        }
        for (start, end) in &ack.beyond {
            let from = self.segments.partition_point(|s| s.start < *start);
            for segment in self.segments.range_mut(from..) {
                if segment.end > *end {
                    break;
                }
                match segment.state {
                    State::Sacked => continue,
                    State::InFlight => self.in_flight -= 1,
                    State::Lost => self.lost -= 1,
                }
                segment.state = State::Sacked;
                self.sacked += 1;
                tally.take(now_ns, segment, false);
            }
        }
        tally.ack_info.rtt_ns = tally.ack_info.rtt_ns.or(tally.sacked_rtt_ns);
        if tally.ack_info.rtt_ns.is_none() && tally.ack_info.cumulative {
            let echoed_ns = now_ns - ack.echo_ns;
            tally.ack_info.rtt_ns = Some(echoed_ns);
            tally.ack_info.fresh_rtt_ns = Some(echoed_ns);
        }
        self.settle(now_ns, tally)
    }

    fn settle(&mut self, now_ns: u64, tally: Tally) -> AckInfo {
        let mut ack_info = tally.ack_info;
        self.delivered += ack_info.newly_delivered;
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if ack_info.newly_delivered > 0 {
            self.delivered_ns = now_ns;
        }
        let Some(youngest) = tally.youngest else {
            return ack_info;
        };
        self.window_sent_ns = youngest.sent_ns;
        let send_ns = youngest.sent_ns - youngest.window_sent_ns;
        let ack_ns = now_ns - youngest.delivered_ns;
        ack_info.rate = Some(RateSample {
            prior_delivered: youngest.delivered,
            delivered: self.delivered - youngest.delivered,
            interval_ns: send_ns.max(ack_ns),
            app_limited: youngest.app_limited,
        });
        let newer = (youngest.sent_ns, youngest.end) > (self.newest.sent_ns, self.newest.end);
        if newer {
            self.newest = Newest {
                sent_ns: youngest.sent_ns,
                end: youngest.end,
                rtt_ns: now_ns - youngest.sent_ns,
            };
        }
        ack_info
    }

    /// Marks packets as lost that were sent before an arrived one and more than a round trip plus
    /// `tolerance_ns` ago. Returns their number, and the time of the next check.
    pub(super) fn find_lost(&mut self, now_ns: u64, tolerance_ns: u64) -> (u64, Option<u64>) {
        let newest = self.newest;
        let (mut lost_count, mut again_ns) = (0, None);
        for segment in &mut self.segments {
            let older = (segment.sent_ns, segment.end) < (newest.sent_ns, newest.end);
            if segment.state != State::InFlight || !older {
                continue;
            }
            let due_ns = segment.sent_ns + newest.rtt_ns + tolerance_ns;
            if due_ns <= now_ns {
                segment.state = State::Lost;
                lost_count += 1;
            } else {
                again_ns = again_ns.max(Some(due_ns));
            }
        }
        self.in_flight -= lost_count;
        self.lost += lost_count;
        (lost_count, again_ns)
    }

    /// Reverts a spurious timeout: packets that were not retransmitted count as in flight again.
    pub(super) fn revert_lost(&mut self) {
        for segment in &mut self.segments {
            if segment.state == State::Lost {
                segment.state = State::InFlight;
                self.lost -= 1;
                self.in_flight += 1;
            }
        }
    }

    /// Marks all packets as lost after a timeout, and returns their number.
    pub(super) fn lose_all(&mut self) -> u64 {
        let mut lost_count = 0;
        for segment in &mut self.segments {
            if segment.state == State::InFlight {
                segment.state = State::Lost;
                lost_count += 1;
            }
        }
        self.in_flight -= lost_count;
        self.lost += lost_count;
        lost_count
    }
}

#[derive(Default)]
struct Tally {
    ack_info: AckInfo,
    youngest: Option<Segment>,
    sacked_rtt_ns: Option<u64>,
}

impl Tally {
    fn take(&mut self, now_ns: u64, segment: &Segment, cumulative: bool) {
        self.ack_info.newly_delivered += 1;
        if !segment.resent {
            let rtt_ns = now_ns - segment.sent_ns;
            self.ack_info.fresh_rtt_ns = Some(rtt_ns);
            let oldest = if cumulative {
                &mut self.ack_info.rtt_ns
            } else {
                &mut self.sacked_rtt_ns
            };
            oldest.get_or_insert(rtt_ns);
        }
        let younger = |y: &Segment| (segment.sent_ns, segment.end) > (y.sent_ns, y.end);
        if self.youngest.as_ref().is_none_or(younger) {
            self.youngest = Some(segment.clone());
        }
    }
}
