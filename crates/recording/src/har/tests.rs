use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::{exchange, headers, recording, recording_of, recordings};
use crate::{ConnectResult, Protocol, RecordedResponse, Recording};

/// Returns an entry as the Network panel of Chrome writes it.
fn entry(url: &str, mime_type: &str, text: &str) -> Value {
    json!({
        "_initiator": {"type": "other"},
        "_priority": "VeryHigh",
        "_resourceType": "document",
        "cache": {},
        "connection": "443",
        "request": {
            "method": "GET",
            "url": url,
            "httpVersion": "h2",
            "headers": [
                {"name": ":authority", "value": "first.test"},
                {"name": ":path", "value": "/"},
                {"name": "Accept-Encoding", "value": "gzip, br"},
            ],
            "queryString": [],
            "cookies": [],
            "headersSize": -1,
            "bodySize": 0,
        },
        "response": {
            "status": 200,
            "statusText": "",
            "httpVersion": "h2",
            "headers": [
                {"name": "Content-Type", "value": mime_type},
                {"name": "content-length", "value": "99999"},
            ],
            "cookies": [],
            "content": {"size": text.len(), "mimeType": mime_type, "text": text},
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": -1,
            "_transferSize": 500,
            "_error": null,
        },
        "serverIPAddress": "192.0.2.1",
        "startedDateTime": "2026-11-18T05:00:00.250Z",
        "time": 120.5,
        "timings": {
            "blocked": 1.5, "dns": 10, "ssl": 30, "connect": 55, "send": 0.2,
            "wait": 80.25, "receive": 3.5, "_blocked_queueing": 1,
        },
    })
}

fn har(entries: Vec<Value>) -> Value {
    json!({"log": {
        "version": "1.2",
        "creator": {"name": "WebInspector", "version": "537.36"},
        "pages": [{
            "startedDateTime": "2026-11-18T05:00:00.000Z",
            "id": "page_1",
            "title": "https://first.test/",
            "pageTimings": {"onContentLoad": 100, "onLoad": 200},
        }],
        "entries": entries,
    }})
}

/// Reads a file with one entry and returns its response.
fn response(entry: Value) -> RecordedResponse {
    let mut recording = Recording::from_har(&har(vec![entry])).unwrap();
    recording.exchanges.remove(0).response.unwrap()
}

fn error(har: &Value) -> String {
    Recording::from_har(har).unwrap_err().to_string()
}

