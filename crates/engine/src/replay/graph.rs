//! The dependency graph of requests and tasks.

use std::collections::HashMap;

use plumbline_trace::{TaskDependencies, Trace};

use super::builder::Builder;
use super::request::RequestNode;
use crate::facts::document;

pub(crate) struct Graph {
    pub(crate) nodes: Vec<GraphNode>,
    pub(crate) root: usize,
    pub(crate) document: usize,
    pub(super) by_id: HashMap<String, usize>,
}

pub(crate) struct GraphNode {
    pub(crate) start_us: f64,
    pub(crate) end_us: f64,
    pub(crate) kind: NodeKind,
    pub(crate) needs: Vec<usize>,
    pub(crate) needed_by: Vec<usize>,
}

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
}

impl Graph {
    /// Builds the graph of a load on a CPU with the slowdown `slowed_by`; returns `None` without a
    /// document.
    pub(crate) fn of(trace: &Trace, slowed_by: f64) -> Option<Self> {
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
        builder.link_tasks(trace, root, slowed_by);
        let mut graph = Self {
            nodes: builder.nodes,
            root,
            document,
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
