//! The load of a page: waterfall, main-thread activity, and page weight.

use plumbline_model::media::{Marks, ReportMedia, RequestEntry, RequestTotals, WORK_KINDS};

use super::charts::{self, Axis};
use super::figures::{bytes, coordinate, count, ms};
use super::links::Link;

/// Returns the name, class and time of each milestone that the load reached.
pub(super) fn milestones(marks: &Marks) -> Vec<(&'static str, &'static str, f64)> {
    [
        ("FCP", "fcp", marks.fcp_ms),
        ("LCP", "lcp", marks.lcp_ms),
        ("Load", "load", marks.load_ms),
    ]
    .into_iter()
    .filter_map(|(name, class, at_ms)| Some((name, class, at_ms?)))
    .collect()
}

/// The waterfall and main-thread activity as a page shows them.
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
    /// Whether a bar shows a part without phases.
    pub(super) has_unknown_phases: bool,
    /// The same figures as traced on the host, if they differ.
    pub(super) as_traced: Option<String>,
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

/// A request in the waterfall.
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
    /// The size, for sorting.
    pub(super) bytes: u64,
    /// The duration, for sorting.
    pub(super) duration_ms: i64,
    pub(super) facts: Vec<(String, Link)>,
}

/// Returns the position in per cent and the label of each tick.
pub fn ticks(axis: Axis) -> Vec<(String, String)> {
    // A label close to the edge would not fit.
    const LAST: f64 = 0.97;
    axis.ticks()
        .into_iter()
        .filter(|(x, _)| *x <= charts::WIDTH * LAST)
        .map(|(x, label)| (coordinate(x / 10.0), label))
        .collect()
}

/// Returns the waterfall of one audit of the page with this URL.
pub(super) fn waterfall(media: &ReportMedia, page_url: &str) -> WaterfallView {
    let axis = Axis {
        end_ms: media.end_ms,
    };
    let mut kinds: Vec<(String, usize)> = media
        .by_type
        .iter()
        .map(|share| (share.name.clone(), share.requests))
        .collect();
    kinds.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let rows = media.requests.iter().enumerate();
    let thread = &media.main_thread;
    let work: Vec<WorkView> = WORK_KINDS
        .iter()
        .zip(["script", "layout", "paint", "parse", "other"])
        .zip(thread.total_ms)
        .map(|((name, class), total)| WorkView {
            class,
            name,
            ms: ms(total),
        })
        .collect();
    let descriptions = work_texts(&thread.total_ms);
    let aria_label = format!("Main-thread activity: {}", descriptions.join(", "));
    let longest = thread
        .long_tasks
        .iter()
        .map(|task| task.1)
        .fold(0.0, f64::max);
    WaterfallView {
        rows: rows
            .map(|(index, request)| row(index + 1, request, axis, page_url))
            .collect(),
        left_out: media.requests_left_out,
        ticks: ticks(axis),
        marks: milestones(&media.marks)
            .into_iter()
            .map(|(name, class, at_ms)| MarkView {
                class,
                name,
                at: ms(at_ms),
                x: coordinate(axis.x(at_ms) / 10.0),
            })
            .collect(),
        kinds,
        has_unknown_phases: media.requests.iter().any(charts::has_unknown_phases),
        summary: format!(
            "{}, {} transferred, {} render-blocking.",
            count(media.request_count(), "request", "requests"),
            bytes(media.transfer_bytes()),
            media.render_blocking_count()
        ),
        thread: charts::main_thread(thread, axis, &aria_label),
        work,
        long_tasks: {
            let number = thread.long_task_count.max(thread.long_tasks.len());
            let text = busy_text(&thread.total_ms, number, longest);
            if thread.as_traced.is_some() {
                text
            } else {
                format!("As traced: {text}")
            }
        },
        as_traced: thread.as_traced.map(|traced| {
            format!(
                "{} {}. These figures include the time in which others used the processor.",
                busy_text(
                    &traced.total_ms,
                    traced.long_task_count,
                    traced.longest_task_ms
                ),
                work_texts(&traced.total_ms).join(", ")
            )
        }),
    }
}

/// Describes how long the main thread was busy, and its long tasks.
fn busy_text(total_ms: &[f64; WORK_KINDS.len()], long_tasks: usize, longest_ms: f64) -> String {
    let busy = format!("Busy for {}.", ms(total_ms.iter().sum()));
    match long_tasks {
        0 => format!("{busy} No task took 50 ms or longer."),
        number => format!(
            "{busy} {} 50 ms or longer, the longest {}.",
            count(number, "task took", "tasks took"),
            ms(longest_ms)
        ),
    }
}

/// Returns the name and time of each kind of work.
fn work_texts(total_ms: &[f64; WORK_KINDS.len()]) -> Vec<String> {
    let named = WORK_KINDS.iter().zip(total_ms);
    named
        .map(|(name, total)| format!("{name} {}", ms(*total)))
        .collect()
}

fn row(number: usize, request: &RequestEntry, axis: Axis, page_url: &str) -> RowView {
    let duration_ms = request.end_ms.map(|end_ms| end_ms - request.start_ms);
    let failed = request.error.is_some() || request.status.is_some_and(|s| s >= 400);
    let status = match (request.status, &request.error) {
        // A response with a good status fails as well, for instance one that is not complete.
        (Some(status), error) if error.is_none() || status >= 400 => status.to_string(),
        (_, Some(_)) => "failed".to_owned(),
        (_, None) => "pending".to_owned(),
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
        time: duration_ms.map_or("–".to_owned(), ms),
        bar: charts::bar(request, axis),
        bytes: request.transfer_bytes,
        duration_ms: duration_ms.unwrap_or_default().round() as i64,
        facts: facts(request, page_url),
    }
}

