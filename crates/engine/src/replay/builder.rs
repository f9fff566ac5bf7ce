//! Builds the dependency graph from the initiators of requests and the tasks that ran scripts.

use std::collections::HashMap;

use plumbline_trace::{Dependency, Resource, TaskDependencies, Trace};

use super::graph::{GraphNode, NodeKind, first_of_chain};
use super::request::RequestNode;

/// The size that Lighthouse assumes for the response of a redirect.
const REDIRECT_BYTES: f64 = 400.0;
/// A script may start to run this long before its request has ended.
const EARLY_RUN_US: f64 = 100_000.0;
/// Shorter tasks do not affect the duration of a load, measured on a CPU without slowdown.
pub(super) const SIGNIFICANT_US: f64 = 10_000.0;

#[derive(Default)]
pub(super) struct Builder {
    pub(super) nodes: Vec<GraphNode>,
    pub(super) by_id: HashMap<String, usize>,
    by_url: HashMap<String, Vec<usize>>,
    /// The document of each frame; `None` if there were several.
    by_frame: HashMap<String, Option<usize>>,
}

impl Builder {
    pub(super) fn first_of_chain(&self, node: usize) -> usize {
        first_of_chain(&self.nodes, node)
    }

    pub(super) fn add(&mut self, at: usize, resource: &Resource) {
        let Some(last) = RequestNode::of(at, resource) else {
            return;
        };
        for redirect in &resource.redirects {
            let Some(redirected) = RequestNode::with_url(&redirect.url, &last) else {
                continue;
            };
            let end_us = redirect.start_us + redirect.dur_us;
            let request = RequestNode {
                is_redirect: true,
                network_us: redirect.start_us,
                headers_us: end_us,
                transfer_bytes: REDIRECT_BYTES,
                resource_type: String::new(),
                ..redirected
            };
            self.push(redirect.start_us, end_us, request);
        }
        let start_us = resource.start_us + resource.redirection_us;
        let node = self.push(start_us, resource.finish_us, last);
        self.by_id.insert(resource.id.clone(), node);
        if resource.traced_type() == "Document" {
            self.by_frame
                .entry(resource.frame_id().to_owned())
                .and_modify(|document| *document = None)
                .or_insert(Some(node));
        }
    }

    fn push(&mut self, start_us: f64, end_us: f64, request: RequestNode) -> usize {
        let node = self.nodes.len();
        self.by_url
            .entry(request.url.clone())
            .or_default()
            .push(node);
        self.nodes.push(GraphNode {
            start_us,
            end_us,
            kind: NodeKind::Request(request),
            needs: Vec::new(),
            needed_by: Vec::new(),
        });
        node
    }

    fn add_edge(&mut self, node: usize, need: usize) {
        if node != need && !self.nodes[node].needs.contains(&need) {
            self.nodes[node].needs.push(need);
            self.nodes[need].needed_by.push(node);
        }
    }

    fn may_need(&self, node: usize, need: usize) -> bool {
        self.nodes[need].start_us <= self.nodes[node].start_us
    }

    /// Returns whether an edge would create a cycle. A dependency starts first, so only nodes that
    /// start at the same time can depend on each other.
    fn would_cycle(&self, node: usize, need: usize) -> bool {
        if self.nodes[need].start_us < self.nodes[node].start_us {
            return false;
        }
        let mut open = vec![need];
        let mut visited = vec![false; self.nodes.len()];
        while let Some(at) = open.pop() {
            if at == node {
                return true;
            }
            if !std::mem::replace(&mut visited[at], true) {
                open.extend(&self.nodes[at].needs);
            }
        }
        false
    }

    pub(super) fn link_requests(&mut self, trace: &Trace, root: usize) {
        for node in 0..self.nodes.len() {
            let Some(request) = self.nodes[node].request() else {
                continue;
            };
            let resource = &trace.resources.all[request.resource];
            let before = (node > 0 && self.first_of_chain(node) != node).then(|| node - 1);
            let initiators = resource.initiators.as_slice();
            let direct = before
                .or_else(|| self.only_initiator(node, resource, initiators.first()?))
                .unwrap_or(root);
            let may_need_direct = self.may_need(node, direct) && !self.would_cycle(node, direct);
            for url in initiators {
                match self.by_url.get(url).map(Vec::as_slice) {
                    Some(&[only]) if self.may_need(node, only) && !self.would_cycle(node, only) => {
                        self.add_edge(node, only);
                    }
                    _ if may_need_direct => self.add_edge(node, direct),
                    _ => {}
                }
            }
            if initiators.is_empty() && may_need_direct {
                self.add_edge(node, direct);
            }
            if node != root && self.nodes[node].needs.is_empty() && self.may_need(node, root) {
                self.add_edge(node, root);
            }
            if let Some(before) = before {
                self.add_edge(node, before);
            }
        }
    }

