//! Tests of main-thread work and its attribution.
#![expect(
    clippy::unwrap_used,
    reason = "a test, also where it is not marked as one"
)]

use plumbline_trace::{Trace, WorkKind, WorkSpan};
use proptest::prelude::*;
use serde_json::{Value, json};

const PAGE: &str = "http://page/";

fn event(name: &str, phase: &str, ts_us: i64, dur_us: i64, args: Value) -> Value {
    json!({"name": name, "cat": "devtools.timeline", "ph": phase, "pid": 1, "tid": 2, "ts": ts_us,
        "dur": dur_us, "args": args})
}

fn span(name: &str, ts_us: i64, dur_us: i64, args: Value) -> Value {
    event(name, "X", ts_us, dur_us, args)
}

fn work(events: Vec<Value>) -> Vec<WorkSpan> {
    trace(events).work
}

fn trace(events: Vec<Value>) -> Trace {
    let mut all = vec![
        json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "pid": 1, "tid": 2, "ts": 0,
            "args": {"name": "CrRendererMain"}}),
        json!({"name": "TracingStartedInBrowser", "cat": "devtools.timeline", "ph": "I", "pid": 9, "tid": 9,
            "ts": 1, "args": {"data": {"frames": [{"frame": "F", "url": PAGE, "processId": 1}]}}}),
        json!({"name": "navigationStart", "cat": "blink.user_timing", "ph": "R", "pid": 1, "tid": 2, "ts": 2,
            "args": {"frame": "F", "data": {"documentLoaderURL": PAGE, "isLoadingMainFrame": true}}}),
    ];
    all.extend(events);
    Trace::read(&serde_json::to_vec(&all).unwrap()).unwrap()
}

fn urls(work: &WorkSpan) -> Vec<&str> {
    work.urls.iter().map(AsRef::as_ref).collect()
}

#[test]
fn scripts_of_workers_are_those_of_the_pages_processes() {
    let thread = |process: i64, thread: i64, name: &str| {
        json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "pid": process, "tid": thread,
            "ts": 0, "args": {"name": name}})
    };
    let on = |process: i64, thread: i64, mut event: Value| {
        event["pid"] = json!(process);
        event["tid"] = json!(thread);
        event
    };
    let script = |name: &str, ts_us: i64, dur_us: i64, url: &str| {
        span(name, ts_us, dur_us, json!({"data": {"url": url}}))
    };
    let trace = trace(vec![
        thread(1, 5, "DedicatedWorker thread"),
        thread(1, 6, "ThreadPoolForegroundWorker"),
        thread(7, 5, "DedicatedWorker thread"),
        script("EvaluateScript", 100, 50, "http://page/a.js"),
        on(1, 5, script("EvaluateScript", 200, 100, "http://page/w.js")),
        on(1, 5, script("FunctionCall", 210, 20, "http://page/w.js")),
        on(1, 5, script("FunctionCall", 400, 20, "")),
        on(1, 5, script("Layout", 500, 20, "http://page/w.js")),
        on(1, 6, script("FunctionCall", 600, 20, "http://page/w.js")),
        on(7, 5, script("FunctionCall", 700, 20, "http://other/w.js")),
    ]);
    let scripts = trace.worker_scripts.iter();
    let scripts: Vec<_> = scripts
        .map(|script| (script.start_us, script.end_us, script.url.as_ref()))
        .collect();
    let url = "http://page/w.js";
    assert_eq!(scripts, [(210.0, 230.0, url), (200.0, 300.0, url)]);
}

