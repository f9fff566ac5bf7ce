//! Writes recordings as HAR.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{EntryExtra, RecordingExtra, ResponseExtra};
use crate::body::Decoder;
use crate::{
    ConnectResult, Endpoint, Header, Protocol, RecordedExchange, RecordedResponse, Recording,
};

const PAGE: &str = "page_1";

impl Recording {
    /// Converts the recording to HAR 1.2. Secrets stay in it: redact it first.
    pub fn to_har(&self) -> Value {
        let mut connected = BTreeSet::new();
        let mut decoder = Decoder::default();
        let connections = self.endpoints.iter().rev();
        let connections = connections.map(|it| (&it.endpoint, &it.result)).collect();
        let entries = self.exchanges.iter().map(|exchange| {
            // Later requests to the server may have used the same connection.
            let is_first = connected.insert(&exchange.endpoint);
            self.entry(exchange, is_first, &connections, &mut decoder)
        });
        let entries: Vec<Value> = entries.collect();
        let extra = RecordingExtra {
            url: self.url.clone(),
            recorded_at: self.recorded_at.clone(),
            endpoints: self.endpoints.clone(),
        };
        json!({"log": {
            "version": "1.2",
            "creator": {"name": "Plumbline", "version": env!("CARGO_PKG_VERSION")},
            "pages": [{
                "startedDateTime": self.recorded_at,
                "id": PAGE,
                "title": self.url,
                "pageTimings": {},
            }],
            "entries": entries,
            "_recording": extra,
        }})
    }

    fn entry(
        &self,
        exchange: &RecordedExchange,
        is_first: bool,
        connections: &BTreeMap<&Endpoint, &ConnectResult>,
        decoder: &mut Decoder,
    ) -> Value {
        let connection = connections.get(&exchange.endpoint).copied();
        let version = match connection {
            Some(ConnectResult::Connected {
                protocol: Protocol::Http2,
                ..
            }) => "h2",
            _ => "http/1.1",
        };
        let (connect_ms, tls_ms) = match connection {
            Some(ConnectResult::Connected {
                connect_ms, tls_ms, ..
            }) if is_first => (connect_ms + tls_ms, *tls_ms),
            _ => (-1.0, -1.0),
        };
        let response = exchange.response.as_ref();
        // Without the decoded content, the file has the body as it was transferred.
        let content = response.and_then(|it| decoder.decode(it).ok());
        let wait_ms = response.map_or(0.0, |it| it.wait_ms);
        let last_chunk = response.and_then(|it| it.chunks.last());
        let receive_ms = last_chunk.map_or(0.0, |it| it.after_ms);
        json!({
            "pageref": PAGE,
            "startedDateTime": self.time_after(exchange.started_ms),
            "time": connect_ms.max(0.0) + wait_ms + receive_ms,
            "request": {
                "method": exchange.method,
                "url": exchange.url(),
                "httpVersion": version,
                "cookies": [],
                "headers": headers(&exchange.request_headers),
                "queryString": query(&exchange.path),
                "headersSize": -1,
                "bodySize": exchange.request_bytes,
            },
            "response": response.map_or_else(no_response, |it| {
                written_response(it, content.as_deref(), version)
            }),
            "cache": {},
            "timings": {
                "blocked": -1,
                "dns": -1,
                "connect": connect_ms,
                "ssl": tls_ms,
                "send": 0,
                "wait": wait_ms,
                "receive": receive_ms,
            },
            "_recorded": EntryExtra {
                endpoint: exchange.endpoint.clone(),
                path: exchange.path.clone(),
                started_ms: exchange.started_ms,
                request_bytes: exchange.request_bytes,
                handling: exchange.handling,
                is_open: exchange.is_open,
                response: response.map(|it| response_extra(it, content.as_deref())),
            },
        })
    }

    /// Returns a time of the recording, or that of its beginning if it is not a time.
    fn time_after(&self, ms: f64) -> String {
        let start: Result<Timestamp, _> = self.recorded_at.parse();
        let micros = (ms * 1000.0) as i64;
        let time = start.and_then(|it| it.checked_add(SignedDuration::from_micros(micros)));
        time.map_or_else(|_| self.recorded_at.clone(), |it| it.to_string())
    }
}

fn headers(headers: &[Header]) -> Value {
    let headers = headers.iter();
    headers
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect()
}

fn query(path: &str) -> Value {
    let (_, query) = path.split_once('?').unwrap_or_default();
    url::form_urlencoded::parse(query.as_bytes())
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect()
}

/// The response of a request that failed, as browsers write it.
fn no_response() -> Value {
    json!({
        "status": 0,
        "statusText": "",
        "httpVersion": "",
        "cookies": [],
        "headers": [],
        "content": {"size": 0, "mimeType": "x-unknown"},
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": -1,
        "_error": "no response",
    })
}

fn written_response(response: &RecordedResponse, content: Option<&[u8]>, version: &str) -> Value {
    json!({
        "status": response.status,
        "statusText": "",
        "httpVersion": version,
        "cookies": [],
        "headers": headers(&response.headers),
        "content": written_content(response, content),
        "redirectURL": response.header("location").unwrap_or_default(),
        "headersSize": -1,
        "bodySize": response.body.len(),
    })
}

/// Writes the decoded content, as text if it is some.
fn written_content(response: &RecordedResponse, content: Option<&[u8]>) -> Value {
    let mime_type = response.header("content-type").unwrap_or("x-unknown");
    let Some(content) = content else {
        return json!({"size": 0, "mimeType": mime_type});
    };
    let compression = content.len() as i64 - response.body.len() as i64;
    let mut value = json!({
        "size": content.len(),
        "mimeType": mime_type,
        "compression": compression,
    });
    match std::str::from_utf8(content) {
        Ok(text) => value["text"] = text.into(),
        Err(_) => {
            value["text"] = STANDARD.encode(content).into();
            value["encoding"] = "base64".into();
        }
    }
    value
}

fn response_extra(response: &RecordedResponse, content: Option<&[u8]>) -> ResponseExtra {
    let is_content = content.is_some_and(|content| content == response.body);
    ResponseExtra {
        wait_ms: response.wait_ms,
        chunks: response.chunks.clone(),
        is_cut_off: response.is_cut_off,
        transferred_body: (!is_content).then(|| STANDARD.encode(&response.body)),
    }
}
