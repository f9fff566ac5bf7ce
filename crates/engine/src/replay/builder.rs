//! How the graph is made: who asked for what, and which task ran what.

use std::collections::HashMap;

use plumbline_trace::{Resource, Tie, Trace, Turn};

use super::graph::{Kind, Node, first_of_chain};
use super::request::Request;

/// What Lighthouse takes a redirect's answer to weigh.
const REDIRECT_BYTES: f64 = 400.0;
/// A script may begin to run so long before its request has ended.
const EARLY_RUN_US: f64 = 100_000.0;
/// Shorter tasks do not change how long a load takes; on a processor that is not slowed down.
const SIGNIFICANT_US: f64 = 10_000.0;

#[derive(Default)]
pub(super) struct Builder {
    pub(super) nodes: Vec<Node>,
    pub(super) by_id: HashMap<String, usize>,
    by_url: HashMap<String, Vec<usize>>,
    /// The document of a frame; none where there were two.
    by_frame: HashMap<String, Option<usize>>,
}

impl Builder {
    pub(super) fn first_of_chain(&self, node: usize) -> usize {
        first_of_chain(&self.nodes, node)
    }

    pub(super) fn add(&mut self, at: usize, resource: &Resource) {
        let Some(last) = Request::of(at, resource) else {
            return;
        };
        for redirect in &resource.redirects {
            let Some(named) = Request::named(&redirect.url, &last) else {
                continue;
            };
            let end_us = redirect.start_us + redirect.dur_us;
            let request = Request {
                is_redirect: true,
                network_us: redirect.start_us,
                headers_us: end_us,
                transfer_bytes: REDIRECT_BYTES,
                resource_type: String::new(),
                ..named
            };
            self.push(redirect.start_us, end_us, request);
        }
        let start_us = resource.start_us + resource.redirection_us;
        let node = self.push(start_us, resource.finish_us, last);
        self.by_id.insert(resource.id.clone(), node);
        if resource.resource_type == "Document" {
            self.by_frame
                .entry(resource.frame.clone())
                .and_modify(|known| *known = None)
                .or_insert(Some(node));
        }
    }

    fn push(&mut self, start_us: f64, end_us: f64, request: Request) -> usize {
        let node = self.nodes.len();
        self.by_url
            .entry(request.url.clone())
            .or_default()
            .push(node);
        self.nodes.push(Node {
            start_us,
            end_us,
            kind: Kind::Request(request),
            needs: Vec::new(),
            needed_by: Vec::new(),
        });
        node
    }

    fn tie(&mut self, node: usize, need: usize) {
        if node != need && !self.nodes[node].needs.contains(&need) {
            self.nodes[node].needs.push(need);
            self.nodes[need].needed_by.push(node);
        }
    }

    fn may_need(&self, node: usize, need: usize) -> bool {
        self.nodes[need].start_us <= self.nodes[node].start_us
    }

