use std::collections::{HashMap, VecDeque};

use plumbline_model::check::{Cell, Details, Findings, Row, Unit};
use plumbline_model::report::Conditions;
use plumbline_trace::{Resource, Trace};
use url::Url;

use super::format_duration;
use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, document, is_render_blocking, loaded};
use crate::replay::{Graph, Replay};

check! {
    /// # What
    /// Critical requests start as soon as the document is parsed, not only after other requests
    /// have finished.
    ///
    /// # Why
    /// In a chain each request can start only when the one before it has arrived, which adds a
    /// round trip per level.
    ///
    /// # Scored
    /// Does not affect the score. Fails when a critical request depends on the document; the tree
    /// shows the chains. Also lists preconnected origins, and origins for which a preconnect would
    /// help. Requests that the page repeats after the load are left out.
    ///
    /// # Fix
    /// Preload critical resources, combine files that are loaded in sequence, and defer those that
    /// are not critical.
    ///
    /// # Source
    /// Lighthouse 13.5, `network-dependency-tree-insight`; trace engine,
    /// insights/NetworkDependencyTree. Dependencies are derived from initiators and from the main
    /// thread's tasks between requests (lantern/graph).
    id: "network-dependency-tree-insight",
    pass: "Network dependency tree has no chains",
    fail: "Network dependency tree has chains",
    learn: "https://developer.chrome.com/docs/performance/insights/network-dependency-tree",
    run: run,
}

const MAX_IDLE_S: f64 = 15.0;
const MIN_SAVED_MS: f64 = 50.0;
const MAX_PRECONNECTS: usize = 4;
/// The maximum depth of the tree. A page controls the depth, and JSON parsers reject nesting beyond
/// about sixty rows.
const MAX_DEPTH: usize = 32;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let document = document(&trace)?;
    let graph = facts.get::<Graph>()?;
    let root = graph.nodes[graph.document].request();
    let root = root.map_or(0, |request| request.resource);
    let tree = Tree::of(&trace, &graph);
    let longest_ms = (tree.until_us[root] - document.start_us) / 1000.0;
    let chains = Findings::new([
        ("url", "Request", Unit::Url),
        ("transferSize", "Transferred", Unit::Bytes),
        ("navStartToEndTime", "Time to finish", Unit::Ms),
    ])
    .rows([tree.row(root, document.start_us, MAX_DEPTH, true)]);
    let candidates = candidates(facts, &trace, document);
    let mut details: Vec<Details> = vec![chains.into()];
    let preconnected = preconnected(&trace, document, &candidates);
    let preconnects = preconnected.rows.len();
    details.push(preconnected.into());
    details.push(
        Findings::new([
            ("origin", "Preconnect candidate", Unit::Text),
            ("wastedMs", "Savings", Unit::Ms),
        ])
        .rows(
            candidates
                .iter()
                .map(|(origin, ms)| Row::new([Cell::text(origin), Cell::Ms(*ms)])),
        )
        .into(),
    );
    let outcome = if tree.children.is_empty() {
        Outcome::pass()
    } else {
        let longest = format_duration(longest_ms);
        Outcome::fail(format!("The longest chain takes {longest}."))
    };
    let mut outcome = outcome.with(Details::parts(details));
    if preconnects > MAX_PRECONNECTS {
        outcome = outcome.warning("More than four preconnects compete for bandwidth.");
    }
    Ok(outcome)
}

/// The critical requests by the request that they waited for; both are indexes into the trace's
/// resources.
struct Tree<'a> {
    resources: &'a [Resource],
    children: HashMap<usize, Vec<usize>>,
    /// The end of the latest request in the subtree of each resource.
    until_us: Vec<f64>,
}

impl<'a> Tree<'a> {
    /// Builds the tree. A node is visited after all its dependencies, so that its parent is the
    /// last one it waited for.
    fn of(trace: &'a Trace, graph: &Graph) -> Self {
        let resources = trace.resources.all.as_slice();
        let mut tree = Self {
            resources,
            children: HashMap::new(),
            until_us: resources
                .iter()
                .map(|resource| resource.notified_us)
                .collect(),
        };
        // Pairs of child and parent; a parent's own pair precedes those of its children.
        let mut pairs = Vec::new();
        let mut waiting_for: Vec<usize> = graph.nodes.iter().map(|node| node.needs.len()).collect();
        // Each node with its parent request, if all requests from there to the root are critical.
        let mut queue = VecDeque::from([(graph.root, None)]);
        while let Some((at, parent)) = queue.pop_front() {
            let node = &graph.nodes[at];
            let below = match node.request() {
                // A redirect is a part of its request.
                Some(request) if !request.is_redirect => {
                    let is_document = at == graph.document;
                    let is_in = is_document
                        || (parent.is_some() && is_critical(trace, &resources[request.resource]));
                    if let Some(parent) = parent
                        && is_in
                        && !is_document
                    {
                        tree.children
                            .entry(parent)
                            .or_default()
                            .push(request.resource);
                        pairs.push((request.resource, parent));
                    }
                    is_in.then_some(request.resource)
                }
                _ => parent,
            };
            for next in &node.needed_by {
                waiting_for[*next] -= 1;
                if waiting_for[*next] == 0 {
                    queue.push_back((*next, below));
                }
            }
        }
        for (child, parent) in pairs.into_iter().rev() {
            tree.until_us[parent] = tree.until_us[parent].max(tree.until_us[child]);
        }
        tree
    }

