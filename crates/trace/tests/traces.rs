//! Tests on handwritten traces, each for one case.

use std::io::Write;

use plumbline_trace::{Milestone, Thread, Trace, TraceError};
use proptest::prelude::*;
use serde_json::{Value, json};

const RENDERER: i64 = 100;
const MAIN_THREAD: i64 = 101;
const TIMELINE: &str = "devtools.timeline";

fn event(name: &str, category: &str, ts_us: u64, args: Value) -> Value {
    json!({"name": name, "cat": category, "ph": "I", "pid": RENDERER, "tid": MAIN_THREAD, "ts": ts_us, "args": args})
}

fn started(frames: Value) -> Value {
    event(
        "TracingStartedInBrowser",
        "disabled-by-default-devtools.timeline",
        10,
        json!({"data": {"frames": frames}}),
    )
}

fn committed(ts_us: u64, frame: &str, parent: Option<&str>, process: i64) -> Value {
    let data =
        json!({"frame": frame, "url": "http://page/", "parent": parent, "processId": process});
    event(
        "FrameCommittedInBrowser",
        TIMELINE,
        ts_us,
        json!({"data": data}),
    )
}

fn thread_name(process: i64, thread: i64, name: &str) -> Value {
    json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "pid": process, "tid": thread, "ts": 0, "args": {"name": name}})
}

fn navigation(ts_us: u64, frame: &str, url: &str) -> Value {
    let data = json!({"documentLoaderURL": url, "isLoadingMainFrame": true, "navigationId": ts_us.to_string()});
    event(
        "navigationStart",
        "blink.user_timing",
        ts_us,
        json!({"frame": frame, "data": data}),
    )
}

fn paint(name: &str, ts_us: u64, frame: &str) -> Value {
    event(
        name,
        "loading,rail,devtools.timeline",
        ts_us,
        json!({"frame": frame}),
    )
}

fn task(process: i64, thread: i64, ts_us: u64, dur_us: u64) -> Value {
    json!({"name": "RunTask", "cat": "disabled-by-default-devtools.timeline", "ph": "X", "pid": process, "tid": thread,
           "ts": ts_us, "dur": dur_us, "tts": 5, "tdur": dur_us / 2, "args": {}})
}

/// Returns a trace with one navigation of one frame, plus the given events.
fn page(more: Vec<Value>) -> Vec<Value> {
    let mut events = vec![
        started(json!([{"frame": "MAIN", "url": "about:blank", "processId": RENDERER}])),
        navigation(1000, "MAIN", "http://page/"),
        committed(1200, "MAIN", None, RENDERER),
        thread_name(RENDERER, MAIN_THREAD, "CrRendererMain"),
    ];
    events.extend(more);
    events
}

fn read(events: &[Value]) -> Result<Trace, TraceError> {
    Trace::read(&serde_json::to_vec(events).expect("JSON"))
}

fn read_page(more: Vec<Value>) -> Trace {
    read(&page(more)).expect("a readable trace")
}

#[test]
fn array_object_gzip_and_byte_order_mark_give_the_same_trace() {
    let array = serde_json::to_vec(&page(vec![])).expect("JSON");
    let object = serde_json::to_vec(&json!({
        "metadata": {"traceEvents": "not here"}, "traceEvents": page(vec![]), "more": [1, {"a": null}],
    }))
    .expect("JSON");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&object).expect("memory");
    let gzipped = gzip.finish().expect("memory");
    let marked = [b"\xef\xbb\xbf".as_slice(), &array].concat();
    for bytes in [array, object, gzipped, marked] {
        let trace = Trace::read(&bytes).expect("a readable trace");
        assert_eq!(trace.navigation.time_origin_us, 1000.0);
        assert_eq!(trace.navigation.url, "http://page/");
    }
}

