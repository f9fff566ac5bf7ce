//! Tests on handwritten protocol logs, each for one case.

use std::sync::Arc;

use plumbline_trace::{Exchange, ProtocolLog, TraceError};
use proptest::prelude::*;
use serde_json::{Value, json};

fn message(method: &str, params: Value) -> Value {
    json!({"method": format!("Network.{method}"), "params": params, "targetType": "page", "sessionId": "S"})
}

fn sent(id: &str, seconds: f64, url: &str) -> Value {
    let request = json!({"url": url, "method": "GET"});
    message(
        "requestWillBeSent",
        json!({"requestId": id, "request": request, "timestamp": seconds, "type": "Script"}),
    )
}

fn redirected(id: &str, seconds: f64, url: &str) -> Value {
    let mut message = sent(id, seconds, url);
    message["params"]["redirectResponse"] =
        json!({"status": 302, "protocol": "h2", "timing": timing(1.05)});
    message
}

fn timing(request_seconds: f64) -> Value {
    json!({"requestTime": request_seconds, "receiveHeadersEnd": 40.0})
}

fn received(id: &str, seconds: f64, timing: Value) -> Value {
    let response = json!({"status": 200, "protocol": "h2", "timing": timing});
    message(
        "responseReceived",
        json!({"requestId": id, "timestamp": seconds, "response": response}),
    )
}

fn ended(method: &str, id: &str, seconds: f64) -> Value {
    message(method, json!({"requestId": id, "timestamp": seconds}))
}

fn read(messages: &[Value]) -> Vec<Arc<Exchange>> {
    let bytes = serde_json::to_vec(messages).expect("JSON");
    ProtocolLog::read(&bytes).expect("a readable log").exchanges
}

/// Compares the start, end (in milliseconds) and status of each exchange.
fn check(messages: &[Value], expected: &[(f64, Option<f64>, Option<i64>)]) {
    let exchanges: Vec<_> = read(messages)
        .iter()
        .map(|exchange| {
            (
                exchange.network_start_us() / 1000.0,
                exchange.network_end_us().map(|end_us| end_us / 1000.0),
                exchange.status(),
            )
        })
        .collect();
    assert_eq!(exchanges, expected);
}

#[test]
fn a_module_that_is_imported_dynamically_is_initiated_by_the_script_on_the_stack() {
    let mut module = sent("1", 1.0, "https://a.test/page.js");
    module["params"]["initiator"] = json!({
        "type": "script", "url": "about:client",
        "stack": {"callFrames": [{"url": "https://a.test/app.js"}]},
    });
    let log = serde_json::to_vec(&[module]).unwrap();
    let exchanges = ProtocolLog::read(&log).unwrap().exchanges;
    let initiator = exchanges[0].initiator_url.as_deref();
    assert_eq!(initiator, Some("https://a.test/app.js"));
}

#[test]
fn times_of_the_network_stack_are_preferred() {
    check(
        &[
            sent("1", 1.0, "http://page/"),
            received("1", 1.5, timing(1.125)),
            ended("loadingFinished", "1", 2.0),
        ],
        &[(1125.0, Some(2000.0), Some(200))],
    );
}

#[test]
fn times_of_the_messages_are_the_fallback() {
    let unknown = json!({"requestTime": -1, "receiveHeadersEnd": -1});
    for timing in [json!(null), unknown, json!({"requestTime": 1.25})] {
        check(
            &[
                sent("1", 1.0, "http://page/"),
                received("1", 1.5, timing),
                ended("loadingFinished", "1", 2.0),
            ],
            &[(1000.0, Some(2000.0), Some(200))],
        );
    }
}

#[test]
fn a_response_from_memory_has_no_network_times() {
    check(
        &[
            sent("1", 1.0, "http://page/"),
            message("requestServedFromCache", json!({"requestId": "1"})),
            received("1", 1.5, timing(0.25)),
        ],
        &[(1000.0, None, Some(200))],
    );
}

#[test]
fn a_redirect_is_two_requests_and_later_events_concern_the_second() {
    check(
        &[
            sent("1", 1.0, "http://page/a"),
            redirected("1", 1.5, "http://page/b"),
            received("1", 2.0, timing(1.625)),
            ended("loadingFinished", "1", 3.0),
        ],
        &[
            (1050.0, Some(1500.0), Some(302)),
            (1625.0, Some(3000.0), Some(200)),
        ],
    );
}

#[test]
fn the_first_end_counts_and_a_failure_is_an_end() {
    let exchanges = read(&[
        sent("1", 1.0, "http://page/"),
        ended("loadingFailed", "1", 2.0),
        ended("loadingFinished", "1", 3.0),
        sent("2", 1.0, "http://page/"),
        sent("2", 1.5, "http://page/again"),
    ]);
    assert_eq!(exchanges.len(), 2);
    assert_eq!(exchanges[0].end_us, Some(2e6));
    assert!(exchanges[0].failure.is_some());
    assert_eq!((exchanges[1].end_us, &exchanges[1].failure), (None, &None));
}

#[test]
fn an_error_response_without_its_body_has_not_failed() {
    let failure = |status: u64, error: &str| {
        let mut response = received("1", 1.5, timing(1.125));
        response["params"]["response"]["status"] = json!(status);
        let mut failed = ended("loadingFailed", "1", 2.0);
        failed["params"]["errorText"] = json!(error);
        let exchanges = read(&[sent("1", 1.0, "http://page/"), response, failed]);
        assert_eq!(exchanges[0].end_us, Some(2e6));
        exchanges[0].failure.clone()
    };
    assert_eq!(failure(404, "net::ERR_ABORTED"), None);
    assert!(failure(200, "net::ERR_ABORTED").is_some());
    assert!(failure(404, "net::ERR_CONNECTION_RESET").is_some());
}

#[test]
fn unknown_messages_are_ignored() {
    check(
        &[
            json!({"method": "Page.frameNavigated", "params": {"frame": {}}}),
            json!({"method": 5}),
            json!({}),
            message("requestWillBeSent", json!({"requestId": 7})),
            ended("loadingFinished", "unknown", 1.0),
        ],
        &[],
    );
}

#[test]
fn invalid_logs_are_rejected() {
    for bytes in [&b""[..], b"{}", b"[{\"method\"", b"[1]"] {
        assert!(matches!(ProtocolLog::read(bytes), Err(TraceError::Json(_))));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = ProtocolLog::read(&bytes);
    }
}