    fn children(&self, of: usize) -> &[usize] {
        self.children.get(&of).map_or(&[], Vec::as_slice)
    }

    /// Returns the row of a request and its children. Those of the longest chain are marked.
    fn row(&self, at: usize, start_us: f64, depth_below: usize, is_longest: bool) -> Row {
        let resource = &self.resources[at];
        let mut children = match depth_below {
            0 => Vec::new(),
            _ => self.children(at).to_vec(),
        };
        children.sort_by(|a, b| self.until_us[*b].total_cmp(&self.until_us[*a]));
        let children = children.into_iter().enumerate().map(|(index, child)| {
            // The request that ends last is the first child.
            let ends_later = self.until_us[child] > resource.notified_us;
            let is_longest = is_longest && index == 0 && ends_later;
            self.row(child, start_us, depth_below - 1, is_longest)
        });
        let row = Row::new([
            Cell::url(&resource.url),
            Cell::Bytes(resource.transfer_bytes() as f64),
            Cell::Ms(((resource.notified_us - start_us) / 1000.0).round()),
        ])
        .with(children);
        Row {
            is_marked: is_longest,
            ..row
        }
    }
}

/// Returns whether the first view waits for the resource. Images, data, frames and preloads are not
/// critical.
fn is_critical(trace: &Trace, resource: &Resource) -> bool {
    let is_data = matches!(
        resource.traced_type(),
        "Image" | "XHR" | "Fetch" | "EventSource"
    );
    // Requests of workers have no frame; the page does not wait for them.
    let is_of_worker = resource.frame.is_none();
    let is_frame =
        resource.traced_type() == "Document" && resource.frame_id() != trace.frames.main_id;
    if resource.is_link_preload
        || is_of_worker
        || is_data
        || is_frame
        || resource.mime_type().starts_with("image/")
        || resource.initiator_url.as_ref().is_none_or(String::is_empty)
        || !resource.url.starts_with("http")
    {
        return false;
    }
    matches!(resource.priority.as_str(), "VeryHigh" | "High" | "Medium")
        || is_render_blocking(resource)
}

