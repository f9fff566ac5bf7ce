//! Simulates a graph: each node starts when its dependencies have ended and a connection or the
//! main thread is free.

use std::collections::HashMap;

use super::connections::{ConnectionPool, TransferProgress, max_at_once};
use super::graph::{Graph, NodeKind};
use super::network::ReplayNetwork;
use super::queue::{Queue, StartCapacity};
use super::request::{RequestNode, local_ms};

/// The maximum duration of a task; longer ones are not caused by the CPU.
const MAX_TASK_MS: f64 = 10_000.0;
const MAX_STEPS: usize = 100_000;

/// The differences of a simulation from the load that was measured.
#[derive(Default)]
pub(super) struct Difference {
    /// The bytes that requests do not transfer, by node.
    pub(super) saved_bytes: HashMap<usize, f64>,
    /// The nodes that start after all others that could start; empty if there are none.
    pub(super) deferred: Vec<bool>,
}

impl Difference {
    fn is_deferred(&self, node: usize) -> bool {
        self.deferred.get(node).copied().unwrap_or(false)
    }

    /// Returns whether a node waits for one that it needed in the load that was measured.
    fn has_edge(&self, node: usize, need: usize) -> bool {
        !self.is_deferred(need) || self.is_deferred(node)
    }
}

/// The result of a simulation: the start and end of each node.
pub(super) struct SimulatedRun {
    spans_ms: Vec<Option<(f64, f64)>>,
}

impl SimulatedRun {
    pub(super) fn duration_ms(&self, node: usize) -> Option<f64> {
        self.spans_ms[node].map(|(start_ms, end_ms)| end_ms - start_ms)
    }

    /// Returns the time at which the last of these nodes ends.
    pub(super) fn end_ms(&self, nodes: &[bool]) -> f64 {
        let spans = self.spans_ms.iter().zip(nodes);
        let ends = spans.filter_map(|(span, is_in)| is_in.then_some((*span)?.1));
        ends.fold(0.0, f64::max)
    }
}

struct Running {
    node: usize,
    /// The indexes of the origin and the connection; `None` if none is needed.
    connection_ids: Option<(usize, usize)>,
    start_ms: f64,
    elapsed_ms: f64,
    /// The time by which the last step extended beyond its end.
    overshoot_ms: f64,
    bytes: f64,
    left_ms: f64,
}

struct Simulation<'g> {
    graph: &'g Graph,
    nodes: &'g [bool],
    difference: &'g Difference,
    network: &'g ReplayNetwork,
    pool: ConnectionPool<'g>,
    max_at_once: usize,
    queue: Queue,
    running: Vec<Running>,
    requests: usize,
    tasks: usize,
    /// The number of dependencies of each node that have not ended.
    pending: Vec<usize>,
    spans_ms: Vec<Option<(f64, f64)>>,
    now_ms: f64,
}

/// Simulates the nodes that are `true`. Returns `None` if the simulation does not end.
pub(super) fn run(
    graph: &Graph,
    nodes: &[bool],
    network: &ReplayNetwork,
    difference: &Difference,
) -> Option<SimulatedRun> {
    let pending = graph.nodes.iter().zip(nodes).enumerate();
    let mut simulation = Simulation {
        graph,
        nodes,
        difference,
        network,
        pool: ConnectionPool::new(graph, nodes, network),
        max_at_once: max_at_once(network),
        queue: Queue::default(),
        running: Vec::new(),
        requests: 0,
        tasks: 0,
        pending: pending
            .map(|(at, (node, takes_part))| {
                let is_in = |need: &&usize| nodes[**need] && difference.has_edge(at, **need);
                if *takes_part {
                    node.needs.iter().filter(is_in).count()
                } else {
                    0
                }
            })
            .collect(),
        spans_ms: vec![None; nodes.len()],
        now_ms: 0.0,
    };
    simulation.queue.push(graph, graph.root, false);
    for _ in 0..MAX_STEPS {
        simulation.start();
        if simulation.running.is_empty() {
            return simulation.queue.is_empty().then_some(SimulatedRun {
                spans_ms: simulation.spans_ms,
            });
        }
        simulation.step();
    }
    None
}

