//! The messages of the protocol's network domain, as far as they are used. Every field that may be missing has a
//! value for that.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Answer, Failure, Headers};
use crate::timing::ResourceTiming;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sent {
    pub(super) request_id: String,
    pub(super) request: Asked,
    #[serde(default)]
    pub(super) timestamp: f64,
    pub(super) wall_time: Option<f64>,
    pub(super) frame_id: Option<String>,
    #[serde(rename = "documentURL")]
    pub(super) document_url: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) initiator: Option<Initiator>,
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
    pub(super) headers: Option<JoinedHeaders>,
    pub(super) post_data: Option<String>,
    #[serde(default)]
    pub(super) initial_priority: String,
    pub(super) is_same_site: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Initiator {
    url: Option<String>,
    stack: Option<Stack>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stack {
    #[serde(default)]
    call_frames: Vec<CallFrame>,
}

#[derive(Deserialize)]
struct CallFrame {
    url: String,
}

impl Initiator {
    pub(super) fn address(self) -> Option<String> {
        let called = self.stack.map(|stack| stack.call_frames);
        let first = called.and_then(|frames| frames.into_iter().find(|f| !f.url.is_empty()));
        self.url.or(first.map(|frame| frame.url))
    }
}

/// Of a request or an answer, as they went over the wire.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OnTheWire {
    pub(super) request_id: String,
    pub(super) headers: Option<JoinedHeaders>,
}

/// News that is no more than itself.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Named {
    pub(super) request_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prioritised {
    pub(super) request_id: String,
    pub(super) new_priority: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Received {
    pub(super) request_id: String,
    #[serde(default)]
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
    url: Option<String>,
    status: Option<i64>,
    status_text: Option<String>,
    headers: Option<JoinedHeaders>,
    /// What was really sent, where the protocol tells it here.
    pub(super) request_headers: Option<JoinedHeaders>,
    mime_type: Option<String>,
    protocol: Option<String>,
    connection_id: Option<f64>,
    #[serde(rename = "remoteIPAddress")]
    remote_address: Option<String>,
    encoded_data_length: Option<f64>,
    #[serde(default)]
    from_disk_cache: bool,
    #[serde(default)]
    from_service_worker: bool,
    timing: Option<ResourceTiming>,
}

impl Answered {
    pub(super) fn at(self, at_s: f64, resource_type: Option<String>) -> Answer {
        Answer {
            at_s,
            url: self.url,
            status: self.status,
            status_text: self.status_text.unwrap_or_default(),
            resource_type,
            mime_type: self.mime_type.unwrap_or_default(),
            protocol: self.protocol.unwrap_or_default(),
            headers: split(self.headers),
            wire_headers: None,
            header_bytes: count(self.encoded_data_length).unwrap_or_default(),
            remote_address: self.remote_address,
            connection_id: count(self.connection_id).filter(|id| *id > 0),
            from_disk: self.from_disk_cache,
            from_service_worker: self.from_service_worker,
            timing: self.timing,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Data {
    pub(super) request_id: String,
    pub(super) data_length: Option<f64>,
    pub(super) encoded_data_length: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ended {
    pub(super) request_id: String,
    #[serde(default)]
    pub(super) timestamp: f64,
    pub(super) encoded_data_length: Option<f64>,
    error_text: Option<String>,
    blocked_reason: Option<String>,
}

impl Ended {
    pub(super) fn failure(self) -> Failure {
        Failure {
            error_text: self.error_text,
            blocked_reason: self.blocked_reason,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SocketCreated {
    pub(super) request_id: String,
    pub(super) url: String,
}

/// Either half of a WebSocket's handshake.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Handshake<T> {
    pub(super) request_id: String,
    #[serde(default)]
    pub(super) timestamp: f64,
    pub(super) wall_time: Option<f64>,
    #[serde(alias = "request", alias = "response")]
    pub(super) message: T,
}

#[derive(Deserialize)]
pub(super) struct HandshakeSent {
    pub(super) headers: Option<JoinedHeaders>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HandshakeAnswered {
    status: Option<i64>,
    status_text: Option<String>,
    headers: Option<JoinedHeaders>,
}

impl HandshakeAnswered {
    pub(super) fn at(self, at_s: f64) -> Answer {
        Answer {
            at_s,
            status: self.status,
            status_text: self.status_text.unwrap_or_default(),
            headers: split(self.headers),
            protocol: "websocket".to_owned(),
            ..Answer::default()
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SocketClosed {
    pub(super) request_id: String,
    #[serde(default)]
    pub(super) timestamp: f64,
}

/// By name; the values of a name that came more than once are joined by line breaks.
type JoinedHeaders = BTreeMap<String, String>;

pub(super) fn split(headers: Option<JoinedHeaders>) -> Headers {
    let mut all = Vec::new();
    for (name, values) in headers.into_iter().flatten() {
        match values.contains('\n') {
            true => all.extend(values.split('\n').map(|v| (name.clone(), v.to_owned()))),
            false => all.push((name, values)),
        }
    }
    all
}

/// Chromium writes -1 for what it does not know.
pub(super) fn count(number: Option<f64>) -> Option<u64> {
    number.filter(|number| *number >= 0.0).map(|n| n as u64)
}
