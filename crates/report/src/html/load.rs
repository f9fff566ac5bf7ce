//! How the page loaded: waterfall, main thread, and what it all weighed.

use plumbline_engine::exhibits::{Exhibits, Marks, RequestEntry, Share, WORK_KINDS};

use super::charts::{self, Axis};
use super::figures::{bytes, coordinate, count, ms};

/// The moments of a load that are marked, with their short names and classes.
pub(super) fn moments(marks: &Marks) -> Vec<(&'static str, &'static str, f64)> {
    [
        ("FCP", "fcp", marks.fcp_ms),
        ("LCP", "lcp", marks.lcp_ms),
        ("Load", "load", marks.load_ms),
    ]
    .into_iter()
    .filter_map(|(name, class, at_ms)| Some((name, class, at_ms?)))
    .collect()
}

pub(super) struct WaterfallView {
    pub(super) rows: Vec<RowView>,
    pub(super) left_out: usize,
    pub(super) ticks: Vec<(String, String)>,
    pub(super) marks: Vec<MarkView>,
    pub(super) kinds: Vec<(String, usize)>,
    pub(super) summary: String,
    pub(super) thread: String,
    pub(super) work: Vec<WorkView>,
    pub(super) long_tasks: String,
}

pub(super) struct MarkView {
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) at: String,
    pub(super) x: String,
}

pub(super) struct WorkView {
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) ms: String,
}

pub(super) struct RowView {
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) host: Option<String>,
    pub(super) url: String,
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) failed: bool,
    pub(super) blocking: bool,
    pub(super) lcp: bool,
    pub(super) size: String,
    pub(super) time: String,
    pub(super) bar: String,
    /// For sorting: bytes and milliseconds.
    pub(super) bytes: u64,
    pub(super) took_ms: i64,
    pub(super) facts: Vec<(String, String)>,
}

/// Round times with their places in per cent.
pub(super) fn ticks(axis: Axis) -> Vec<(String, String)> {
    // The last word would stand beyond the chart's edge.
    const LAST: f64 = 0.97;
    axis.ticks()
        .into_iter()
        .filter(|(x, _)| *x <= charts::WIDTH * LAST)
        .map(|(x, label)| (coordinate(x / 10.0), label))
        .collect()
}

pub(super) fn waterfall(exhibits: &Exhibits) -> WaterfallView {
    let axis = Axis {
        end_ms: exhibits.end_ms,
    };
    let mut kinds: Vec<(String, usize)> = exhibits
        .by_type
        .iter()
        .map(|share| (share.name.clone(), share.requests))
        .collect();
    kinds.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let rows = exhibits.requests.iter().enumerate();
    let total: u64 = exhibits.requests.iter().map(|r| r.transfer_bytes).sum();
    let blocking = exhibits.requests.iter().filter(|r| r.render_blocking);
    let requests = exhibits.requests.len() + exhibits.requests_left_out;
    let thread = &exhibits.main_thread;
    let work: Vec<WorkView> = WORK_KINDS
        .iter()
        .zip(["script", "layout", "paint", "parse", "other"])
        .zip(thread.total_ms)
        .map(|(((name, _), class), total)| WorkView {
            class,
            name,
            ms: ms(total),
        })
        .collect();
    let said: Vec<String> = work
        .iter()
        .map(|w| format!("{} {}", w.name, w.ms))
        .collect();
    let said = format!("Main thread activity: {}", said.join(", "));
    let longest = thread
        .long_tasks
        .iter()
        .map(|task| task.1)
        .fold(0.0, f64::max);
    WaterfallView {
        rows: rows.map(|(index, r)| row(index + 1, r, axis)).collect(),
        left_out: exhibits.requests_left_out,
        ticks: ticks(axis),
        marks: moments(&exhibits.marks)
            .into_iter()
            .map(|(name, class, at_ms)| MarkView {
                class,
                name,
                at: ms(at_ms),
                x: coordinate(axis.x(at_ms) / 10.0),
            })
            .collect(),
        kinds,
        summary: format!(
            "{}, {} over the network, {} render-blocking.",
            count(requests, "request", "requests"),
            bytes(total),
            blocking.count()
        ),
        thread: charts::main_thread(thread, axis, &said),
        work,
        long_tasks: match thread.long_tasks.len() {
            0 => "No task took longer than 50 ms.".to_owned(),
            many => format!(
                "{} longer than 50 ms, the longest {}.",
                count(many, "task took", "tasks took"),
                ms(longest)
            ),
        },
    }
}

