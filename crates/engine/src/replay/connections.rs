//! The connections that a browser opens, and the transfer of data over them with TCP.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::graph::Graph;
use super::network::ReplayNetwork;
use super::request::RequestNode;

const SEGMENT_BYTES: f64 = 1460.0;
const FIRST_WINDOW_SEGMENTS: f64 = 10.0;
/// The maximum number of connections per origin over HTTP/1.1; HTTP/2 uses one.
const MAX_PER_ORIGIN: usize = 6;
/// The number of round trips of a DNS lookup on the emulated line.
const DNS_ROUND_TRIPS: f64 = 1.0;
const MAX_AT_ONCE: f64 = 10.0;

/// Returns the number of downloads that can use the bandwidth at once, each with a segment per
/// round trip.
pub(super) fn max_at_once(network: &ReplayNetwork) -> usize {
    let needed_bits_per_ms = SEGMENT_BYTES * 8.0 / network.rtt_ms;
    (network.bits_per_ms / needed_bits_per_ms)
        .floor()
        .clamp(1.0, MAX_AT_ONCE) as usize
}

#[derive(Clone)]
pub(super) struct SimulatedConnection {
    is_warm: bool,
    is_tls: bool,
    is_h2: bool,
    rtt_ms: f64,
    bits_per_ms: f64,
    response_ms: f64,
    window_segments: f64,
    /// The bytes received over HTTP/2 beyond the current response, which belong to the next one.
    ahead_bytes: f64,
}

pub(super) struct TransferProgress {
    pub(super) elapsed_ms: f64,
    pub(super) bytes: f64,
    ahead_bytes: f64,
    window_segments: f64,
}

impl SimulatedConnection {
    /// Returns the progress of downloading `bytes` within `limit_ms`, after `elapsed_ms` have
    /// already passed.
    pub(super) fn download(
        &self,
        mut bytes: f64,
        elapsed_ms: f64,
        dns_ms: f64,
        limit_ms: f64,
    ) -> TransferProgress {
        let is_ready = self.is_warm && self.is_h2;
        if is_ready {
            bytes -= self.ahead_bytes;
        }
        let one_way_ms = self.rtt_ms / 2.0;
        let max_segments = (self.bits_per_ms / 8.0 * self.rtt_ms / SEGMENT_BYTES).floor();
        let opening_ms = match (self.is_warm, self.is_tls) {
            (true, _) => one_way_ms,
            (false, is_tls) => dns_ms + 3.0 * one_way_ms + if is_tls { self.rtt_ms } else { 0.0 },
        };
        let first_byte_ms = if is_ready {
            0.0
        } else {
            opening_ms + self.response_ms + one_way_ms
        };
        let waiting_ms = (first_byte_ms - elapsed_ms).max(0.0);
        let limit_ms = limit_ms - waiting_ms;
        let mut window_segments = self.window_segments.min(max_segments);
        let mut received_bytes = if waiting_ms > 0.0 {
            window_segments * SEGMENT_BYTES
        } else {
            0.0
        };
        let mut downloading_ms = 0.0;
        while received_bytes < bytes && downloading_ms <= limit_ms {
            downloading_ms += self.rtt_ms;
            window_segments = (window_segments * 2.0).min(max_segments).max(1.0);
            received_bytes += window_segments * SEGMENT_BYTES;
        }
        // On a full line the end of a response need not wait for the end of a round trip.
        let window_bytes = window_segments * SEGMENT_BYTES;
        if received_bytes > bytes && downloading_ms > 0.0 && window_segments >= max_segments {
            let unused = ((received_bytes - bytes) / window_bytes).min(1.0);
            downloading_ms -= self.rtt_ms * unused;
            received_bytes = bytes;
        }
        TransferProgress {
            elapsed_ms: waiting_ms + downloading_ms,
            bytes: received_bytes.min(bytes).max(0.0),
            ahead_bytes: if self.is_h2 {
                (received_bytes - bytes).max(0.0)
            } else {
                0.0
            },
            window_segments,
        }
    }

    /// Sets the connection's share of the bandwidth.
    pub(super) fn set_bandwidth(&mut self, bits_per_ms: f64) {
        self.bits_per_ms = bits_per_ms;
    }

    pub(super) fn update(&mut self, progress: &TransferProgress, is_done: bool) {
        self.window_segments = progress.window_segments;
        self.ahead_bytes = progress.ahead_bytes;
        self.is_warm |= is_done;
    }
}

/// A free connection, ordered by the size of its window; among equal ones the first is the
/// greatest.
#[derive(PartialEq)]
struct Free {
    window_segments: f64,
    at: usize,
}

impl Eq for Free {}

