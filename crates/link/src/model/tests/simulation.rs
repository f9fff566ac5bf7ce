//! Web clients and a server on one link, driven as the proxy drives the model, with hosts that
//! respond immediately.

use std::collections::HashMap;

use crate::model::{ConnectionId, Direction, HANDSHAKE_WIRE_BYTES, NetworkModel, Output, Setup};

/// One response that a client fetches, after a pause.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fetch {
    pub(super) pause_ns: u64,
    pub(super) request: u64,
    pub(super) response: u64,
}

impl Fetch {
    /// Returns a fetch with a request of typical size.
    pub(super) fn of(response: u64) -> Self {
        Self {
            pause_ns: 0,
            request: 346,
            response,
        }
    }

    pub(super) fn after(self, pause_ns: u64) -> Self {
        Self { pause_ns, ..self }
    }
}

pub(super) struct Simulation {
    net: NetworkModel,
    now_ns: u64,
    clients: Vec<Client>,
    by_connection: HashMap<ConnectionId, usize>,
}

/// A client that connects once and fetches its list sequentially.
pub(super) struct Client {
    fetches: Vec<Fetch>,
    next: usize,
    dialed_ns: u64,
    connection: Option<ConnectionId>,
    /// Bytes still to be sent, up and down.
    to_send: [u64; 2],
    to_deliver: [u64; 2],
    pause_until_ns: Option<u64>,
    requested_ns: u64,
    pub(super) connected_ns: u64,
    /// Duration of each fetch.
    pub(super) durations_ns: Vec<u64>,
    pub(super) done_ns: Option<u64>,
    pub(super) received: u64,
}

impl Simulation {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            net: NetworkModel::new(setup),
            now_ns: 0,
            clients: Vec::new(),
            by_connection: HashMap::new(),
        }
    }

    pub(super) fn client(mut self, starts_ns: u64, fetches: Vec<Fetch>) -> Self {
        self.clients.push(Client {
            fetches,
            next: 0,
            dialed_ns: 0,
            connection: None,
            to_send: [0; 2],
            to_deliver: [0; 2],
            pause_until_ns: Some(starts_ns),
            requested_ns: 0,
            connected_ns: 0,
            durations_ns: Vec::new(),
            done_ns: None,
            received: 0,
        });
        self
    }

    pub(super) fn run(self) -> Vec<Client> {
        self.run_watched(|_, _| {})
    }

    /// Runs until all clients have finished; `watch` is called after every event.
    pub(super) fn run_watched(mut self, mut watch: impl FnMut(u64, &[Client])) -> Vec<Client> {
        while self.clients.iter().any(|c| c.done_ns.is_none()) {
            let pauses = self.clients.iter().filter_map(|c| c.pause_until_ns);
            let next = pauses.chain(self.net.next_event_ns()).min();
            let next = next.expect("there are no more events, and not all bytes are delivered");
            self.now_ns = self.now_ns.max(next);
            self.net.advance(self.now_ns);
            for index in 0..self.clients.len() {
                let due = |at: &mut u64| *at <= self.now_ns;
                if self.clients[index].pause_until_ns.take_if(due).is_some() {
                    self.proceed(index);
                }
            }
            while let Some(output) = self.net.next_output() {
                self.handle_output(output);
            }
            watch(self.now_ns, &self.clients);
        }
        self.clients
    }

    fn proceed(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if client.connection.is_none() {
            client.dialed_ns = self.now_ns;
            let tag = index as u64 * 2;
            return self.net.message(Direction::Up, HANDSHAKE_WIRE_BYTES, tag);
        }
        let fetch = client.fetches[client.next];
        client.next += 1;
        client.requested_ns = self.now_ns;
        client.to_send = [fetch.request, 0];
        client.to_deliver = [fetch.request, fetch.response];
        self.feed(index, Direction::Up);
    }

    fn feed(&mut self, index: usize, direction: Direction) {
        let client = &mut self.clients[index];
        let Some(id) = client.connection else { return };
        let bytes = self
            .net
            .capacity(id, direction)
            .min(client.to_send[direction as usize]);
        if bytes > 0 {
            client.to_send[direction as usize] -= bytes;
            self.net.write(id, direction, bytes);
        }
    }

    fn handle_output(&mut self, output: Output) {
        match output {
            Output::Message(tag) if tag % 2 == 0 => {
                self.net
                    .message(Direction::Down, HANDSHAKE_WIRE_BYTES, tag + 1);
            }
            Output::Message(tag) => {
                let index = tag as usize / 2;
                let client = &mut self.clients[index];
                let id = self.net.establish(self.now_ns - client.dialed_ns);
                client.connection = Some(id);
                client.connected_ns = self.now_ns;
                self.by_connection.insert(id, index);
                self.next_fetch(index);
            }
            Output::Capacity(id, direction) => self.feed(self.by_connection[&id], direction),
            Output::Delivered(id, direction, bytes) => {
                self.net.consumed(id, direction, bytes);
                self.delivered(self.by_connection[&id], direction, bytes);
            }
            Output::Ended(..) | Output::Reset(..) => panic!("unexpected {output:?}"),
        }
    }

    fn next_fetch(&mut self, index: usize) {
        let client = &mut self.clients[index];
        match client.fetches.get(client.next).map(|f| f.pause_ns) {
            None => client.done_ns = Some(self.now_ns),
            Some(0) => self.proceed(index),
            Some(pause_ns) => client.pause_until_ns = Some(self.now_ns + pause_ns),
        }
    }

    fn delivered(&mut self, index: usize, direction: Direction, bytes: u64) {
        let client = &mut self.clients[index];
        let remaining = &mut client.to_deliver[direction as usize];
        let remaining_to_send = client.to_send[direction as usize];
        *remaining = remaining.checked_sub(bytes).expect("no byte is invented");
        assert!(
            *remaining >= remaining_to_send,
            "no byte arrives before it is sent"
        );
        let complete = *remaining == 0;
        if direction == Direction::Down {
            client.received += bytes;
        }
        match direction {
            Direction::Up if complete => {
                client.to_send[Direction::Down as usize] =
                    client.to_deliver[Direction::Down as usize];
                self.feed(index, Direction::Down);
            }
            Direction::Down if complete => {
                client.durations_ns.push(self.now_ns - client.requested_ns);
                self.next_fetch(index);
            }
            _ => {}
        }
    }
}
