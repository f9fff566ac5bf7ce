//! The dependency graph of requests and tasks.

use std::collections::HashMap;

use plumbline_trace::{TaskDependencies, Trace};

use super::builder::{Builder, SIGNIFICANT_US};
use super::request::RequestNode;
use crate::facts::document;

#[derive(Clone)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<GraphNode>,
    pub(crate) root: usize,
    pub(crate) document: usize,
    /// The task that makes the response of the document a page, if it has been added.
    pub(super) commit: Option<usize>,
    pub(super) by_id: HashMap<String, usize>,
}

#[derive(Clone)]
pub(crate) struct GraphNode {
    pub(crate) start_us: f64,
    pub(crate) end_us: f64,
    pub(crate) kind: NodeKind,
    pub(crate) needs: Vec<usize>,
    pub(crate) needed_by: Vec<usize>,
}

#[derive(Clone)]
pub(crate) enum NodeKind {
    Request(RequestNode),
    Task(TaskDependencies),
}

impl GraphNode {
    pub(crate) fn request(&self) -> Option<&RequestNode> {
        match &self.kind {
            NodeKind::Request(request) => Some(request),
            NodeKind::Task(_) => None,
        }
    }

    pub(crate) fn task(&self) -> Option<&TaskDependencies> {
        match &self.kind {
            NodeKind::Request(_) => None,
            NodeKind::Task(task) => Some(task),
        }
    }

    /// Returns whether this is a task that lays out or paints.
    pub(crate) fn is_rendering(&self) -> bool {
        self.task()
            .is_some_and(|task| task.has_layout || task.has_paint)
    }
}

impl Graph {
    /// Builds the graph of a load on a CPU with the slowdown `slowed_by`, without tasks that are
    /// too short to affect its duration; returns `None` without a document.
    pub(crate) fn of(trace: &Trace, slowed_by: f64) -> Option<Self> {
        Self::with_tasks_from(trace, SIGNIFICANT_US * slowed_by)
    }

    /// Builds the graph of a load with all its tasks; returns `None` without a document.
    pub(crate) fn with_short_tasks(trace: &Trace) -> Option<Self> {
        Self::with_tasks_from(trace, 0.0)
    }

    fn with_tasks_from(trace: &Trace, min_task_us: f64) -> Option<Self> {
        let document_id = &document(trace).ok()?.id;
        let origin_us = trace.navigation.time_origin_us;
        let mut builder = Builder::default();
        for (at, resource) in trace.resources.all.iter().enumerate() {
            // Requests of workers have no frame, and the page does not wait for them; videos may
            // load without end.
            let is_of_page = resource.notified_us >= origin_us
                && resource.frame.is_some()
                && !resource.mime_type().starts_with("video");
            if is_of_page || resource.id == *document_id {
                builder.add(at, resource);
            }
        }
        let document = *builder.by_id.get(document_id)?;
        let root = builder.first_of_chain(document);
        builder.link_requests(trace, root);
        builder.link_tasks(trace, root, min_task_us);
        let mut graph = Self {
            nodes: builder.nodes,
            root,
            document,
            commit: None,
            by_id: builder.by_id,
        };
        graph.drop_unreachable();
        Some(graph)
    }

    /// Returns a graph whose first node is the document.
    #[cfg(test)]
    pub(crate) fn with_nodes(nodes: Vec<GraphNode>) -> Self {
        Self {
            nodes,
            root: 0,
            document: 0,
            commit: None,
            by_id: HashMap::new(),
        }
    }

    pub(crate) fn by_id(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Returns the first request of a redirect chain, or the node itself without redirects.
    pub(crate) fn first_of_chain(&self, node: usize) -> usize {
        first_of_chain(&self.nodes, node)
    }

    /// Marks the node and all its dependents among the nodes that are `within`.
    pub(crate) fn mark_dependents(&self, node: usize, within: &[bool], marked: &mut [bool]) {
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            if within[at] && !std::mem::replace(&mut marked[at], true) {
                open.extend(&self.nodes[at].needed_by);
            }
        }
    }

    /// Returns the render-blocking requests.
    pub(crate) fn blocking_requests(&self) -> Vec<usize> {
        let is_blocking = |node: &GraphNode| {
            let request = node.request().filter(|_| !node.needs.is_empty());
            request.is_some_and(RequestNode::blocks_rendering)
        };
        let nodes = self.nodes.iter().enumerate();
        let blocking = nodes.filter(|(_, node)| is_blocking(node));
        blocking.map(|(at, _)| at).collect()
    }

