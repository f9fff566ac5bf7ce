use std::collections::{HashMap, VecDeque};

use plumbline_trace::{Resource, Trace};
use url::Url;

use crate::checks::{Cell, Details, Findings, Outcome, Row, Unit, check};
use crate::facts::{Facts, Missing, TRACE, document, is_render_blocking, loaded};
use crate::replay::{Graph, Replay};
use crate::report::Conditions;

check! {
    /// # What
    /// What the page waits for was asked for by the document itself, not by what came after it.
    ///
    /// # Why
    /// A file that only another file names cannot be asked for before that one has arrived.
    ///
    /// # Scored
    /// Weighs nothing. Fails when an important request depends on the document: the tree says which waited for
    /// which. Also lists origins that a preconnect was asked for, and those it would help with. What a page asks for once more
    /// when its load is over is not in it.
    ///
    /// # Fix
    /// Preload what is needed early, join what is loaded in a row, and defer what can wait.
    ///
    /// # Source
    /// Lighthouse 13.5, `network-dependency-tree-insight`; trace engine, insights/NetworkDependencyTree. What waited
    /// for which is read from who asked and from what the main thread did in between (lantern/graph).
    id: "network-dependency-tree-insight",
    pass: "Important requests do not wait for others",
    fail: "Important requests wait for others",
    needs: [TRACE],
    run: run,
}

const MAX_IDLE_S: f64 = 15.0;
const MIN_SAVED_MS: f64 = 50.0;
const MAX_PRECONNECTS: usize = 4;
/// What a page can make endless ends here: what is nested deeper than some sixty rows is no JSON that can be read again.
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
        (
            "navStartToEndTime",
            "From the first request to the end",
            Unit::Ms,
        ),
    ])
    .rows([tree.row(root, document.start_us, MAX_DEPTH)]);
    let candidates = candidates(facts, &trace, document);
    let mut details: Vec<Details> = vec![chains.into()];
    let preconnected = preconnected(&trace, document, &candidates);
    let preconnects = preconnected.rows.len();
    details.push(preconnected.into());
    details.push(
        Findings::new([
            ("origin", "Origin worth a preconnect", Unit::Text),
            ("wastedMs", "Saves", Unit::Ms),
        ])
        .rows(
            candidates
                .iter()
                .map(|(origin, ms)| Row::new([Cell::text(origin), Cell::Ms(*ms)])),
        )
        .into(),
    );
    let outcome = match tree.children.is_empty() {
        true => Outcome::pass(),
        false => Outcome::fail(format!("The longest chain takes {longest_ms:.0} ms.")),
    };
    let mut outcome = outcome.with(Details::parts(details));
    if preconnects > MAX_PRECONNECTS {
        outcome = outcome.warning("More than four preconnects compete with each other.");
    }
    Ok(outcome)
}

/// Important requests by the one that they waited for; both are places among the trace's resources.
struct Tree<'a> {
    resources: &'a [Resource],
    children: HashMap<usize, Vec<usize>>,
    /// The end of the latest request below and including each.
    until_us: Vec<f64>,
}

impl<'a> Tree<'a> {
    /// Visits a node when all that it needs has been visited, so that it hangs below what it waited for last.
    fn of(trace: &'a Trace, graph: &Graph) -> Self {
        let resources = trace.resources.all.as_slice();
        let mut tree = Self {
            resources,
            children: HashMap::new(),
            until_us: resources.iter().map(|resource| resource.end_us).collect(),
        };
        // Each with what it hangs below, which comes before it.
        let mut hung = Vec::new();
        let mut waiting_for: Vec<usize> = graph.nodes.iter().map(|node| node.needs.len()).collect();
        // With each node the request above it, where everything from there up is important.
        let mut queue = VecDeque::from([(graph.root, None)]);
        while let Some((at, above)) = queue.pop_front() {
            let node = &graph.nodes[at];
            let below = match node.request() {
                // A redirect is a part of its request.
                Some(request) if !request.is_redirect => {
                    let is_document = at == graph.document;
                    let is_in = is_document
                        || (above.is_some() && is_important(trace, &resources[request.resource]));
                    if let Some(above) = above
                        && is_in
                        && !is_document
                    {
                        tree.children
                            .entry(above)
                            .or_default()
                            .push(request.resource);
                        hung.push((request.resource, above));
                    }
                    is_in.then_some(request.resource)
                }
                _ => above,
            };
            for next in &node.needed_by {
                waiting_for[*next] -= 1;
                if waiting_for[*next] == 0 {
                    queue.push_back((*next, below));
                }
            }
        }
        for (child, above) in hung.into_iter().rev() {
            tree.until_us[above] = tree.until_us[above].max(tree.until_us[child]);
        }
        tree
    }

    fn children(&self, of: usize) -> &[usize] {
        self.children.get(&of).map_or(&[], Vec::as_slice)
    }

    fn row(&self, at: usize, start_us: f64, depth_below: usize) -> Row {
        let resource = &self.resources[at];
        let mut children = match depth_below {
            0 => Vec::new(),
            _ => self.children(at).to_vec(),
        };
        children.sort_by(|a, b| self.until_us[*b].total_cmp(&self.until_us[*a]));
        Row::new([
            Cell::url(&resource.url),
            Cell::Bytes(resource.transfer_bytes),
            Cell::Ms(((resource.end_us - start_us) / 1000.0).round()),
        ])
        .with(
            children
                .into_iter()
                .map(|child| self.row(child, start_us, depth_below - 1)),
        )
    }
}

