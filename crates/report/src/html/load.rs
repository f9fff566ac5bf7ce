//! The load of a page: waterfall, main-thread activity, and page weight.

use plumbline_model::media::{
    Marks, PathStep, PathStepKind, ReportMedia, RequestEntry, RequestTotals, WORK_KINDS,
};

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

/// The steps that the largest content waited for.
pub(super) struct PathView {
    /// The strip as SVG.
    pub(super) strip: String,
    /// The class, name and total time of each kind of step.
    pub(super) totals: Vec<WorkView>,
    pub(super) steps: Vec<StepView>,
    pub(super) end: String,
}

pub(super) struct StepView {
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) start: String,
    pub(super) duration: String,
    pub(super) file: String,
    pub(super) url: String,
}

/// The kinds of steps with their classes and names.
const STEP_KINDS: [(PathStepKind, &str, &str); 8] = [
    (PathStepKind::Queued, "d", "Queued"),
    (PathStepKind::Connection, "c", "Connection"),
    (PathStepKind::Server, "w", "Server"),
    (PathStepKind::Download, "r", "Download"),
    (PathStepKind::Evaluation, "script", "Script evaluation"),
    (PathStepKind::Rendering, "paint", "Rendering"),
    (PathStepKind::Other, "other", "Other work"),
    (PathStepKind::Waiting, "q", "Waiting"),
];

fn class_and_name(kind: PathStepKind) -> (&'static str, &'static str) {
    let found = STEP_KINDS.iter().find(|(other, ..)| *other == kind);
    found.map_or(("q", "Waiting"), |(_, class, name)| (class, name))
}

/// Returns the steps that the largest content waited for, or `None` if they are unknown.
pub(super) fn critical_path(steps: &[PathStep]) -> Option<PathView> {
    let end_ms = steps.last()?.end_ms;
    let length_ms = |step: &PathStep| step.end_ms - step.start_ms;
    let totals = STEP_KINDS.iter().filter_map(|(kind, class, name)| {
        let of_kind = steps.iter().filter(|step| step.kind == *kind);
        let total_ms: f64 = of_kind.map(length_ms).sum();
        (total_ms >= 0.5).then(|| WorkView {
            class,
            name,
            ms: ms(total_ms),
        })
    });
    let totals: Vec<WorkView> = totals.collect();
    let texts = totals
        .iter()
        .map(|total| format!("{} {}", total.name, total.ms));
    let aria_label = texts.collect::<Vec<_>>().join(", ");
    let parts = steps.iter().map(|step| {
        let (class, _) = class_and_name(step.kind);
        (class, step.start_ms, step.end_ms)
    });
    Some(PathView {
        strip: charts::strip(parts, end_ms, &aria_label),
        totals,
        steps: steps
            .iter()
            .map(|step| {
                let (class, name) = class_and_name(step.kind);
                StepView {
                    class,
                    name,
                    start: ms(step.start_ms),
                    duration: ms(length_ms(step)),
                    file: if step.url.is_empty() {
                        String::new()
                    } else {
                        shortened(last_part(&step.url))
                    },
                    url: step.url.clone(),
                }
            })
            .collect(),
        end: ms(end_ms),
    })
}

/// Leaves out the middle of a long name, whose end tells the type of file.
fn shortened(name: String) -> String {
    const MAX_CHARS: usize = 60;
    const PART_CHARS: usize = 28;
    let length = name.chars().count();
    if length <= MAX_CHARS {
        return name;
    }
    let start: String = name.chars().take(PART_CHARS).collect();
    let end: String = name.chars().skip(length - PART_CHARS).collect();
    format!("{start}…{end}")
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
    let total: u64 = media.requests.iter().map(|r| r.transfer_bytes).sum();
    let blocking = media.requests.iter().filter(|r| r.render_blocking);
    let requests = media.requests.len() + media.requests_left_out;
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
            count(requests, "request", "requests"),
            bytes(total),
            blocking.count()
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
        (Some(status), _) => status.to_string(),
        (None, Some(_)) => "failed".to_owned(),
        (None, None) => "pending".to_owned(),
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

/// The most shares listed.
const MAX_SHARES: usize = 15;

/// Returns the shares with the most bytes.
pub(super) fn shares(shares: &[RequestTotals]) -> Vec<ShareView> {
    let largest = shares.iter().map(|share| share.bytes).max().unwrap_or(0);
    shares
        .iter()
        .take(MAX_SHARES)
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
    fn queueing_and_connections_are_shown_as_different_steps() {
        let step = |kind, start_ms: f64, end_ms: f64| PathStep {
            kind,
            start_ms,
            end_ms,
            url: format!("https://a.test/{}.js", "name-".repeat(20)),
        };
        let path = critical_path(&[
            step(PathStepKind::Queued, 0.0, 40.0),
            step(PathStepKind::Connection, 40.0, 100.0),
            step(PathStepKind::Other, 100.0, 130.0),
        ])
        .unwrap();
        let names: Vec<_> = path.totals.iter().map(|total| total.name).collect();
        assert_eq!(names, ["Queued", "Connection", "Other work"]);
        let file = &path.steps[0].file;
        assert!(
            file.starts_with("name-") && file.ends_with("-name-.js"),
            "{file}"
        );
        assert_eq!(file.chars().count(), 57);
        assert_eq!(shortened("app.js".to_owned()), "app.js");
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