    /// Makes the tasks that lay out or paint wait for the render-blocking requests that ended
    /// before them.
    pub(super) fn render_after_blocking_requests(&mut self) {
        let blocking = self.blocking_requests();
        for at in 0..self.nodes.len() {
            let is_rendering = self.nodes[at].is_rendering();
            if !is_rendering || self.nodes[at].needs.is_empty() {
                continue;
            }
            for need in &blocking {
                let has_ended = self.nodes[*need].end_us <= self.nodes[at].start_us;
                if has_ended && !self.nodes[at].needs.contains(need) {
                    self.nodes[at].needs.push(*need);
                    self.nodes[*need].needed_by.push(at);
                }
            }
        }
    }

    /// Makes the tasks that lay out or paint independent of scripts that do not block rendering:
    /// what the server sent is painted without them.
    pub(super) fn render_before_other_scripts(&mut self) {
        let is_other_script = |node: &GraphNode| {
            let request = node.request();
            request.is_some_and(|it| it.resource_type == "Script" && !it.blocks_rendering())
        };
        let others: Vec<bool> = self.nodes.iter().map(is_other_script).collect();
        for at in 0..self.nodes.len() {
            let is_rendering = self.nodes[at].is_rendering();
            let mut needs = self.nodes[at].needs.clone();
            needs.retain(|need| !others[*need]);
            if !is_rendering || needs.len() == self.nodes[at].needs.len() {
                continue;
            }
            if needs.is_empty() {
                let start = self.commit.unwrap_or(self.document);
                self.nodes[start].needed_by.push(at);
                needs.push(start);
            }
            for need in std::mem::replace(&mut self.nodes[at].needs, needs) {
                if others[need] {
                    self.nodes[need].needed_by.retain(|other| *other != at);
                }
            }
        }
    }

    /// Returns the time at which the last of these nodes ended.
    pub(super) fn end_us(&self, nodes: &[bool]) -> f64 {
        let nodes = self.nodes.iter().zip(nodes);
        let ends = nodes.filter_map(|(node, is_in)| is_in.then_some(node.end_us));
        ends.fold(0.0, f64::max)
    }

    /// Returns the time from the start of the first of these nodes to the end of the last.
    pub(super) fn span_us(&self, nodes: &[bool]) -> f64 {
        let members = self.nodes.iter().zip(nodes).filter(|(_, is_in)| **is_in);
        let starts = members.clone().map(|(node, _)| node.start_us);
        let first_us = starts.fold(f64::INFINITY, f64::min);
        (self.end_us(nodes) - first_us).max(0.0)
    }

    /// Returns the total duration of the tasks among these nodes that lay out or paint.
    pub(super) fn rendering_us(&self, nodes: &[bool]) -> f64 {
        let nodes = self.nodes.iter().zip(nodes);
        let rendering = nodes
            .filter(|(node, is_in)| **is_in && node.is_rendering())
            .map(|(node, _)| node.end_us - node.start_us);
        rendering.sum()
    }

    /// Returns the time at which everything among these nodes had ended that precedes layout. The
    /// first part of the document suffices, from which the browser begins to make the page.
    pub(super) fn rendering_start_us(&self, nodes: &[bool]) -> f64 {
        let mut before: Vec<bool> = nodes.to_vec();
        for (is_in, node) in before.iter_mut().zip(&self.nodes) {
            *is_in &= !node.is_rendering();
        }
        let document = &self.nodes[self.document];
        let starts = document.needed_by.iter().map(|at| self.nodes[*at].start_us);
        let first_us = starts.fold(document.end_us, f64::min);
        before[self.document] = false;
        self.end_us(&before).max(first_us)
    }

    /// Makes what needs the document start as long before or after its end as it did in the load:
    /// the browser takes time to make a response a page, and begins when the first part of it is
    /// there. Both are the same in any load.
    pub(super) fn start_page_as_observed(&mut self) {
        let end_us = self.nodes[self.document].end_us;
        let needed_by = &self.nodes[self.document].needed_by;
        let starts = needed_by.iter().map(|at| self.nodes[*at].start_us);
        let Some(first_us) = starts.min_by(f64::total_cmp) else {
            return;
        };
        if first_us > end_us {
            self.commit_document(first_us);
        } else if let NodeKind::Request(document) = &mut self.nodes[self.document].kind {
            let part = (first_us - document.headers_us) / (end_us - document.headers_us);
            if part.is_finite() {
                document.transfer_bytes *= part.clamp(0.0, 1.0);
            }
        }
    }

