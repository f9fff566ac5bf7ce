//! Tests of main-thread work and its attribution.
#![expect(
    clippy::unwrap_used,
    reason = "a test, also where it is not marked as one"
)]

use plumbline_trace::{Trace, Work, WorkKind};
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

fn work(events: Vec<Value>) -> Vec<Work> {
    let mut all = vec![
        json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "pid": 1, "tid": 2, "ts": 0,
            "args": {"name": "CrRendererMain"}}),
        json!({"name": "TracingStartedInBrowser", "cat": "devtools.timeline", "ph": "I", "pid": 9, "tid": 9,
            "ts": 1, "args": {"data": {"frames": [{"frame": "F", "url": PAGE, "processId": 1}]}}}),
        json!({"name": "navigationStart", "cat": "blink.user_timing", "ph": "R", "pid": 1, "tid": 2, "ts": 2,
            "args": {"frame": "F", "data": {"documentLoaderURL": PAGE, "isLoadingMainFrame": true}}}),
    ];
    all.extend(events);
    Trace::read(&serde_json::to_vec(&all).unwrap())
        .unwrap()
        .work
}

fn urls(work: &Work) -> Vec<&str> {
    work.urls.iter().map(AsRef::as_ref).collect()
}

#[test]
fn time_inside_is_not_counted_twice() {
    let stretches = work(vec![
        span("RunTask", 100, 100, json!({})),
        span(
            "EvaluateScript",
            110,
            80,
            json!({"data": {"url": "http://page/a.js"}}),
        ),
        span("Layout", 120, 30, json!({"beginData": {"frame": "F"}})),
    ]);
    let self_us: Vec<f64> = stretches.iter().map(|work| work.self_us).collect();
    assert_eq!(self_us, [20.0, 50.0, 30.0]);
    let kinds: Vec<WorkKind> = stretches.iter().map(|work| work.kind).collect();
    let expected = [
        WorkKind::Other,
        WorkKind::ScriptEvaluation,
        WorkKind::StyleAndLayout,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(stretches[2].parent, Some(1));
}

#[test]
fn work_of_no_known_kind_is_of_the_kind_around_it() {
    let stretches = work(vec![
        span("FunctionCall", 100, 100, json!({})),
        span("v8.callFunction", 110, 50, json!({})),
    ]);
    assert_eq!(stretches[1].kind, WorkKind::ScriptEvaluation);
}

#[test]
fn a_script_is_blamed_for_what_it_caused_and_for_the_task_around_it() {
    let stretches = work(vec![
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
        urls(&stretches[0]),
        ["http://page/a.js", PAGE, "http://page/b.js"]
    );
    assert_eq!(urls(&stretches[1]), ["http://page/a.js", PAGE]);
    assert_eq!(
        urls(&stretches[2]),
        ["http://page/a.js", PAGE, "http://page/b.js"]
    );
}

#[test]
fn a_timer_is_blamed_on_who_installed_it() {
    let install = event("TimerInstall", "I", 120, 0, json!({"data": {"timerId": 7}}));
    let stretches = work(vec![
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
    assert_eq!(urls(&stretches[2]), ["http://page/a.js"]);
    assert_eq!(urls(&stretches[1]), ["http://page/a.js"]);
}

#[test]
fn beginnings_and_ends_make_pairs_and_what_never_ends_lasts_until_the_end() {
    let stretches = work(vec![
        event("RunTask", "B", 100, 0, json!({})),
        event("FunctionCall", "B", 110, 0, json!({})),
        event("FunctionCall", "E", 150, 0, json!({})),
        span("RunTask", 400, 100, json!({})),
    ]);
    let spans: Vec<(f64, f64, bool)> = stretches
        .iter()
        .map(|work| (work.start_us, work.end_us, work.is_unended))
        .collect();
    let expected = [
        (100.0, 500.0, true),
        (110.0, 150.0, false),
        (400.0, 500.0, false),
    ];
    assert_eq!(spans, expected);
}

#[test]
fn a_child_that_outlasts_its_parent_a_little_stretches_it() {
    let stretches = work(vec![
        span("RunTask", 100, 100, json!({})),
        span("FunctionCall", 110, 95, json!({})),
    ]);
    assert_eq!((stretches[0].end_us, stretches[0].self_us), (205.0, 10.0));
}

#[test]
fn a_parent_that_begins_a_little_late_trades_places_with_its_child() {
    let stretches = work(vec![
        span("FunctionCall", 100, 50, json!({})),
        span("RunTask", 101, 5000, json!({})),
    ]);
    assert_eq!(
        (stretches[0].start_us, stretches[0].end_us),
        (100.0, 5101.0)
    );
    assert_eq!((stretches[1].parent, stretches[1].end_us), (Some(0), 150.0));
}

#[test]
fn a_long_overlap_is_cut() {
    let stretches = work(vec![
        span("RunTask", 100, 3000, json!({})),
        span("RunTask", 2000, 9000, json!({})),
    ]);
    assert_eq!(stretches[1].end_us, 3100.0);
}

proptest! {
    #[test]
    fn nobody_works_longer_than_the_outermost_stretches_last(
        spans in proptest::collection::vec((100_i64..20_000, 0_i64..8_000), 0..40),
    ) {
        let spans = spans.into_iter().map(|(ts_us, dur_us)| span("RunTask", ts_us, dur_us, json!({})));
        let stretches = work(spans.collect());
        for (at, work) in stretches.iter().enumerate() {
            prop_assert!(work.parent.is_none_or(|parent| parent < at));
            prop_assert!(work.end_us >= work.start_us);
        }
        let own_us: f64 = stretches.iter().map(|work| work.self_us).sum();
        let outer = stretches.iter().filter(|work| work.parent.is_none());
        let outer_us: f64 = outer.map(Work::duration_us).sum();
        prop_assert!((own_us - outer_us).abs() < 1.0);
    }
}
