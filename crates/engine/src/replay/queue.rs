//! The queue of nodes that are ready to start, by priority.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use super::graph::{Graph, GraphNode, NodeKind};

/// A node in the queue. The smallest starts first; among equal ones the one that was queued first.
#[derive(Debug, PartialEq)]
pub(super) struct Waiting {
    position_us: f64,
    queued_at: usize,
    pub(super) node: usize,
}

impl Eq for Waiting {}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_position = self.position_us.total_cmp(&other.position_us);
        by_position.then(self.queued_at.cmp(&other.queued_at))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Longer than any load.
const DEFERRED_US: f64 = 1e12;

type Heap = BinaryHeap<Reverse<Waiting>>;

/// The kinds of nodes that can start now.
#[derive(Clone, Copy)]
pub(super) struct StartCapacity {
    pub(super) for_task: bool,
    pub(super) for_request: bool,
}

/// The queued nodes by kind, so that nodes that cannot start are not checked repeatedly.
#[derive(Default)]
pub(super) struct Queue {
    tasks: Heap,
    local: Heap,
    requests: Heap,
    /// The requests without a free connection to their origin, by the index of the origin.
    postponed: HashMap<usize, Heap>,
    queued_count: usize,
}

impl Queue {
    /// Adds a node that is ready to start. Those that are deferred start after all others.
    pub(super) fn push(&mut self, graph: &Graph, node: usize, is_deferred: bool) {
        self.queued_count += 1;
        let later_us = if is_deferred { DEFERRED_US } else { 0.0 };
        let waiting = Reverse(Waiting {
            position_us: position_us(&graph.nodes[node]) + later_us,
            queued_at: self.queued_count,
            node,
        });
        match &graph.nodes[node].kind {
            NodeKind::Task(_) => self.tasks.push(waiting),
            NodeKind::Request(request) if request.is_local => self.local.push(waiting),
            NodeKind::Request(_) => self.requests.push(waiting),
        }
    }

    /// Takes the first node that can start. Requests that need no connection always can.
    pub(super) fn pop(&mut self, capacity: StartCapacity) -> Option<Waiting> {
        let heaps = [
            (&mut self.tasks, capacity.for_task),
            (&mut self.local, true),
            (&mut self.requests, capacity.for_request),
        ];
        let open = heaps.into_iter().filter(|(_, has_capacity)| *has_capacity);
        // The greatest element of a heap is the first to start.
        let (heap, _) = open
            .filter(|(heap, _)| !heap.is_empty())
            .max_by(|(a, _), (b, _)| a.peek().cmp(&b.peek()))?;
        heap.pop().map(|Reverse(waiting)| waiting)
    }

    /// Sets a request aside until its origin has a free connection.
    pub(super) fn postpone(&mut self, waiting: Waiting, origin: usize) {
        let postponed = self.postponed.entry(origin).or_default();
        postponed.push(Reverse(waiting));
    }

    pub(super) fn connection_is_free(&mut self, origin: usize) {
        if let Some(first) = self.postponed.get_mut(&origin).and_then(Heap::pop) {
            self.requests.push(first);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let is_empty = |heap: &Heap| heap.is_empty();
        [&self.tasks, &self.local, &self.requests]
            .into_iter()
            .chain(self.postponed.values())
            .all(is_empty)
    }
}

/// Returns the position of a node in the queue: its observed start, later for lower priorities.
fn position_us(node: &GraphNode) -> f64 {
    let delay_s = match &node.kind {
        NodeKind::Task(_) => 0.0,
        NodeKind::Request(request) => match request.exchange.priority.as_str() {
            "High" => 0.25,
            "Medium" => 0.5,
            "Low" => 1.0,
            "VeryLow" => 2.0,
            _ => 0.0,
        },
    };
    node.start_us + delay_s * 1e6
}

#[cfg(test)]
mod tests {
    use super::super::simulate::tests::star;
    use super::*;

    const FREE_CAPACITY: StartCapacity = StartCapacity {
        for_task: true,
        for_request: true,
    };

    #[test]
    fn requests_start_by_priority_and_then_in_order() {
        let graph = star(&["Low", "High", "VeryHigh", "High"], 1);
        let mut queue = Queue::default();
        for node in 1..graph.nodes.len() {
            queue.push(&graph, node, false);
        }
        let order: Vec<usize> =
            std::iter::from_fn(|| queue.pop(FREE_CAPACITY).map(|waiting| waiting.node)).collect();
        assert_eq!(order, [3, 2, 4, 1]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_request_without_a_connection_keeps_its_position() {
        let graph = star(&["High", "High", "High"], 1);
        let mut queue = Queue::default();
        for node in 1..graph.nodes.len() {
            queue.push(&graph, node, false);
        }
        for _ in 0..2 {
            let first = queue.pop(FREE_CAPACITY).unwrap();
            assert_eq!(first.node, 1);
            queue.postpone(first, 0);
            assert!(!queue.is_empty());
            queue.connection_is_free(0);
        }
    }

    #[test]
    fn without_capacity_only_local_requests_start() {
        let mut graph = star(&["High", "High"], 1);
        if let NodeKind::Request(request) = &mut graph.nodes[2].kind {
            request.is_local = true;
        }
        let mut queue = Queue::default();
        queue.push(&graph, 1, false);
        queue.push(&graph, 2, false);
        let none = StartCapacity {
            for_task: false,
            for_request: false,
        };
        assert_eq!(queue.pop(none).map(|waiting| waiting.node), Some(2));
        assert!(queue.pop(none).is_none());
    }
}
