//! Audits for programs: round-trip times, server latencies, and diagnostics.

use plumbline_model::check::{Cell, CheckResult, Details};
use plumbline_model::report::Report;
use plumbline_model::scoring::Curve;
use plumbline_trace::{Milestone, Trace, origin_latencies};
use serde_json::{Value, json};

use super::pictures::informative;

/// The delay of a page without tasks: one frame (core/computed/metrics/max-potential-fid.js).
const MIN_DELAY_MS: f64 = 16.0;
/// The scoring curve of core/audits/metrics/max-potential-fid.js.
const DELAY: Curve = Curve {
    p10: 130.0,
    median: 250.0,
};
/// The durations above which tasks are counted (core/audits/diagnostics.js); all are above those of
/// [`Tasks::longer`].
const LENGTHS_MS: [(&str, f64); 5] = [
    ("numTasksOver10ms", 10.0),
    ("numTasksOver25ms", 25.0),
    ("numTasksOver50ms", 50.0),
    ("numTasksOver100ms", 100.0),
    ("numTasksOver500ms", 500.0),
];

/// The tasks of the main thread, with their durations on the device.
struct Tasks {
    count: usize,
    total_ms: f64,
    /// The start and the duration of each task of more than 5 ms, in milliseconds since the
    /// navigation.
    longer: Vec<(f64, f64)>,
}

impl Tasks {
    /// Returns the tasks of a report's checks, so that all figures of a result agree. Reports of
    /// versions without these checks have the tasks of the trace.
    fn of(trace: &Trace, report: &Report) -> Self {
        let traced = || trace.tasks.all.iter();
        let total_ms = check(report, "mainthread-work-breakdown").and_then(|check| check.figure);
        let longer = check(report, "main-thread-tasks").and_then(starts_and_durations);
        Self {
            count: trace.tasks.all.len(),
            total_ms: total_ms.map_or_else(
                || traced().map(|task| task.dur_us / 1000.0).sum(),
                |figure| figure.value,
            ),
            longer: longer.unwrap_or_else(|| {
                let traced = traced()
                    .map(|task| (trace.since_origin_ms(task.start_us), task.dur_us / 1000.0));
                traced.collect()
            }),
        }
    }
}

fn check<'a>(report: &'a Report, id: &str) -> Option<&'a CheckResult> {
    let checks = report.categories.iter().flat_map(|it| &it.checks);
    checks.into_iter().find(|check| check.id == id)
}

/// Returns the rows of a check that lists tasks; `None` if it lists nothing of the kind.
fn starts_and_durations(check: &CheckResult) -> Option<Vec<(f64, f64)>> {
    let Some(Details::Findings(findings)) = &check.details else {
        return None;
    };
    let row = |cells: &[Cell]| match cells {
        [Cell::Ms(start_ms), Cell::Ms(duration_ms)] => Some((*start_ms, *duration_ms)),
        _ => None,
    };
    findings.rows.iter().map(|it| row(&it.cells)).collect()
}

/// Returns the audits.
pub(super) fn audits(trace: &Trace, report: &Report) -> Vec<Value> {
    let tasks = Tasks::of(trace, report);
    let origin_latencies = origin_latencies(&trace.resources.all);
    let rtts = || {
        origin_latencies
            .iter()
            .filter_map(|(origin, distance)| Some((origin, distance.rtt_ms?)))
    };
    let nearest_ms = rtts().map(|(_, ms)| ms).reduce(f64::min).unwrap_or(0.0);
    let responses = origin_latencies
        .iter()
        .filter_map(|(origin, distance)| Some((origin, distance.response_ms(nearest_ms)?)));
    let rtt = by_origin(
        "network-rtt",
        "Round-trip times",
        "The round-trip time to each origin.",
        "rtt",
        rtts(),
    );
    let latency = by_origin(
        "network-server-latency",
        "Server latencies",
        "The response time of the servers of each origin.",
        "serverResponseTime",
        responses,
    );
    let diagnostics = diagnostics(trace, &tasks, nearest_ms, &rtt, &latency);
    max_delay(trace, &tasks)
        .into_iter()
        .chain([rtt, latency, diagnostics])
        .collect()
}

/// Returns the longest delay of a first input after the first paint.
fn max_delay(trace: &Trace, tasks: &Tasks) -> Option<Value> {
    let painted_ms = trace.since_origin_ms(trace.first_us(Milestone::FirstContentfulPaint)?);
    let tasks = tasks.longer.iter();
    let longest_ms = tasks
        .filter(|(start_ms, duration_ms)| start_ms + duration_ms >= painted_ms)
        .map(|(_, duration_ms)| *duration_ms)
        .fold(MIN_DELAY_MS, f64::max);
    Some(json!({
        "id": "max-potential-fid",
        "title": "Max Potential First Input Delay",
        "description": "The longest task after the first paint.",
        "score": DELAY.score(longest_ms),
        "scoreDisplayMode": "numeric",
        "numericValue": longest_ms,
        "numericUnit": "millisecond",
        "displayValue": format!("{:.0}\u{a0}ms", (longest_ms / 10.0).round() * 10.0),
    }))
}

fn by_origin<'a>(
    id: &str,
    title: &str,
    description: &str,
    key: &str,
    of: impl Iterator<Item = (&'a String, f64)>,
) -> Value {
    let mut rows: Vec<(&String, f64)> = of.collect();
    rows.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let max_ms = rows.first().map_or(0.0, |(_, ms)| *ms);
    let items: Vec<Value> = rows
        .iter()
        .map(|(origin, ms)| json!({ "origin": origin, key: ms }))
        .collect();
    let headings = json!([
        { "key": "origin", "valueType": "text", "label": "Origin" },
        { "key": key, "valueType": "ms", "granularity": 1, "label": "Time" },
    ]);
    let details =
        json!({ "type": "table", "headings": headings, "items": items, "sortedBy": [key] });
    let mut audit = informative(id, title, description, details);
    audit["numericValue"] = json!(max_ms);
    audit["numericUnit"] = json!("millisecond");
    audit["displayValue"] = json!(format!("{max_ms:.0}\u{a0}ms"));
    audit
}

fn diagnostics(trace: &Trace, tasks: &Tasks, rtt_ms: f64, rtt: &Value, latency: &Value) -> Value {
    let resources = || trace.resources.all.iter();
    let of_type = |kind: &str| {
        resources()
            .filter(|resource| resource.traced_type() == kind)
            .count()
    };
    let document = trace.navigation.document_request.as_deref();
    let document = document.and_then(|id| trace.resources.by_id(id));
    let mut item = json!({
        "numRequests": trace.resources.all.len(),
        "numScripts": of_type("Script"),
        "numStylesheets": of_type("Stylesheet"),
        "numFonts": of_type("Font"),
        "numTasks": tasks.count,
        "rtt": rtt_ms,
        "maxRtt": rtt["numericValue"],
        "maxServerLatency": latency["numericValue"],
        "totalByteWeight": resources().map(|resource| resource.transfer_bytes() as f64).sum::<f64>(),
        "totalTaskTime": tasks.total_ms,
        "mainDocumentTransferSize": document.map(|resource| resource.transfer_bytes() as f64),
    });
    for (name, min_ms) in LENGTHS_MS {
        let longer = tasks.longer.iter().filter(|(_, ms)| *ms > min_ms);
        item[name] = json!(longer.count());
    }
    informative(
        "diagnostics",
        "Diagnostics",
        "The numbers of requests and tasks, and their sizes and durations.",
        json!({ "type": "debugdata", "items": [item] }),
    )
}
