//! Recordings for tests.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::{
    BodyChunk, ConnectFailure, ConnectResult, Endpoint, Handling, Header, Protocol,
    RecordedEndpoint, RecordedExchange, RecordedResponse, Recording,
};

/// Returns the endpoint of a URL without a port, such as `https://a.test/b`.
pub fn endpoint(url: &str) -> Endpoint {
    let (scheme, rest) = url.split_once("://").unwrap();
    let host = rest.split('/').next().unwrap();
    let is_secure = scheme == "https";
    Endpoint {
        is_secure,
        host: host.to_owned(),
        port: if is_secure { 443 } else { 80 },
    }
}

/// Returns a `GET` request with status 200 and a body that was not compressed.
pub fn exchange(url: &str, content_type: &str, body: &str) -> RecordedExchange {
    let endpoint = endpoint(url);
    let path = url[endpoint.to_string().len()..].to_owned();
    RecordedExchange {
        request_headers: headers(&[("host", &endpoint.host), ("accept-encoding", "gzip, br")]),
        endpoint,
        method: "GET".to_owned(),
        path,
        request_bytes: 0,
        started_ms: 0.0,
        response: Some(RecordedResponse {
            status: 200,
            headers: headers(&[
                ("content-type", content_type),
                ("content-length", &body.len().to_string()),
            ]),
            wait_ms: 20.0,
            chunks: if body.is_empty() {
                Vec::new()
            } else {
                vec![BodyChunk {
                    after_ms: 0.0,
                    bytes: body.len() as u64,
                }]
            },
            is_cut_off: false,
            body: Bytes::from(body.to_owned()),
        }),
        handling: Handling::Answered,
        is_open: false,
    }
}

/// Returns headers from string slices.
pub fn headers(headers: &[(&str, &str)]) -> Vec<Header> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    headers.iter().map(owned).collect()
}

/// Returns a recording of exchanges whose first is that of the visited URL.
pub fn recording_of(exchanges: Vec<RecordedExchange>) -> Recording {
    let mut endpoints: Vec<RecordedEndpoint> = Vec::new();
    for exchange in &exchanges {
        if endpoints.iter().all(|it| it.endpoint != exchange.endpoint) {
            endpoints.push(RecordedEndpoint {
                endpoint: exchange.endpoint.clone(),
                result: ConnectResult::Connected {
                    protocol: Protocol::Http1,
                    connect_ms: 10.0,
                    tls_ms: 12.5,
                },
            });
        }
    }
    Recording {
        url: exchanges.first().map(|it| it.url()).unwrap_or_default(),
        recorded_at: "2026-11-18T05:00:00Z".to_owned(),
        endpoints,
        exchanges,
    }
}

/// Returns a small recording with a document, a style sheet, a script twice, a failed request and a
/// server that could not be connected to.
pub fn recording() -> Recording {
    let html = "<!doctype html><html><head><link rel=stylesheet href=/a.css></head></html>";
    let mut failed = exchange("https://third.test/none", "text/plain", "");
    failed.response = None;
    let mut recording = recording_of(vec![
        exchange("https://first.test/", "text/html", html),
        exchange("https://first.test/a.css", "text/css", "a { color: red }"),
        exchange("https://third.test/t.js", "text/javascript", "let a = 1;"),
        exchange("https://third.test/t.js", "text/javascript", "let a = 1;"),
        failed,
    ]);
    recording.endpoints.push(RecordedEndpoint {
        endpoint: endpoint("http://none.test/"),
        result: ConnectResult::Failed(ConnectFailure::NameNotFound),
    });
    recording
}

/// Generates valid recordings.
pub fn recordings() -> impl Strategy<Value = Recording> {
    let endpoint =
        (any::<bool>(), "[a-c]\\.test|::1", 1..4_u16).prop_map(|(is_secure, host, port)| {
            Endpoint {
                is_secure,
                host,
                port,
            }
        });
    let result = prop_oneof![
        (any::<bool>(), 0.0..1e4, 0.0..1e4).prop_map(|(is_h2, connect_ms, tls_ms)| {
            ConnectResult::Connected {
                protocol: if is_h2 {
                    Protocol::Http2
                } else {
                    Protocol::Http1
                },
                connect_ms,
                tls_ms,
            }
        }),
        Just(ConnectResult::Failed(ConnectFailure::TimedOut)),
        Just(ConnectResult::Silent),
    ];
    let recorded_endpoint = (endpoint.clone(), result)
        .prop_map(|(endpoint, result)| RecordedEndpoint { endpoint, result });
    let exchange = (
        endpoint,
        "GET|POST|HEAD",
        "/[a-z0-9]{0,3}(\\?[ab]=[0-9]{0,2})?",
        vec(("[a-z-]{1,8}", "[ -~é]{0,12}"), 0..4),
        option::of(responses()),
        (any::<u32>(), 0.0..1e5, any::<bool>(), any::<bool>()),
    )
        .prop_map(
            |(endpoint, method, path, request_headers, response, numbers_and_flags)| {
                let (bytes, started_ms, blocked, is_open) = numbers_and_flags;
                RecordedExchange {
                    endpoint,
                    method,
                    path,
                    request_headers,
                    request_bytes: u64::from(bytes),
                    started_ms,
                    response,
                    handling: if blocked {
                        Handling::Blocked
                    } else {
                        Handling::Answered
                    },
                    is_open,
                }
            },
        );
    (
        "https://a\\.test/[a-z]{0,4}",
        vec(recorded_endpoint, 0..4),
        vec(exchange, 0..6),
    )
        .prop_map(|(url, endpoints, exchanges)| Recording {
            url,
            recorded_at: "2026-11-18T05:00:00Z".to_owned(),
            endpoints,
            exchanges,
        })
}

/// Generates responses with bodies of up to three chunks.
fn responses() -> impl Strategy<Value = RecordedResponse> {
    let chunk = (0.0..1e4, vec(any::<u8>(), 0..20));
    (
        prop_oneof![Just(200_u16), 200..600_u16],
        vec(("[a-z-]{1,8}", "[ -~é]{0,12}"), 0..4),
        0.0..1e4,
        vec(chunk, 0..4),
        any::<bool>(),
    )
        .prop_map(|(status, headers, wait_ms, chunks, is_cut_off)| {
            let size = |(after_ms, part): &(f64, Vec<u8>)| BodyChunk {
                after_ms: *after_ms,
                bytes: part.len() as u64,
            };
            let body: Vec<u8> = chunks.iter().flat_map(|(_, part)| part.clone()).collect();
            RecordedResponse {
                status,
                headers,
                wait_ms,
                chunks: chunks.iter().map(size).collect(),
                is_cut_off,
                body: Bytes::from(body),
            }
        })
}