    /// Adds a task from the end of the document to this time, for which everything waits that needs
    /// the document.
    fn commit_document(&mut self, until_us: f64) {
        let commit = self.nodes.len();
        let document = &mut self.nodes[self.document];
        let start_us = document.end_us;
        let needed_by = std::mem::replace(&mut document.needed_by, vec![commit]);
        for at in &needed_by {
            let needs = &mut self.nodes[*at].needs;
            let need = needs.iter_mut().find(|need| **need == self.document);
            need.into_iter().for_each(|need| *need = commit);
        }
        self.nodes.push(GraphNode {
            start_us,
            end_us: until_us,
            kind: NodeKind::Task(TaskDependencies {
                start_us,
                end_us: until_us,
                ..TaskDependencies::default()
            }),
            needs: vec![self.document],
            needed_by,
        });
        self.commit = Some(commit);
    }

    /// Marks the nodes that need, besides the document, nothing but marked nodes. The page is laid
    /// out and painted nevertheless.
    pub(super) fn mark_those_that_need_only(&self, marked: &mut [bool]) {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        // A dependency starts first.
        order.sort_by(|a, b| self.nodes[*a].start_us.total_cmp(&self.nodes[*b].start_us));
        for at in order {
            let needs = &self.nodes[at].needs;
            let mut others = needs
                .iter()
                .filter(|need| **need != self.document && Some(**need) != self.commit)
                .peekable();
            let is_rendering = self.nodes[at].is_rendering();
            if !is_rendering && others.peek().is_some() && others.all(|need| marked[*need]) {
                marked[at] = true;
            }
        }
    }

    /// Removes the edges of nodes that do not depend on the root: they started before the document.
    fn drop_unreachable(&mut self) {
        let all = vec![true; self.nodes.len()];
        let mut is_reached = vec![false; self.nodes.len()];
        self.mark_dependents(self.root, &all, &mut is_reached);
        for (at, node) in self.nodes.iter_mut().enumerate() {
            if is_reached[at] {
                node.needs.retain(|need| is_reached[*need]);
            } else {
                node.needs.clear();
                node.needed_by.clear();
            }
        }
    }
}

