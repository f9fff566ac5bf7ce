//! Reads HAR files of browsers and other tools.
//!
//! They have decoded contents, which are encoded again as the response says. Entries that are not
//! requests over the network are left out: those from a cache, and those of other schemes.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use super::HarError;
use super::read::{content, headers, number, status, text};
use crate::body::{Coding, Effort};
use crate::{
    BodyChunk, ConnectResult, Endpoint, Handling, Protocol, RecordedEndpoint, RecordedExchange,
    RecordedResponse, Recording,
};

/// A log of another tool.
pub(super) struct ForeignLog<'a> {
    entries: &'a [Value],
    /// The title of the first page, which browsers set to its URL.
    title: Option<&'a str>,
    started_at: Option<Timestamp>,
}

impl<'a> ForeignLog<'a> {
    pub(super) fn new(har: &'a Value, entries: &'a [Value]) -> Self {
        let page_start = text(har, "/log/pages/0/startedDateTime");
        let starts = entries.iter().filter_map(started_at);
        let starts = starts.chain(page_start.and_then(|it| it.parse().ok()));
        Self {
            entries,
            title: text(har, "/log/pages/0/title"),
            started_at: starts.min(),
        }
    }

    pub(super) fn read(&self) -> Result<Recording, HarError> {
        let mut exchanges = Vec::new();
        for (number, entry) in (1..).zip(self.entries) {
            let start = started_at(entry).zip(self.started_at);
            let started_ms = start.map_or(0.0, |(it, first)| {
                it.duration_since(first).as_millis_f64().max(0.0)
            });
            let exchange = exchange(entry, started_ms);
            let exchange = exchange.map_err(|reason| HarError::Entry { number, reason })?;
            exchanges.extend(exchange);
        }
        exchanges.sort_by(|a, b| a.started_ms.total_cmp(&b.started_ms));
        let first = exchanges.first().ok_or(HarError::NoRequests)?;
        // A title that is a URL may also be that of another page.
        let title = self.title.filter(|it| {
            let address = Endpoint::split_url(it);
            exchanges.iter().any(|exchange| {
                let own_address = (exchange.endpoint.clone(), exchange.path.clone());
                Some(own_address) == address
            })
        });
        let is_document = |it: &&RecordedExchange| it.is_document();
        let document = exchanges.iter().find(is_document).unwrap_or(first);
        let url = title.map_or_else(|| document.url(), str::to_owned);
        Ok(Recording {
            url,
            recorded_at: self.started_at.map(|it| it.to_string()).unwrap_or_default(),
            endpoints: self.endpoints(),
            exchanges,
        })
    }

    /// Returns the servers, with the durations of the first connection to each.
    fn endpoints(&self) -> Vec<RecordedEndpoint> {
        let mut order = Vec::new();
        let mut results: BTreeMap<Endpoint, ConnectResult> = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| !is_left_out(entry)) {
            let url = text(entry, "/request/url").and_then(Endpoint::split_url);
            let Some((endpoint, _)) = url else {
                continue;
            };
            let tls_ms = number(entry, "/timings/ssl").unwrap_or(0.0);
            let connect_ms = number(entry, "/timings/connect").unwrap_or(0.0);
            let is_known = |result: &ConnectResult| match result {
                ConnectResult::Connected { connect_ms, .. } => *connect_ms > 0.0,
                _ => true,
            };
            if !results.contains_key(&endpoint) {
                order.push(endpoint.clone());
            }
            if !results.get(&endpoint).is_some_and(is_known) {
                let result = ConnectResult::Connected {
                    protocol: protocol(entry, &endpoint),
                    // HAR includes the TLS handshake in the connection.
                    connect_ms: (connect_ms - tls_ms).max(0.0),
                    tls_ms,
                };
                results.insert(endpoint, result);
            }
        }
        let recorded = |endpoint: Endpoint| {
            let result = results.remove(&endpoint)?;
            Some(RecordedEndpoint { endpoint, result })
        };
        order.into_iter().filter_map(recorded).collect()
    }
}

fn started_at(entry: &Value) -> Option<Timestamp> {
    text(entry, "/startedDateTime")?.parse().ok()
}

