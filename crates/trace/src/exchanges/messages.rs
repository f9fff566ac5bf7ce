//! Messages of the protocol's network domain, reduced to the fields in use. Every field that may be
//! missing has a default.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Headers, LoadFailure, NO_REFERRER, Response};
use crate::timing::{ResourceTiming, us_from_s};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestSent {
    pub(super) request_id: String,
    pub(super) request: RequestData,
    #[serde(default, rename = "timestamp", deserialize_with = "us_from_s")]
    pub(super) timestamp_us: f64,
    pub(super) wall_time: Option<f64>,
    pub(super) frame_id: Option<String>,
    #[serde(rename = "documentURL")]
    pub(super) document_url: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) initiator: Option<Initiator>,
    pub(super) redirect_response: Option<ResponseData>,
    #[serde(default)]
    pub(super) redirect_has_extra_info: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestData {
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
    #[serde(default, rename = "type")]
    pub(super) kind: String,
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
    /// Returns the URL that is named, or else that of the innermost script on the stack.
    pub(super) fn initiator_url(self) -> Option<String> {
        let call_frames = self.stack.map(|stack| stack.call_frames);
        let first = call_frames.and_then(|frames| frames.into_iter().find(|f| !f.url.is_empty()));
        let named = self.url.filter(|url| url != NO_REFERRER);
        named.or(first.map(|frame| frame.url))
    }
}

/// Headers of a request or response as sent over the wire.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireHeaders {
    pub(super) request_id: String,
    pub(super) headers: Option<JoinedHeaders>,
}

/// A message of which only the request id is used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestId {
    pub(super) request_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PriorityChange {
    pub(super) request_id: String,
    pub(super) new_priority: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseReceived {
    pub(super) request_id: String,
    #[serde(default, rename = "timestamp", deserialize_with = "us_from_s")]
    pub(super) timestamp_us: f64,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) response: ResponseData,
    #[serde(default)]
    pub(super) has_extra_info: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseData {
    url: Option<String>,
    status: Option<i64>,
    status_text: Option<String>,
    headers: Option<JoinedHeaders>,
    /// Headers actually sent, if the protocol includes them here.
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

impl ResponseData {
    pub(super) fn into_response(self, at_us: f64, resource_type: Option<String>) -> Response {
        Response {
            at_us,
            url: self.url,
            status: self.status,
            status_text: self.status_text.unwrap_or_default(),
            resource_type,
            mime_type: self.mime_type.unwrap_or_default(),
            protocol: self.protocol.unwrap_or_default(),
            headers: split_values(self.headers),
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
pub(super) struct DataReceived {
    pub(super) request_id: String,
    pub(super) data_length: Option<f64>,
    pub(super) encoded_data_length: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadingEnded {
    pub(super) request_id: String,
    #[serde(default, rename = "timestamp", deserialize_with = "us_from_s")]
    pub(super) timestamp_us: f64,
    pub(super) encoded_data_length: Option<f64>,
    error_text: Option<String>,
    blocked_reason: Option<String>,
}

impl LoadingEnded {
    pub(super) fn into_failure(self) -> LoadFailure {
        LoadFailure {
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

/// Either half of a WebSocket handshake.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Handshake<T> {
    pub(super) request_id: String,
    #[serde(default, rename = "timestamp", deserialize_with = "us_from_s")]
    pub(super) timestamp_us: f64,
    pub(super) wall_time: Option<f64>,
    #[serde(alias = "request", alias = "response")]
    pub(super) message: T,
}

#[derive(Deserialize)]
pub(super) struct HandshakeRequest {
    pub(super) headers: Option<JoinedHeaders>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HandshakeResponse {
    status: Option<i64>,
    status_text: Option<String>,
    headers: Option<JoinedHeaders>,
}

impl HandshakeResponse {
    pub(super) fn into_response(self, at_us: f64) -> Response {
        Response {
            at_us,
            status: self.status,
            status_text: self.status_text.unwrap_or_default(),
            headers: split_values(self.headers),
            protocol: "websocket".to_owned(),
            ..Response::default()
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SocketClosed {
    pub(super) request_id: String,
    #[serde(default, rename = "timestamp", deserialize_with = "us_from_s")]
    pub(super) timestamp_us: f64,
}

/// Header values by name; repeated values of a name are joined by line breaks.
type JoinedHeaders = BTreeMap<String, String>;

pub(super) fn split_values(headers: Option<JoinedHeaders>) -> Headers {
    let mut all = Vec::new();
    for (name, values) in headers.into_iter().flatten() {
        if values.contains('\n') {
            all.extend(values.split('\n').map(|v| (name.clone(), v.to_owned())));
        } else {
            all.push((name, values));
        }
    }
    all
}

/// Converts a count; Chromium writes -1 if it is unknown.
pub(crate) fn count(number: Option<f64>) -> Option<u64> {
    number.filter(|number| *number >= 0.0).map(|n| n as u64)
}
