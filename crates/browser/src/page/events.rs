//! The events of the protocol that a visit handles. Only fields that identify something are
//! required.

use serde::Deserialize;

use super::link_header::LinkHeaders;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestWillBeSent {
    pub request_id: String,
    #[serde(default)]
    pub loader_id: String,
    #[serde(default)]
    pub frame_id: String,
    #[serde(default, rename = "type")]
    pub kind: String,
    pub request: RequestUrl,
    /// Monotonic time in seconds.
    #[serde(default)]
    pub timestamp: Option<f64>,
    /// Wall time in seconds.
    #[serde(default)]
    pub wall_time: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct RequestUrl {
    pub url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseReceived {
    pub request_id: String,
    #[serde(default, rename = "type")]
    pub kind: String,
    pub response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response {
    #[serde(default)]
    pub status: u16,
    #[serde(default)]
    pub headers: LinkHeaders,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DataReceived {
    #[serde(default)]
    pub data_length: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadingEnded {
    pub request_id: String,
    /// The error, if the request failed.
    #[serde(default)]
    pub error_text: Option<String>,
    /// The number of transferred bytes, including headers; 0 if the request failed.
    #[serde(default)]
    pub encoded_data_length: f64,
}

#[derive(Deserialize)]
pub(super) struct FrameNavigated {
    pub frame: Frame,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Frame {
    pub id: String,
    #[serde(default)]
    pub loader_id: String,
    #[serde(default)]
    pub url: String,
    #[serde(default)]
    pub mime_type: String,
    /// The URL that failed, if the document is Chromium's own error page.
    #[serde(default)]
    pub unreachable_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lifecycle {
    pub frame_id: String,
    #[serde(default)]
    pub loader_id: String,
    pub name: String,
}

#[derive(Deserialize)]
pub(super) struct Dialog {
    #[serde(default, rename = "type")]
    pub kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attached {
    pub session_id: String,
    pub target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detached {
    pub session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TargetCreated {
    pub target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TargetInfo {
    pub target_id: String,
    #[serde(default, rename = "type")]
    pub kind: String,
}

/// The response to `Page.navigate`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NavigateResponse {
    #[serde(default)]
    pub loader_id: Option<String>,
    #[serde(default)]
    pub error_text: Option<String>,
    #[serde(default)]
    pub is_download: bool,
}
