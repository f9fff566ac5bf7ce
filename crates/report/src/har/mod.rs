//! HTTP Archive 1.2 (<http://www.softwareishard.com/blog/har-12-spec/>): every exchange of the
//! visit, of all frames and workers. It has no bodies, because they are not stored. Members that
//! begin with an underscore are extensions of DevTools or Plumbline.

mod cookies;
mod times;

use jiff::Timestamp;
use plumbline_bundle::Bundle;
use plumbline_trace::{Headers, Milestone, Response, Trace, header};
use serde_json::{Value, json};
use url::Url;

use crate::network::{LoggedExchange, Network};
use cookies::{request_cookies, set_cookies};
use times::Times;

const PAGE: &str = "page_1";

/// Returns the archive of a visit.
pub(crate) fn archive(bundle: &Bundle) -> Value {
    let network = Network::of(bundle);
    let start = Start::of(&network);
    let entries: Vec<Value> = network
        .exchanges()
        .filter(|exchange| exchange.is_on_network())
        .map(|exchange| entry(&exchange, &start))
        .collect();
    let (name, version) = bundle
        .browser
        .product
        .split_once('/')
        .unwrap_or(("Chrome", ""));
    json!({ "log": {
        "version": "1.2",
        "creator": { "name": "Plumbline", "version": env!("CARGO_PKG_VERSION") },
        "browser": { "name": name, "version": version },
        "pages": [{
            "id": PAGE,
            "title": bundle.final_url,
            "startedDateTime": start.iso8601(start.sent_us),
            "pageTimings": page_timings(bundle, &start),
        }],
        "entries": entries,
    }})
}

/// The time of the first request on both clocks, which relates them to each other.
struct Start {
    wall_time_s: f64,
    sent_us: f64,
}

impl Start {
    fn of(network: &Network) -> Self {
        let start = network.exchanges().find_map(|exchange| {
            exchange.wall_time_s.map(|wall_time_s| Self {
                wall_time_s,
                sent_us: exchange.sent_us,
            })
        });
        start.unwrap_or(Self {
            wall_time_s: 0.0,
            sent_us: 0.0,
        })
    }

    /// Converts a time of the monotonic clock, which cannot jump during a visit.
    fn iso8601(&self, at_us: f64) -> String {
        let us = (self.wall_time_s + at_us / 1e6 - self.sent_us / 1e6) * 1e6;
        let time = Timestamp::from_microsecond(us as i64).unwrap_or(Timestamp::UNIX_EPOCH);
        format!("{time:.3}")
    }
}

/// Returns milliseconds since the start of the page; -1 for milestones that the page never reached,
/// as specified.
fn page_timings(bundle: &Bundle, start: &Start) -> Value {
    let trace = Trace::read(&bundle.trace).ok();
    let reached = |milestone| {
        let at_us = trace.as_ref().and_then(|trace| trace.first_us(milestone));
        at_us.map_or(-1.0, |at_us| {
            rounded((at_us / 1e3 - start.sent_us / 1e3).max(0.0))
        })
    };
    json!({
        "onContentLoad": reached(Milestone::DomContentLoaded),
        "onLoad": reached(Milestone::Load),
    })
}

/// Rounds to microseconds.
fn rounded(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}

fn entry(exchange: &LoggedExchange, start: &Start) -> Value {
    let times = Times::of(exchange);
    let mut entry = json!({
        "pageref": PAGE,
        "startedDateTime": start.iso8601(exchange.sent_us),
        "time": rounded(times.total_ms()),
        "request": request(exchange),
        "response": response(exchange),
        "cache": {},
        "timings": times.members(),
        "_resourceType": exchange.loaded_type().to_lowercase(),
    });
    if !exchange.initial_priority.is_empty() {
        entry["_priority"] = json!(exchange.initial_priority);
    }
    if !exchange.initiator_kind.is_empty() {
        entry["_initiator"] = json!({ "type": exchange.initiator_kind });
        if let Some(url) = &exchange.initiator_url {
            entry["_initiator"]["url"] = json!(url);
        }
    }
    let connection = exchange
        .response
        .as_ref()
        .and_then(|response| response.connection_id);
    if let Some(connection) = connection {
        entry["connection"] = json!(connection.to_string());
    }
    if exchange.from_memory {
        entry["_fromCache"] = json!("memory");
    } else if exchange.is_cached() {
        entry["_fromCache"] = json!("disk");
    }
    if exchange.is_from_service_worker() {
        entry["_fetchedViaServiceWorker"] = json!(true);
    }
    if let Some(failure) = exchange.failure_text() {
        entry["_error"] = json!(failure);
    }
    entry
}

fn request(exchange: &LoggedExchange) -> Value {
    let mut url = Url::parse(&exchange.url).ok();
    let query: Vec<Value> = url
        .iter()
        .flat_map(Url::query_pairs)
        .map(|(n, v)| pair(&n, &v))
        .collect();
    if let Some(url) = &mut url {
        url.set_fragment(None);
    }
    let mut request = json!({
        "method": exchange.method,
        "url": url.map_or_else(|| exchange.url.clone(), String::from),
        "httpVersion": version(exchange.response.as_ref()),
        "cookies": request_cookies(&exchange.request_headers),
        "headers": headers(&exchange.request_headers),
        "queryString": query,
        "headersSize": -1,
        "bodySize": exchange.post_data.as_ref().map_or(0, String::len),
    });
    if let Some(text) = &exchange.post_data {
        let mime_type = header(&exchange.request_headers, "content-type")
            .next()
            .unwrap_or_default();
        request["postData"] = json!({ "mimeType": mime_type, "text": text });
    }
    request
}

fn response(exchange: &LoggedExchange) -> Value {
    let Some(response) = &exchange.response else {
        return json!({
            "status": 0,
            "statusText": "",
            "httpVersion": "",
            "cookies": [],
            "headers": [],
            "content": { "size": 0, "mimeType": "x-unknown" },
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": -1,
            "_transferSize": exchange.transfer_bytes(),
            "_error": exchange.failure_text(),
        });
    };
    let transfer_bytes = exchange.network_bytes();
    let body_bytes = transfer_bytes.saturating_sub(response.header_bytes);
    let mut content = json!({
        "size": exchange.resource_bytes,
        "mimeType": if response.mime_type.is_empty() { "x-unknown" } else { &response.mime_type },
    });
    let response_headers = response.sent_headers();
    let is_encoded = header(response_headers, "content-encoding")
        .next()
        .is_some();
    if is_encoded && exchange.resource_bytes > body_bytes {
        content["compression"] = json!(exchange.resource_bytes - body_bytes);
    }
    json!({
        "status": response.status.unwrap_or_default(),
        "statusText": response.status_text,
        "httpVersion": version(Some(response)),
        "cookies": set_cookies(response),
        "headers": headers(response_headers),
        "content": content,
        "redirectURL": exchange.redirect_url.unwrap_or_default(),
        "headersSize": -1,
        "bodySize": body_bytes,
        "_transferSize": transfer_bytes,
        "_error": exchange.failure_text(),
    })
}

fn version(response: Option<&Response>) -> String {
    match response.map_or("", |response| response.protocol.as_str()) {
        "http/1.0" => "HTTP/1.0".to_owned(),
        "http/1.1" => "HTTP/1.1".to_owned(),
        other => other.to_owned(),
    }
}

fn headers(headers: &Headers) -> Vec<Value> {
    headers
        .iter()
        .map(|(name, value)| pair(name, value))
        .collect()
}

fn pair(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

#[cfg(test)]
mod tests;