    /// What is needed begins first, so that only what began at the same time can wait for each other.
    fn would_circle(&self, node: usize, need: usize) -> bool {
        if self.nodes[need].start_us < self.nodes[node].start_us {
            return false;
        }
        let mut open = vec![need];
        let mut seen = vec![false; self.nodes.len()];
        while let Some(at) = open.pop() {
            if at == node {
                return true;
            }
            if !std::mem::replace(&mut seen[at], true) {
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
            let initiators = resource.asked_by.as_slice();
            let direct = before
                .or_else(|| self.only_initiator(node, resource, initiators.first()?))
                .unwrap_or(root);
            let may_need_direct = self.may_need(node, direct) && !self.would_circle(node, direct);
            for url in initiators {
                match self.by_url.get(url).map(Vec::as_slice) {
                    Some(&[only])
                        if self.may_need(node, only) && !self.would_circle(node, only) =>
                    {
                        self.tie(node, only);
                    }
                    _ if may_need_direct => self.tie(node, direct),
                    _ => {}
                }
            }
            if initiators.is_empty() && may_need_direct {
                self.tie(node, direct);
            }
            if node != root && self.nodes[node].needs.is_empty() && self.may_need(node, root) {
                self.tie(node, root);
            }
            if let Some(before) = before {
                self.tie(node, before);
            }
        }
    }

    /// The request that brought what asked, where it is certain which.
    fn only_initiator(&self, node: usize, asked: &Resource, url: &str) -> Option<usize> {
        let start_us = self.nodes[node].start_us;
        let mut candidates: Vec<(usize, &Request)> = self
            .by_url
            .get(url)?
            .iter()
            .filter_map(|at| Some((*at, self.nodes[*at].request()?)))
            .filter(|(at, request)| {
                request.headers_us <= start_us && !request.has_failed && *at != node
            })
            .collect();
        narrow(&mut candidates, |request| request.resource_type != "Other");
        narrow(&mut candidates, |request| request.frame == asked.frame);
        if asked.initiator_kind == "parser" {
            narrow(&mut candidates, |request| {
                request.resource_type == "Document"
            });
        }
        match candidates.as_slice() {
            [(only, _)] => Some(*only),
            _ => None,
        }
    }

    pub(super) fn link_tasks(&mut self, trace: &Trace, root: usize, slowed_by: f64) {
        let first = self.nodes.len();
        let mut timers: HashMap<&str, usize> = HashMap::new();
        for turn in &trace.turns {
            let node = self.nodes.len();
            self.nodes.push(Node {
                start_us: turn.start_us,
                end_us: turn.end_us,
                kind: Kind::Task(Turn {
                    ties: Vec::new(),
                    ..turn.clone()
                }),
                needs: Vec::new(),
                needed_by: Vec::new(),
            });
            for tie in &turn.ties {
                match tie {
                    Tie::Frame(frame) => self.tie_to_frame(node, frame),
                    Tie::Url(url) => self.tie_to_url(node, url),
                    Tie::Asked(id) => self.tie_asked(node, id),
                    Tie::TimerSet(timer) => {
                        timers.insert(timer, node);
                    }
                    Tie::TimerFired(timer) => {
                        if let Some(setter) = timers.get(timer.as_str())
                            && self.nodes[*setter].end_us <= turn.start_us
                        {
                            self.tie(node, *setter);
                        }
                    }
                }
            }
            if self.nodes[node].needs.is_empty() && self.may_need(node, root) {
                self.tie(node, root);
            }
        }
        self.prune(first, SIGNIFICANT_US * slowed_by);
    }

    fn tie_to_frame(&mut self, task: usize, frame: &str) {
        if let Some(Some(document)) = self.by_frame.get(frame)
            && self.nodes[*document].start_us < self.nodes[task].start_us
        {
            self.tie(task, *document);
        }
    }

    /// To the request of this address that had ended last when the task began.
    fn tie_to_url(&mut self, task: usize, url: &str) {
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
            self.tie(task, nearest);
        }
    }

    fn tie_asked(&mut self, task: usize, id: &str) {
        let Some(asked) = self.by_id.get(id).copied() else {
            return;
        };
        let is_linked = self.nodes[asked].request().is_some_and(|request| {
            matches!(request.resource_type.as_str(), "XHR" | "Fetch" | "Script")
        });
        if is_linked && self.nodes[asked].start_us > self.nodes[task].start_us {
            self.tie(asked, task);
        }
    }

    /// Short tasks go, what waited for them waits for what they waited for. The first layout, paint and parsing stay,
    /// however short.
    fn prune(&mut self, first_task: usize, significant_us: f64) {
        let mut is_gone = vec![false; self.nodes.len()];
        let mut has_been = [false; 3];
        for node in first_task..self.nodes.len() {
            let Some(task) = self.nodes[node].task() else {
                continue;
            };
            let mut is_first = false;
            for (been, is) in
                has_been
                    .iter_mut()
                    .zip([task.has_layout, task.has_paint, task.has_parsing])
            {
                is_first |= is && !*been;
                *been |= is;
            }
            if is_first || task.duration_us() >= significant_us {
                continue;
            }
            self.nodes[node].needed_by.retain(|other| !is_gone[*other]);
            if self.nodes[node].needs.len() == 1 || self.nodes[node].needed_by.len() <= 1 {
                is_gone[node] = true;
                self.remove(node);
            }
        }
        for node in &mut self.nodes {
            node.needed_by.retain(|other| !is_gone[*other]);
        }
    }

    /// What it needed keeps its name until all are gone: most need the document, and to look through its list for each
    /// would take long.
    fn remove(&mut self, node: usize) {
        let needs = std::mem::take(&mut self.nodes[node].needs);
        let needed_by = std::mem::take(&mut self.nodes[node].needed_by);
        for waiting in needed_by {
            self.nodes[waiting].needs.retain(|other| *other != node);
            for need in &needs {
                self.tie(waiting, *need);
            }
        }
    }
}

/// Keeps what is wanted, where there is a choice and something is left of it.
fn narrow(candidates: &mut Vec<(usize, &Request)>, is_wanted: impl Fn(&Request) -> bool) {
    if candidates.len() > 1 && candidates.iter().any(|(_, request)| is_wanted(request)) {
        candidates.retain(|(_, request)| is_wanted(request));
    }
}
