//! The chain of requests and tasks that a paint waited for.

use crate::replay::{Graph, GraphNode};

/// The longest time between two tasks of a main thread that has something to do.
pub(super) const MAX_GAP_US: f64 = 1_000.0;
/// The main thread counts as idle while it works for less than this time without a break: the
/// browser reports each part of a response to it.
const MIN_BUSY_US: f64 = 5_000.0;

/// The graph of a load, from which the chain is derived.
///
/// A task is preceded by the tasks that kept the main thread busy since what it needs had ended,
/// and these by what it needs. Where the main thread was idle, the trace often does not tell what
/// the next task waited for, such as a promise. This is then the request that ended last before it,
/// or before one that followed without a break.
pub(super) struct Chain<'g> {
    graph: &'g Graph,
    /// The tasks that depend on the document, in the order of their start.
    tasks: Vec<usize>,
    /// The last task of each period in which the main thread was busy, with its end.
    busy: Vec<(usize, f64)>,
    /// The render-blocking requests.
    blocking: Vec<usize>,
    /// The requests whose responses scripts or the page wait for.
    awaited: Vec<usize>,
}

/// A task that could start only when the main thread was free.
#[derive(Clone, Copy)]
struct Waiter {
    start_us: f64,
    /// The node that the task needs and that ended last.
    need: Option<usize>,
}

impl<'g> Chain<'g> {
    pub(super) fn of(graph: &'g Graph) -> Self {
        let indexes = || (0..graph.nodes.len()).filter(|at| !graph.nodes[*at].needs.is_empty());
        let mut tasks: Vec<usize> = indexes()
            .filter(|at| graph.nodes[*at].task().is_some())
            .collect();
        tasks.sort_by(|a, b| {
            graph.nodes[*a]
                .start_us
                .total_cmp(&graph.nodes[*b].start_us)
        });
        Self {
            graph,
            busy: busy(graph, &tasks),
            tasks,
            blocking: graph.blocking_requests(),
            awaited: indexes()
                .filter(|at| is_awaited(&graph.nodes[*at]))
                .collect(),
        }
    }

    /// Returns the requests and tasks from the document to the paint, in the order of their start.
    pub(super) fn to_paint(&self, paint_us: f64, image: Option<usize>) -> Vec<usize> {
        let task = self.last_task(paint_us);
        let is_after = |task: &usize| {
            image.is_none_or(|image| self.node(image).end_us <= self.node(*task).start_us)
        };
        let mut next = match task.filter(is_after) {
            Some(task) => {
                let need = self.last_ended([image, self.need(task)]);
                Some((task, Some(self.waiter(task, need))))
            }
            None => Some((image.or(task).unwrap_or(self.graph.document), None)),
        };
        let mut path = Vec::new();
        // A path has each node once or twice; this would end one that does not end by itself.
        while let Some((at, waiter)) = next.filter(|_| path.len() < 2 * self.graph.nodes.len()) {
            path.push(at);
            let waiter = waiter.unwrap_or_else(|| self.waiter(at, self.need(at)));
            next = self.before(at, waiter);
        }
        path.reverse();
        path
    }