/// Returns the details of a request that are known.
fn facts(request: &RequestEntry, page_url: &str) -> Vec<(String, Link)> {
    let phases = &request.phases;
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push((name.to_owned(), Link::text_only(value)));
        }
    };
    fact("Error", request.error.clone());
    fact("Start", Some(ms(request.start_ms)));
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
        "Uncompressed",
        Some(request.resource_bytes).filter(|b| *b > 0).map(bytes),
    );
    fact(
        "Priority",
        Some(priority_name(&request.priority).to_owned()),
    );
    fact("Protocol", Some(request.protocol.clone()));
    fact(
        "Method",
        Some(request.method.clone()).filter(|method| method != "GET"),
    );
    if let Some(initiator) = request.initiator.as_deref().filter(|url| !url.is_empty()) {
        facts.push(("Initiator".to_owned(), Link::new(initiator, page_url)));
    }
    let headers = request.headers.iter();
    for (name, value) in headers.filter(|(_, value)| !value.is_empty()) {
        facts.push((name.clone(), Link::text_only(value.clone())));
    }
    facts
}

/// Returns the name of a priority in DevTools, which differs from that in the protocol.
fn priority_name(priority: &str) -> &str {
    match priority {
        "VeryHigh" => "Highest",
        "VeryLow" => "Lowest",
        same => same,
    }
}

/// Returns the file name of a URL, or its host if there is none.
pub fn last_part(url: &str) -> String {
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

/// The requests and bytes of one resource type or host.
pub(super) struct ShareView {
    pub(super) name: String,
    pub(super) third_party: bool,
    pub(super) requests: usize,
    pub(super) bytes: String,
    /// The size in per cent of the largest share.
    pub(super) width: String,
}

/// The most shares that are listed by name.
const MAX_SHARES: usize = 15;

/// Returns the shares with the most bytes, and one for all others, which is named by their number
/// and `others`: the noun for one and for several.
pub(super) fn shares(shares: &[RequestTotals], others: [&str; 2]) -> Vec<ShareView> {
    let (listed, rest) = shares.split_at(shares.len().min(MAX_SHARES));
    let rest = (!rest.is_empty()).then(|| RequestTotals {
        name: format!(
            "{} more {}",
            rest.len(),
            others[usize::from(rest.len() > 1)]
        ),
        requests: rest.iter().map(|share| share.requests).sum(),
        bytes: rest
            .iter()
            .fold(0, |bytes, share| bytes.saturating_add(share.bytes)),
        third_party: rest.iter().all(|share| share.third_party),
    });
    let shown = || listed.iter().chain(&rest);
    let largest = shown().map(|share| share.bytes).max().unwrap_or(0);
    shown()
        .map(|share| ShareView {
            name: share.name.clone(),
            third_party: share.third_party,
            requests: share.requests,
            bytes: bytes(share.bytes),
            width: coordinate(share.bytes as f64 / largest.max(1) as f64 * 100.0),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_are_not_listed_are_added_up_in_the_last_row() {
        let hosts: Vec<RequestTotals> = (0..40_u64)
            .map(|host| RequestTotals {
                name: format!("{host}.test"),
                requests: 2,
                bytes: 100 * 1024 - host,
                third_party: true,
            })
            .collect();
        let views = shares(&hosts, ["host", "hosts"]);
        assert_eq!(views.len(), MAX_SHARES + 1);
        let last = views.last().unwrap();
        assert_eq!((last.name.as_str(), last.requests), ("25 more hosts", 50));
        assert_eq!(
            (last.bytes.as_str(), last.width.as_str()),
            ("2.44\u{a0}MiB", "100")
        );
        let one_more = shares(&hosts[..16], ["host", "hosts"]);
        assert_eq!(one_more.last().unwrap().name, "1 more host");
        assert_eq!(shares(&hosts[..15], ["host", "hosts"]).len(), 15);
    }

    #[test]
    fn a_failed_response_has_no_good_status() {
        let status = |status: Option<u16>, error: Option<&str>| {
            let request = RequestEntry {
                status,
                error: error.map(str::to_owned),
                ..RequestEntry::default()
            };
            let row = row(1, &request, Axis { end_ms: 100.0 }, "https://a.test/");
            (row.status, row.failed)
        };
        let mismatch = Some("net::ERR_CONTENT_LENGTH_MISMATCH");
        for (of_request, text, failed) in [
            (status(Some(200), mismatch), "failed", true),
            (status(Some(503), mismatch), "503", true),
            (status(None, mismatch), "failed", true),
            (status(Some(404), None), "404", true),
            (status(Some(200), None), "200", false),
            (status(None, None), "pending", false),
        ] {
            assert_eq!(of_request, (text.to_owned(), failed));
        }
    }

    #[test]
    fn the_summary_counts_the_requests_that_are_left_out() {
        let media = ReportMedia {
            requests: vec![RequestEntry::default()],
            requests_left_out: 3,
            render_blocking_requests: Some(2),
            by_type: vec![RequestTotals {
                bytes: 5 * 1024,
                ..RequestTotals::default()
            }],
            ..ReportMedia::default()
        };
        let view = waterfall(&media, "https://a.test/");
        assert_eq!(
            view.summary.replace('\u{a0}', " "),
            "4 requests, 5.0 KiB transferred, 2 render-blocking."
        );
    }

    #[test]
    fn priorities_have_the_names_of_devtools() {
        for (priority, name) in [
            ("VeryHigh", "Highest"),
            ("High", "High"),
            ("Medium", "Medium"),
            ("Low", "Low"),
            ("VeryLow", "Lowest"),
        ] {
            assert_eq!(priority_name(priority), name);
        }
    }

    #[test]
    fn a_request_is_named_after_its_file_or_its_host() {
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
