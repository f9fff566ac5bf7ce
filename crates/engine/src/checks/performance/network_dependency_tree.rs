use std::collections::HashMap;

use plumbline_trace::{Resource, Trace};
use url::Url;

use crate::checks::{Cell, Details, Findings, Outcome, Row, Unit, check};
use crate::facts::{Facts, Missing, TRACE, document, is_render_blocking, loaded};
use crate::metrics::lcp;
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
    /// which. Also lists origins that a preconnect was asked for, and those it would help with.
    ///
    /// # Fix
    /// Preload what is needed early, join what is loaded in a row, and defer what can wait.
    ///
    /// # Source
    /// Lighthouse 13.5, `network-dependency-tree-insight`; trace engine, insights/NetworkDependencyTree. Which origins
    /// a preconnect would help with is judged by what came before the largest paint.
    id: "network-dependency-tree-insight",
    pass: "Important requests do not wait for others",
    fail: "Important requests wait for others",
    needs: [TRACE],
    run: run,
}

const MAX_IDLE_S: f64 = 15.0;
const MIN_SAVED_MS: f64 = 50.0;
const MAX_PRECONNECTS: usize = 4;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let document = document(&trace)?;
    let tree = Tree::of(&trace, document);
    let longest_ms = tree
        .until_us(document)
        .map_or(0.0, |us| (us - document.start_us) / 1000.0);
    let chains = Findings::new([
        ("url", "Request", Unit::Url),
        ("transferSize", "Transferred", Unit::Bytes),
        (
            "navStartToEndTime",
            "From the first request to the end",
            Unit::Ms,
        ),
    ])
    .rows([tree.row(document, document)]);
    let candidates = candidates(facts, &trace, document);
    let mut details: Vec<Details> = vec![chains.into()];
    details.push(preconnected(&trace, &candidates).into());
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
    if trace.resources.preconnects.len() > MAX_PRECONNECTS {
        outcome = outcome.warning("More than four preconnects compete with each other.");
    }
    Ok(outcome)
}

/// Important requests by the one that they waited for.
struct Tree<'a> {
    children: HashMap<&'a str, Vec<&'a Resource>>,
}

impl<'a> Tree<'a> {
    fn of(trace: &'a Trace, document: &'a Resource) -> Self {
        let mut by_url: HashMap<&str, Vec<&Resource>> = HashMap::new();
        for resource in loaded(trace) {
            by_url.entry(&resource.url).or_default().push(resource);
        }
        // A parent begins before its child, so that one pass in order of time knows every parent.
        let mut in_tree: HashMap<&str, bool> = HashMap::from([(document.id.as_str(), true)]);
        let mut ordered: Vec<&Resource> = loaded(trace).collect();
        ordered.sort_by(|a, b| a.start_us.total_cmp(&b.start_us));
        let mut tree = Self {
            children: HashMap::new(),
        };
        for resource in ordered {
            if resource.id == document.id {
                continue;
            }
            let parent = parent(resource, &by_url).unwrap_or(document);
            let is_in = is_important(trace, resource)
                && in_tree.get(parent.id.as_str()).copied().unwrap_or(false);
            in_tree.insert(&resource.id, is_in);
            if is_in {
                tree.children.entry(&parent.id).or_default().push(resource);
            }
        }
        tree
    }

    fn children(&self, of: &Resource) -> &[&'a Resource] {
        self.children.get(of.id.as_str()).map_or(&[], Vec::as_slice)
    }

    /// The end of the latest request below and including this one.
    fn until_us(&self, resource: &Resource) -> Option<f64> {
        let below = self
            .children(resource)
            .iter()
            .filter_map(|child| self.until_us(child));
        below.chain([resource.end_us]).reduce(f64::max)
    }

    fn row(&self, resource: &Resource, document: &Resource) -> Row {
        let mut children = self.children(resource).to_vec();
        children.sort_by(|a, b| {
            let (a_us, b_us) = (self.until_us(a), self.until_us(b));
            b_us.unwrap_or(0.0).total_cmp(&a_us.unwrap_or(0.0))
        });
        Row::new([
            Cell::url(&resource.url),
            Cell::Bytes(resource.transfer_bytes),
            Cell::Ms(((resource.end_us - document.start_us) / 1000.0).round()),
        ])
        .with(children.into_iter().map(|child| self.row(child, document)))
    }
}

/// The one that named it. Of several scripts on the stack the last to be loaded; one that cannot be told apart
/// from another of the same address is nobody.
fn parent<'a>(
    resource: &Resource,
    by_url: &HashMap<&str, Vec<&'a Resource>>,
) -> Option<&'a Resource> {
    let named = match resource.initiator_kind.as_str() {
        "script" => resource.stack_urls.as_slice(),
        _ => std::slice::from_ref(&resource.initiator_url),
    };
    named
        .iter()
        .filter_map(|url| match by_url.get(url.as_str())?.as_slice() {
            [only] if only.start_us <= resource.start_us && only.id != resource.id => Some(*only),
            _ => None,
        })
        .max_by(|a, b| a.start_us.total_cmp(&b.start_us))
}

/// What a first view waits for: not images, data, frames or what was preloaded.
fn is_important(trace: &Trace, resource: &Resource) -> bool {
    let is_data = matches!(
        resource.resource_type.as_str(),
        "Image" | "XHR" | "Fetch" | "EventSource"
    );
    let is_frame = resource.resource_type == "Document" && resource.frame != trace.frames.main_id;
    if resource.is_link_preload
        || is_data
        || is_frame
        || resource.mime_type.starts_with("image/")
        || resource.initiator_url.is_empty()
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
    let rtt_ms = facts
        .get::<Conditions>()
        .map_or(0.0, |conditions| conditions.network.rtt_ms);
    let until_us = lcp::largest_contentful_paint(trace)
        .map_or(0.0, |ms| trace.navigation.time_origin_us + ms * 1000.0);
    let own = origin(&document.url);
    let mut found: Vec<(String, f64)> = Vec::new();
    for resource in loaded(trace) {
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
            || resource.finish_us > until_us
            || idle_us.max(0.0) >= MAX_IDLE_S * 1e6
            || found.iter().any(|(known, _)| *known == origin)
        {
            continue;
        }
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

/// What elements asked to connect to early, and whether it was of use.
fn preconnected(trace: &Trace, candidates: &[(String, f64)]) -> Findings {
    let table = Findings::new([("origin", "Preconnected origin", Unit::Text)]);
    table.rows(trace.resources.preconnects.iter().map(|preconnect| {
        let asked = origin(&preconnect.url);
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
        let notes = notes.into_iter().map(|note| Row::new([Cell::text(note)]));
        Row::new([Cell::text(&preconnect.url)]).with(notes)
    }))
}
