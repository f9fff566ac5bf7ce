mod documents;
mod pictures;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::{exchange, headers, recording, recording_of, recordings};
use crate::{ConnectFailure, ConnectResult, Handling, RecordedExchange, RecordedResponse};

/// Parses a change as a user writes it.
fn change(value: serde_json::Value) -> Change {
    serde_json::from_value(value).unwrap()
}

/// Applies one change.
fn changed(recording: &Recording, value: serde_json::Value) -> Changed {
    let changed = recording.with_changes(&[change(value)]).unwrap();
    changed.recording.check().unwrap();
    changed
}

/// Returns the message of the error of one change.
fn error(recording: &Recording, value: serde_json::Value) -> String {
    let error = recording.with_changes(&[change(value)]).unwrap_err();
    error.to_string()
}

fn response(exchange: &RecordedExchange) -> &RecordedResponse {
    exchange.response.as_ref().unwrap()
}

/// Returns the decoded content of a response.
fn content(changed: &Changed, index: usize) -> String {
    let content = response(&changed.recording.exchanges[index]).decoded_body();
    String::from_utf8(content.unwrap().to_vec()).unwrap()
}

/// Returns a recording of a document and of resources in it.
fn page(html: &str, resources: &[(&str, &str, &str)]) -> Recording {
    let mut exchanges = vec![exchange("https://first.test/", "text/html", html)];
    let resources = resources.iter();
    exchanges.extend(resources.map(|(url, kind, text)| exchange(url, kind, text)));
    recording_of(exchanges)
}

#[test]
fn changes_are_written_as_they_are_read() {
    for value in [
        json!({"type": "block", "pattern": "*.js"}),
        json!({"type": "block", "pattern": {"host": "a.test"}}),
        json!({"type": "block", "pattern": {"hosts": ["a.test", "*.b.test"]}}),
        json!({"type": "blackhole", "host": "a.test"}),
        json!({"type": "delay", "pattern": "a", "ms": 100}),
        json!({"type": "setHeader", "pattern": "a", "name": "b", "value": "c"}),
        json!({"type": "removeHeader", "pattern": "a", "name": "b"}),
        json!({"type": "replaceBody", "pattern": "a", "text": "b"}),
        json!({"type": "replaceText", "pattern": "a", "from": "b", "to": "c"}),
        json!({"type": "insertHead", "html": "<link>"}),
        json!({"type": "setAttribute", "selector": "img", "name": "a", "value": "b", "pattern": "c"}),
        json!({"type": "removeAttribute", "selector": "img", "name": "a"}),
        json!({"type": "inlineStylesheet", "pattern": "a"}),
        json!({"type": "serveFromFirstParty", "hosts": ["a.test"]}),
        json!({"type": "minify"}),
        json!({"type": "minify", "pattern": "a"}),
        json!({"type": "recompressImages", "quality": 60}),
        json!({"type": "resizeImages", "maxWidth": 600, "pattern": "a"}),
        json!({"type": "compressText"}),
        json!({"type": "setProtocol", "protocol": "h2"}),
        json!({"type": "setProtocol", "host": "a.test", "protocol": "http/1.1"}),
    ] {
        let parsed = change(value.clone());
        assert_eq!(serde_json::to_value(&parsed).unwrap(), value);
        assert!(!parsed.to_string().is_empty());
    }
}