impl Ord for Free {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_window = self.window_segments.total_cmp(&other.window_segments);
        by_window.then(other.at.cmp(&self.at))
    }
}

impl PartialOrd for Free {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

pub(super) struct ConnectionPool<'g> {
    pub(super) all: Vec<SimulatedConnection>,
    /// The free connections by the index of the origin.
    free: Vec<BinaryHeap<Free>>,
    by_origin: HashMap<&'g str, usize>,
    resolved_ms: HashMap<&'g str, f64>,
    dns_ms: f64,
}

impl<'g> ConnectionPool<'g> {
    pub(super) fn new(graph: &'g Graph, nodes: &[bool], network: &ReplayNetwork) -> Self {
        let mut of_origin: Vec<(&str, Vec<(&RequestNode, f64)>)> = Vec::new();
        let mut by_origin: HashMap<&str, usize> = HashMap::new();
        for (node, _) in graph.nodes.iter().zip(nodes).filter(|(_, is_in)| **is_in) {
            if let Some(request) = node.request() {
                let origin = *by_origin.entry(&request.origin).or_insert_with(|| {
                    of_origin.push((&request.origin, Vec::new()));
                    of_origin.len() - 1
                });
                of_origin[origin].1.push((request, node.end_us));
            }
        }
        let mut all = Vec::new();
        let mut free = Vec::new();
        for (origin, requests) in of_origin {
            let first = all.len();
            all.extend(connections(&requests, network, origin));
            free.push(
                (first..all.len())
                    .map(|at| Free {
                        window_segments: FIRST_WINDOW_SEGMENTS,
                        at,
                    })
                    .collect(),
            );
        }
        Self {
            all,
            free,
            by_origin,
            resolved_ms: HashMap::new(),
            dns_ms: network.rtt_ms * DNS_ROUND_TRIPS,
        }
    }

    pub(super) fn origin(&self, request: &RequestNode) -> Option<usize> {
        self.by_origin.get(request.origin.as_str()).copied()
    }

    /// Takes the free connection with the largest window, if there is one.
    pub(super) fn acquire(&mut self, origin: usize) -> Option<usize> {
        Some(self.free[origin].pop()?.at)
    }

    pub(super) fn release(&mut self, origin: usize, at: usize) {
        let window_segments = self.all[at].window_segments;
        self.free[origin].push(Free {
            window_segments,
            at,
        });
    }

    /// Returns the time that a request starting at `start_ms` waits for the host's address.
    pub(super) fn dns_ms(&mut self, host: &'g str, start_ms: f64) -> f64 {
        if is_address(host) {
            return 0.0;
        }
        let earlier_ms = self.resolved_ms.get(host).copied();
        let wait_ms = earlier_ms.map_or(self.dns_ms, |earlier_ms| {
            (earlier_ms - start_ms).max(0.0).min(self.dns_ms)
        });
        let resolved_ms = earlier_ms.map_or(start_ms + wait_ms, |ms| ms.min(start_ms + wait_ms));
        self.resolved_ms.insert(host, resolved_ms);
        wait_ms
    }
}

/// Returns whether a host of a URL is an IP address, or a name that browsers know.
fn is_address(host: &str) -> bool {
    host.starts_with('[')
        || matches!(url::Host::parse(host), Ok(url::Host::Ipv4(_)))
        || host == "localhost"
        || host.ends_with(".localhost")
}

