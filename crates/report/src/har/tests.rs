use super::*;
use crate::testing::bundle_with_log;

fn entries(log: &str) -> Vec<Value> {
    archive(&bundle_with_log(log))["log"]["entries"]
        .as_array()
        .unwrap()
        .clone()
}

const ONE: &str = r#"[
    {"method": "Network.requestWillBeSent", "params": {"requestId": "1", "timestamp": 100.0, "wallTime": 1000000000.5,
      "type": "Script", "initiator": {"type": "parser", "url": "https://a.test/", "lineNumber": 3},
      "request": {"url": "https://a.test/x.js?q=a%20b&r#f", "method": "GET", "headers": {"A": "b"}}}},
    {"method": "Network.responseReceived", "params": {"requestId": "1", "timestamp": 100.5, "type": "Script",
      "response": {"status": 200, "statusText": "OK", "protocol": "h2", "mimeType": "text/javascript",
        "headers": {"Content-Encoding": "gzip", "Set-Cookie": "a=b"}, "encodedDataLength": 100, "connectionId": 7,
        "remoteIPAddress": "127.0.0.1", "remotePort": 41535,
        "timing": {"requestTime": 100.01, "dnsStart": 2, "dnsEnd": 12, "connectStart": 12, "connectEnd": 62,
          "sslStart": 32, "sslEnd": 62, "sendStart": 63, "sendEnd": 64, "receiveHeadersEnd": 164}}}},
    {"method": "Network.dataReceived", "params": {"requestId": "1", "dataLength": 5000, "encodedDataLength": 900}},
    {"method": "Network.loadingFinished", "params": {"requestId": "1", "timestamp": 100.274, "encodedDataLength": 1100}}
]"#;

#[test]
fn the_phases_add_up_to_the_total_time() {
    let entry = &entries(ONE)[0];
    let timings = &entry["timings"];
    let of = |name: &str| timings[name].as_f64().unwrap();
    assert_eq!(
        ["blocked", "dns", "connect", "ssl", "send", "wait"].map(of),
        [13.0, 10.0, 50.0, 30.0, 1.0, 100.0]
    );
    let sum: f64 = ["blocked", "dns", "connect", "send", "wait", "receive"]
        .map(of)
        .iter()
        .sum();
    assert!(
        (sum - entry["time"].as_f64().unwrap()).abs() < 0.01,
        "{entry}"
    );
}

#[test]
fn an_entry_has_url_sizes_and_cookies_but_not_the_proxys_address() {
    let entry = &entries(ONE)[0];
    assert_eq!(entry["startedDateTime"], "2001-09-09T01:46:40.500Z");
    assert_eq!(entry["request"]["url"], "https://a.test/x.js?q=a%20b&r");
    assert_eq!(
        entry["request"]["queryString"],
        json!([pair("q", "a b"), pair("r", "")])
    );
    assert_eq!(entry["response"]["content"]["size"], 5000);
    assert_eq!(entry["response"]["content"]["compression"], 4000);
    assert_eq!(entry["response"]["bodySize"], 1000);
    assert_eq!(entry["response"]["cookies"][0]["name"], "a");
    assert_eq!(entry["connection"], "7");
    assert_eq!(
        entry["_initiator"],
        json!({"type": "parser", "url": "https://a.test/"})
    );
    // Chromium connected to the proxy of the emulated network.
    assert!(!entry.to_string().contains("41535"), "{entry}");
}

#[test]
fn a_request_that_failed_has_status_zero_and_its_reason() {
    let entry = &entries(
        r#"[
        {"method": "Network.requestWillBeSent", "params": {"requestId": "1", "timestamp": 1, "wallTime": 1,
          "request": {"url": "https://a.test/", "method": "POST", "postData": "k=v",
            "headers": {"Content-Type": "text/plain"}}}},
        {"method": "Network.loadingFailed", "params": {"requestId": "1", "timestamp": 3, "errorText": "net::ERR_FAILED"}}
    ]"#,
    )[0];
    assert_eq!(entry["response"]["status"], 0);
    assert_eq!(entry["response"]["_error"], "net::ERR_FAILED");
    assert_eq!(entry["time"], 2000.0);
    assert_eq!(entry["request"]["postData"]["text"], "k=v");
}

#[test]
fn a_data_url_is_not_an_entry() {
    let log = r#"[{"method": "Network.requestWillBeSent", "params": {"requestId": "1", "timestamp": 1,
        "request": {"url": "data:text/plain,hi"}}}]"#;
    assert!(entries(log).is_empty());
}
