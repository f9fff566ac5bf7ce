//! Requests and tasks, and which of them waited for which.

use std::collections::HashMap;

use plumbline_trace::{Resource, Tie, Trace, Turn};
use url::Url;

use crate::facts::document;

pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: usize,
    pub(crate) document: usize,
    by_id: HashMap<String, usize>,
}

pub(crate) struct Node {
    pub(crate) start_us: f64,
    pub(crate) end_us: f64,
    pub(crate) kind: Kind,
    pub(crate) needs: Vec<usize>,
    pub(crate) needed_by: Vec<usize>,
}

pub(crate) enum Kind {
    Request(Request),
    Task(Turn),
}

/// One request; a redirected one is as many as there were answers.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Its place among the trace's resources.
    pub(crate) resource: usize,
    pub(crate) url: String,
    pub(crate) origin: String,
    pub(crate) host: String,
    pub(crate) is_tls: bool,
    pub(crate) is_h2: bool,
    /// Needs no connection: a cache or the page itself has it.
    pub(crate) is_local: bool,
    pub(crate) is_disk_cached: bool,
    pub(crate) is_redirect: bool,
    /// When the network stack began with it.
    pub(crate) network_us: f64,
    pub(crate) headers_us: f64,
    pub(crate) transfer_bytes: f64,
    pub(crate) decoded_bytes: f64,
    pub(crate) priority: String,
    pub(crate) resource_type: String,
    pub(crate) is_by_script: bool,
}

/// What Lighthouse takes a redirect's answer to weigh.
const REDIRECT_BYTES: f64 = 400.0;
/// A script may begin to run so long before its request has ended.
const EARLY_RUN_US: f64 = 100_000.0;
/// Shorter tasks do not change how long a load takes.
const SIGNIFICANT_US: f64 = 10_000.0;

impl Node {
    pub(crate) fn request(&self) -> Option<&Request> {
        match &self.kind {
            Kind::Request(request) => Some(request),
            Kind::Task(_) => None,
        }
    }

    pub(crate) fn task(&self) -> Option<&Turn> {
        match &self.kind {
            Kind::Request(_) => None,
            Kind::Task(task) => Some(task),
        }
    }
}

impl Graph {
    /// None where there is no document.
    pub(crate) fn of(trace: &Trace) -> Option<Self> {
        let document_id = &document(trace).ok()?.id;
        let origin_us = trace.navigation.time_origin_us;
        let mut builder = Builder::default();
        for (at, resource) in trace.resources.all.iter().enumerate() {
            // What a worker asks for names no frame, and the page does not wait for it; films go on for ever.
            let is_of_page = resource.end_us >= origin_us
                && !resource.frame.is_empty()
                && !resource.mime_type.starts_with("video");
            if is_of_page || resource.id == *document_id {
                builder.add(at, resource);
            }
        }
        let document = *builder.by_id.get(document_id)?;
        let root = builder.first_of_chain(document);
        builder.link_requests(trace, root);
        builder.link_tasks(trace, root);
        let mut graph = Self {
            nodes: builder.nodes,
            root,
            document,
            by_id: builder.by_id,
        };
        graph.drop_unreachable();
        Some(graph)
    }

    pub(crate) fn by_id(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Where a chain of redirects began; the node itself where there was none.
    pub(crate) fn first_of_chain(&self, node: usize) -> usize {
        first_of_chain(&self.nodes, node)
    }

    /// Marks the node and all that wait for it, among those that are `within`.
    pub(crate) fn mark_dependents(&self, node: usize, within: &[bool], marked: &mut [bool]) {
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            if within[at] && !std::mem::replace(&mut marked[at], true) {
                open.extend(&self.nodes[at].needed_by);
            }
        }
    }

    /// What began before the document is no part of its load.
    fn drop_unreachable(&mut self) {
        let all = vec![true; self.nodes.len()];
        let mut reached = vec![false; self.nodes.len()];
        self.mark_dependents(self.root, &all, &mut reached);
        for (at, node) in self.nodes.iter_mut().enumerate() {
            match reached[at] {
                true => node.needs.retain(|need| reached[*need]),
                false => {
                    node.needs.clear();
                    node.needed_by.clear();
                }
            }
        }
    }
}

