//! Tests incomplete traces: the metrics that need the missing part have an error, the others a
//! value.

use plumbline_engine::metrics::{MainTask, Measured, MetricError, main_tasks, measure};
use plumbline_trace::Trace;
use serde_json::{Value, json};

const CATEGORY: &str = "loading,devtools.timeline";
const ORIGIN_US: u64 = 1_000_000;

fn event(name: &str, after_ms: u64, args: Value) -> Value {
    json!({"name": name, "cat": CATEGORY, "ph": "R", "pid": 1, "tid": 1, "ts": ORIGIN_US + after_ms * 1000, "args": args})
}

fn milestone(name: &str, after_ms: u64) -> Value {
    event(name, after_ms, json!({"frame": "MAIN"}))
}

fn task(after_ms: u64, dur_ms: u64) -> Value {
    let mut task = event("RunTask", after_ms, json!({}));
    task["dur"] = json!(dur_ms * 1000);
    task
}

fn candidate(after_ms: u64) -> Value {
    let args = json!({"frame": "MAIN", "data": {"size": 100}});
    event("largestContentfulPaint::Candidate", after_ms, args)
}

fn screenshot(after_ms: u64, picture: &str) -> Value {
    let mut shot = event("Screenshot", after_ms, json!({"snapshot": picture}));
    shot["cat"] = json!("disabled-by-default-devtools.screenshot");
    shot
}

fn trace(more: &[Value]) -> Trace {
    let frames = json!([{"frame": "MAIN", "url": "", "processId": 1}]);
    let mut events = vec![
        event(
            "TracingStartedInBrowser",
            0,
            json!({"data": {"frames": frames}}),
        ),
        event(
            "navigationStart",
            0,
            json!({"frame": "MAIN", "data": {"documentLoaderURL": "http://page/"}}),
        ),
        json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "CrRendererMain"}}),
        event("end", 20_000, json!({})),
    ];
    events.extend_from_slice(more);
    Trace::read(&serde_json::to_vec(&events).expect("JSON")).expect("a readable trace")
}

fn measured(more: &[Value]) -> Measured {
    measure(&trace(more), None)
}

#[test]
fn a_page_that_paints_nothing_has_layout_shift_only() {
    let metrics = measured(&[milestone("domContentLoadedEventEnd", 300), task(400, 100)]);
    let none = Err(MetricError::NoFirstContentfulPaint);
    assert_eq!(
        (
            metrics.fcp,
            metrics.lcp,
            metrics.tbt,
            metrics.tti,
            metrics.si
        ),
        (none, none, none, none, none)
    );
    assert_eq!(metrics.cls, Ok(0.0));
    assert_eq!(metrics.dom_content_loaded_ms, Some(300.0));
    assert_eq!(MetricError::NoFirstContentfulPaint.code(), "NO_FCP");
}

#[test]
fn a_paint_before_the_navigation_is_ignored() {
    let metrics = measured(&[milestone("firstContentfulPaint", 0)]);
    assert_eq!(metrics.fcp, Err(MetricError::NoFirstContentfulPaint));
}

#[test]
fn without_pictures_tasks_or_a_parsed_document_their_metrics_are_missing() {
    let metrics = measured(&[milestone("firstContentfulPaint", 500), candidate(700)]);
    assert_eq!((metrics.fcp, metrics.lcp), (Ok(500.0), Ok(700.0)));
    assert_eq!(metrics.si, Err(MetricError::NoScreenshots));
    assert_eq!(metrics.tti, Err(MetricError::NoDomContentLoaded));
    assert_eq!(metrics.tbt, Err(MetricError::NoDomContentLoaded));

    let parsed = milestone("domContentLoadedEventEnd", 300);
    let metrics = measured(&[milestone("firstContentfulPaint", 500), parsed]);
    assert_eq!(metrics.tti, Err(MetricError::NoTasks));
}

#[test]
fn a_complete_trace_has_blocking_time_and_interactivity() {
    let metrics = measured(&[
        milestone("firstContentfulPaint", 500),
        milestone("domContentLoadedEventEnd", 300),
        task(450, 200),
    ]);
    assert_eq!((metrics.tti, metrics.tbt), (Ok(650.0), Ok(100.0)));
}

#[test]
fn the_last_candidate_counts_unless_it_is_invalidated() {
    let painted = milestone("firstContentfulPaint", 500);
    let invalidated = event(
        "largestContentfulPaint::Invalidate",
        900,
        json!({"frame": "MAIN"}),
    );
    let dropped = event(
        "NavStartToLargestContentfulPaint::Invalidate::AllFrames::UKM",
        850,
        json!({}),
    );
    let lcp = |more: &[Value]| {
        measured(&[&[painted.clone(), candidate(800), candidate(600)], more].concat()).lcp
    };
    assert_eq!(lcp(&[]), Ok(800.0));
    assert_eq!(
        lcp(std::slice::from_ref(&invalidated)),
        Err(MetricError::NoLargestContentfulPaint)
    );
    assert_eq!(lcp(&[invalidated, dropped.clone()]), Ok(850.0));
    assert_eq!(lcp(&[dropped]), Ok(800.0));
}

#[test]
fn an_invalid_screenshot_affects_only_speed_index() {
    let metrics = measured(&[
        milestone("firstContentfulPaint", 500),
        screenshot(600, "AAAA"),
    ]);
    assert_eq!(metrics.si, Err(MetricError::UnreadableScreenshot));
    assert_eq!(metrics.fcp, Ok(500.0));
}

#[test]
fn a_task_that_overlaps_the_next_ends_before_it() {
    let tasks = main_tasks(&trace(&[task(100, 80), task(150, 20)]));
    let first = MainTask {
        start_ms: 100.0,
        end_ms: 149.999,
        duration_ms: 80.0,
    };
    assert_eq!(tasks[0], first);
    assert_eq!(tasks.len(), 2);
}