    fn node(&self, at: usize) -> &'g GraphNode {
        &self.graph.nodes[at]
    }

    /// Returns the last task before the paint that lays out or paints, or else the last one.
    fn last_task(&self, paint_us: f64) -> Option<usize> {
        let draws = |at: &&usize| {
            let node = self.node(**at);
            node.end_us <= paint_us && node.is_rendering()
        };
        let is_before = |at: &&usize| self.node(**at).start_us <= paint_us;
        let drawing = self.tasks.iter().rfind(draws);
        drawing
            .or_else(|| self.tasks.iter().rfind(is_before))
            .copied()
    }

    fn waiter(&self, at: usize, need: Option<usize>) -> Waiter {
        let start_us = self.node(at).start_us;
        Waiter { start_us, need }
    }

    /// Returns what preceded a node, and the task that waited for the main thread if that was not
    /// free. `waiter` is this task for the node itself.
    fn before(&self, at: usize, waiter: Waiter) -> Option<(usize, Option<Waiter>)> {
        let node = self.node(at);
        if node.task().is_none() {
            return self.before_request(at, waiter.need);
        }
        let previous = self.task_before(node.start_us);
        let end_us = previous.map(|previous| self.node(previous).end_us);
        let is_busy = end_us.is_some_and(|end_us| node.start_us - end_us <= MAX_GAP_US);
        let is_needed_first = |previous: &usize| {
            let end_us = self.node(*previous).end_us;
            waiter
                .need
                .is_some_and(|need| self.node(need).end_us >= end_us)
        };
        match previous.filter(|_| is_busy) {
            Some(previous) if !is_needed_first(&previous) => Some((previous, Some(waiter))),
            Some(_) => waiter.need.map(|need| (need, None)),
            None => self.before_idle(at, waiter).map(|before| (before, None)),
        }
    }

    /// Returns the task that sent a request, or what the request needs.
    fn before_request(&self, at: usize, need: Option<usize>) -> Option<(usize, Option<Waiter>)> {
        let start_us = self.node(at).start_us;
        let is_sent_by_page = at != self.graph.document && self.graph.first_of_chain(at) == at;
        let sender = self.task_before(start_us).filter(|_| is_sent_by_page);
        let Some(sender) = sender.filter(|task| self.node(*task).end_us >= start_us) else {
            return need.map(|need| (need, None));
        };
        let has_ended = |need: &usize| self.node(*need).end_us <= self.node(sender).start_us;
        let need = self.last_ended([need.filter(has_ended), self.need(sender)]);
        Some((sender, Some(Waiter { start_us, need })))
    }

    /// Returns what ended an idle time of the main thread, after which this task is the first.
    fn before_idle(&self, at: usize, waiter: Waiter) -> Option<usize> {
        let node = self.node(at);
        let is_before = |(_, end_us): &(usize, f64)| *end_us <= node.start_us;
        let period = self.busy.partition_point(is_before);
        let busy = period.checked_sub(1).map(|period| self.busy[period]);
        let idle_since_us = busy.map_or(f64::NEG_INFINITY, |(_, end_us)| end_us);
        let is_earlier = |other: &usize| self.node(*other).start_us < node.start_us;
        let has_ended = |other: &usize| {
            let end_us = self.node(*other).end_us;
            is_earlier(other) && idle_since_us < end_us && end_us <= waiter.start_us
        };
        let known =
            self.last_ended([waiter.need, self.need(at)].map(|need| need.filter(has_ended)));
        let awaited = || {
            let requests = self.awaited.iter().copied().filter(has_ended);
            self.last_ended(requests.map(Some))
        };
        let needs = || node.needs.iter().copied().filter(is_earlier);
        let arriving = || needs().find(|need| self.node(*need).end_us > node.start_us);
        let timer = || needs().find(|need| self.node(*need).task().is_some());
        let previous = || self.last_ended([waiter.need, busy.map(|(task, _)| task)]);
        known
            .or_else(awaited)
            .or_else(arriving)
            .or_else(timer)
            .or_else(previous)
    }

    /// Returns what this node needs and ended last before it started. Layout, paint and scripts
    /// need the render-blocking requests.
    fn need(&self, at: usize) -> Option<usize> {
        let node = self.node(at);
        let waits_for_blocking = node.is_rendering()
            || node
                .task()
                .is_some_and(|task| !task.evaluated_urls.is_empty());
        let blocking = self.blocking.iter().filter(|_| waits_for_blocking);
        let has_ended = |need: &&usize| {
            let need = self.node(**need);
            // A request may be sent before the response that names it has ended.
            need.start_us < node.start_us && (need.end_us <= node.start_us || node.task().is_none())
        };
        let needs = node.needs.iter().chain(blocking).filter(has_ended);
        self.last_ended(needs.map(|need| Some(*need)))
    }

    fn last_ended(&self, nodes: impl IntoIterator<Item = Option<usize>>) -> Option<usize> {
        let end_us = |at: &usize| self.node(*at).end_us;
        nodes
            .into_iter()
            .flatten()
            .max_by(|a, b| end_us(a).total_cmp(&end_us(b)))
    }

    /// Returns the last task that started before this time.
    fn task_before(&self, us: f64) -> Option<usize> {
        let tasks = &self.tasks;
        let started = tasks.partition_point(|at| self.node(*at).start_us < us);
        started.checked_sub(1).map(|index| tasks[index])
    }
}

