use std::collections::{HashMap, VecDeque};

use super::HEADER_BYTES;
use super::connection::{ModelConnection, ahead_bytes};
use super::event::{ModelEvent, Packet, Schedule};
use super::line::Line;
use super::receiver::Ack;
use super::terms::{ConnectionId, Direction, Output, Setup};

/// All connections of one link, and the two lines they share.
pub(crate) struct NetworkModel {
    setup: Setup,
    now_ns: u64,
    lines: [Line; 2],
    connections: HashMap<ConnectionId, ModelConnection>,
    schedule: Schedule,
    next_connection: u64,
    outputs: VecDeque<Output>,
}

/// Size of a SYN or its acknowledgement: IP and TCP headers with options.
pub(crate) const HANDSHAKE_WIRE_BYTES: u32 = 60;
/// First retransmission timeout of a SYN on Linux; it doubles each time.
const MESSAGE_TIMEOUT_NS: u64 = 1_000_000_000;
/// Linux's minimum wait before a closed window is probed (TCP_RTO_MIN).
const WINDOW_TIMEOUT_NS: u64 = 200_000_000;

impl NetworkModel {
    pub(crate) fn new(setup: Setup) -> Self {
        let delay_ns = setup.rtt_ns / 2;
        let line = |kbps, seed| Line::new(kbps, delay_ns, setup.loss_share, seed);
        let lines = [
            line(setup.up_kbps, setup.seed),
            line(setup.down_kbps, setup.seed ^ 1),
        ];
        Self {
            setup,
            now_ns: 0,
            lines,
            connections: HashMap::new(),
            schedule: Schedule::default(),
            next_connection: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Removes all limits and delays: for open and new connections, and for packets in transit.
    pub(crate) fn remove_limits(&mut self) {
        self.setup = self.setup.without_limits();
        let line = || Line::new(None, 0, 0.0, 0);
        self.lines = [line(), line()];
        self.schedule.deliver_in_transit(self.now_ns);
        let open: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for id in open {
            for direction in [Direction::Up, Direction::Down] {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection
                        .flow(direction)
                        .sender
                        .remove_limits(ahead_bytes(&self.setup, direction));
                }
                self.send(id, direction);
            }
        }
    }

    /// Returns the time of the next event without further input.
    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        self.schedule.next_ns()
    }

    pub(crate) fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Processes all events until `now_ns`.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        while let Some((at_ns, event)) = self.schedule.due(now_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            self.process(event);
        }
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Sends a packet that belongs to no connection; it is retransmitted until it arrives.
    pub(crate) fn message(&mut self, direction: Direction, wire_bytes: u32, tag: u64) {
        self.send_message(direction, wire_bytes, tag, MESSAGE_TIMEOUT_NS);
    }

    fn send_message(&mut self, direction: Direction, wire_bytes: u32, tag: u64, wait_ns: u64) {
        match self.lines[direction as usize].pass(self.now_ns, wire_bytes) {
            Some(at_ns) => self.schedule.add(at_ns, ModelEvent::Message { tag }),
            None => {
                let again = ModelEvent::MessageAgain {
                    tag,
                    direction,
                    wire_bytes,
                    wait_ns: 2 * wait_ns,
                };
                self.schedule.add(self.now_ns + wait_ns, again);
            }
        }
    }

    /// Opens a connection whose handshake has just completed at the browser's end and took
    /// `rtt_ns`.
    pub(crate) fn establish(&mut self, rtt_ns: u64) -> ConnectionId {
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        let connection = ModelConnection::new(&self.setup, id, self.now_ns, rtt_ns.max(1));
        self.connections.insert(id, connection);
        // The last packet of the handshake; nothing waits for it.
        let _ = self.lines[Direction::Up as usize].pass(self.now_ns, HEADER_BYTES);
        id
    }

    /// Returns the bytes that the flow's sender can accept now.
    pub(crate) fn capacity(&self, id: ConnectionId, direction: Direction) -> u64 {
        let flow = self
            .connections
            .get(&id)
            .map(|c| &c.flows[direction as usize]);
        flow.map_or(0, |f| if f.over { 0 } else { f.sender.capacity() })
    }