#[test]
fn invalid_traces_are_rejected_with_a_reason() {
    let code = |bytes: &[u8]| Trace::read(bytes).map_err(|error| error.code()).err();
    assert_eq!(code(b""), Some("INVALID_FILE"));
    assert_eq!(code(b"<html>"), Some("INVALID_FILE"));
    assert_eq!(code(b"42"), Some("INVALID_FILE"));
    assert_eq!(code(b"[{\"name\": \"RunTask\"}, "), Some("INVALID_FILE"));
    assert_eq!(code(b"\x1f\x8bnot gzip"), Some("INVALID_FILE"));
    assert_eq!(code(b"[]"), Some("NO_EVENTS"));
    assert_eq!(code(b"{}"), Some("NO_EVENTS"));
    assert_eq!(code(b"[{}]"), Some("NO_TRACING_STARTED"));
}

#[test]
fn a_trace_without_navigation_or_main_thread_is_an_error() {
    let error = read(&[
        started(json!([{"frame": "MAIN", "url": "", "processId": RENDERER}])),
        thread_name(RENDERER, MAIN_THREAD, "CrRendererMain"),
        navigation(5, "MAIN", ""),
        navigation(6, "MAIN", "about:blank"),
        navigation(7, "OTHER", "http://page/"),
    ]);
    assert!(matches!(error, Err(TraceError::NoNavigation)));
    let without_threads: Vec<_> = page(vec![])
        .into_iter()
        .filter(|event| event["name"] != "thread_name")
        .collect();
    assert!(matches!(
        read(&without_threads),
        Err(TraceError::NoMainThread)
    ));
}

#[test]
fn invalid_events_do_not_affect_others() {
    let trace = read_page(vec![
        json!(null),
        json!(7),
        json!([1, [2]]),
        json!("text"),
        json!({"name": {"a": 1}, "cat": [], "pid": "x", "tid": null, "ts": "soon", "dur": {}, "args": 5}),
        json!({"name": "firstContentfulPaint", "cat": "loading", "ts": 1500, "args": {"frame": 3}}),
        json!({"name": "firstContentfulPaint", "cat": "loading", "ts": 1600}),
        json!({"name": "LayoutShift", "cat": "loading", "ts": 1600, "args": {"frame": "MAIN", "data": "?"}}),
        json!({"name": "Screenshot", "cat": "disabled-by-default-devtools.screenshot", "ts": 1700, "args": {}}),
        paint("firstContentfulPaint", 2000, "MAIN"),
    ]);
    assert_eq!(
        trace.first_us(Milestone::FirstContentfulPaint),
        Some(2000.0)
    );
    assert!(trace.shifts.all.is_empty());
    assert!(trace.screenshots.is_empty());
}

#[test]
fn an_invalid_byte_affects_only_its_own_event() {
    let mut bytes =
        serde_json::to_vec(&page(vec![json!({"name": "??", "cat": "", "ts": 1})])).expect("JSON");
    let at = bytes
        .windows(2)
        .position(|pair| pair == b"??")
        .expect("the odd name");
    bytes[at] = 0xff;
    assert!(Trace::read(&bytes).is_ok());
}

#[test]
fn the_last_navigation_to_a_web_page_counts_in_any_order_of_events() {
    let mut events = page(vec![
        navigation(9000, "MAIN", "https://page/final"),
        navigation(5000, "MAIN", "http://page/second"),
        navigation(9500, "MAIN", ""),
        navigation(9700, "CHILD", "http://page/frame"),
        paint("firstContentfulPaint", 9900, "MAIN"),
        paint("firstContentfulPaint", 2000, "MAIN"),
    ]);
    events.reverse();
    let trace = read(&events).expect("a readable trace");
    assert_eq!(trace.navigation.time_origin_us, 9000.0);
    assert_eq!(trace.navigation.url, "https://page/final");
    assert_eq!(trace.navigation.document_request.as_deref(), Some("9000"));
    assert_eq!(trace.navigation.earlier_documents, ["1000", "5000"]);
    assert_eq!(
        trace.first_us(Milestone::FirstContentfulPaint),
        Some(9900.0)
    );
}