impl<'g> Simulation<'g> {
    fn start(&mut self) {
        let graph = self.graph;
        while let Some(waiting) = self.queue.pop(StartCapacity {
            for_task: self.tasks == 0,
            for_request: self.requests < self.max_at_once,
        }) {
            let node = waiting.node;
            let request = graph.nodes[node]
                .request()
                .filter(|request| !request.is_local);
            let origin = request.and_then(|request| self.pool.origin(request));
            let connection_ids =
                origin.and_then(|origin| Some((origin, self.pool.acquire(origin)?)));
            if let (Some(origin), None) = (origin, connection_ids) {
                self.queue.postpone(waiting, origin);
                continue;
            }
            *self.count(node) += 1;
            self.running.push(Running {
                node,
                connection_ids,
                start_ms: self.now_ms,
                elapsed_ms: 0.0,
                overshoot_ms: 0.0,
                bytes: 0.0,
                left_ms: 0.0,
            });
        }
    }

    /// Returns the number of running nodes of the node's kind.
    fn count(&mut self, node: usize) -> &mut usize {
        match self.graph.nodes[node].kind {
            NodeKind::Task(_) => &mut self.tasks,
            NodeKind::Request(_) => &mut self.requests,
        }
    }

    /// Advances to the end of the node that ends next.
    fn step(&mut self) {
        let mut running = std::mem::take(&mut self.running);
        for (_, connection) in running.iter().filter_map(|active| active.connection_ids) {
            let share = self.network.bits_per_ms / self.requests as f64;
            self.pool.all[connection].set_bandwidth(share);
        }
        for active in &mut running {
            active.left_ms = self.left_ms(active);
        }
        let step_ms = running
            .iter()
            .map(|active| active.left_ms)
            .fold(f64::INFINITY, f64::min);
        self.now_ms += step_ms;
        for mut active in running {
            if self.advance(&mut active, step_ms) {
                self.end(&active);
            } else {
                self.running.push(active);
            }
        }
    }

    fn left_ms(&mut self, active: &Running) -> f64 {
        let graph = self.graph;
        match &graph.nodes[active.node].kind {
            NodeKind::Task(task) => {
                (task.duration_us() / 1000.0).round().min(MAX_TASK_MS) - active.elapsed_ms
            }
            NodeKind::Request(request) if request.is_local => local_ms(request) - active.elapsed_ms,
            NodeKind::Request(request) => {
                let progress = self.download(active, request, f64::INFINITY);
                progress.map_or(0.0, |progress| progress.elapsed_ms) + active.overshoot_ms
            }
        }
    }

    fn download(
        &mut self,
        active: &Running,
        request: &'g RequestNode,
        limit_ms: f64,
    ) -> Option<TransferProgress> {
        let dns_ms = self.pool.dns_ms(&request.host, active.start_ms);
        let saved_bytes = self
            .difference
            .saved_bytes
            .get(&active.node)
            .copied()
            .unwrap_or(0.0);
        let bytes = (request.transfer_bytes - saved_bytes).max(0.0) - active.bytes;
        let (_, connection) = active.connection_ids?;
        Some(self.pool.all[connection].download(bytes, active.elapsed_ms, dns_ms, limit_ms))
    }

    /// Advances a node by a step and returns whether it has ended.
    fn advance(&mut self, active: &mut Running, step_ms: f64) -> bool {
        let is_done = active.left_ms == step_ms;
        let graph = self.graph;
        let request = graph.nodes[active.node]
            .request()
            .filter(|request| !request.is_local);
        let Some(request) = request else {
            active.elapsed_ms += step_ms;
            return is_done;
        };
        let progress = self.download(active, request, step_ms - active.overshoot_ms);
        let (Some(progress), Some((_, connection))) = (progress, active.connection_ids) else {
            return true;
        };
        self.pool.all[connection].update(&progress, is_done);
        active.elapsed_ms += progress.elapsed_ms;
        active.overshoot_ms += progress.elapsed_ms - step_ms;
        active.bytes += progress.bytes;
        is_done
    }