#[test]
fn a_file_of_chrome_is_read() {
    let mut script = entry(
        "https://third.test:8443/a.js?b=c#d",
        "text/javascript",
        "go()",
    );
    script["startedDateTime"] = "2026-11-18T06:00:00.125+01:00".into();
    script["response"]["httpVersion"] = "http/1.1".into();
    script["request"]["httpVersion"] = "http/1.1".into();
    script["timings"]["connect"] = (-1).into();
    let page = entry("https://first.test/", "text/html", "<p>é</p>");
    let recording = Recording::from_har(&har(vec![page, script])).unwrap();
    assert_eq!(recording.url, "https://first.test/");
    assert_eq!(recording.recorded_at, "2026-11-18T05:00:00Z");
    let [script, page] = &recording.exchanges[..] else {
        panic!("two exchanges");
    };
    assert_eq!(script.url(), "https://third.test:8443/a.js?b=c");
    assert_eq!((script.started_ms, page.started_ms), (125.0, 250.0));
    assert_eq!(
        page.request_headers,
        headers(&[("accept-encoding", "gzip, br")])
    );
    let response = page.response.as_ref().unwrap();
    assert_eq!(response.wait_ms, 80.25);
    assert_eq!(response.body, "<p>é</p>");
    assert_eq!(response.header("content-length"), Some("9"));
    assert_eq!(
        response.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let results: Vec<_> = recording.endpoints.iter().map(|it| &it.result).collect();
    let connected = |protocol, connect_ms, tls_ms| ConnectResult::Connected {
        protocol,
        connect_ms,
        tls_ms,
    };
    assert_eq!(
        results,
        [
            &connected(Protocol::Http2, 25.0, 30.0),
            &connected(Protocol::Http1, 0.0, 30.0)
        ]
    );
    assert_eq!(recording.main_document(), Some(1));
}

#[test]
fn a_title_that_is_not_a_request_of_the_file_is_not_the_visited_url() {
    let page = entry("https://other.test/", "text/html", "<p>");
    let recording = Recording::from_har(&har(vec![page])).unwrap();
    assert_eq!(recording.url, "https://other.test/");
}

#[test]
fn a_size_that_is_too_large_to_be_true_does_no_harm() {
    let mut page = entry("https://first.test/", "text/html", "<p>text</p>");
    page["response"]["bodySize"] = 1e300.into();
    let encoding = json!({"name": "content-encoding", "value": "gzip"});
    page["response"]["headers"] = json!([encoding]);
    assert_eq!(response(page).decoded_body().unwrap(), "<p>text</p>");
}

#[test]
fn contents_that_are_too_large_together_are_written_as_they_were_transferred() {
    let mut bomb = exchange("https://a.test/", "text/plain", "");
    let response = bomb.response.as_mut().unwrap();
    response.set_header("content-encoding", "gzip");
    response.set_decoded_body(&vec![b'a'; 60 << 20]).unwrap();
    let recording = recording_of(vec![bomb; 6]);
    let har = recording.to_har();
    let entries = har["log"]["entries"].as_array().unwrap();
    let contents = entries.iter().map(|it| &it["response"]["content"]["text"]);
    assert_eq!(contents.filter(|it| it.is_string()).count(), 4);
    assert_eq!(Recording::from_har(&har).unwrap(), recording);
}

#[test]
fn decoded_contents_are_encoded_again() {
    let text = "some text ".repeat(300);
    for coding in ["gzip", "br", "zstd", "deflate"] {
        let mut page = entry("https://first.test/", "text/html", &text);
        let list = page["response"]["headers"].as_array_mut().unwrap();
        list.push(json!({"name": "Content-Encoding", "value": coding}));
        let response = response(page);
        assert_eq!(response.header("content-encoding"), Some(coding));
        assert!(response.body.len() < 200, "{}", response.body.len());
        assert_eq!(response.decoded_body().unwrap(), text);
        let length = response.body.len().to_string();
        assert_eq!(response.header("content-length"), Some(length.as_str()));
    }
}

#[test]
fn an_unknown_encoding_or_an_empty_content_has_no_encoding() {
    for (coding, text) in [("dcb", "text"), ("gzip", "")] {
        let mut page = entry("https://first.test/", "text/html", text);
        let list = page["response"]["headers"].as_array_mut().unwrap();
        list.push(json!({"name": "content-encoding", "value": coding}));
        let response = response(page);
        assert_eq!(response.header("content-encoding"), None);
        assert_eq!(response.body, text);
    }
}

#[test]
fn contents_in_base64_and_missing_contents_are_read() {
    let mut image = entry("https://first.test/a.png", "image/png", "iVBORw0KGgo=");
    image["response"]["content"]["encoding"] = "base64".into();
    assert_eq!(response(image.clone()).body, &b"\x89PNG\r\n\x1a\n"[..]);
    image["response"]["content"]["text"] = "%".into();
    let message = error(&har(vec![image.clone()]));
    assert!(
        message.contains("entry 1: its content is not Base64"),
        "{message}"
    );
    let content = image["response"]["content"].as_object_mut().unwrap();
    content.remove("text");
    let response = response(image);
    assert!(response.body.is_empty() && response.chunks.is_empty());
    assert_eq!(response.header("content-length"), Some("0"));
}

#[test]
fn entries_that_are_no_requests_over_the_network_are_left_out() {
    let mut cached = entry("https://first.test/cached", "text/css", "a{}");
    cached["_fromCache"] = "memory".into();
    let mut not_modified = entry("https://first.test/304", "text/css", "");
    not_modified["response"]["status"] = 304.into();
    let data = entry("data:text/css,a", "text/css", "a");
    let socket = entry("wss://first.test/socket", "", "");
    let blob = entry("blob:https://first.test/1", "text/html", "");
    let page = entry("https://first.test/", "text/html", "<p>");
    let all = vec![cached.clone(), not_modified, data, socket, blob, page];
    let recording = Recording::from_har(&har(all)).unwrap();
    assert_eq!(recording.exchanges.len(), 1);
    assert_eq!(recording.endpoints.len(), 1);
    assert_eq!(
        Recording::from_har(&har(vec![cached])),
        Err(HarError::NoRequests)
    );
}

#[test]
fn a_content_of_the_cache_is_sent_again() {
    let mut page = entry("https://first.test/a.css", "text/css", "a{}");
    page["response"]["status"] = 304.into();
    let response = response(page);
    assert_eq!((response.status, &response.body[..]), (200, &b"a{}"[..]));
}

#[test]
fn a_failed_request_has_no_response() {
    let mut page = entry("https://first.test/", "text/html", "");
    page["response"]["_error"] = "net::ERR_CONNECTION_RESET".into();
    for status in [0, -1] {
        page["response"]["status"] = status.into();
        let recording = Recording::from_har(&har(vec![page.clone()])).unwrap();
        assert_eq!(recording.exchanges[0].response, None);
    }
}

#[test]
fn several_cookies_in_one_header_are_split() {
    let mut page = entry("https://first.test/", "text/html", "");
    let list = page["response"]["headers"].as_array_mut().unwrap();
    list.push(json!({"name": "Set-Cookie", "value": "a=1\nb=2"}));
    let response = response(page);
    let cookies = response
        .headers
        .iter()
        .filter(|(name, _)| name == "set-cookie");
    assert_eq!(cookies.count(), 2);
}

#[test]
fn files_of_another_kind_are_refused() {
    for value in [json!(null), json!([]), json!({"log": {"entries": {}}})] {
        assert_eq!(Recording::from_har(&value), Err(HarError::NoEntries));
    }
    let mut page = entry("https://first.test/", "text/html", "");
    page["request"]["method"] = "G T".into();
    let message = error(&har(vec![page]));
    assert!(message.contains("its method is invalid"), "{message}");
    let message = error(&har(vec![json!({})]));
    assert_eq!(
        message,
        "the HAR file is invalid: entry 1: request.url is missing"
    );
    let mut own = recording().to_har();
    own["log"]["entries"][0]["_recorded"]["chunks"] = 1.into();
    own["log"]["entries"][0]["_recorded"]["startedMs"] = "a".into();
    let message = error(&own);
    assert!(message.contains("entry 1: _recorded: "), "{message}");
}

#[test]
fn what_is_written_is_what_other_tools_read() {
    let har = recording().to_har();
    let entry = &har["log"]["entries"][1];
    assert_eq!(entry["request"]["url"], "https://first.test/a.css");
    assert_eq!(entry["response"]["content"]["text"], "a { color: red }");
    assert_eq!(entry["response"]["content"]["size"], 16);
    assert_eq!(entry["response"]["bodySize"], 16);
    assert_eq!(entry["timings"]["wait"], 20.0);
    assert_eq!(entry["timings"]["connect"], -1.0);
    assert_eq!(har["log"]["entries"][0]["timings"]["connect"], 22.5);
    assert_eq!(entry["startedDateTime"], "2026-11-18T05:00:00Z");
    assert_eq!(har["log"]["entries"][4]["response"]["status"], 0);
}

#[test]
fn a_redacted_recording_has_no_secret_as_har() {
    let mut recording = recording();
    let document = &mut recording.exchanges[0];
    let cookie = headers(&[("cookie", "sid=canary-session-1")]);
    document.request_headers.extend(cookie);
    assert!(recording.to_har().to_string().contains("canary"));
    recording.redact();
    assert!(!recording.to_har().to_string().contains("canary"));
}

#[test]
fn compressed_and_incomplete_bodies_survive() {
    let mut recording = recording();
    for (index, coding) in [(1, "gzip"), (2, "br")] {
        let response = recording.exchanges[index].response.as_mut().unwrap();
        let content = response.decoded_body().unwrap();
        response
            .headers
            .extend(headers(&[("content-encoding", coding)]));
        response.body = bytes::Bytes::new();
        response.set_decoded_body(&content).unwrap();
    }
    let cut_off = recording.exchanges[2].response.as_mut().unwrap();
    cut_off.set_body(cut_off.body.slice(..5));
    cut_off.is_cut_off = true;
    let har = recording.to_har();
    assert_eq!(
        har["log"]["entries"][1]["response"]["content"]["text"],
        "a { color: red }"
    );
    assert_eq!(Recording::from_har(&har).unwrap(), recording);
}

proptest! {
    #[test]
    fn a_recording_that_is_written_and_read_is_the_same(recording in recordings()) {
        let text = recording.to_har().to_string();
        let har: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(Recording::from_har(&har).unwrap(), recording);
    }

    #[test]
    fn no_change_of_a_file_makes_reading_panic(
        position in any::<prop::sample::Index>(),
        text in "[0-9\\-\"{}\\[\\]a-z,:]{0,3}",
    ) {
        let mut file = har(vec![entry("https://a.test/", "text/html", "a")]).to_string();
        let position = position.index(file.len());
        file.replace_range(position..=position, &text);
        if let Ok(value) = serde_json::from_str(&file) {
            let _ = Recording::from_har(&value);
        }
    }
}
