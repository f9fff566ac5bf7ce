//! Connections as a browser opens them, and how TCP fills them.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::graph::Graph;
use super::line::Line;
use super::request::Request;

const SEGMENT_BYTES: f64 = 1460.0;
const FIRST_WINDOW_SEGMENTS: f64 = 10.0;
/// A browser opens no more to one origin, except over HTTP/2, where one is enough.
const PER_ORIGIN: usize = 6;
/// Asking for an address takes so many round trips.
const DNS_ROUND_TRIPS: f64 = 2.0;
const MAX_AT_ONCE: f64 = 10.0;

/// How many downloads the line can keep busy, each with a segment per round trip.
pub(super) fn max_at_once(line: &Line) -> usize {
    let needed_bits_per_ms = SEGMENT_BYTES * 8.0 / line.rtt_ms;
    (line.bits_per_ms / needed_bits_per_ms)
        .floor()
        .clamp(1.0, MAX_AT_ONCE) as usize
}

#[derive(Clone)]
pub(super) struct Connection {
    is_warm: bool,
    is_tls: bool,
    is_h2: bool,
    rtt_ms: f64,
    bits_per_ms: f64,
    response_ms: f64,
    window_segments: f64,
    /// Of HTTP/2, what came beyond what was asked for: the next answer's.
    ahead_bytes: f64,
}

pub(super) struct Progress {
    pub(super) elapsed_ms: f64,
    pub(super) bytes: f64,
    ahead_bytes: f64,
    window_segments: f64,
}

impl Connection {
    /// How far `bytes` come within `limit_ms`, when `elapsed_ms` have already gone by.
    pub(super) fn download(
        &self,
        mut bytes: f64,
        elapsed_ms: f64,
        dns_ms: f64,
        limit_ms: f64,
    ) -> Progress {
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
        let first_byte_ms = match is_ready {
            true => 0.0,
            false => opening_ms + self.response_ms + one_way_ms,
        };
        let waiting_ms = (first_byte_ms - elapsed_ms).max(0.0);
        let limit_ms = limit_ms - waiting_ms;
        let mut window_segments = self.window_segments.min(max_segments);
        let mut come_bytes = match waiting_ms > 0.0 {
            true => window_segments * SEGMENT_BYTES,
            false => 0.0,
        };
        let mut downloading_ms = 0.0;
        while come_bytes < bytes && downloading_ms <= limit_ms {
            downloading_ms += self.rtt_ms;
            window_segments = (window_segments * 2.0).min(max_segments).max(1.0);
            come_bytes += window_segments * SEGMENT_BYTES;
        }
        Progress {
            elapsed_ms: waiting_ms + downloading_ms,
            bytes: come_bytes.min(bytes).max(0.0),
            ahead_bytes: match self.is_h2 {
                true => (come_bytes - bytes).max(0.0),
                false => 0.0,
            },
            window_segments,
        }
    }

    /// Its share of the line.
    pub(super) fn share(&mut self, bits_per_ms: f64) {
        self.bits_per_ms = bits_per_ms;
    }

    pub(super) fn went_on(&mut self, progress: &Progress, is_done: bool) {
        self.window_segments = progress.window_segments;
        self.ahead_bytes = progress.ahead_bytes;
        self.is_warm |= is_done;
    }
}

/// A free connection; the one with the widest window is the greatest, of equal ones the first.
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

pub(super) struct Pool<'g> {
    pub(super) all: Vec<Connection>,
    /// By the number of the origin.
    free: Vec<BinaryHeap<Free>>,
    by_origin: HashMap<&'g str, usize>,
    resolved_ms: HashMap<&'g str, f64>,
    dns_ms: f64,
}

impl<'g> Pool<'g> {
    pub(super) fn new(graph: &'g Graph, nodes: &[bool], line: &Line) -> Self {
        let mut of_origin: Vec<(&str, Vec<(&Request, f64)>)> = Vec::new();
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
            all.extend(connections(&requests, line, origin));
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
            dns_ms: line.rtt_ms * DNS_ROUND_TRIPS,
        }
    }

    pub(super) fn origin(&self, request: &Request) -> Option<usize> {
        self.by_origin.get(request.origin.as_str()).copied()
    }

    /// The free connection with the widest window, if there is one.
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

    /// How long until the host's address is known, to who asks at this time.
    pub(super) fn dns_ms(&mut self, host: &'g str, asked_ms: f64) -> f64 {
        let known_ms = self.resolved_ms.get(host).copied();
        let wait_ms = known_ms.map_or(self.dns_ms, |known_ms| {
            (known_ms - asked_ms).max(0.0).min(self.dns_ms)
        });
        let resolved_ms = known_ms.map_or(asked_ms + wait_ms, |ms| ms.min(asked_ms + wait_ms));
        self.resolved_ms.insert(host, resolved_ms);
        wait_ms
    }
}

/// As many as were opened as far as one can tell, and as many as a browser would open.
fn connections(requests: &[(&Request, f64)], line: &Line, origin: &str) -> Vec<Connection> {
    let first_end_us = requests
        .iter()
        .map(|(_, end_us)| *end_us)
        .fold(f64::INFINITY, f64::min);
    let first = requests
        .iter()
        .map(|(request, _)| request.network_us)
        .enumerate()
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(at, _)| at);
    let opened = requests.iter().enumerate().filter(|(at, (request, _))| {
        Some(*at) == first || (request.network_us < first_end_us && !request.is_h2)
    });
    let mut connections: Vec<Connection> = opened
        .map(|(_, (request, _))| Connection {
            is_warm: false,
            is_tls: request.is_tls,
            is_h2: request.is_h2,
            rtt_ms: line.rtt_ms + line.more_rtt_ms(origin),
            bits_per_ms: line.bits_per_ms,
            response_ms: line.response_ms(origin),
            window_segments: FIRST_WINDOW_SEGMENTS,
            ahead_bytes: 0.0,
        })
        .collect();
    if let Some(like) = connections.first().filter(|first| !first.is_h2).cloned() {
        connections.resize(connections.len().max(PER_ORIGIN), like);
    }
    connections
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fresh(rtt_ms: f64, bits_per_ms: f64) -> Connection {
        Connection {
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
    fn a_small_answer_takes_the_handshake_and_one_round_trip() {
        let connection = fresh(150.0, 1600.0);
        let took = connection.download(1000.0, 0.0, 300.0, f64::INFINITY);
        assert_eq!(took.elapsed_ms, 300.0 + 225.0 + 30.0 + 75.0);
        let tls = Connection {
            is_tls: true,
            ..fresh(150.0, 1600.0)
        };
        let took = tls.download(1000.0, 0.0, 300.0, f64::INFINITY);
        assert_eq!(took.elapsed_ms, 780.0);
    }

    #[test]
    fn a_warm_connection_asks_at_once() {
        let warm = Connection {
            is_warm: true,
            ..fresh(150.0, 1600.0)
        };
        let took = warm.download(1000.0, 0.0, 300.0, f64::INFINITY);
        assert_eq!(took.elapsed_ms, 180.0);
    }

    proptest! {
        #[test]
        fn more_bytes_never_come_sooner(
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
