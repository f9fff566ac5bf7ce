use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::receiver::Ack;
use super::terms::{ConnectionId, Direction};

#[derive(Debug)]
pub(super) enum Packet {
    Data {
        start: u64,
        end: u64,
        /// Acknowledgement for the flow in the opposite direction.
        ack: Option<Ack>,
        sent_ns: u64,
    },
    Ack(Ack),
    Reset,
}

#[derive(Debug)]
pub(super) enum ModelEvent {
    /// Arrival of a packet, with the direction in which it travelled.
    Arrival(ConnectionId, Direction, Packet),
    WakeSender(ConnectionId, Direction),
    WakeReceiver(ConnectionId, Direction),
    OpenWindow(ConnectionId, Direction),
    Message {
        tag: u64,
    },
    MessageAgain {
        tag: u64,
        direction: Direction,
        wire_bytes: u32,
        wait_ns: u64,
    },
}

/// Future events ordered by time; simultaneous ones in the order of scheduling.
#[derive(Default)]
pub(super) struct Schedule {
    events: BinaryHeap<Reverse<Scheduled>>,
    added: u64,
}

impl Schedule {
    pub(super) fn add(&mut self, at_ns: u64, event: ModelEvent) {
        let order = self.added;
        self.added += 1;
        self.events.push(Reverse(Scheduled {
            at_ns,
            order,
            event,
        }));
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse(s)| s.at_ns)
    }

    /// Makes packets in transit arrive now, in order; timers keep their time.
    pub(super) fn deliver_in_transit(&mut self, now_ns: u64) {
        for Reverse(scheduled) in std::mem::take(&mut self.events)
            .into_sorted_vec()
            .into_iter()
            .rev()
        {
            let travels = !matches!(
                scheduled.event,
                ModelEvent::WakeSender(..) | ModelEvent::WakeReceiver(..)
            );
            let at_ns = if travels {
                scheduled.at_ns.min(now_ns)
            } else {
                scheduled.at_ns
            };
            self.add(at_ns, scheduled.event);
        }
    }

    /// Returns the next event if it is due by `now_ns`.
    pub(super) fn due(&mut self, now_ns: u64) -> Option<(u64, ModelEvent)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        let Reverse(scheduled) = self.events.pop()?;
        Some((scheduled.at_ns, scheduled.event))
    }
}

struct Scheduled {
    at_ns: u64,
    order: u64,
    event: ModelEvent,
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scheduled {}
