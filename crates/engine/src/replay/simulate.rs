//! Runs a graph: each node begins when what it needs is there, and a connection or the main thread is free.

use std::collections::HashMap;

use super::connections::{Pool, Progress, max_at_once};
use super::graph::{Graph, Kind};
use super::line::Line;
use super::queue::{Queue, Room};
use super::request::{Request, local_ms};

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
    /// The origin's number and its connection; none where none is needed.
    over: Option<(usize, usize)>,
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
    queue: Queue,
    going: Vec<Going>,
    requests: usize,
    tasks: usize,
    /// Of each node, how much of what it needs is not there yet.
    missing: Vec<usize>,
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
    let is_in = |need: &&usize| nodes[**need];
    let missing = graph.nodes.iter().zip(nodes);
    let mut simulation = Simulation {
        graph,
        nodes,
        saved_bytes,
        line,
        pool: Pool::new(graph, nodes, line),
        max_at_once: max_at_once(line),
        queue: Queue::default(),
        going: Vec::new(),
        requests: 0,
        tasks: 0,
        missing: missing
            .map(|(node, takes_part)| match takes_part {
                true => node.needs.iter().filter(is_in).count(),
                false => 0,
            })
            .collect(),
        spans_ms: vec![None; nodes.len()],
        now_ms: 0.0,
    };
    simulation.queue.push(graph, graph.root);
    for _ in 0..MAX_STEPS {
        simulation.start();
        if simulation.going.is_empty() {
            return simulation.queue.is_empty().then_some(Run {
                total_ms: simulation.now_ms,
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
        while let Some(waiting) = self.queue.pop(Room {
            for_task: self.tasks == 0,
            for_request: self.requests < self.max_at_once,
        }) {
            let node = waiting.node;
            let request = graph.nodes[node].request().filter(|of| !of.is_local);
            let origin = request.and_then(|request| self.pool.origin(request));
            let over = origin.and_then(|origin| Some((origin, self.pool.acquire(origin)?)));
            if let (Some(origin), None) = (origin, over) {
                self.queue.park(waiting, origin);
                continue;
            }
            *self.count(node) += 1;
            self.going.push(Going {
                node,
                over,
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
        let mut going = std::mem::take(&mut self.going);
        for (_, connection) in going.iter().filter_map(|one| one.over) {
            let share = self.line.bits_per_ms / self.requests as f64;
            self.pool.all[connection].share(share);
        }
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

    fn download(&mut self, one: &Going, request: &'g Request, limit_ms: f64) -> Option<Progress> {
        let dns_ms = self.pool.dns_ms(&request.host, one.start_ms);
        let saved_bytes = self.saved_bytes.get(&one.node).copied().unwrap_or(0.0);
        let bytes = (request.transfer_bytes - saved_bytes).max(0.0) - one.bytes;
        let (_, connection) = one.over?;
        Some(self.pool.all[connection].download(bytes, one.elapsed_ms, dns_ms, limit_ms))
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
        let progress = self.download(one, request, step_ms - one.overshoot_ms);
        let (Some(progress), Some((_, connection))) = (progress, one.over) else {
            return true;
        };
        self.pool.all[connection].went_on(&progress, is_done);
        one.elapsed_ms += progress.elapsed_ms;
        one.overshoot_ms += progress.elapsed_ms - step_ms;
        one.bytes += progress.bytes;
        is_done
    }

    fn end(&mut self, one: &Going) {
        if let Some((origin, connection)) = one.over {
            self.pool.release(origin, connection);
            self.queue.connection_is_free(origin);
        }
        *self.count(one.node) -= 1;
        self.spans_ms[one.node] = Some((one.start_ms, self.now_ms));
        let graph = self.graph;
        for node in &graph.nodes[one.node].needed_by {
            if self.nodes[*node] {
                self.missing[*node] = self.missing[*node].saturating_sub(1);
                if self.missing[*node] == 0 {
                    self.queue.push(graph, *node);
                }
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::graph::Node;
    use super::*;

    const BYTES: f64 = 3000.0;

    /// A document and what it names, with these priorities, in turn from so many origins.
    pub(in super::super) fn star(priorities: &[&str], origins: usize) -> Graph {
        let request = |at: usize, priority: &str| {
            let host = format!("{}.test", at % origins.max(1));
            Kind::Request(Request {
                resource: at,
                origin: format!("https://{host}"),
                host,
                transfer_bytes: BYTES,
                priority: priority.to_owned(),
                ..Request::default()
            })
        };
        let node = |kind: Kind, needs: Vec<usize>, needed_by: Vec<usize>| Node {
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
            by_id: HashMap::new(),
        }
    }

    fn line() -> Line {
        Line::plain(150.0, 1638.4)
    }

    fn total_ms(graph: &Graph, saved_bytes: &HashMap<usize, f64>) -> f64 {
        let all = vec![true; graph.nodes.len()];
        run(graph, &all, &line(), saved_bytes).unwrap().total_ms
    }

    #[test]
    fn five_thousand_requests_come_to_an_end() {
        let graph = star(&["Low"; 5000], 3);
        let least_ms = 5001.0 * BYTES * 8.0 / line().bits_per_ms;
        assert!(total_ms(&graph, &HashMap::new()) > least_ms * 0.5);
    }

    #[test]
    fn what_takes_no_part_takes_no_time() {
        let graph = star(&["High", "High"], 1);
        let whole_ms = total_ms(&graph, &HashMap::new());
        let alone = run(&graph, &[true, false, false], &line(), &HashMap::new()).unwrap();
        assert!(alone.total_ms < whole_ms);
        assert_eq!(alone.took_ms(1), None);
    }

    proptest! {
        #[test]
        fn everything_that_takes_part_ends(count in 1..120_usize, origins in 1..9_usize) {
            let graph = star(&vec!["Medium"; count], origins);
            let all = vec![true; graph.nodes.len()];
            let done = run(&graph, &all, &line(), &HashMap::new()).unwrap();
            for node in 0..graph.nodes.len() {
                prop_assert!(done.took_ms(node).is_some());
            }
        }

        #[test]
        fn a_smaller_document_is_never_later(saved in 0.0..5000.0_f64) {
            let graph = star(&[], 1);
            let smaller = HashMap::from([(0, saved)]);
            prop_assert!(total_ms(&graph, &smaller) <= total_ms(&graph, &HashMap::new()));
        }
    }
}
