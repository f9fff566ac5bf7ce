use serde_json::json;

use super::*;
use crate::testing::{exchange, headers, recording, recording_of};
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
        json!({"type": "delay", "pattern": "a", "ms": 100.0}),
        json!({"type": "setHeader", "pattern": "a", "name": "b", "value": "c"}),
        json!({"type": "removeHeader", "pattern": "a", "name": "b"}),
        json!({"type": "replaceBody", "pattern": "a", "text": "b"}),
        json!({"type": "replaceText", "pattern": "a", "from": "b", "to": "c"}),
        json!({"type": "insertHead", "html": "<link>"}),
        json!({"type": "setAttribute", "selector": "img", "name": "a", "value": "b", "pattern": "c"}),
        json!({"type": "removeAttribute", "selector": "img", "name": "a"}),
        json!({"type": "inlineStylesheet", "pattern": "a"}),
        json!({"type": "serveFromFirstParty", "hosts": ["a.test"]}),
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
            json!({"type": "delay", "pattern": "*", "ms": -1}),
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
fn markup_is_inserted_into_the_main_document_by_default() {
    let mut frame = exchange(
        "https://third.test/f.html",
        "text/html; charset=utf-8",
        "<head>",
    );
    frame.started_ms = 5.0;
    let mut recording = recording();
    recording.exchanges.push(frame);
    let html = "<link rel=preconnect href=https://third.test>";
    let main = changed(&recording, json!({"type": "insertHead", "html": html}));
    assert!(content(&main, 0).contains(&format!("<head>{html}<link rel=stylesheet")));
    assert_eq!(content(&main, 5), "<head>");
    let all = changed(
        &recording,
        json!({"type": "insertHead", "html": html, "pattern": "*"}),
    );
    assert_eq!(all.effects[0].exchanges, 2);
    assert_eq!(content(&all, 5), format!("<head>{html}"));
}

#[test]
fn attributes_of_elements_are_changed() {
    let recording = page("<img src=a.png><img src=b.png loading=lazy>", &[]);
    let set = json!({
        "type": "setAttribute", "selector": "img:not([loading])", "name": "fetchpriority", "value": "high",
    });
    let set = changed(&recording, set);
    assert_eq!(
        content(&set, 0),
        "<img fetchpriority=\"high\" src=a.png><img src=b.png loading=lazy>"
    );
    let removed = json!({"type": "removeAttribute", "selector": "img", "name": "loading"});
    let removed = changed(&recording, removed);
    assert_eq!(content(&removed, 0), "<img src=a.png><img src=b.png >");
}

#[test]
fn a_content_security_policy_does_not_forbid_inserted_markup() {
    let html = "<head><meta http-equiv=Content-Security-Policy content=\"default-src 'self'\">";
    let mut recording = page(html, &[]);
    let document = recording.exchanges[0].response.as_mut().unwrap();
    let policy = "script-src 'nonce-abc'; upgrade-insecure-requests";
    document
        .headers
        .extend(headers(&[("content-security-policy", policy)]));
    let changed = changed(
        &recording,
        json!({"type": "insertHead", "html": "<style>a{}</style>"}),
    );
    assert_eq!(
        content(&changed, 0),
        "<head><style>a{}</style><meta http-equiv=Content-Security-Policy content=\"\">"
    );
    let document = response(&changed.recording.exchanges[0]);
    assert_eq!(
        document.header("content-security-policy"),
        Some("upgrade-insecure-requests")
    );
    assert_eq!(
        changed.effects[0].notes,
        ["The content security policy of https://first.test/ is not applied."]
    );
}