#[test]
fn the_paint_of_a_document_that_is_being_replaced_is_not_that_of_the_next_one() {
    let paint_of = |ts_us: u64, navigation_id: &str| {
        let mut paint = paint("firstContentfulPaint", ts_us, "MAIN");
        paint["args"]["data"] = json!({"navigationId": navigation_id});
        paint
    };
    let first_us = |more: Vec<Value>| {
        let mut events = vec![navigation(5000, "MAIN", "http://page/second")];
        events.extend(more);
        read_page(events).first_us(Milestone::FirstContentfulPaint)
    };
    let (earlier, measured) = (paint_of(5200, "1000"), paint_of(9900, "5000"));
    assert_eq!(first_us(vec![earlier.clone(), measured]), Some(9900.0));
    assert_eq!(first_us(vec![earlier]), None);
}

#[test]
fn a_lighthouse_timespan_starts_at_its_mark() {
    let mark = event(
        "clock_sync",
        "__metadata",
        700,
        json!({"sync_id": "__lighthouseTimespanStart__"}),
    );
    assert_eq!(read_page(vec![mark]).navigation.time_origin_us, 700.0);
}

#[test]
fn tasks_of_every_process_that_hosted_the_main_frame_count_and_no_others() {
    let trace = read_page(vec![
        committed(3000, "MAIN", None, 200),
        thread_name(200, 201, "CrRendererMain"),
        thread_name(300, 301, "CrRendererMain"),
        task(200, 201, 5000, 10),
        task(RENDERER, MAIN_THREAD, 2000, 20),
        task(RENDERER, MAIN_THREAD, 5000, 30),
        task(RENDERER, 999, 2100, 40),
        task(300, 301, 2200, 50),
        task(RENDERER, MAIN_THREAD, 2300, 0),
    ]);
    let threads = [(RENDERER, MAIN_THREAD), (200, 201)].map(|(process_id, thread_id)| Thread {
        process_id,
        thread_id,
    });
    assert_eq!(trace.navigation.main_threads, threads);
    let durations: Vec<_> = trace.tasks.all.iter().map(|task| task.dur_us).collect();
    assert_eq!(durations, [20.0, 30.0, 10.0]);
    assert_eq!(trace.end_us, 5030.0);
}

#[test]
fn a_process_that_is_reported_only_when_ready_is_recognised() {
    let ready = json!({"data": {"frame": "MAIN", "processId": 200, "processPseudoId": "0x1"}});
    let trace = read_page(vec![
        event("ProcessReadyInBrowser", TIMELINE, 3000, ready),
        thread_name(200, 201, "CrRendererMain"),
    ]);
    assert_eq!(trace.navigation.main_threads.len(), 2);
}

#[test]
fn older_traces_name_the_main_frame_differently() {
    let in_page = event(
        "TracingStartedInPage",
        TIMELINE,
        5,
        json!({"data": {"page": "MAIN"}}),
    );
    let request = event(
        "ResourceSendRequest",
        TIMELINE,
        1100,
        json!({"data": {"requestId": "1", "url": "http://page/"}}),
    );
    for first in [in_page, request] {
        let trace = read(&[
            first,
            navigation(1000, "MAIN", "http://page/"),
            thread_name(RENDERER, MAIN_THREAD, "CrBrowserMain"),
        ])
        .expect("a readable trace");
        assert_eq!(trace.frames.main_id, "MAIN");
        assert_eq!(trace.navigation.main_threads.len(), 1);
    }
}

#[test]
fn only_descendants_of_the_main_frame_belong_to_the_page() {
    let shift = |frame: &str, ts_us| {
        let data = json!({"is_main_frame": frame == "MAIN", "weighted_score_delta": 0.1, "had_recent_input": false});
        event(
            "LayoutShift",
            "loading",
            ts_us,
            json!({"frame": frame, "data": data}),
        )
    };
    let trace = read_page(vec![
        committed(1300, "CHILD", Some("MAIN"), 300),
        committed(1400, "GRANDCHILD", Some("CHILD"), 300),
        committed(1500, "OTHER TAB", None, 400),
        committed(1600, "ROUND", Some("AND ROUND"), 400),
        committed(1600, "AND ROUND", Some("ROUND"), 400),
        shift("GRANDCHILD", 1900),
        shift("MAIN", 1800),
        shift("OTHER TAB", 1700),
        shift("ROUND", 1700),
    ]);
    let shifted: Vec<_> = trace
        .shifts
        .all
        .iter()
        .map(|shift| shift.frame.as_str())
        .collect();
    assert_eq!(shifted, ["MAIN", "GRANDCHILD"]);
    assert_eq!(trace.frames.in_page.len(), 3);
}