#[test]
fn nested_time_is_not_counted_twice() {
    let spans = work(vec![
        span("RunTask", 100, 100, json!({})),
        span(
            "EvaluateScript",
            110,
            80,
            json!({"data": {"url": "http://page/a.js"}}),
        ),
        span("Layout", 120, 30, json!({"beginData": {"frame": "F"}})),
    ]);
    let self_us: Vec<f64> = spans.iter().map(|work| work.self_us).collect();
    assert_eq!(self_us, [20.0, 50.0, 30.0]);
    let kinds: Vec<WorkKind> = spans.iter().map(|work| work.kind).collect();
    let expected = [
        WorkKind::Other,
        WorkKind::ScriptEvaluation,
        WorkKind::StyleAndLayout,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(spans[2].parent, Some(1));
}

#[test]
fn work_of_unknown_kind_has_the_kind_of_its_parent() {
    let spans = work(vec![
        span("FunctionCall", 100, 100, json!({})),
        span("v8.callFunction", 110, 50, json!({})),
    ]);
    assert_eq!(spans[1].kind, WorkKind::ScriptEvaluation);
}

#[test]
fn work_is_attributed_to_the_script_that_caused_it_and_so_is_the_enclosing_task() {
    let spans = work(vec![
        span("RunTask", 100, 100, json!({})),
        span(
            "EvaluateScript",
            110,
            80,
            json!({"data": {"url": "http://page/a.js", "frame": "F"}}),
        ),
        span(
            "Layout",
            120,
            30,
            json!({"beginData": {"frame": "F", "stackTrace": [{"url": "http://page/b.js"}]}}),
        ),
    ]);
    assert_eq!(
        urls(&spans[0]),
        ["http://page/a.js", PAGE, "http://page/b.js"]
    );
    assert_eq!(urls(&spans[1]), ["http://page/a.js", PAGE]);
    assert_eq!(
        urls(&spans[2]),
        ["http://page/a.js", PAGE, "http://page/b.js"]
    );
}

#[test]
fn a_timer_is_attributed_to_the_script_that_installed_it() {
    let install = event("TimerInstall", "I", 120, 0, json!({"data": {"timerId": 7}}));
    let spans = work(vec![
        span(
            "EvaluateScript",
            100,
            50,
            json!({"data": {"url": "http://page/a.js"}}),
        ),
        install,
        span("RunTask", 300, 50, json!({})),
        span("TimerFire", 310, 20, json!({"data": {"timerId": 7}})),
    ]);
    assert_eq!(urls(&spans[2]), ["http://page/a.js"]);
    assert_eq!(urls(&spans[1]), ["http://page/a.js"]);
}

#[test]
fn begin_and_end_events_are_paired_and_an_open_one_lasts_until_the_end() {
    let spans = work(vec![
        event("RunTask", "B", 100, 0, json!({})),
        event("FunctionCall", "B", 110, 0, json!({})),
        event("FunctionCall", "E", 150, 0, json!({})),
        span("RunTask", 400, 100, json!({})),
    ]);
    let bounds: Vec<(f64, f64, bool)> = spans
        .iter()
        .map(|work| (work.start_us, work.end_us, work.is_unended))
        .collect();
    let expected = [
        (100.0, 500.0, true),
        (110.0, 150.0, false),
        (400.0, 500.0, false),
    ];
    assert_eq!(bounds, expected);
}

#[test]
fn a_child_that_slightly_outlasts_its_parent_extends_it() {
    let spans = work(vec![
        span("RunTask", 100, 100, json!({})),
        span("FunctionCall", 110, 95, json!({})),
    ]);
    assert_eq!((spans[0].end_us, spans[0].self_us), (205.0, 10.0));
}

#[test]
fn a_parent_that_starts_slightly_late_is_swapped_with_its_child() {
    let spans = work(vec![
        span("FunctionCall", 100, 50, json!({})),
        span("RunTask", 101, 5000, json!({})),
    ]);
    assert_eq!((spans[0].start_us, spans[0].end_us), (100.0, 5101.0));
    assert_eq!((spans[1].parent, spans[1].end_us), (Some(0), 150.0));
}

#[test]
fn a_long_overlap_is_cut() {
    let spans = work(vec![
        span("RunTask", 100, 3000, json!({})),
        span("RunTask", 2000, 9000, json!({})),
    ]);
    assert_eq!(spans[1].end_us, 3100.0);
}

proptest! {
    #[test]
    fn total_self_time_never_exceeds_the_outermost_spans(
        durations in proptest::collection::vec((100_i64..20_000, 0_i64..8_000), 0..40),
    ) {
        let events = durations.into_iter().map(|(ts_us, dur_us)| span("RunTask", ts_us, dur_us, json!({})));
        let spans = work(events.collect());
        for (at, work) in spans.iter().enumerate() {
            prop_assert!(work.parent.is_none_or(|parent| parent < at));
            prop_assert!(work.end_us >= work.start_us);
        }
        let own_us: f64 = spans.iter().map(|work| work.self_us).sum();
        let outer = spans.iter().filter(|work| work.parent.is_none());
        let outer_us: f64 = outer.map(WorkSpan::duration_us).sum();
        prop_assert!((own_us - outer_us).abs() < 1.0);
    }
}