/// Returns the connections of an origin: as many as were opened according to the trace, and at
/// least as many as a browser would open. Those that the browser opened before it needed them are
/// open from the beginning.
fn connections(
    requests: &[(&RequestNode, f64)],
    network: &ReplayNetwork,
    origin: &str,
) -> Vec<SimulatedConnection> {
    let mut by_start: Vec<&RequestNode> = requests.iter().map(|(request, _)| *request).collect();
    by_start.sort_by(|a, b| a.network_us.total_cmp(&b.network_us));
    let Some(first) = by_start.first() else {
        return Vec::new();
    };
    let ends_us = requests.iter().map(|(_, end_us)| *end_us);
    let first_end_us = ends_us.fold(f64::INFINITY, f64::min);
    let at_once = by_start[1..]
        .iter()
        .filter(|request| request.network_us < first_end_us && !request.is_h2())
        .count();
    let least = if first.is_h2() { 1 } else { MAX_PER_ORIGIN };
    let mut known = HashSet::new();
    let mut found_open = by_start.iter().map(|request| {
        // The first request on a connection that did not wait for it to open.
        let is_new = request.connection_id().is_some_and(|id| known.insert(id));
        let timing = request.exchange.timing();
        is_new && timing.is_some_and(|timing| timing.connection_ms() == 0.0)
    });
    let is_first_open = found_open.next().unwrap_or(false);
    let others_open = found_open.filter(|is_open| *is_open).count();
    let connection = |is_warm: bool| SimulatedConnection {
        is_warm,
        is_tls: first.is_tls,
        is_h2: first.is_h2(),
        rtt_ms: network.rtt_ms + network.extra_rtt_ms(origin),
        bits_per_ms: network.bits_per_ms,
        response_ms: network.response_ms(origin),
        window_segments: FIRST_WINDOW_SEGMENTS,
        ahead_bytes: 0.0,
    };
    // The first request takes the first connection, the next ones those that are open already.
    let others = least.max(1 + at_once) - 1;
    std::iter::once(connection(is_first_open))
        .chain((0..others).map(|at| connection(at < others_open)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plumbline_trace::{Exchange, ResourceTiming, Response};
    use proptest::prelude::*;

    use super::*;

    fn fresh(rtt_ms: f64, bits_per_ms: f64) -> SimulatedConnection {
        SimulatedConnection {
            is_warm: false,
            is_tls: false,
            is_h2: false,
            rtt_ms,
            bits_per_ms,
            response_ms: 30.0,
            window_segments: FIRST_WINDOW_SEGMENTS,
            ahead_bytes: 0.0,
        }
    }

    #[test]
    fn a_small_response_takes_the_handshake_and_one_round_trip() {
        let connection = fresh(150.0, 1600.0);
        let took = connection.download(1000.0, 0.0, 300.0, f64::INFINITY);
        assert_eq!(took.elapsed_ms, 300.0 + 225.0 + 30.0 + 75.0);
        let tls = SimulatedConnection {
            is_tls: true,
            ..fresh(150.0, 1600.0)
        };
        let took = tls.download(1000.0, 0.0, 300.0, f64::INFINITY);
        assert_eq!(took.elapsed_ms, 780.0);
    }

    #[test]
    fn a_warm_connection_sends_at_once() {
        let warm = SimulatedConnection {
            is_warm: true,
            ..fresh(150.0, 1600.0)
        };
        let took = warm.download(1000.0, 0.0, 300.0, f64::INFINITY);
        assert_eq!(took.elapsed_ms, 180.0);
    }

    /// Returns a request that starts at this time, and the time of its end. `connect_us` is the
    /// duration of opening its connection.
    fn request(start_us: f64, id: u64, connect_us: Option<f64>) -> (RequestNode, f64) {
        let timing = ResourceTiming {
            connect_start_us: connect_us.map_or(-1000.0, |_| 0.0),
            connect_end_us: connect_us.unwrap_or(-1000.0),
            ..ResourceTiming::default()
        };
        let response = Response {
            connection_id: Some(id),
            timing: Some(timing),
            ..Response::default()
        };
        let node = RequestNode {
            network_us: start_us,
            exchange: Arc::new(Exchange {
                response: Some(response),
                ..Exchange::default()
            }),
            ..RequestNode::default()
        };
        (node, start_us + 1000.0)
    }

    #[test]
    fn connections_that_were_opened_before_they_were_needed_are_open() {
        let requests = [
            request(0.0, 1, Some(150_000.0)),
            // On the connection of the document, on one that was open, and on one that was not.
            request(2000.0, 1, None),
            request(2000.0, 2, None),
            request(2000.0, 3, Some(150_000.0)),
            // Nor is the connection new to a second request.
            request(9000.0, 2, None),
        ];
        let requests: Vec<_> = requests.iter().map(|(node, end)| (node, *end)).collect();
        let network = ReplayNetwork::plain(150.0, 1638.4);
        let are_open = |requests: &[(&RequestNode, f64)]| -> Vec<bool> {
            let connections = connections(requests, &network, "http://a.test");
            connections.iter().map(|it| it.is_warm).collect()
        };
        assert_eq!(
            are_open(&requests),
            [false, true, false, false, false, false]
        );
        // The first request of another origin, to which the page connected early.
        assert_eq!(are_open(&requests[2..3])[..2], [true, false]);
    }

    proptest! {
        #[test]
        fn more_bytes_never_arrive_earlier(
            rtt_ms in 1.0..600.0_f64, rate in 100.0..100_000.0_f64, bytes in 0.0..1e6_f64, more in 0.0..1e6_f64
        ) {
            let connection = fresh(rtt_ms, rate);
            let few = connection.download(bytes, 0.0, 0.0, f64::INFINITY);
            let many = connection.download(bytes + more, 0.0, 0.0, f64::INFINITY);
            prop_assert!(few.elapsed_ms <= many.elapsed_ms);
            prop_assert!((few.bytes - bytes).abs() < 1e-6);
        }
    }
}