#[test]
fn nodes_of_frames_in_other_processes_are_not_nodes_of_the_page() {
    let node = json!({"node_id": 3, "old_rect": [0, 0, 9, 9], "new_rect": [0, 9, 9, 9]});
    let data =
        json!({"is_main_frame": false, "weighted_score_delta": 0.1, "impacted_nodes": [node]});
    let shift = |process: i64, ts_us| {
        let args = json!({"frame": "CHILD", "data": data});
        let mut shift = event("LayoutShift", "loading", ts_us, args);
        shift["pid"] = process.into();
        shift
    };
    let image = |process: i64| {
        let args = json!({"data": {"nodeId": 3}});
        let mut image = event("LayoutImageUnsized", TIMELINE, 1500, args);
        image["pid"] = process.into();
        image
    };
    let trace = read_page(vec![
        committed(1300, "CHILD", Some("MAIN"), 300),
        shift(300, 1800),
        shift(RENDERER, 1900),
        image(300),
    ]);
    let moved: Vec<usize> = trace.shifts.moved.iter().map(Vec::len).collect();
    assert_eq!(moved, [0, 1]);
    assert!(trace.culprits.unsized_images.is_empty());
}

#[test]
fn requests_start_and_end_at_the_times_of_the_network_stack() {
    let sent = |id: &str, ts_us, frame: &str| {
        let data = json!({"requestId": id, "url": "http://page/a", "requestMethod": "GET", "frame": frame});
        event(
            "ResourceSendRequest",
            TIMELINE,
            ts_us,
            json!({"data": data}),
        )
    };
    let timing = json!({"requestTime": 0.0017, "receiveHeadersEnd": 0.2});
    let response = json!({"requestId": "1", "statusCode": 200, "protocol": "h2", "timing": timing});
    let finished = json!({"requestId": "1", "finishTime": 0.0026, "didFail": false});
    let failed = json!({"requestId": "2", "didFail": true});
    let trace = read_page(vec![
        sent("1", 1800, "MAIN"),
        event(
            "ResourceReceiveResponse",
            TIMELINE,
            2500,
            json!({"data": response}),
        ),
        event("ResourceFinish", TIMELINE, 2700, json!({"data": finished})),
        sent("2", 2000, ""),
        event("ResourceFinish", TIMELINE, 3000, json!({"data": failed})),
        sent("3", 2100, "OTHER TAB"),
        sent("4", 2200, "MAIN"),
        sent("4", 2300, "MAIN"),
    ]);
    let exchanges: Vec<_> = trace
        .exchanges
        .iter()
        .map(|exchange| {
            (
                exchange.id.as_str(),
                exchange.network_start_us(),
                exchange.network_end_us(),
                exchange.failure.is_some(),
            )
        })
        .collect();
    assert_eq!(
        exchanges,
        [
            ("1", 1700.0, Some(2600.0), false),
            ("2", 2000.0, Some(3000.0), true),
            ("4", 2200.0, Some(2300.0), false),
            ("4", 2300.0, None, false),
        ]
    );
    assert_eq!(trace.exchanges[0].protocol(), "h2");
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Trace::read(&bytes);
    }

    #[test]
    fn a_truncated_trace_is_rejected(part in 0.0..1.0_f64) {
        let bytes = serde_json::to_vec(&page(vec![task(RENDERER, MAIN_THREAD, 2000, 5)])).expect("JSON");
        let cut = (bytes.len() as f64 * part) as usize;
        prop_assert!(matches!(Trace::read(&bytes[..cut]), Err(TraceError::Json(_))));
    }
}
