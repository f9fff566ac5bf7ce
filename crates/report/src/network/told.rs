//! The messages of the protocol's network domain, as far as they are used. Every field that may be
//! missing has a value for that.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Answer, Timing, split};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) method: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) target_type: Option<Cow<'a, str>>,
}

pub(super) fn read<'a, T: Deserialize<'a>>(params: &'a RawValue) -> Option<T> {
    serde_json::from_str(params.get()).ok()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sent {
    pub(super) request_id: String,
    pub(super) request: Asked,
    pub(super) timestamp: f64,
    pub(super) wall_time: Option<f64>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) redirect_response: Option<Answered>,
    #[serde(default)]
    pub(super) redirect_has_extra_info: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    pub(super) url: String,
    #[serde(default)]
    pub(super) method: String,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) post_data: Option<String>,
    #[serde(default)]
    pub(super) initial_priority: String,
    pub(super) is_same_site: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MoreAsked {
    pub(super) request_id: String,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MoreReceived {
    pub(super) request_id: String,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Served {
    pub(super) request_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Received {
    pub(super) request_id: String,
    pub(super) timestamp: f64,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) response: Answered,
    #[serde(default)]
    pub(super) has_extra_info: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answered {
    status: Option<i64>,
    #[serde(default)]
    status_text: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// What was really sent, where the protocol tells it here.
    pub(super) request_headers: Option<BTreeMap<String, String>>,
    #[serde(default)]
    mime_type: String,
    protocol: Option<String>,
    connection_id: Option<f64>,
    #[serde(default)]
    encoded_data_length: f64,
    #[serde(default)]
    from_disk_cache: bool,
    #[serde(default)]
    from_service_worker: bool,
    timing: Option<Measured>,
}

/// Chromium writes -1 for a phase that there was not.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Measured {
    request_time: f64,
    dns_start: f64,
    dns_end: f64,
    connect_start: f64,
    connect_end: f64,
    ssl_start: f64,
    ssl_end: f64,
    send_start: f64,
    send_end: f64,
    receive_headers_end: f64,
}

impl Default for Measured {
    fn default() -> Self {
        let none = -1.0;
        Self {
            request_time: none,
            dns_start: none,
            dns_end: none,
            connect_start: none,
            connect_end: none,
            ssl_start: none,
            ssl_end: none,
            send_start: none,
            send_end: none,
            receive_headers_end: none,
        }
    }
}

impl Measured {
    fn timing(&self) -> Option<Timing> {
        let phase = |start: f64, end: f64| (start >= 0.0 && end >= start).then_some((start, end));
        (self.request_time > 0.0).then(|| Timing {
            request_time_s: self.request_time,
            dns: phase(self.dns_start, self.dns_end),
            connect: phase(self.connect_start, self.connect_end),
            ssl: phase(self.ssl_start, self.ssl_end),
            send: phase(self.send_start, self.send_end),
            headers_end: (self.receive_headers_end >= 0.0).then_some(self.receive_headers_end),
        })
    }
}

impl Answered {
    pub(super) fn header_bytes(&self) -> u64 {
        self.encoded_data_length.max(0.0) as u64
    }

    pub(super) fn at(self, at_s: f64) -> Answer {
        Answer {
            at_s,
            status: self.status.unwrap_or_default(),
            header_bytes: self.header_bytes(),
            status_text: self.status_text,
            headers: split(self.headers),
            mime_type: self.mime_type,
            protocol: self.protocol.unwrap_or_default(),
            connection_id: self
                .connection_id
                .map(|id| id.max(0.0) as u64)
                .filter(|id| *id > 0),
            from_disk: self.from_disk_cache,
            from_service_worker: self.from_service_worker,
            timing: self.timing.and_then(|timing| timing.timing()),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Data {
    pub(super) request_id: String,
    #[serde(default)]
    pub(super) data_length: u64,
    #[serde(default)]
    pub(super) encoded_data_length: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ended {
    pub(super) request_id: String,
    pub(super) timestamp: f64,
    #[serde(default = "unknown")]
    pub(super) encoded_data_length: f64,
}

fn unknown() -> f64 {
    -1.0
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Failed {
    pub(super) request_id: String,
    pub(super) timestamp: f64,
    #[serde(default)]
    pub(super) error_text: String,
    pub(super) blocked_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Created {
    pub(super) request_id: String,
    pub(super) url: String,
}

/// Both halves of a WebSocket's handshake.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Handshake<T> {
    pub(super) request_id: String,
    pub(super) timestamp: f64,
    pub(super) wall_time: Option<f64>,
    #[serde(alias = "request", alias = "response")]
    pub(super) message: T,
}

#[derive(Deserialize)]
pub(super) struct HandshakeSent {
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HandshakeAnswered {
    #[serde(default)]
    status: i64,
    #[serde(default)]
    status_text: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl HandshakeAnswered {
    pub(super) fn at(self, at_s: f64) -> Answer {
        Answer {
            at_s,
            status: self.status,
            status_text: self.status_text,
            headers: split(self.headers),
            protocol: "websocket".to_owned(),
            ..Answer::default()
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stopped {
    pub(super) request_id: String,
    pub(super) timestamp: f64,
}