pub(super) fn first_of_chain(nodes: &[GraphNode], node: usize) -> usize {
    let resource = nodes[node].request().map(|request| request.resource);
    let mut at = node;
    // The requests of a chain are consecutive.
    while at > 0
        && nodes[at - 1]
            .request()
            .is_some_and(|before| before.is_redirect && Some(before.resource) == resource)
    {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plumbline_trace::Exchange;

    use super::*;

    fn node(start_us: f64, kind: NodeKind, needs: Vec<usize>) -> GraphNode {
        GraphNode {
            start_us,
            end_us: start_us + 1.0,
            kind,
            needs,
            needed_by: Vec::new(),
        }
    }

    fn request(priority: &str, is_render_blocking: bool) -> NodeKind {
        NodeKind::Request(RequestNode {
            is_render_blocking,
            exchange: Arc::new(Exchange {
                priority: priority.to_owned(),
                ..Exchange::default()
            }),
            ..RequestNode::default()
        })
    }

    fn task(has_layout: bool) -> NodeKind {
        NodeKind::Task(TaskDependencies {
            has_layout,
            ..TaskDependencies::default()
        })
    }

    /// A document, a style sheet, an image, the first layout, a task that parsed the style sheet,
    /// and a style sheet that came after the layout.
    fn page() -> Graph {
        Graph::with_nodes(vec![
            node(0.0, request("VeryHigh", false), Vec::new()),
            node(10.0, request("VeryHigh", true), vec![0]),
            node(10.0, request("Low", false), vec![0]),
            node(20.0, task(true), vec![0]),
            node(20.0, task(false), vec![0, 1]),
            node(30.0, request("VeryHigh", true), vec![0]),
        ])
    }

    #[test]
    fn pages_are_laid_out_after_the_requests_that_block_rendering() {
        let mut graph = page();
        graph.render_after_blocking_requests();
        assert_eq!(graph.nodes[3].needs, [0, 1]);
        assert_eq!(graph.nodes[1].needed_by, [3]);
    }

    #[test]
    fn pages_are_laid_out_before_scripts_that_do_not_block_rendering() {
        let script = |is_blocking: bool| {
            let mut kind = request("High", is_blocking);
            if let NodeKind::Request(request) = &mut kind {
                request.resource_type = "Script".to_owned();
            }
            kind
        };
        let mut graph = Graph::with_nodes(vec![
            node(0.0, request("VeryHigh", false), Vec::new()),
            node(10.0, script(true), vec![0]),
            node(10.0, script(false), vec![0]),
            node(20.0, task(true), vec![1, 2]),
            node(30.0, task(true), vec![2]),
            node(40.0, task(false), vec![2]),
        ]);
        graph.nodes[2].needed_by = vec![3, 4, 5];
        graph.render_before_other_scripts();
        let needs: Vec<_> = graph.nodes[3..].iter().map(|it| &it.needs[..]).collect();
        assert_eq!(needs, [&[1][..], &[0], &[2]]);
        assert_eq!(graph.nodes[2].needed_by, [5]);
        assert_eq!(graph.nodes[0].needed_by, [4]);
    }

    #[test]
    fn what_only_needs_deferred_nodes_is_deferred_except_layout() {
        let mut graph = page();
        graph.render_after_blocking_requests();
        let mut deferred = [false, true, false, false, false, false];
        graph.mark_those_that_need_only(&mut deferred);
        assert_eq!(deferred, [false, true, false, false, true, false]);
    }

    /// Returns the page with a first node that needs the document from this time on. The document
    /// ends at 5, with 1000 bytes after its headers at 1.
    fn page_that_starts_at(start_us: f64) -> Graph {
        let mut graph = page();
        graph.nodes[0].end_us = 5.0;
        graph.nodes[0].needed_by = vec![1, 2];
        graph.nodes[1].start_us = start_us;
        let NodeKind::Request(document) = &mut graph.nodes[0].kind else {
            panic!("a document is a request");
        };
        (document.headers_us, document.transfer_bytes) = (1.0, 1000.0);
        graph.start_page_as_observed();
        graph
    }

    #[test]
    fn the_time_from_the_response_to_the_page_is_a_task() {
        let graph = page_that_starts_at(8.0);
        let commit = graph.nodes.len() - 1;
        assert_eq!(graph.nodes[commit].task().unwrap().duration_us(), 3.0);
        assert_eq!(graph.nodes[commit].needed_by, [1, 2]);
        assert_eq!(
            (&graph.nodes[1].needs[..], &graph.nodes[0].needed_by[..]),
            (&[commit][..], &[commit][..])
        );
        let mut deferred = vec![false; graph.nodes.len()];
        deferred[1] = true;
        graph.mark_those_that_need_only(&mut deferred);
        assert!(!deferred[commit] && !deferred[2]);
    }

    #[test]
    fn layout_and_paint_begin_after_everything_else_and_the_first_part_of_the_document() {
        // Each node ends 1 after its start, the document at 5.
        let mut graph = page_that_starts_at(2.0);
        let without_sheet = [true, false, false, true, false, false];
        assert_eq!(graph.rendering_start_us(&without_sheet), 2.0);
        assert_eq!(graph.rendering_us(&without_sheet), 1.0);
        let with_sheet = [true, true, false, true, true, false];
        assert_eq!(graph.rendering_start_us(&with_sheet), 21.0);
        graph.nodes[4].kind = task(true);
        assert_eq!(graph.rendering_start_us(&with_sheet), 11.0);
        assert_eq!(graph.rendering_us(&with_sheet), 2.0);
    }

    #[test]
    fn nodes_span_the_time_from_their_first_start_to_their_last_end() {
        let span_us = |nodes: [bool; 6]| page().span_us(&nodes);
        assert_eq!(span_us([false, true, false, true, false, false]), 11.0);
        assert_eq!(span_us([false; 6]), 0.0);
    }

    #[test]
    fn a_page_that_starts_before_the_end_of_its_document_needs_a_part_of_it() {
        let graph = page_that_starts_at(2.0);
        assert_eq!(graph.nodes.len(), page().nodes.len());
        assert_eq!(graph.nodes[0].request().unwrap().transfer_bytes, 250.0);
    }
}