    /// Returns the request of the initiator, if it is unambiguous.
    fn only_initiator(&self, node: usize, resource: &Resource, url: &str) -> Option<usize> {
        let start_us = self.nodes[node].start_us;
        let mut candidates: Vec<(usize, &RequestNode)> = self
            .by_url
            .get(url)?
            .iter()
            .filter_map(|at| Some((*at, self.nodes[*at].request()?)))
            .filter(|(at, request)| {
                request.headers_us <= start_us && !request.has_failed() && *at != node
            })
            .collect();
        narrow(&mut candidates, |request| request.resource_type != "Other");
        narrow(&mut candidates, |request| {
            request.exchange.frame == resource.frame
        });
        if resource.initiator_kind == "parser" {
            narrow(&mut candidates, |request| {
                request.resource_type == "Document"
            });
        }
        match candidates.as_slice() {
            [(only, _)] => Some(*only),
            _ => None,
        }
    }

    pub(super) fn link_tasks(&mut self, trace: &Trace, root: usize, min_task_us: f64) {
        let first = self.nodes.len();
        let mut timers: HashMap<&str, usize> = HashMap::new();
        for task in &trace.task_dependencies {
            let node = self.nodes.len();
            self.nodes.push(GraphNode {
                start_us: task.start_us,
                end_us: task.end_us,
                kind: NodeKind::Task(TaskDependencies {
                    dependencies: Vec::new(),
                    ..task.clone()
                }),
                needs: Vec::new(),
                needed_by: Vec::new(),
            });
            for dependency in &task.dependencies {
                match dependency {
                    Dependency::Frame(frame) => self.link_to_frame(node, frame),
                    Dependency::Url(url) => self.link_to_url(node, url),
                    Dependency::Requested(id) => self.link_sent_request(node, id),
                    Dependency::TimerSet(timer) => {
                        timers.insert(timer, node);
                    }
                    Dependency::TimerFired(timer) => {
                        if let Some(setter) = timers.get(timer.as_str())
                            && self.nodes[*setter].end_us <= task.start_us
                        {
                            self.add_edge(node, *setter);
                        }
                    }
                }
            }
            if self.nodes[node].needs.is_empty() && self.may_need(node, root) {
                self.add_edge(node, root);
            }
        }
        self.prune(first, min_task_us);
    }

    fn link_to_frame(&mut self, task: usize, frame: &str) {
        if let Some(Some(document)) = self.by_frame.get(frame)
            && self.nodes[*document].start_us < self.nodes[task].start_us
        {
            self.add_edge(task, *document);
        }
    }

    /// Links a task to the request of this URL that was the last to end before the task started.
    fn link_to_url(&mut self, task: usize, url: &str) {
        let start_us = self.nodes[task].start_us;
        let Some(candidates) = self.by_url.get(url) else {
            return;
        };
        if candidates
            .iter()
            .any(|at| start_us <= self.nodes[*at].start_us)
        {
            return;
        }
        let ago_us = |at: &usize| start_us - self.nodes[*at].end_us;
        let nearest = candidates
            .iter()
            .filter(|at| ago_us(at) >= -EARLY_RUN_US)
            .min_by(|a, b| ago_us(a).total_cmp(&ago_us(b)));
        if let Some(nearest) = nearest.copied() {
            self.add_edge(task, nearest);
        }
    }

    fn link_sent_request(&mut self, task: usize, id: &str) {
        let Some(request) = self.by_id.get(id).copied() else {
            return;
        };
        let is_linked = self.nodes[request].request().is_some_and(|request| {
            matches!(request.resource_type.as_str(), "XHR" | "Fetch" | "Script")
        });
        if is_linked && self.nodes[request].start_us > self.nodes[task].start_us {
            self.add_edge(request, task);
        }
    }

    /// Removes short tasks; their dependents then depend on their dependencies. The first layout,
    /// paint and parsing are kept, however short.
    fn prune(&mut self, first_task: usize, min_task_us: f64) {
        let mut is_removed = vec![false; self.nodes.len()];
        let mut has_occurred = [false; 3];
        for node in first_task..self.nodes.len() {
            let Some(task) = self.nodes[node].task() else {
                continue;
            };
            let mut is_first = false;
            for (occurred, is) in
                has_occurred
                    .iter_mut()
                    .zip([task.has_layout, task.has_paint, task.has_parsing])
            {
                is_first |= is && !*occurred;
                *occurred |= is;
            }
            if is_first || task.duration_us() >= min_task_us {
                continue;
            }
            self.nodes[node]
                .needed_by
                .retain(|other| !is_removed[*other]);
            if self.nodes[node].needs.len() == 1 || self.nodes[node].needed_by.len() <= 1 {
                is_removed[node] = true;
                self.remove(node);
            }
        }
        for node in &mut self.nodes {
            node.needed_by.retain(|other| !is_removed[*other]);
        }
    }

    /// Removes a task from the graph. Its dependencies still list it until all removals are done:
    /// most depend on the document, and searching the document's list for each would be slow.
    fn remove(&mut self, node: usize) {
        let needs = std::mem::take(&mut self.nodes[node].needs);
        let needed_by = std::mem::take(&mut self.nodes[node].needed_by);
        for waiting in needed_by {
            self.nodes[waiting].needs.retain(|other| *other != node);
            for need in &needs {
                self.add_edge(waiting, *need);
            }
        }
    }
}

/// Keeps only the candidates that match, unless there is just one or none would be left.
fn narrow(candidates: &mut Vec<(usize, &RequestNode)>, is_match: impl Fn(&RequestNode) -> bool) {
    if candidates.len() > 1 && candidates.iter().any(|(_, request)| is_match(request)) {
        candidates.retain(|(_, request)| is_match(request));
    }
}