    fn end(&mut self, active: &Running) {
        if let Some((origin, connection)) = active.connection_ids {
            self.pool.release(origin, connection);
            self.queue.connection_is_free(origin);
        }
        *self.count(active.node) -= 1;
        self.spans_ms[active.node] = Some((active.start_ms, self.now_ms));
        let graph = self.graph;
        for node in &graph.nodes[active.node].needed_by {
            if self.nodes[*node] && self.difference.has_edge(*node, active.node) {
                self.pending[*node] = self.pending[*node].saturating_sub(1);
                if self.pending[*node] == 0 {
                    let is_deferred = self.difference.is_deferred(*node);
                    self.queue.push(graph, *node, is_deferred);
                }
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use plumbline_trace::Exchange;
    use proptest::prelude::*;

    use super::super::graph::GraphNode;
    use super::*;

    const BYTES: f64 = 3000.0;

    /// Returns the graph of a document and its resources, with these priorities, alternating
    /// between origins.
    pub(in super::super) fn star(priorities: &[&str], origins: usize) -> Graph {
        let request = |at: usize, priority: &str| {
            let host = format!("{}.test", at % origins.max(1));
            NodeKind::Request(RequestNode {
                resource: at,
                origin: format!("https://{host}"),
                host,
                transfer_bytes: BYTES,
                exchange: Arc::new(Exchange {
                    priority: priority.to_owned(),
                    ..Exchange::default()
                }),
                ..RequestNode::default()
            })
        };
        let node = |kind: NodeKind, needs: Vec<usize>, needed_by: Vec<usize>| GraphNode {
            start_us: 0.0,
            end_us: 1.0,
            kind,
            needs,
            needed_by,
        };
        let all = (1..=priorities.len()).collect();
        let mut nodes = vec![node(request(0, "VeryHigh"), Vec::new(), all)];
        for (at, priority) in priorities.iter().enumerate() {
            nodes.push(node(request(at + 1, priority), vec![0], Vec::new()));
        }
        Graph {
            nodes,
            root: 0,
            document: 0,
            commit: None,
            by_id: HashMap::new(),
        }
    }

    fn network() -> ReplayNetwork {
        ReplayNetwork::plain(150.0, 1638.4)
    }

    fn total_ms(graph: &Graph, saved_bytes: &[(usize, f64)]) -> f64 {
        let all = vec![true; graph.nodes.len()];
        let difference = Difference {
            saved_bytes: saved_bytes.iter().copied().collect(),
            ..Difference::default()
        };
        run(graph, &all, &network(), &difference)
            .unwrap()
            .end_ms(&all)
    }

    #[test]
    fn five_thousand_requests_finish() {
        let graph = star(&["Low"; 5000], 3);
        let least_ms = 5001.0 * BYTES * 8.0 / network().bits_per_ms;
        assert!(total_ms(&graph, &[]) > least_ms * 0.5);
    }

    #[test]
    fn excluded_nodes_take_no_time() {
        let graph = star(&["High", "High"], 1);
        let whole_ms = total_ms(&graph, &[]);
        let first = [true, false, false];
        let alone = run(&graph, &first, &network(), &Difference::default()).unwrap();
        assert!(alone.end_ms(&first) < whole_ms);
        assert_eq!(alone.duration_ms(1), None);
    }

    #[test]
    fn what_is_deferred_is_loaded_but_not_waited_for() {
        let mut graph = star(&["VeryHigh", "VeryHigh"], 1);
        // The second request needs the first one, unless that is deferred.
        graph.nodes[1].needed_by.push(2);
        graph.nodes[2].needs.push(1);
        let all = [true, true, true];
        let before = run(&graph, &all, &network(), &Difference::default()).unwrap();
        let difference = Difference {
            deferred: vec![false, true, false],
            ..Difference::default()
        };
        let after = run(&graph, &all, &network(), &difference).unwrap();
        assert!(after.duration_ms(1).is_some());
        assert!(after.end_ms(&[true, false, true]) < before.end_ms(&all));
    }

    proptest! {
        #[test]
        fn every_included_node_ends(count in 1..120_usize, origins in 1..9_usize) {
            let graph = star(&vec!["Medium"; count], origins);
            let all = vec![true; graph.nodes.len()];
            let simulation = run(&graph, &all, &network(), &Difference::default()).unwrap();
            for node in 0..graph.nodes.len() {
                prop_assert!(simulation.duration_ms(node).is_some());
            }
        }

        #[test]
        fn a_smaller_document_is_never_later(saved in 0.0..5000.0_f64) {
            let graph = star(&[], 1);
            prop_assert!(total_ms(&graph, &[(0, saved)]) <= total_ms(&graph, &[]));
        }
    }
}