fn row(number: usize, request: &RequestEntry, axis: Axis) -> RowView {
    let took_ms = request.end_ms.map(|end_ms| end_ms - request.start_ms);
    let failed = request.error.is_some() || request.status.is_some_and(|s| s >= 400);
    let status = match (request.status, &request.error) {
        (Some(status), _) => status.to_string(),
        (None, Some(_)) => "failed".to_owned(),
        (None, None) => "open".to_owned(),
    };
    RowView {
        number,
        name: last_part(&request.url),
        host: request.third_party.then(|| request.host.clone()),
        url: request.url.clone(),
        kind: request.kind.clone(),
        status,
        failed,
        blocking: request.render_blocking,
        lcp: request.is_lcp,
        size: if request.cached {
            "cache".to_owned()
        } else {
            bytes(request.transfer_bytes)
        },
        time: took_ms.map_or("–".to_owned(), ms),
        bar: charts::bar(request, axis),
        bytes: request.transfer_bytes,
        took_ms: took_ms.unwrap_or_default().round() as i64,
        facts: facts(request),
    }
}

/// What a click opens: only what there is.
fn facts(request: &RequestEntry) -> Vec<(String, String)> {
    let phases = &request.phases;
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push((name.to_owned(), value));
        }
    };
    fact("Failed with", request.error.clone());
    fact("Starts", Some(ms(request.start_ms)));
    for (name, phase) in [
        ("Queued", Some(phases.queue_ms).filter(|ms| *ms >= 1.0)),
        ("DNS", phases.dns_ms),
        ("Connect", phases.connect_ms),
        ("TLS", phases.tls_ms),
        ("Wait", phases.wait_ms),
        ("Receive", phases.receive_ms),
    ] {
        fact(name, phase.map(ms));
    }
    fact(
        "Unpacked",
        Some(request.resource_bytes).filter(|b| *b > 0).map(bytes),
    );
    fact("Priority", Some(request.priority.clone()));
    fact("Protocol", Some(request.protocol.clone()));
    fact(
        "Method",
        Some(request.method.clone()).filter(|method| method != "GET"),
    );
    fact("Asked for by", request.initiator.clone());
    for (name, value) in &request.headers {
        fact(name, Some(value.clone()));
    }
    facts
}

/// What people call a resource: its file name, or its host where there is none.
pub(super) fn last_part(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or(url);
    let after_scheme = plain.split_once("://").map_or(plain, |(_, rest)| rest);
    let trimmed = after_scheme.trim_end_matches('/');
    let name = trimmed.rsplit('/').next().unwrap_or(trimmed);
    let query = url.split_once('?').map(|(_, query)| query);
    match query.filter(|query| !query.is_empty()) {
        Some(query) => format!("{name}?{query}"),
        None => name.to_owned(),
    }
}

pub(super) struct ShareView {
    pub(super) name: String,
    pub(super) third_party: bool,
    pub(super) requests: usize,
    pub(super) bytes: String,
    /// Of the heaviest, in per cent.
    pub(super) width: String,
}

/// More hosts than this say no more.
const MOST_SHARES: usize = 15;

pub(super) fn shares(shares: &[Share]) -> Vec<ShareView> {
    let heaviest = shares.iter().map(|share| share.bytes).max().unwrap_or(0);
    shares
        .iter()
        .take(MOST_SHARES)
        .map(|share| ShareView {
            name: share.name.clone(),
            third_party: share.third_party,
            requests: share.requests,
            bytes: bytes(share.bytes),
            width: coordinate(share.bytes as f64 / heaviest.max(1) as f64 * 100.0),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_called_by_its_file_or_its_host() {
        for (url, name) in [
            ("https://a.test/css/app.css?v=1", "app.css?v=1"),
            ("https://a.test/", "a.test"),
            ("https://a.test/blog/", "blog"),
            ("https://a.test", "a.test"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(last_part(url), name);
        }
    }
}
