//! Runs a graph: each node begins when what it needs is there, and a connection or the main thread is free.

use std::collections::HashMap;

use super::connections::{Pool, max_at_once};
use super::graph::{Graph, Kind, Node, Request};
use super::line::Line;

/// Longer tasks are not the processor's.
const MAX_TASK_MS: f64 = 10_000.0;
const MAX_STEPS: usize = 100_000;

/// When everything was there, and when each node had begun and ended.
pub(super) struct Run {
    pub(super) total_ms: f64,
    spans_ms: Vec<Option<(f64, f64)>>,
}

impl Run {
    pub(super) fn took_ms(&self, node: usize) -> Option<f64> {
        self.spans_ms[node].map(|(start_ms, end_ms)| end_ms - start_ms)
    }
}

struct Going {
    node: usize,
    start_ms: f64,
    elapsed_ms: f64,
    /// How far the last step looked beyond its end.
    overshoot_ms: f64,
    bytes: f64,
    left_ms: f64,
}

struct Simulation<'g> {
    graph: &'g Graph,
    nodes: &'g [bool],
    saved_bytes: &'g HashMap<usize, f64>,
    line: &'g Line,
    pool: Pool<'g>,
    max_at_once: usize,
    /// In the order in which they want to begin.
    ready: Vec<usize>,
    going: Vec<Going>,
    requests: usize,
    tasks: usize,
    spans_ms: Vec<Option<(f64, f64)>>,
    now_ms: f64,
}

/// Only the nodes that are true take part; `saved_bytes` are taken off their requests. None where it comes to no end.
pub(super) fn run(
    graph: &Graph,
    nodes: &[bool],
    line: &Line,
    saved_bytes: &HashMap<usize, f64>,
) -> Option<Run> {
    let mut simulation = Simulation {
        graph,
        nodes,
        saved_bytes,
        line,
        pool: Pool::new(graph, nodes, line),
        max_at_once: max_at_once(line),
        ready: vec![graph.root],
        going: Vec::new(),
        requests: 0,
        tasks: 0,
        spans_ms: vec![None; nodes.len()],
        now_ms: 0.0,
    };
    for _ in 0..MAX_STEPS {
        simulation.start();
        if simulation.going.is_empty() {
            return simulation.ready.is_empty().then_some(Run {
                total_ms: simulation.now_ms,
                spans_ms: simulation.spans_ms,
            });
        }
        simulation.step();
    }
    None
}

/// When a node wants to begin: as it did, the less urgent later.
fn position_us(node: &Node) -> f64 {
    let late_s = match &node.kind {
        Kind::Task(_) => 0.0,
        Kind::Request(request) => match request.priority.as_str() {
            "High" => 0.25,
            "Medium" => 0.5,
            "Low" => 1.0,
            "VeryLow" => 2.0,
            _ => 0.0,
        },
    };
    node.start_us + late_s * 1e6
}

impl<'g> Simulation<'g> {
    fn start(&mut self) {
        let graph = self.graph;
        let mut at = 0;
        while let Some(node) = self.ready.get(at).copied() {
            let kind = &graph.nodes[node].kind;
            let can = match kind {
                Kind::Task(_) => self.tasks == 0,
                Kind::Request(request) if request.is_local => true,
                Kind::Request(request) => {
                    self.requests < self.max_at_once && self.pool.acquire(node, request)
                }
            };
            if !can {
                at += 1;
                continue;
            }
            self.ready.remove(at);
            *self.count(node) += 1;
            self.going.push(Going {
                node,
                start_ms: self.now_ms,
                elapsed_ms: 0.0,
                overshoot_ms: 0.0,
                bytes: 0.0,
                left_ms: 0.0,
            });
        }
    }

    /// How many of its kind are going on.
    fn count(&mut self, node: usize) -> &mut usize {
        match self.graph.nodes[node].kind {
            Kind::Task(_) => &mut self.tasks,
            Kind::Request(_) => &mut self.requests,
        }
    }

    /// To the end of the node that ends next.
    fn step(&mut self) {
        if self.requests > 0 {
            self.pool
                .share(self.line.bits_per_ms / self.requests as f64);
        }
        let mut going = std::mem::take(&mut self.going);
        for one in &mut going {
            one.left_ms = self.left_ms(one);
        }
        let step_ms = going
            .iter()
            .map(|one| one.left_ms)
            .fold(f64::INFINITY, f64::min);
        self.now_ms += step_ms;
        for mut one in going {
            if self.go(&mut one, step_ms) {
                self.end(&one);
            } else {
                self.going.push(one);
            }
        }
    }

    fn left_ms(&mut self, one: &Going) -> f64 {
        let graph = self.graph;
        match &graph.nodes[one.node].kind {
            Kind::Task(task) => {
                (task.duration_us() / 1000.0).round().min(MAX_TASK_MS) - one.elapsed_ms
            }
            Kind::Request(request) if request.is_local => local_ms(request) - one.elapsed_ms,
            Kind::Request(request) => {
                let progress = self.download(one, request, f64::INFINITY);
                progress.map_or(0.0, |progress| progress.elapsed_ms) + one.overshoot_ms
            }
        }
    }

    fn download(
        &mut self,
        one: &Going,
        request: &'g Request,
        limit_ms: f64,
    ) -> Option<super::connections::Progress> {
        let dns_ms = self.pool.dns_ms(&request.host, one.start_ms);
        let saved_bytes = self.saved_bytes.get(&one.node).copied().unwrap_or(0.0);
        let bytes = (request.transfer_bytes - saved_bytes).max(0.0) - one.bytes;
        let connection = self.pool.of_node(one.node)?;
        Some(connection.download(bytes, one.elapsed_ms, dns_ms, limit_ms))
    }

    /// Goes on for so long; whether that was the end.
    fn go(&mut self, one: &mut Going, step_ms: f64) -> bool {
        let is_done = one.left_ms == step_ms;
        let graph = self.graph;
        let request = graph.nodes[one.node].request().filter(|of| !of.is_local);
        let Some(request) = request else {
            one.elapsed_ms += step_ms;
            return is_done;
        };
        let Some(progress) = self.download(one, request, step_ms - one.overshoot_ms) else {
            return true;
        };
        if let Some(connection) = self.pool.of_node(one.node) {
            connection.went_on(&progress, is_done);
        }
        one.elapsed_ms += progress.elapsed_ms;
        one.overshoot_ms += progress.elapsed_ms - step_ms;
        one.bytes += progress.bytes;
        is_done
    }

    fn end(&mut self, one: &Going) {
        self.pool.release(one.node);
        *self.count(one.node) -= 1;
        self.spans_ms[one.node] = Some((one.start_ms, self.now_ms));
        let graph = self.graph;
        for node in &graph.nodes[one.node].needed_by {
            let is_there = |need: &usize| !self.nodes[*need] || self.spans_ms[*need].is_some();
            if self.nodes[*node] && graph.nodes[*node].needs.iter().all(is_there) {
                let position = position_us(&graph.nodes[*node]);
                let at = self
                    .ready
                    .iter()
                    .position(|other| position_us(&graph.nodes[*other]) > position)
                    .unwrap_or(self.ready.len());
                self.ready.insert(at, *node);
            }
        }
    }
}

/// From a disk 8 ms and 20 per megabyte, out of the page itself 2 and 10.
fn local_ms(request: &Request) -> f64 {
    let megabytes = request.decoded_bytes / 1024.0 / 1024.0;
    match request.is_disk_cached {
        true => 8.0 + 20.0 * megabytes,
        false => 2.0 + 10.0 * megabytes,
    }
}