/// Returns the protocol of a connection. A replay of HTTP/3 uses HTTP/2, which is the most similar.
fn protocol(entry: &Value, endpoint: &Endpoint) -> Protocol {
    let versions = ["/response/httpVersion", "/request/httpVersion"];
    let mut versions = versions.iter().filter_map(|it| text(entry, it));
    let is_multiplexed = |version: &str| {
        let version = version.to_ascii_lowercase();
        ["h2", "h3", "http/2", "http/3", "quic"]
            .iter()
            .any(|it| version.starts_with(it))
    };
    if endpoint.is_secure && versions.any(is_multiplexed) {
        Protocol::Http2
    } else {
        Protocol::Http1
    }
}

/// Returns whether an entry is no request over the network.
fn is_left_out(entry: &Value) -> bool {
    let is_cached = entry.get("_fromCache").is_some_and(|it| !it.is_null());
    let is_from_worker = entry.pointer("/response/_fetchedViaServiceWorker") == Some(&true.into());
    let url = text(entry, "/request/url").and_then(Endpoint::split_url);
    // A response that refers to the cache of the browser is of no use without its content.
    let is_empty_reference =
        status(entry) == Ok(304) && text(entry, "/response/content/text").is_none_or(str::is_empty);
    is_cached || is_from_worker || url.is_none() || is_empty_reference
}

/// Reads an entry; returns `None` if it is left out.
pub(super) fn exchange(entry: &Value, started_ms: f64) -> Result<Option<RecordedExchange>, String> {
    let url = text(entry, "/request/url").ok_or("request.url is missing")?;
    if is_left_out(entry) {
        return Ok(None);
    }
    let Some((endpoint, path)) = Endpoint::split_url(url) else {
        return Ok(None);
    };
    let method = text(entry, "/request/method").ok_or("request.method is missing")?;
    let response = match status(entry)? {
        0 => None,
        status => Some(response(entry, status)?),
    };
    Ok(Some(RecordedExchange {
        endpoint,
        method: method.to_ascii_uppercase(),
        path,
        request_headers: headers(entry, "/request/headers"),
        request_bytes: number(entry, "/request/bodySize").unwrap_or(0.0) as u64,
        started_ms,
        response,
        handling: Handling::Answered,
        is_open: false,
    }))
}

fn response(entry: &Value, status: u16) -> Result<RecordedResponse, String> {
    let mut response = RecordedResponse {
        status: if status == 304 { 200 } else { status },
        headers: headers(entry, "/response/headers"),
        // The time until the response, as in a recording: the round trip is part of it.
        wait_ms: number(entry, "/timings/wait").unwrap_or(0.0),
        chunks: Vec::new(),
        is_cut_off: false,
        body: Bytes::new(),
    };
    let has_encoding = text(entry, "/response/content/encoding").is_some();
    let content = content(entry)?.unwrap_or_default();
    if !has_encoding && !content.is_ascii() {
        declare_utf8(&mut response);
    }
    let body = encoded(entry, &mut response, content);
    // The file tells how long the body took on its network, which a replay emulates anew.
    response.chunks = vec![BodyChunk {
        after_ms: 0.0,
        bytes: body.len() as u64,
    }];
    response.set_body(body.into());
    Ok(response)
}

/// Files have texts in UTF-8, whatever the server sent.
fn declare_utf8(response: &mut RecordedResponse) {
    let media_type = response.media_type();
    if !media_type.is_empty() {
        response.set_header("content-type", &format!("{media_type}; charset=utf-8"));
    }
}

/// Encodes a content as the response says, with about as many bytes as were transferred.
fn encoded(entry: &Value, response: &mut RecordedResponse, content: Vec<u8>) -> Vec<u8> {
    let codings = response.codings().unwrap_or_default();
    let [coding] = codings[..] else {
        response.remove_header("content-encoding");
        return content;
    };
    if content.is_empty() {
        response.remove_header("content-encoding");
        return content;
    }
    // Tools that observe the network keep what was transferred.
    if coding == Coding::Gzip && content.starts_with(&[0x1f, 0x8b]) {
        return content;
    }
    let body_bytes = number(entry, "/response/bodySize").filter(|it| *it > 0.0);
    let effort = body_bytes.map_or_else(Effort::default, |bytes| {
        coding.effort(&content, bytes as usize)
    });
    coding.encode(&content, effort)
}