#[test]
fn unknown_changes_and_members_are_refused() {
    for (value, word) in [
        (json!({"type": "blok", "pattern": "a"}), "blok"),
        (
            json!({"type": "block", "pattern": "a", "host": "b"}),
            "host",
        ),
        (json!({"type": "block"}), "pattern"),
        (
            json!({"type": "block", "pattern": 1}),
            "a pattern is a text",
        ),
        (
            json!({"type": "block", "pattern": {"hosts": []  , "x": 1}}),
            "a pattern is a text",
        ),
        (json!({"type": "setProtocol", "protocol": "h3"}), "h3"),
        (json!({"type": "compressText", "level": 9}), "level"),
    ] {
        let error = serde_json::from_value::<Change>(value).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn a_change_without_an_effect_is_named() {
    let recording = recording();
    let changes = [
        change(json!({"type": "block", "pattern": "t.js"})),
        change(json!({"type": "delay", "pattern": "*.woff2", "ms": 5})),
    ];
    let error = recording.with_changes(&changes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "change 2 (delay *.woff2 by 5 ms): it affects nothing in the recording"
    );
}

#[test]
fn invalid_values_are_explained() {
    let recording = recording();
    for (value, message) in [
        (
            json!({"type": "block", "pattern": ""}),
            "the pattern is empty",
        ),
        (
            json!({"type": "block", "pattern": {"hosts": []}}),
            "the pattern is empty",
        ),
        (
            json!({"type": "delay", "pattern": "*", "ms": 600001}),
            "between 0 and 600000",
        ),
        (
            json!({"type": "setHeader", "pattern": "*", "name": "a b", "value": ""}),
            "`a b` is not the name of a header",
        ),
        (
            json!({"type": "setHeader", "pattern": "*", "name": "a", "value": "b\r\nc: d"}),
            "one line",
        ),
        (
            json!({"type": "setHeader", "pattern": "*", "name": "Content-Length", "value": "1"}),
            "cannot be changed",
        ),
        (
            json!({"type": "replaceText", "pattern": "*", "from": "", "to": "a"}),
            "`from` is empty",
        ),
        (
            json!({"type": "setAttribute", "selector": "a:b", "name": "c", "value": ""}),
            "the selector `a:b` is not supported",
        ),
        (
            json!({"type": "setAttribute", "selector": "a", "name": "b=", "value": ""}),
            "not the name of an attribute",
        ),
    ] {
        let error = error(&recording, value);
        assert!(error.contains(message), "{error}");
    }
    let error = error(
        &Recording::default(),
        json!({"type": "insertHead", "html": "<p>"}),
    );
    assert!(
        error.ends_with("the recording has no main document"),
        "{error}"
    );
}

#[test]
fn blocked_requests_fail_and_their_server_refuses_connections() {
    let changed = changed(
        &recording(),
        json!({"type": "block", "pattern": {"hosts": ["third.test"]}}),
    );
    assert_eq!(changed.effects[0].exchanges, 3);
    assert_eq!(changed.effects[0].endpoints, 1);
    let is_blocked = |it: &RecordedExchange| it.handling == Handling::Blocked;
    let blocked: Vec<_> = changed.recording.exchanges.iter().map(is_blocked).collect();
    assert_eq!(blocked, [false, false, true, true, true]);
    let refused = ConnectResult::Failed(ConnectFailure::Refused);
    assert_eq!(changed.recording.endpoints[1].result, refused);
}

#[test]
fn a_server_with_other_requests_still_accepts_connections() {
    let changed = changed(&recording(), json!({"type": "block", "pattern": "t.js"}));
    assert_eq!(
        (changed.effects[0].exchanges, changed.effects[0].endpoints),
        (2, 0)
    );
    let result = &changed.recording.endpoints[1].result;
    assert!(matches!(result, ConnectResult::Connected { .. }));
}

#[test]
fn a_blackholed_server_is_silent() {
    let changed = changed(&recording(), json!({"type": "blackhole", "host": "*.test"}));
    assert_eq!(
        (changed.effects[0].exchanges, changed.effects[0].endpoints),
        (5, 3)
    );
    let mut endpoints = changed.recording.endpoints.iter();
    assert!(endpoints.all(|it| it.result == ConnectResult::Silent));
}

#[test]
fn a_delay_is_added_to_the_wait() {
    let changed = changed(
        &recording(),
        json!({"type": "delay", "pattern": "t.js", "ms": 300}),
    );
    assert_eq!(changed.effects[0].exchanges, 2);
    let waits = changed.recording.exchanges.iter();
    let waits: Vec<_> = waits
        .filter_map(|it| Some(it.response.as_ref()?.wait_ms))
        .collect();
    assert_eq!(waits, [20.0, 20.0, 320.0, 320.0]);
}

#[test]
fn headers_are_set_and_removed() {
    let set = json!({"type": "setHeader", "pattern": ".css", "name": "Cache-Control", "value": "no-store"});
    let once = changed(&recording(), set.clone());
    let sheet = response(&once.recording.exchanges[1]);
    assert_eq!(sheet.header("cache-control"), Some("no-store"));
    assert!(error(&once.recording, set).contains("affects nothing"));
    let remove = json!({"type": "removeHeader", "pattern": "*", "name": "cache-control"});
    let twice = changed(&once.recording, remove);
    assert_eq!(twice.effects[0].exchanges, 1);
    assert_eq!(twice.recording, recording());
}

#[test]
fn bodies_and_texts_are_replaced() {
    let replaced = changed(
        &recording(),
        json!({"type": "replaceBody", "pattern": ".css", "text": "b{}"}),
    );
    assert_eq!(content(&replaced, 1), "b{}");
    let sheet = response(&replaced.recording.exchanges[1]);
    assert_eq!(sheet.header("content-length"), Some("3"));
    let replaced = changed(
        &recording(),
        json!({"type": "replaceText", "pattern": "*", "from": "a", "to": "bc"}),
    );
    assert_eq!(content(&replaced, 2), "let bc = 1;");
    assert_eq!(content(&replaced, 1), "bc { color: red }");
    assert_eq!(replaced.effects[0].exchanges, 4);
}

#[test]
fn compressed_bodies_stay_compressed() {
    let mut recording = recording();
    for (index, coding) in [(1, "gzip"), (2, "br"), (3, "zstd")] {
        let response = recording.exchanges[index].response.as_mut().unwrap();
        let content = response.decoded_body().unwrap();
        response
            .headers
            .extend(headers(&[("content-encoding", coding)]));
        response.body = bytes::Bytes::new();
        response.set_decoded_body(&content).unwrap();
        assert_ne!(response.body, content);
    }
    let changed = changed(
        &recording,
        json!({"type": "replaceText", "pattern": "*", "from": "a ", "to": "longer name "}),
    );
    assert_eq!(content(&changed, 1), "longer name { color: red }");
    assert_eq!(content(&changed, 2), "let longer name = 1;");
    assert_eq!(content(&changed, 3), "let longer name = 1;");
    let codings = changed.recording.exchanges[1..4].iter();
    let codings: Vec<_> = codings
        .map(|it| response(it).header("content-encoding"))
        .collect();
    assert_eq!(codings, [Some("gzip"), Some("br"), Some("zstd")]);
}

#[test]
fn incomplete_and_undecodable_bodies_are_left_and_noted() {
    let mut recording = recording();
    recording.exchanges[1].response.as_mut().unwrap().is_cut_off = true;
    let value = json!({"type": "replaceText", "pattern": ".css", "from": "a", "to": "b"});
    let message = error(&recording, value);
    assert!(
        message.contains("https://first.test/a.css is not changed"),
        "{message}"
    );
    assert!(message.contains("its body is incomplete"), "{message}");
    let response = recording.exchanges[2].response.as_mut().unwrap();
    response.set_header("content-encoding", "gzip");
    let value = json!({"type": "replaceText", "pattern": "t.js", "from": "a", "to": "b"});
    let changed = changed(&recording, value);
    assert_eq!(changed.effects[0].exchanges, 1);
    assert_eq!(changed.effects[0].notes.len(), 1);
}

#[test]
fn the_protocol_of_servers_is_set() {
    let mut recording = recording();
    let one = changed(
        &recording,
        json!({"type": "setProtocol", "host": "third.test", "protocol": "h2"}),
    );
    assert_eq!((one.effects[0].exchanges, one.effects[0].endpoints), (3, 1));
    let all = changed(&recording, json!({"type": "setProtocol", "protocol": "h2"}));
    assert_eq!(all.effects[0].endpoints, 2);
    recording.endpoints[1].endpoint.is_secure = false;
    let secure = changed(&recording, json!({"type": "setProtocol", "protocol": "h2"}));
    assert_eq!(secure.effects[0].endpoints, 1);
    assert!(secure.effects[0].notes[0].contains("keeps HTTP/1.1"));
    let same = error(
        &recording,
        json!({"type": "setProtocol", "protocol": "http/1.1"}),
    );
    assert!(same.contains("affects nothing"), "{same}");
}

#[test]
fn texts_without_compression_are_compressed() {
    let script = "let some = 'script'; ".repeat(100);
    let mut recording = page(
        "<p>short",
        &[
            ("https://first.test/a.js", "text/javascript", &script),
            ("https://first.test/b.js", "text/javascript", &script),
            ("https://first.test/c.jpg", "image/jpeg", &script),
        ],
    );
    recording.exchanges[2].request_headers = headers(&[("accept-encoding", "gzip;q=0.5")]);
    let compressed = changed(&recording, json!({"type": "compressText"}));
    assert_eq!(compressed.effects[0].exchanges, 2);
    for (index, coding) in [(1, "br"), (2, "gzip")] {
        assert_eq!(content(&compressed, index), script);
        let response = response(&compressed.recording.exchanges[index]);
        assert_eq!(response.header("content-encoding"), Some(coding));
        assert!(response.body.len() < 100);
    }
    assert!(error(&compressed.recording, json!({"type": "compressText"})).contains("nothing"));
}

#[test]
fn scripts_and_style_sheets_are_minified() {
    let recording = page(
        "<p>a  b",
        &[
            (
                "https://first.test/a.js",
                "application/javascript",
                "a = 1; // why",
            ),
            (
                "https://first.test/b.css",
                "text/css; charset=utf-8",
                "a { b: c }",
            ),
            (
                "https://first.test/c.js",
                "text/javascript",
                "} /'/ // not understood",
            ),
        ],
    );
    let minified = changed(&recording, json!({"type": "minify"}));
    assert_eq!(minified.effects[0].exchanges, 2);
    assert_eq!(content(&minified, 1), "a=1;");
    assert_eq!(content(&minified, 2), "a{b: c}");
    assert_eq!(minified.recording.exchanges[3], recording.exchanges[3]);
    let one = changed(&recording, json!({"type": "minify", "pattern": "*.css"}));
    assert_eq!(one.effects[0].exchanges, 1);
}

#[test]
fn a_change_that_exceeds_the_limits_is_refused() {
    let mut exchanges = vec![
        exchange("https://first.test/", "text/html", "a"),
        exchange("https://frame.test/", "text/html", "a"),
    ];
    let urls = (0..10_000).map(|n| format!("https://frame.test/{n}"));
    exchanges.extend(urls.map(|url| exchange(&url, "text/plain", "a")));
    let recording = recording_of(exchanges);
    let value = json!({"type": "serveFromFirstParty", "hosts": ["frame.test"]});
    let message = error(&recording, value);
    assert!(message.contains("it has 20002 exchanges"), "{message}");
}

#[test]
fn a_content_does_not_grow_beyond_what_can_be_decoded() {
    let recording = page(&"a".repeat(10_000), &[]);
    let long = "b".repeat(10_000);
    let value = json!({"type": "replaceText", "pattern": "*", "from": "a", "to": long});
    let message = error(&recording, value);
    assert!(
        message.contains("has more than 67108864 bytes"),
        "{message}"
    );
    let link = "<link rel=stylesheet href=/a.css>";
    let sheet = format!("/*{}*/", "a".repeat(1 << 20));
    let resources = [("https://first.test/a.css", "text/css", sheet.as_str())];
    let recording = page(&link.repeat(100), &resources);
    let value = json!({"type": "inlineStylesheet", "pattern": "*"});
    let message = error(&recording, value);
    assert!(
        message.contains("has more than 67108864 bytes"),
        "{message}"
    );
}

#[test]
fn a_change_stops_when_the_recording_is_too_large() {
    let resource = exchange("https://a.test/", "text/plain", "a");
    let recording = recording_of(vec![resource; 1000]);
    let text = "b".repeat(1 << 20);
    let value = json!({"type": "replaceBody", "pattern": "*", "text": text});
    let message = error(&recording, value);
    assert!(message.contains("its bodies have more than"), "{message}");
}

#[test]
fn the_notes_of_a_change_are_limited() {
    let mut resource = exchange("https://a.test/", "text/plain", "a");
    resource.response.as_mut().unwrap().is_cut_off = true;
    let mut exchanges = vec![resource; 1000];
    exchanges.push(exchange("https://a.test/", "text/plain", "a"));
    let recording = recording_of(exchanges);
    let value = json!({"type": "replaceBody", "pattern": "*", "text": "b"});
    assert_eq!(changed(&recording, value).effects[0].notes.len(), 100);
}

#[test]
fn a_pattern_of_a_host_needs_a_name() {
    let value = json!({"type": "blackhole", "host": "*."});
    assert!(error(&recording(), value).contains("affects nothing"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_changed_recording_is_valid(
        recording in recordings(),
        pattern in "[ab*]|test",
        text in "[a-c<>/ ]{0,8}",
    ) {
        for value in [
            json!({"type": "block", "pattern": pattern}),
            json!({"type": "blackhole", "host": "*.test"}),
            json!({"type": "delay", "pattern": pattern, "ms": 5}),
            json!({"type": "setHeader", "pattern": pattern, "name": "a", "value": text}),
            json!({"type": "replaceBody", "pattern": pattern, "text": text}),
            json!({"type": "replaceText", "pattern": pattern, "from": "a", "to": text}),
            json!({"type": "insertHead", "html": text}),
            json!({"type": "serveFromFirstParty", "hosts": ["b.test", "c.test"]}),
            json!({"type": "minify"}),
            json!({"type": "setProtocol", "protocol": "h2"}),
        ] {
            if let Ok(changed) = recording.with_changes(&[change(value)]) {
                prop_assert!(changed.recording.check().is_ok());
                prop_assert_eq!(changed.effects.len(), 1);
                prop_assert_ne!(changed.recording, recording.clone());
            }
        }
    }
}
