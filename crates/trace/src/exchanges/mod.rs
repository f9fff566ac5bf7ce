//! Network exchanges, read once from the protocol's messages.
//!
//! Request ids are unique over all sessions of a visit: a frame in its own process is announced by
//! its parent's session and answered in its own, under one id. The rules by which messages become
//! exchanges are those of Lighthouse's network records (core/lib/network-recorder.js,
//! network-request.js).

mod messages;
mod recorder;

use crate::timing::ResourceTiming;

pub(crate) use recorder::Exchanges;

/// Header names and values, with names as they were sent; a repeated name has one entry per value.
pub type Headers = Vec<(String, String)>;

/// One request and its response or failure. A redirect ends one exchange and starts the next. Times
/// are seconds of Chromium's monotonic clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exchange {
    /// Chromium's request id; the exchanges of a redirect chain share it.
    pub id: String,
    pub url: String,
    pub method: String,
    /// Request headers, as sent over the wire if the protocol reports that.
    pub request_headers: Headers,
    pub post_data: Option<String>,
    pub frame: Option<String>,
    /// URL of the requesting document or worker.
    pub document_url: String,
    /// Type of the target whose session reported the request, in the protocol's terms.
    pub target_type: String,
    /// Resource type as requested, in the protocol's terms.
    pub requested_type: Option<String>,
    pub initial_priority: String,
    pub priority: String,
    /// True if Chromium considers the request same-site with the page.
    pub is_same_site: Option<bool>,
    /// URL of the document or style sheet that caused the request, else of the innermost script on
    /// the stack.
    pub initiator_url: Option<String>,
    /// Time of the request, in seconds since 1970.
    pub wall_time_s: Option<f64>,
    pub sent_s: f64,
    pub from_memory: bool,
    pub is_web_socket: bool,
    pub response: Option<Response>,
    /// Time of the last byte, the redirect or the failure; `None` while in flight.
    pub end_s: Option<f64>,
    pub failure: Option<Failure>,
    /// Index of the exchange that this one was redirected to.
    pub redirected_to: Option<usize>,
    /// Size of the decoded body.
    pub resource_bytes: u64,
    /// Encoded size of the body chunks received.
    pub received_bytes: u64,
    /// Chromium's total of transferred bytes including headers, if the request has ended.
    pub wire_bytes: Option<u64>,
    /// True if separate messages with wire headers were announced.
    pub(crate) has_wire_headers: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Response {
    pub at_s: f64,
    pub url: Option<String>,
    pub status: Option<i64>,
    pub status_text: String,
    /// Resource type of the response, in the protocol's terms.
    pub resource_type: Option<String>,
    pub mime_type: String,
    /// Protocol as the network stack names it: `http/1.1`, `h2`, `data`, `blob` …
    pub protocol: String,
    /// Response headers as exposed to the page.
    pub headers: Headers,
    /// Response headers as sent over the wire, if the protocol reports them.
    pub wire_headers: Option<Headers>,
    pub header_bytes: u64,
    pub remote_address: Option<String>,
    pub connection_id: Option<u64>,
    pub from_disk: bool,
    pub from_service_worker: bool,
    pub timing: Option<ResourceTiming>,
}

/// The browser's reasons for an incomplete response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Failure {
    pub error_text: Option<String>,
    pub blocked_reason: Option<String>,
}

impl Exchange {
    /// Returns the resource type of the response, or else the one requested.
    pub fn resource_type(&self) -> Option<&str> {
        let response = self.response.as_ref();
        let response_type = response.and_then(|response| response.resource_type.as_deref());
        response_type.or(self.requested_type.as_deref())
    }

    /// Returns true for a service worker's script, which Chromium requests with a `Service-Worker`
    /// header.
    pub fn is_service_worker_script(&self) -> bool {
        let mut headers = self.request_headers.iter();
        headers.any(|(name, _)| name.eq_ignore_ascii_case("service-worker"))
    }

    /// Returns the bytes transferred so far, headers included.
    pub fn transfer_bytes(&self) -> u64 {
        let headers = self
            .response
            .as_ref()
            .map_or(0, |response| response.header_bytes);
        self.wire_bytes.unwrap_or(headers + self.received_bytes)
    }
}