fn first_of_chain(nodes: &[Node], node: usize) -> usize {
    let resource = nodes[node].request().map(|request| request.resource);
    let mut at = node;
    // A chain's requests stand one after the other.
    while at > 0
        && nodes[at - 1]
            .request()
            .is_some_and(|before| before.is_redirect && Some(before.resource) == resource)
    {
        at -= 1;
    }
    at
}

#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    by_id: HashMap<String, usize>,
    by_url: HashMap<String, Vec<usize>>,
    /// The document of a frame; none where there were two.
    by_frame: HashMap<String, Option<usize>>,
}

impl Builder {
    fn first_of_chain(&self, node: usize) -> usize {
        first_of_chain(&self.nodes, node)
    }

    fn add(&mut self, at: usize, resource: &Resource) {
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

    fn link_requests(&mut self, trace: &Trace, root: usize) {
        for node in 0..self.nodes.len() {
            let Some(request) = self.nodes[node].request() else {
                continue;
            };
            let resource = &trace.resources.all[request.resource];
            let before = (node > 0 && self.first_of_chain(node) != node).then(|| node - 1);
            let initiators = initiators(resource);
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
            .filter(|(at, request)| request.headers_us <= start_us && *at != node)
            .collect();
        narrow(&mut candidates, |request| request.resource_type != "Other");
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

    fn link_tasks(&mut self, trace: &Trace, root: usize) {
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
        self.prune(first);
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
    fn prune(&mut self, first_task: usize) {
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
            let is_simple =
                self.nodes[node].needs.len() == 1 || self.nodes[node].needed_by.len() <= 1;
            if !is_first && task.duration_us() < SIGNIFICANT_US && is_simple {
                self.remove(node);
            }
        }
    }

    fn remove(&mut self, node: usize) {
        let needs = std::mem::take(&mut self.nodes[node].needs);
        let needed_by = std::mem::take(&mut self.nodes[node].needed_by);
        for need in &needs {
            self.nodes[*need].needed_by.retain(|other| *other != node);
        }
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

/// Who asked: a document or style sheet by name, or every script on the stack.
fn initiators(resource: &Resource) -> &[String] {
    match resource.initiator_kind.as_str() {
        "script" => &resource.stack_urls,
        _ if resource.initiator_url.is_empty() => &[],
        _ => std::slice::from_ref(&resource.initiator_url),
    }
}

impl Request {
    fn of(at: usize, resource: &Resource) -> Option<Self> {
        let url = Url::parse(&resource.url).ok()?;
        let headers_us = resource.timing.map_or(resource.start_us, |timing| {
            timing.request_time_s * 1e6 + timing.receive_headers_end_ms * 1e3
        });
        Some(Self {
            resource: at,
            url: resource.url.clone(),
            origin: url.origin().ascii_serialization(),
            host: url.host_str().unwrap_or_default().to_owned(),
            is_tls: matches!(url.scheme(), "https" | "wss"),
            is_h2: resource.protocol == "h2",
            is_local: resource.is_disk_cached || !matches!(url.scheme(), "http" | "https"),
            is_disk_cached: resource.is_disk_cached,
            is_redirect: false,
            network_us: resource
                .timing
                .map_or(headers_us, |timing| timing.request_time_s * 1e6),
            headers_us,
            transfer_bytes: resource.transfer_bytes,
            decoded_bytes: resource.decoded_bytes,
            priority: resource.priority.clone(),
            resource_type: resource.resource_type.clone(),
            is_by_script: resource.initiator_kind == "script",
        })
    }

    /// Another address of the same chain.
    fn named(url: &str, last: &Self) -> Option<Self> {
        let parsed = Url::parse(url).ok()?;
        Some(Self {
            url: url.to_owned(),
            origin: parsed.origin().ascii_serialization(),
            host: parsed.host_str().unwrap_or_default().to_owned(),
            is_tls: matches!(parsed.scheme(), "https" | "wss"),
            ..last.clone()
        })
    }
}
