//! Tests of resources on handwritten traces.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input fails"
)]

use plumbline_trace::Trace;
use serde_json::{Value, json};

fn event(name: &str, ts: f64, data: Value) -> Value {
    json!({"name": name, "cat": "devtools.timeline", "ph": "I", "ts": ts, "pid": 2, "tid": 3,
           "args": {"data": data}})
}

fn trace(more: Vec<Value>) -> Trace {
    let mut events = vec![
        json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "ts": 0, "pid": 2, "tid": 3,
               "args": {"name": "CrRendererMain"}}),
        event(
            "TracingStartedInBrowser",
            1.0,
            json!({"frames": [{"frame": "F", "url": "http://a.test/", "processId": 2}]}),
        ),
        json!({"name": "navigationStart", "cat": "blink.user_timing", "ph": "R", "ts": 1000, "pid": 2, "tid": 3,
               "args": {"frame": "F", "data": {"documentLoaderURL": "http://a.test/", "navigationId": "N",
                                               "isLoadingMainFrame": true}}}),
    ];
    events.extend(more);
    Trace::read(&serde_json::to_vec(&events).unwrap()).unwrap()
}

#[test]
fn redirects_are_part_of_the_resource_and_the_document_belongs_to_its_navigation() {
    let sent = |url: &str, ts: f64| {
        event(
            "ResourceSendRequest",
            ts,
            json!({"requestId": "N", "url": url, "frame": "F", "priority": "VeryHigh", "resourceType": "Document"}),
        )
    };
    let trace = trace(vec![
        event(
            "ResourceFinish",
            9000.0,
            json!({"requestId": "N", "encodedDataLength": 500.0,
            "decodedBodyLength": 900.0, "finishTime": 0.0088}),
        ),
        event("ResourceWillSendRequest", 2000.0, json!({"requestId": "N"})),
        event("ResourceWillSendRequest", 5000.0, json!({"requestId": "N"})),
        sent("http://a.test/", 2100.0),
        sent("http://b.test/", 5100.0),
        event(
            "ResourceReceiveResponse",
            8000.0,
            json!({"requestId": "N", "statusCode": 200, "mimeType": "text/html",
            "headers": [{"name": "Content-Encoding", "value": "br"}],
            "timing": {"requestTime": 0.005, "sendStart": 1.0, "sendEnd": 1.5, "receiveHeadersStart": 2.5,
                       "receiveHeadersEnd": 3.0}}),
        ),
    ]);
    assert_eq!(trace.navigation.document_request.as_deref(), Some("N"));
    let document = trace.resources.by_id("N").unwrap();
    assert_eq!(document.url, "http://b.test/");
    assert_eq!(document.redirects[0].url, "http://a.test/");
    assert_eq!(document.redirects[0].dur_us, 3000.0);
    assert_eq!(document.redirection_us, 3000.0);
    assert_eq!((document.start_us, document.notified_us), (2000.0, 9000.0));
    assert!((document.finish_us - 8800.0).abs() < 1e-6);
    assert_eq!(document.timing().unwrap().server_response_ms(), 1.0);
    assert_eq!(document.header("content-encoding").next(), Some("br"));
    assert_eq!(document.resource_bytes, 900);
}

#[test]
fn the_last_priority_and_blocking_status_count_and_a_memory_response_has_no_timing() {
    let trace = trace(vec![
        event(
            "ResourceSendRequest",
            2000.0,
            json!({"requestId": "2.1", "url": "http://a.test/a.css",
            "renderBlocking": "non_blocking", "priority": "Low", "stackTrace": [{"url": "http://a.test/a.js"}]}),
        ),
        event(
            "ResourceChangePriority",
            2100.0,
            json!({"requestId": "2.1", "priority": "High"}),
        ),
        event(
            "PreloadRenderBlockingStatusChange",
            2200.0,
            json!({"requestId": "2.1", "renderBlocking": "blocking"}),
        ),
        event("ResourceMarkAsCached", 2300.0, json!({"requestId": "2.1"})),
        event(
            "ResourceReceiveResponse",
            2400.0,
            json!({"requestId": "2.1", "timing": {"requestTime": 1.0}}),
        ),
        event(
            "ResourceSendRequest",
            2500.0,
            json!({"requestId": "2.2", "url": "data:text/plain,hi"}),
        ),
    ]);
    assert_eq!(
        trace.resources.all.len(),
        1,
        "what never leaves the page is no resource"
    );
    let sheet = &trace.resources.all[0];
    assert_eq!(
        (sheet.priority.as_str(), sheet.initial_priority.as_str()),
        ("High", "Low")
    );
    assert_eq!(sheet.render_blocking, "blocking");
    assert_eq!(sheet.initiator_url.as_deref(), Some("http://a.test/a.js"));
    assert!(sheet.from_memory && sheet.timing().is_none());
}

#[test]
fn an_error_response_without_its_body_has_the_size_of_its_headers() {
    let trace = trace(vec![
        event(
            "ResourceSendRequest",
            2000.0,
            json!({"requestId": "2.1", "url": "http://a.test/missing.js", "resourceType": "Script"}),
        ),
        event(
            "ResourceReceiveResponse",
            2400.0,
            json!({"requestId": "2.1", "statusCode": 404, "encodedDataLength": 178}),
        ),
        event(
            "ResourceFinish",
            2500.0,
            json!({"requestId": "2.1", "didFail": true, "encodedDataLength": 0}),
        ),
    ]);
    let script = &trace.resources.all[0];
    assert_eq!(script.failure, None);
    assert_eq!(script.transfer_bytes(), 178);
}

#[test]
fn a_module_that_is_imported_dynamically_is_initiated_by_the_script_on_the_stack() {
    let trace = trace(vec![event(
        "ResourceSendRequest",
        2000.0,
        json!({"requestId": "2.1", "url": "http://a.test/page.js", "frame": "F",
               "initiator": {"type": "script", "url": "about:client"},
               "stackTrace": [{"url": "http://a.test/app.js", "lineNumber": 3}]}),
    )]);
    let module = &trace.resources.all[0];
    assert_eq!(module.initiators, ["http://a.test/app.js"]);
    let url = module.initiator_url.as_deref();
    assert_eq!(url, Some("http://a.test/app.js"));
}

#[test]
fn image_paints_fonts_and_preconnects_are_recorded() {
    let trace = trace(vec![
        event(
            "PaintImage",
            3000.0,
            json!({"url": "http://a.test/i.png", "width": 10, "height": 20,
            "srcWidth": 100, "srcHeight": 200, "isCSS": true, "srcsetAttribute": "x"}),
        ),
        json!({"name": "BeginRemoteFontLoad", "cat": "loading", "ph": "I", "ts": 3100, "pid": 2, "tid": 3,
               "args": {"id": 7, "url": "http://a.test/f.woff2", "display": "swap"}}),
        event(
            "LinkPreconnect",
            3200.0,
            json!({"url": "http://b.test/", "node_id": 4}),
        ),
    ]);
    let paint = &trace.resources.image_paints[0];
    assert!(paint.is_css && paint.has_srcset);
    assert_eq!((paint.width_px, paint.natural_height_px), (10.0, 200.0));
    assert_eq!(trace.resources.remote_fonts[0].resource_id, "2.7");
    assert_eq!(trace.resources.preconnects[0].node_id, Some(4));
}