#[test]
fn the_integrity_of_edited_resources_only_is_not_checked() {
    let html = "<base href=/x/><script src=a.js integrity=sha256-a></script>\
                <link rel=stylesheet href='https://third.test/b.css#c' integrity='sha256-b'>\
                <script src=/a.js integrity=sha256-c></script>";
    let recording = page(
        html,
        &[
            ("https://first.test/x/a.js", "text/javascript", "one"),
            ("https://third.test/b.css", "text/css", "one"),
            ("https://first.test/a.js", "text/javascript", "two"),
        ],
    );
    let changed = changed(
        &recording,
        json!({"type": "replaceText", "pattern": "*", "from": "one", "to": "1"}),
    );
    let html = content(&changed, 0);
    assert!(
        !html.contains("sha256-a") && !html.contains("sha256-b"),
        "{html}"
    );
    assert!(html.contains("sha256-c"), "{html}");
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
fn a_style_sheet_is_inlined_in_place_of_its_link() {
    let html = "<head><link rel='stylesheet' href=/css/a.css media='(min-width: 9px)'>\
                <link rel=stylesheet href=/css/b.css><link rel=\"alternate stylesheet\" href=a.css>\
                <link rel=preload href=/css/a.css></head>";
    let css = "@charset \"utf-8\";a{b:url(../i.png)} c::after{content:'</style>'}";
    let recording = page(html, &[("https://first.test/css/a.css", "text/css", css)]);
    let inlined = changed(
        &recording,
        json!({"type": "inlineStylesheet", "pattern": "*.css"}),
    );
    assert_eq!(
        content(&inlined, 0),
        "<head><style media=\"(min-width: 9px)\">a{b:url(https://first.test/i.png)} \
         c::after{content:'<\\/style>'}</style>\
         <link rel=stylesheet href=/css/b.css><link rel=\"alternate stylesheet\" href=a.css>\
         <link rel=preload href=/css/a.css></head>"
    );
    assert_eq!(
        inlined.effects[0].notes,
        ["https://first.test/css/b.css is not inlined, since it is not in the recording."]
    );
    let missing = json!({"type": "inlineStylesheet", "pattern": "b.css"});
    assert!(error(&recording, missing).contains("not in the recording"));
}

#[test]
fn resources_of_other_hosts_are_served_by_the_first_party() {
    let html = "<link rel=preconnect href=https://cdn.test><script src=//cdn.test/a.js \
                integrity=sha256-a></script><img src=https://cdn.test.example/b><img \
                src=http://cdn.test/c><img src=wss://cdn.test/d>";
    let recording = page(
        html,
        &[
            (
                "https://cdn.test/a.js",
                "text/javascript",
                "f('https:\\/\\/cdn.test\\/x')",
            ),
            ("https://cdn.test/s/a.css", "text/css", "a{b:url(/i.png)}"),
            ("https://cdn.test/i.png", "image/png", "png"),
            ("https://other.test/", "text/plain", "https://cdn.test/?a"),
        ],
    );
    let moved = changed(
        &recording,
        json!({"type": "serveFromFirstParty", "hosts": ["*.cdn.test"]}),
    );
    assert_eq!(moved.effects[0].exchanges, 3);
    assert_eq!(
        content(&moved, 0),
        "<link rel=preconnect href=https://first.test/cdn.test><script \
         src=//first.test/cdn.test/a.js ></script><img src=https://cdn.test.example/b><img \
         src=http://cdn.test/c><img src=wss://cdn.test/d>"
    );
    assert_eq!(
        content(&moved, 1),
        "f('https:\\/\\/first.test\\/cdn.test\\/x')"
    );
    assert_eq!(
        content(&moved, 2),
        "a{b:url(https://first.test/cdn.test/i.png)}"
    );
    assert_eq!(content(&moved, 4), "https://first.test/cdn.test/?a");
    let urls: Vec<_> = moved
        .recording
        .exchanges
        .iter()
        .map(|it| it.url())
        .collect();
    assert_eq!(
        urls,
        [
            "https://first.test/",
            "https://first.test/cdn.test/a.js",
            "https://first.test/cdn.test/s/a.css",
            "https://first.test/cdn.test/i.png",
            "https://other.test/",
        ]
    );
    assert_eq!(
        moved.recording.exchanges[1].request_headers[0].1,
        "first.test"
    );
    let own = json!({"type": "serveFromFirstParty", "hosts": ["first.test"]});
    assert!(error(&recording, own).contains("affects nothing"));
}

#[test]
fn resources_that_a_moved_frame_names_by_path_are_found() {
    let recording = page(
        "<iframe src=https://frame.test/f></iframe>",
        &[
            (
                "https://frame.test/f",
                "text/html",
                "<script src=/f.js></script>",
            ),
            ("https://frame.test/f.js", "text/javascript", "1"),
        ],
    );
    let moved = changed(
        &recording,
        json!({"type": "serveFromFirstParty", "hosts": ["frame.test"]}),
    );
    let urls: Vec<_> = moved
        .recording
        .exchanges
        .iter()
        .map(|it| it.url())
        .collect();
    assert!(urls.contains(&"https://first.test/frame.test/f.js".to_owned()));
    assert!(urls.contains(&"https://first.test/f.js".to_owned()));
}