    pub(crate) fn write(&mut self, id: ConnectionId, direction: Direction, bytes: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let now_ns = self.now_ns;
        let flow = connection.flow(direction);
        flow.bytes_written += bytes;
        flow.sender.write(bytes);
        connection
            .flow(direction.opposite())
            .receiver
            .record_response(now_ns);
        self.send(id, direction);
    }

    /// Closes the flow at its sender: no more data will be written.
    pub(crate) fn close(&mut self, id: ConnectionId, direction: Direction) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let flow = connection.flow(direction);
        if flow.end_at.is_none() {
            flow.end_at = Some(flow.bytes_written);
            flow.sender.close();
            self.send(id, direction);
        }
    }

    /// Resets the connection at the flow's sender.
    pub(crate) fn reset(&mut self, id: ConnectionId, direction: Direction) {
        if !self.connections.contains_key(&id) {
            return;
        }
        match self.lines[direction as usize].pass(self.now_ns, HEADER_BYTES) {
            Some(at_ns) => self
                .schedule
                .add(at_ns, ModelEvent::Arrival(id, direction, Packet::Reset)),
            // A lost reset is repeated in response to the other host's next packet; a round trip is
            // a close estimate.
            None => {
                let at_ns = self.now_ns + self.setup.rtt_ns;
                self.schedule
                    .add(at_ns, ModelEvent::Arrival(id, direction, Packet::Reset));
            }
        }
    }

    /// Reports that the application at the flow's receiver has read delivered bytes.
    pub(crate) fn consumed(&mut self, id: ConnectionId, direction: Direction, bytes: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.flow(direction).receiver.consumed(bytes) {
            self.open_window(id, direction);
        }
    }

    /// Sends a window update to a sender that may wait for it; repeated if it is lost, as nothing
    /// else would wake that sender.
    fn open_window(&mut self, id: ConnectionId, direction: Direction) {
        if !self.acknowledge(id, direction) && self.connections.contains_key(&id) {
            let at_ns = self.now_ns + WINDOW_TIMEOUT_NS;
            self.schedule
                .add(at_ns, ModelEvent::OpenWindow(id, direction));
        }
    }

    /// Removes a connection. Its packets in transit still use the line.
    pub(crate) fn forget(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
    }

    fn process(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Message { tag } => self.outputs.push_back(Output::Message(tag)),
            ModelEvent::MessageAgain {
                tag,
                direction,
                wire_bytes,
                wait_ns,
            } => self.send_message(direction, wire_bytes, tag, wait_ns),
            ModelEvent::Arrival(id, direction, packet) => self.arrive(id, direction, packet),
            ModelEvent::WakeSender(id, direction) => self.wake_sender(id, direction),
            ModelEvent::WakeReceiver(id, direction) => self.wake_receiver(id, direction),
            ModelEvent::OpenWindow(id, direction) => self.open_window(id, direction),
        }
    }

    /// Handles a packet that arrived; `direction` is the direction in which it travelled.
    fn arrive(&mut self, id: ConnectionId, direction: Direction, packet: Packet) {
        match packet {
            Packet::Reset => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.flows.iter_mut().for_each(|f| f.over = true);
                    self.outputs.push_back(Output::Reset(id, direction));
                }
            }
            Packet::Ack(ack) => self.arrive_ack(id, direction.opposite(), &ack),
            Packet::Data {
                start,
                end,
                ack,
                sent_ns,
            } => {
                if let Some(ack) = ack {
                    self.arrive_ack(id, direction.opposite(), &ack);
                }
                self.arrive_data(id, direction, start, end, sent_ns);
            }
        }
    }

    fn arrive_ack(&mut self, id: ConnectionId, direction: Direction, ack: &Ack) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let now_ns = self.now_ns;
        let flow = connection.flow(direction);
        if flow.over {
            return;
        }
        flow.sender.acknowledged(now_ns, ack);
        self.send(id, direction);
    }

    fn arrive_data(
        &mut self,
        id: ConnectionId,
        direction: Direction,
        start: u64,
        end: u64,
        sent_ns: u64,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let flow = connection.flow(direction);
        if flow.over {
            return;
        }
        let arrival = flow.receiver.accept(self.now_ns, start, end, sent_ns);
        if arrival.advanced > 0 {
            let reached = flow.bytes_delivered + arrival.advanced;
            let ended = flow.end_at.is_some_and(|end_at| reached > end_at);
            let bytes = arrival.advanced - u64::from(ended);
            flow.bytes_delivered += bytes;
            if bytes > 0 {
                self.outputs
                    .push_back(Output::Delivered(id, direction, bytes));
            }
            if ended {
                self.outputs.push_back(Output::Ended(id, direction));
            }
        }
        if arrival.ack_now {
            self.acknowledge(id, direction);
        } else {
            self.arm_receiver(id, direction);
        }
    }

    /// Sends an acknowledgement for the flow `direction` over the other line; returns false if it
    /// is lost.
    fn acknowledge(&mut self, id: ConnectionId, direction: Direction) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else {
            return false;
        };
        let ack = connection.flow(direction).receiver.acknowledge();
        let passed = self.lines[direction.opposite() as usize].pass(self.now_ns, HEADER_BYTES);
        if let Some(at_ns) = passed {
            let arrival = ModelEvent::Arrival(id, direction.opposite(), Packet::Ack(ack));
            self.schedule.add(at_ns, arrival);
        }
        passed.is_some()
    }

    /// Sends all packets that the flow's sender may send now.
    fn send(&mut self, id: ConnectionId, direction: Direction) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let now_ns = self.now_ns;
        let mut leaving = Vec::new();
        while let Some(packet) = connection.flow(direction).sender.next_packet(now_ns) {
            let back = connection.flow(direction.opposite());
            let owed = back.receiver.owes_an_ack();
            let ack = owed.then(|| back.receiver.acknowledge());
            leaving.push((packet, ack));
        }
        for (packet, ack) in leaving {
            let wire_bytes = packet.payload_bytes + HEADER_BYTES;
            if let Some(at_ns) = self.lines[direction as usize].pass(now_ns, wire_bytes) {
                let data = Packet::Data {
                    start: packet.start,
                    end: packet.end,
                    ack,
                    sent_ns: now_ns,
                };
                self.schedule
                    .add(at_ns, ModelEvent::Arrival(id, direction, data));
            }
        }
        self.arm_sender(id, direction);
        if self.capacity(id, direction) > 0 {
            self.outputs.push_back(Output::Capacity(id, direction));
        }
    }

    fn arm_sender(&mut self, id: ConnectionId, direction: Direction) {
        let now_ns = self.now_ns;
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let flow = connection.flow(direction);
        let Some(at_ns) = flow.sender.wake_ns(now_ns) else {
            return;
        };
        if flow.sender_wakes_ns.is_none_or(|armed| at_ns < armed) {
            flow.sender_wakes_ns = Some(at_ns);
            self.schedule
                .add(at_ns, ModelEvent::WakeSender(id, direction));
        }
    }

    fn wake_sender(&mut self, id: ConnectionId, direction: Direction) {
        let now_ns = self.now_ns;
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let flow = connection.flow(direction);
        if flow.over {
            return;
        }
        if flow.sender_wakes_ns.is_some_and(|armed| armed <= now_ns) {
            flow.sender_wakes_ns = None;
        }
        flow.sender.wake(now_ns);
        self.send(id, direction);
    }

    fn arm_receiver(&mut self, id: ConnectionId, direction: Direction) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let flow = connection.flow(direction);
        let Some(at_ns) = flow.receiver.ack_due_ns else {
            return;
        };
        if flow.receiver_wakes_ns.is_none_or(|armed| at_ns < armed) {
            flow.receiver_wakes_ns = Some(at_ns);
            self.schedule
                .add(at_ns, ModelEvent::WakeReceiver(id, direction));
        }
    }

    fn wake_receiver(&mut self, id: ConnectionId, direction: Direction) {
        let now_ns = self.now_ns;
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let flow = connection.flow(direction);
        flow.receiver_wakes_ns = None;
        if flow.receiver.ack_due_ns.is_some_and(|at| at <= now_ns) && !flow.over {
            self.acknowledge(id, direction);
        } else {
            self.arm_receiver(id, direction);
        }
    }
}
