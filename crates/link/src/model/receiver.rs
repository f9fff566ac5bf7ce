use std::collections::BTreeMap;

/// Contents of an acknowledgement at the time it is sent.
#[derive(Debug, Clone)]
pub(super) struct Ack {
    /// Position before which everything has arrived.
    pub(super) upto: u64,
    /// Ranges that have arrived beyond it (selective acknowledgements): start and end, ascending.
    pub(super) beyond: Vec<(u64, u64)>,
    /// Position up to which the sender may send.
    pub(super) window_edge: u64,
    /// Send time of the acknowledged packet (the timestamp option, RFC 7323).
    pub(super) echo_ns: u64,
}

/// Result of a packet's arrival.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Positions that are now in order: bytes for the application, plus one for the end.
    pub(super) advanced: u64,
    pub(super) ack_now: bool,
}

/// The receiver of one flow, as in Linux: reorders packets, acknowledges the first ones
/// individually, then every second one or after a short delay, and anything out of order at once.
#[derive(Debug)]
pub(super) struct Receiver {
    next: u64,
    beyond: BTreeMap<u64, u64>,
    /// Position up to which the application has read.
    read: u64,
    window_bytes: u64,
    quick_acks: u32,
    unacked_packets: u32,
    pub(super) ack_due_ns: Option<u64>,
    last_arrival_ns: u64,
    acked: u64,
    echo_ns: u64,
}

/// Number of packets at the start of a connection that Linux acknowledges at once
/// (TCP_MAX_QUICKACKS), so that slow start is not delayed.
const QUICK_ACKS: u32 = 16;
/// Minimum delay of a delayed acknowledgement (TCP_DELACK_MIN).
pub(super) const DELAYED_ACK_NS: u64 = 40_000_000;

impl Receiver {
    pub(super) fn new(window_bytes: u64) -> Self {
        Self {
            next: 0,
            beyond: BTreeMap::new(),
            read: 0,
            window_bytes,
            quick_acks: QUICK_ACKS,
            unacked_packets: 0,
            ack_due_ns: None,
            last_arrival_ns: 0,
            acked: 0,
            echo_ns: 0,
        }
    }

    pub(super) fn accept(&mut self, now_ns: u64, start: u64, end: u64, sent_ns: u64) -> Arrival {
        self.last_arrival_ns = now_ns;
        if start <= self.acked {
            self.echo_ns = sent_ns;
        }
        let in_order = start <= self.next && self.beyond.is_empty();
        let before = self.next;
        if end > self.next {
            self.insert(start.max(self.next), end);
        }
        let advanced = self.next - before;
        let duplicate = advanced == 0 && end <= before;
        self.unacked_packets += 1;
        let ack_now = !in_order || duplicate || self.quick_acks > 0 || self.unacked_packets >= 2;
        if !ack_now && self.ack_due_ns.is_none() {
            self.ack_due_ns = Some(now_ns + DELAYED_ACK_NS);
        }
        Arrival { advanced, ack_now }
    }

    fn insert(&mut self, mut start: u64, mut end: u64) {
        while let Some((&s, &e)) = self.beyond.range(..=end).next_back() {
            if e < start {
                break;
            }
            self.beyond.remove(&s);
            start = start.min(s);
            end = end.max(e);
        }
        if start <= self.next {
            self.next = end;
        } else {
            self.beyond.insert(start, end);
        }
    }

    /// Returns the acknowledgement to send now, alone or on a data packet.
    pub(super) fn acknowledge(&mut self) -> Ack {
        self.unacked_packets = 0;
        self.acked = self.next;
        self.ack_due_ns = None;
        self.quick_acks = self.quick_acks.saturating_sub(1);
        Ack {
            upto: self.next,
            beyond: self.beyond.iter().map(|(s, e)| (*s, *e)).collect(),
            window_edge: self.read + self.window_bytes,
            echo_ns: self.echo_ns,
        }
    }

    pub(super) fn owes_an_ack(&self) -> bool {
        self.unacked_packets > 0
    }

    /// Records that the host responded: if it does so at once, later acknowledgements are delayed
    /// to be carried by data (Linux's "pingpong" mode).
    pub(super) fn record_response(&mut self, now_ns: u64) {
        if self.last_arrival_ns > 0 && now_ns < self.last_arrival_ns + DELAYED_ACK_NS {
            self.quick_acks = 0;
        }
    }

    /// Records that the application has read; returns true if the sender should get a window update
    /// at once.
    pub(super) fn consumed(&mut self, bytes: u64) -> bool {
        let was_shut = self.next + u64::from(super::PAYLOAD_BYTES) > self.read + self.window_bytes;
        self.read += bytes;
        let is_shut = self.next + u64::from(super::PAYLOAD_BYTES) > self.read + self.window_bytes;
        was_shut && !is_shut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_packets_are_acknowledged_one_by_one_then_every_second() {
        let mut r = Receiver::new(1 << 20);
        let mut acks = Vec::new();
        for i in 0..20u64 {
            if r.accept(i, i * 10, i * 10 + 10, 0).ack_now {
                acks.push(r.acknowledge().upto);
            }
        }
        let expected: Vec<u64> = (1..=16).map(|i| i * 10).chain([180, 200]).collect();
        assert_eq!(acks, expected);
    }

    #[test]
    fn a_gap_is_reported_at_once_and_closed_by_the_missing_packet() {
        let mut r = Receiver::new(1 << 20);
        r.quick_acks = 0;
        assert!(r.accept(0, 10, 20, 0).ack_now);
        let ack = r.acknowledge();
        assert_eq!((ack.upto, ack.beyond), (0, vec![(10, 20)]));
        assert!(r.accept(1, 30, 40, 0).ack_now);
        assert_eq!(r.acknowledge().beyond, vec![(10, 20), (30, 40)]);
        assert_eq!(r.accept(2, 0, 10, 0).advanced, 20);
        assert_eq!(r.accept(3, 20, 30, 0).advanced, 20);
        let ack = r.acknowledge();
        assert_eq!((ack.upto, ack.beyond), (40, vec![]));
    }

    #[test]
    fn the_window_moves_with_the_reader_only() {
        let mut r = Receiver::new(3000);
        r.accept(0, 0, 2000, 0);
        assert_eq!(r.acknowledge().window_edge, 3000);
        assert!(r.consumed(1000), "a shut window opened");
        assert_eq!(r.acknowledge().window_edge, 4000);
        assert!(!r.consumed(500), "it was open");
    }

    proptest! {
        #[test]
        fn any_order_with_repeats_ends_complete(order in Just((0..30u64).collect::<Vec<_>>()).prop_shuffle(), again in proptest::collection::vec(0..30u64, 0..20)) {
            let mut r = Receiver::new(1 << 20);
            let mut advanced = 0;
            for i in again.iter().chain(&order).chain(&again) {
                advanced += r.accept(0, i * 7, i * 7 + 7, 0).advanced;
            }
            prop_assert_eq!(advanced, 210);
            let ack = r.acknowledge();
            prop_assert_eq!(ack.upto, 210);
            prop_assert!(ack.beyond.is_empty());
        }
    }
}