fn origin(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let origin = url.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

/// Returns the third-party origins that delayed the Largest Contentful Paint by a late connection,
/// with the savings.
fn candidates(facts: &Facts, trace: &Trace, document: &Resource) -> Vec<(String, f64)> {
    let (Ok(conditions), Ok(replay)) = (facts.get::<Conditions>(), facts.get::<Replay>()) else {
        return Vec::new();
    };
    let own = origin(&document.url);
    let mut candidates: Vec<(String, f64)> = Vec::new();
    for (at, resource) in trace.resources.all.iter().enumerate() {
        let (Some(timing), Some(origin)) = (resource.timing(), origin(&resource.url)) else {
            continue;
        };
        let connected = timing.connect_start_us < 0.0
            || timing.connect_end_us < 0.0
            || (timing.dns_end_us == timing.dns_start_us
                && timing.connect_end_us == timing.connect_start_us);
        let idle_us = resource.send_start_us - document.finish_us;
        if connected
            || Some(&origin) == own.as_ref()
            || resource.initiator_url.as_ref() == Some(&document.url)
            || !replay.is_before_largest_paint(at)
            || idle_us.max(0.0) >= MAX_IDLE_S * 1e6
            || candidates.iter().any(|(candidate, _)| *candidate == origin)
        {
            continue;
        }
        let rtt_ms = conditions.network.rtt_ms + replay.extra_rtt_ms(&origin);
        let handshakes = if origin.starts_with("https") {
            2.0
        } else {
            1.0
        };
        let saved_ms = (rtt_ms * handshakes).min(idle_us / 1000.0 + timing.dns_start_us / 1000.0);
        candidates.push((origin, saved_ms));
    }
    candidates.retain(|(_, saved_ms)| *saved_ms >= MIN_SAVED_MS);
    candidates.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    candidates.truncate(MAX_PRECONNECTS);
    candidates
}

/// Lists the preconnects of elements and of the document's `Link` headers, and whether they were
/// used.
fn preconnected(trace: &Trace, document: &Resource, candidates: &[(String, f64)]) -> Findings {
    let table = Findings::new([
        ("origin", "Preconnected origin", Unit::Text),
        ("source", "Source", Unit::Text),
    ]);
    let by_elements = trace.resources.preconnects.iter();
    let by_elements = by_elements.map(|preconnect| (preconnect.url.as_str(), "<link> element"));
    let by_headers = document.header("link").flat_map(preconnects_of_header);
    table.rows(by_elements.chain(by_headers).map(|(url, source)| {
        let preconnect_origin = origin(url);
        let is_used = loaded(trace).any(|resource| origin(&resource.url) == preconnect_origin);
        let still_late = candidates
            .iter()
            .any(|(candidate, _)| Some(candidate) == preconnect_origin.as_ref());
        let mut notes = Vec::new();
        if !is_used {
            notes.push("Unused: nothing was loaded from this origin");
        }
        if still_late {
            notes.push("A second connection was opened: check the crossorigin attribute");
        }
        let notes = notes.into_iter();
        let notes = notes.map(|note| Row::new([Cell::text(note), Cell::Nothing]));
        Row::new([Cell::text(url), Cell::text(source)]).with(notes)
    }))
}

/// Returns the URLs with `rel=preconnect` in a `Link` header, each with its part of the header. A
/// comma ends a link unless it is inside the URL.
fn preconnects_of_header(header: &str) -> Vec<(&str, &str)> {
    let mut preconnects = Vec::new();
    let mut rest = header;
    while let Some(url_end) = rest.find('>') {
        let end = rest[url_end..]
            .find(',')
            .map_or(rest.len(), |comma| url_end + comma);
        let link = rest[..end].trim();
        rest = rest.get(end + 1..).unwrap_or_default();
        let Some((url, parameters)) = link.strip_prefix('<').and_then(|l| l.split_once('>')) else {
            continue;
        };
        let is_preconnect = parameters.split(';').any(|parameter| {
            parameter.split_once('=').is_some_and(|(name, value)| {
                name.trim().eq_ignore_ascii_case("rel")
                    && value.trim().trim_matches('"') == "preconnect"
            })
        });
        if is_preconnect && !url.trim().is_empty() {
            preconnects.push((url.trim(), link));
        }
    }
    preconnects
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Details, Row, Verdict};
    use serde_json::json;

    use super::super::traced::Traced;
    use super::CHECK;
    use crate::checks::Outcome;

    fn tree(outcome: &Outcome) -> &Row {
        let Some(Details::Parts { items }) = &outcome.details else {
            panic!("parts");
        };
        let Details::Findings(chains) = &items[0] else {
            panic!("the chains come first");
        };
        &chains.rows[0]
    }

    #[test]
    fn a_script_is_a_child_of_the_script_that_requested_it() {
        let first = "https://example.test/a.js";
        let by_script = json!({"initiator": {"type": "script"}, "stackTrace": [{"url": first}]});
        let outcome = Traced::new()
            .resource("2.1", first, json!({}), json!({}))
            .loads(
                "2.2",
                "https://example.test/b.js",
                600,
                700,
                by_script,
                json!({}),
                json!({}),
            )
            .judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Fail);
        let document = tree(&outcome);
        assert_eq!(document.sub_rows.len(), 1);
        assert_eq!(document.sub_rows[0].sub_rows.len(), 1);
    }

    #[test]
    fn a_link_header_names_preconnects_among_other_things() {
        let header = "</a,b.css>; rel=preload; as=style, <https://a.test>; rel=\"preconnect\", <https://b.test>; crossorigin=x; REL=preconnect,<x";
        let urls: Vec<&str> = super::preconnects_of_header(header)
            .into_iter()
            .map(|(url, _)| url)
            .collect();
        assert_eq!(urls, ["https://a.test", "https://b.test"]);
    }

    #[test]
    fn requests_that_are_not_critical_are_left_out() {
        for sent in [
            json!({"resourceType": "Image"}),
            json!({"resourceType": "Fetch"}),
            json!({"isLinkPreload": true}),
            json!({"priority": "Low"}),
            json!({"initiator": {"type": "other"}}),
            json!({"resourceType": "Document", "frame": "G"}),
            json!({"frame": ""}),
        ] {
            let outcome = Traced::new()
                .resource("2.1", "https://example.test/x", sent.clone(), json!({}))
                .judge(CHECK);
            assert_eq!(outcome.verdict, Verdict::Pass, "{sent}");
            assert!(tree(&outcome).sub_rows.is_empty());
        }
    }

    #[test]
    fn an_endless_chain_can_be_stored_and_parsed() {
        let url = |at: u64| format!("https://example.test/{at}.js");
        let mut traced = Traced::new();
        for at in 1..2000_u64 {
            let by_last =
                json!({"initiator": {"type": "script"}, "stackTrace": [{"url": url(at - 1)}]});
            let sent = if at == 1 { json!({}) } else { by_last };
            let (from, to) = (600 + 2 * at, 601 + 2 * at);
            traced = traced.loads(
                &format!("2.{at}"),
                &url(at),
                from,
                to,
                sent,
                json!({}),
                json!({}),
            );
        }
        let outcome = traced.judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Fail);
        let json = serde_json::to_string(&outcome.details).unwrap();
        serde_json::from_str::<serde_json::Value>(&json).unwrap();
        let mut depth = 0;
        let mut row = tree(&outcome);
        while let Some(below) = row.sub_rows.first() {
            (row, depth) = (below, depth + 1);
        }
        assert_eq!(depth, super::MAX_DEPTH);
    }
}