/// Returns the last task of each period in which the main thread was busy, with its end.
fn busy(graph: &Graph, tasks: &[usize]) -> Vec<(usize, f64)> {
    let follows =
        |a: &usize, b: &usize| graph.nodes[*b].start_us - graph.nodes[*a].end_us <= MAX_GAP_US;
    let periods = tasks.chunk_by(follows).filter_map(|period| {
        let (first, last) = (period.first()?, period.last()?);
        let end_us = graph.nodes[*last].end_us;
        (end_us - graph.nodes[*first].start_us >= MIN_BUSY_US).then_some((*last, end_us))
    });
    periods.collect()
}

fn is_awaited(node: &GraphNode) -> bool {
    node.request().is_some_and(|request| {
        let is_awaited = matches!(
            request.resource_type.as_str(),
            "Document" | "Stylesheet" | "Script" | "XHR" | "Fetch" | "Font"
        );
        is_awaited && request.url.starts_with("http")
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plumbline_trace::{Exchange, TaskDependencies};

    use super::*;
    use crate::replay::{NodeKind, RequestNode};

    /// Returns a node with times in milliseconds.
    fn node(start_ms: f64, end_ms: f64, kind: NodeKind, needs: &[usize]) -> GraphNode {
        GraphNode {
            start_us: start_ms * 1000.0,
            end_us: end_ms * 1000.0,
            kind,
            needs: needs.to_vec(),
            needed_by: Vec::new(),
        }
    }

    fn request(resource_type: &str, is_render_blocking: bool) -> NodeKind {
        NodeKind::Request(RequestNode {
            url: "https://a.test/".to_owned(),
            resource_type: resource_type.to_owned(),
            is_render_blocking,
            exchange: Arc::new(Exchange {
                priority: "VeryHigh".to_owned(),
                ..Exchange::default()
            }),
            ..RequestNode::default()
        })
    }

    fn task() -> NodeKind {
        NodeKind::Task(TaskDependencies::default())
    }

    fn layout() -> NodeKind {
        NodeKind::Task(TaskDependencies {
            has_layout: true,
            ..TaskDependencies::default()
        })
    }

    fn script() -> NodeKind {
        NodeKind::Task(TaskDependencies {
            evaluated_urls: vec!["https://a.test/a.js".to_owned()],
            ..TaskDependencies::default()
        })
    }

    /// Returns the path to a paint after 1000 ms on a page whose first node is the document, which
    /// arrives from 10 to 50 ms.
    fn path(nodes: Vec<GraphNode>, image: Option<usize>) -> Vec<usize> {
        let document = node(10.0, 50.0, request("Document", false), &[]);
        let nodes = std::iter::once(document).chain(nodes).collect();
        Chain::of(&Graph::with_nodes(nodes)).to_paint(1_000_000.0, image)
    }

    #[test]
    fn layout_waits_for_the_render_blocking_request_that_ended_last() {
        let nodes = vec![
            node(50.0, 60.0, task(), &[0]),
            node(55.0, 400.0, request("Stylesheet", true), &[0]),
            node(55.0, 600.0, request("Stylesheet", true), &[0]),
            node(55.0, 602.0, request("Image", false), &[0]),
            // A short task in between does not explain the time.
            node(601.0, 601.5, task(), &[0]),
            node(610.0, 700.0, layout(), &[0]),
            node(800.0, 850.0, script(), &[0]),
        ];
        assert_eq!(path(nodes, None), [0, 1, 3, 6]);
    }

    #[test]
    fn a_chain_of_style_sheets_is_followed_to_the_document() {
        let nodes = vec![
            node(50.0, 60.0, task(), &[0]),
            node(55.0, 200.0, request("Stylesheet", true), &[0]),
            node(201.0, 202.0, task(), &[2]),
            node(201.5, 400.0, request("Stylesheet", true), &[2]),
            node(401.0, 402.0, task(), &[4]),
            node(401.5, 600.0, request("Stylesheet", true), &[4]),
            node(610.0, 700.0, layout(), &[0]),
        ];
        assert_eq!(path(nodes, None), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn tasks_that_kept_the_main_thread_busy_follow_what_the_last_one_needs() {
        let nodes = vec![
            node(50.0, 60.0, request("Stylesheet", true), &[0]),
            node(55.0, 100.0, task(), &[0]),
            node(101.0, 200.0, script(), &[0]),
            node(55.0, 150.0, request("Stylesheet", true), &[0]),
            node(201.0, 300.0, task(), &[0]),
            node(301.0, 400.0, layout(), &[0]),
        ];
        assert_eq!(path(nodes, None), [0, 4, 3, 5, 6]);
    }

    #[test]
    fn the_first_task_after_an_idle_time_waits_for_the_response_that_ended_last() {
        let nodes = vec![
            node(50.0, 100.0, script(), &[0]),
            node(60.0, 500.0, request("Fetch", false), &[0]),
            node(60.0, 540.0, request("Image", false), &[0]),
            node(550.0, 600.0, task(), &[0]),
            node(601.0, 640.0, layout(), &[0]),
        ];
        assert_eq!(path(nodes, None), [0, 1, 2, 4, 5]);
    }

    #[test]
    fn a_response_that_ends_while_the_main_thread_is_busy_again_explains_the_idle_time() {
        let nodes = vec![
            node(50.0, 100.0, script(), &[0]),
            node(60.0, 510.0, request("Fetch", false), &[0]),
            // Later than what is painted.
            node(60.0, 620.0, request("Fetch", false), &[0]),
            node(500.0, 550.0, task(), &[0]),
            node(550.5, 600.0, task(), &[0]),
            node(600.5, 640.0, layout(), &[0]),
        ];
        assert_eq!(path(nodes, None), [0, 1, 2, 4, 5, 6]);
    }

    #[test]
    fn a_timer_waits_for_the_task_that_set_it() {
        let nodes = vec![
            node(50.0, 100.0, script(), &[0]),
            node(200.0, 210.0, task(), &[0]),
            node(550.0, 600.0, task(), &[1]),
            node(601.0, 640.0, layout(), &[0]),
        ];
        assert_eq!(path(nodes, None), [0, 1, 3, 4]);
    }

    #[test]
    fn a_paint_of_an_image_waits_for_its_request_and_that_for_the_task_that_sent_it() {
        let nodes = || {
            vec![
                node(50.0, 60.0, layout(), &[0]),
                node(400.0, 420.0, script(), &[0]),
                node(410.0, 800.0, request("Image", false), &[0]),
                node(820.0, 840.0, layout(), &[0]),
            ]
        };
        assert_eq!(path(nodes(), Some(3)), [0, 1, 2, 3, 4]);
        // Without a task after it, the image is the last on the path.
        let mut without_paint = nodes();
        without_paint.pop();
        assert_eq!(path(without_paint, Some(3)), [0, 1, 2, 3]);
    }

    #[test]
    fn tasks_on_a_part_of_the_document_wait_for_it() {
        let nodes = vec![
            node(30.0, 40.0, task(), &[0]),
            node(40.5, 60.0, layout(), &[0]),
        ];
        assert_eq!(path(nodes, None), [0, 1, 2]);
    }
}
