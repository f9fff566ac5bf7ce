use plumbline_trace::header;

use super::*;
use crate::testing::bundle_with_log;

fn network(log: &str) -> Network {
    Network::of(&bundle_with_log(log))
}

#[test]
fn a_redirect_is_two_exchanges_with_their_own_headers() {
    let network_log = network(
        r#"[
        {"method": "Network.requestWillBeSentExtraInfo", "params": {"requestId": "1", "headers": {"Host": "first"}}},
        {"method": "Network.requestWillBeSent", "params": {"requestId": "1", "timestamp": 1, "wallTime": 100,
          "type": "Document", "request": {"url": "http://a.test/", "method": "GET"}}},
        {"method": "Network.responseReceivedExtraInfo", "params": {"requestId": "1", "headers": {"Location": "/b"}}},
        {"method": "Network.requestWillBeSentExtraInfo", "params": {"requestId": "1", "headers": {"Host": "second"}}},
        {"method": "Network.requestWillBeSent", "params": {"requestId": "1", "timestamp": 2, "type": "Document",
          "redirectHasExtraInfo": true, "request": {"url": "http://a.test/b", "method": "GET"},
          "redirectResponse": {"status": 302, "encodedDataLength": 50}}},
        {"method": "Network.responseReceived", "params": {"requestId": "1", "timestamp": 3, "type": "Document",
          "hasExtraInfo": true, "response": {"status": 200, "encodedDataLength": 70}}},
        {"method": "Network.responseReceivedExtraInfo", "params": {"requestId": "1", "headers": {"Set-Cookie": "a=1\nb=2"}}},
        {"method": "Network.dataReceived", "params": {"requestId": "1", "dataLength": 400, "encodedDataLength": 0}},
        {"method": "Network.loadingFinished", "params": {"requestId": "1", "timestamp": 4, "encodedDataLength": 170}}
    ]"#,
    );
    let [first, second] = &network_log.exchanges().collect::<Vec<_>>()[..] else {
        panic!("two exchanges");
    };
    assert_eq!(first.redirect_url, Some("http://a.test/b"));
    assert_eq!((first.transfer_bytes(), first.end_us), (50, Some(2e6)));
    assert_eq!(
        first.request_headers,
        [("Host".to_owned(), "first".to_owned())]
    );
    assert_eq!(
        second.request_headers,
        [("Host".to_owned(), "second".to_owned())]
    );
    assert_eq!((second.transfer_bytes(), second.resource_bytes), (170, 400));
    let response = second.response.as_ref().unwrap();
    assert_eq!(
        header(response.sent_headers(), "set-cookie").collect::<Vec<_>>(),
        ["a=1", "b=2"]
    );
}

#[test]
fn an_exchange_reported_by_two_sessions_is_counted_once() {
    let network_log = network(
        r#"[
        {"method": "Network.requestWillBeSent", "sessionId": "page", "params": {"requestId": "F", "timestamp": 1,
          "type": "Document", "request": {"url": "http://b.test/"}}},
        {"method": "Network.responseReceived", "sessionId": "frame", "params": {"requestId": "F", "timestamp": 2,
          "response": {"status": 200}}},
        {"method": "Network.loadingFinished", "sessionId": "frame", "params": {"requestId": "F", "timestamp": 3}}
    ]"#,
    );
    assert_eq!(network_log.exchanges().count(), 1);
    assert_eq!(network_log.exchanges[0].end_us, Some(3e6));
}

#[test]
fn a_failed_exchange_has_a_reason_and_an_unfinished_one_has_no_end() {
    let network_log = network(
        r#"[
        {"method": "Network.requestWillBeSent", "params": {"requestId": "1", "timestamp": 1, "request": {"url": "http://a.test/x"}}},
        {"method": "Network.loadingFailed", "params": {"requestId": "1", "timestamp": 2,
          "errorText": "net::ERR_BLOCKED_BY_CLIENT", "blockedReason": "inspector"}},
        {"method": "Network.requestWillBeSent", "params": {"requestId": "2", "timestamp": 1, "request": {"url": "http://a.test/y"}}}
    ]"#,
    );
    assert_eq!(
        network_log
            .exchanges()
            .next()
            .and_then(|exchange| exchange.failure_text())
            .as_deref(),
        Some("net::ERR_BLOCKED_BY_CLIENT (inspector)")
    );
    assert_eq!(network_log.exchanges[1].end_us, None);
}

#[test]
fn a_web_socket_is_an_exchange() {
    let network_log = network(
        r#"[
        {"method": "Network.webSocketCreated", "params": {"requestId": "w", "url": "ws://a.test/s"}},
        {"method": "Network.webSocketWillSendHandshakeRequest", "params": {"requestId": "w", "timestamp": 1,
          "wallTime": 100, "request": {"headers": {"Upgrade": "websocket"}}}},
        {"method": "Network.webSocketHandshakeResponseReceived", "params": {"requestId": "w", "timestamp": 2,
          "response": {"status": 101, "statusText": "Switching Protocols", "headers": {}}}},
        {"method": "Network.webSocketClosed", "params": {"requestId": "w", "timestamp": 5}}
    ]"#,
    );
    let socket = &network_log.exchanges[0];
    assert_eq!(socket.response.as_ref().unwrap().status, Some(101));
    assert_eq!(socket.request_headers.len(), 1);
    assert_eq!(socket.end_us, Some(5e6));
}

#[test]
fn an_invalid_log_has_no_exchanges() {
    for log in [
        "",
        "{}",
        "[1, null, {}]",
        r#"[{"method": "Network.requestWillBeSent"}]"#,
    ] {
        assert!(network(log).exchanges.is_empty(), "{log}");
    }
}