/// What a first view waits for: not images, data, frames or what was preloaded.
fn is_important(trace: &Trace, resource: &Resource) -> bool {
    let is_data = matches!(
        resource.resource_type.as_str(),
        "Image" | "XHR" | "Fetch" | "EventSource"
    );
    // Requests of workers name no frame; the page does not wait for them.
    let is_of_worker = resource.frame.is_empty();
    let is_frame = resource.resource_type == "Document" && resource.frame != trace.frames.main_id;
    if resource.is_link_preload
        || is_of_worker
        || is_data
        || is_frame
        || resource.mime_type.starts_with("image/")
        || resource.initiator_url.is_empty()
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

/// Origins other than the page's that the largest paint had to wait for, connected to late.
fn candidates(facts: &Facts, trace: &Trace, document: &Resource) -> Vec<(String, f64)> {
    let (Ok(conditions), Ok(replay)) = (facts.get::<Conditions>(), facts.get::<Replay>()) else {
        return Vec::new();
    };
    let own = origin(&document.url);
    let mut found: Vec<(String, f64)> = Vec::new();
    for (at, resource) in trace.resources.all.iter().enumerate() {
        let (Some(timing), Some(origin)) = (resource.timing, origin(&resource.url)) else {
            continue;
        };
        let connected = timing.connect_start_ms < 0.0
            || timing.connect_end_ms < 0.0
            || (timing.dns_end_ms == timing.dns_start_ms
                && timing.connect_end_ms == timing.connect_start_ms);
        let idle_us = resource.send_start_us - document.finish_us;
        if connected
            || Some(&origin) == own.as_ref()
            || resource.initiator_url == document.url
            || !replay.is_before_largest_paint(at)
            || idle_us.max(0.0) >= MAX_IDLE_S * 1e6
            || found.iter().any(|(known, _)| *known == origin)
        {
            continue;
        }
        let rtt_ms = conditions.network.rtt_ms + replay.more_rtt_ms(&origin);
        let handshakes = if origin.starts_with("https") {
            2.0
        } else {
            1.0
        };
        let saved_ms = (rtt_ms * handshakes).min(idle_us / 1000.0 + timing.dns_start_ms);
        found.push((origin, saved_ms));
    }
    found.retain(|(_, saved_ms)| *saved_ms >= MIN_SAVED_MS);
    found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    found.truncate(MAX_PRECONNECTS);
    found
}

/// What elements and the document's `Link` headers asked to connect to early, and whether it was of use.
fn preconnected(trace: &Trace, document: &Resource, candidates: &[(String, f64)]) -> Findings {
    let table = Findings::new([
        ("origin", "Preconnected origin", Unit::Text),
        ("source", "Asked for by", Unit::Text),
    ]);
    let by_elements = trace.resources.preconnects.iter();
    let by_elements = by_elements.map(|preconnect| (preconnect.url.as_str(), "an element"));
    let by_headers = document.header("link").flat_map(preconnects_of_header);
    table.rows(by_elements.chain(by_headers).map(|(url, source)| {
        let asked = origin(url);
        let is_used = loaded(trace).any(|resource| origin(&resource.url) == asked);
        let still_late = candidates
            .iter()
            .any(|(known, _)| Some(known) == asked.as_ref());
        let mut notes = Vec::new();
        if !is_used {
            notes.push("Nothing was loaded from it");
        }
        if still_late {
            notes.push("It was connected to again: look at the crossorigin attribute");
        }
        let notes = notes.into_iter();
        let notes = notes.map(|note| Row::new([Cell::text(note), Cell::Nothing]));
        Row::new([Cell::text(url), Cell::text(source)]).with(notes)
    }))
}

/// Addresses with `rel=preconnect`, with the words that say so. A comma ends a link unless it stands in its address.
fn preconnects_of_header(header: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = header;
    while let Some(address_end) = rest.find('>') {
        let end = rest[address_end..]
            .find(',')
            .map_or(rest.len(), |comma| address_end + comma);
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
            found.push((url.trim(), link));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::traced::Traced;
    use super::CHECK;
    use crate::checks::{Details, Outcome, Row, Verdict};

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
    fn a_script_hangs_below_the_script_that_asked_for_it() {
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
        let found: Vec<&str> = super::preconnects_of_header(header)
            .into_iter()
            .map(|(url, _)| url)
            .collect();
        assert_eq!(found, ["https://a.test", "https://b.test"]);
    }

    #[test]
    fn what_nobody_waits_for_is_left_out() {
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
    fn an_endless_chain_can_be_kept_and_read_again() {
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
        let kept = serde_json::to_string(&outcome.details).unwrap();
        serde_json::from_str::<serde_json::Value>(&kept).unwrap();
        let mut depth = 0;
        let mut row = tree(&outcome);
        while let Some(below) = row.sub_rows.first() {
            (row, depth) = (below, depth + 1);
        }
        assert_eq!(depth, super::MAX_DEPTH);
    }
}
