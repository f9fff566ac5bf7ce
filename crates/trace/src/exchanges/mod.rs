//! Network exchanges, read once from the protocol's messages or from the trace's events.
//!
//! Request ids are unique over all sessions of a visit: a frame in its own process is announced by
//! its parent's session and answered in its own, under one id. The rules by which messages become
//! exchanges are those of Lighthouse's network records (core/lib/network-recorder.js,
//! network-request.js).

mod messages;
mod recorder;

use crate::timing::ResourceTiming;

pub(crate) use messages::count;
pub(crate) use recorder::Exchanges;

/// The initiator that Chromium names for a module that a script imports dynamically: the value of a
/// referrer that is not set (Fetch, "client"). The script is on the stack.
pub(crate) const NO_REFERRER: &str = "about:client";

/// Header names and values, with names as they were sent; a repeated name has one entry per value.
pub type Headers = Vec<(String, String)>;

/// One request and its response or failure: the only record of a request. A redirect ends one
/// exchange and starts the next. What one part of the project needs beyond this record is a view of
/// it, such as [`Resource`](crate::Resource).
///
/// All times are microseconds of Chromium's monotonic clock, the clock and the unit of the trace.
/// Readers convert the seconds and milliseconds of Chromium's messages once.
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
    /// Kind of the initiator, in the protocol's terms: `parser`, `script`, `preload`, `other` …
    pub initiator_kind: String,
    /// URL of the document or style sheet that caused the request, else of the innermost script on
    /// the stack.
    pub initiator_url: Option<String>,
    /// Date of the request, in seconds since 1970.
    pub wall_time_s: Option<f64>,
    pub sent_us: f64,
    pub from_memory: bool,
    pub is_web_socket: bool,
    pub response: Option<Response>,
    /// Time of the last byte, the redirect or the failure; `None` while in flight.
    pub end_us: Option<f64>,
    pub failure: Option<LoadFailure>,
    /// Index of the exchange that this one was redirected to.
    pub redirected_to: Option<usize>,
    /// Size of the decoded body.
    pub resource_bytes: u64,
    /// Encoded size of the body chunks received.
    pub received_bytes: u64,
    /// Chromium's total of transferred bytes including headers, if the request has ended.
    pub wire_bytes: Option<u64>,
    /// True if separate messages with wire headers were announced.
    pub has_wire_headers: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Response {
    pub at_us: f64,
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
pub struct LoadFailure {
    pub error_text: Option<String>,
    pub blocked_reason: Option<String>,
}

impl Exchange {
    /// Returns the id of the requesting frame; empty for requests of workers.
    pub fn frame_id(&self) -> &str {
        self.frame.as_deref().unwrap_or_default()
    }

    /// Returns the protocol that the network stack named, or else the URL's scheme if requests of
    /// that scheme do not use the network. Empty if neither is known.
    pub fn protocol(&self) -> &str {
        let response = self.response.as_ref();
        let protocol = response.map_or("", |response| response.protocol.as_str());
        match self.url.split_once(':') {
            _ if !protocol.is_empty() => protocol,
            Some(("http" | "https", _)) | None => "",
            Some((scheme, _)) => scheme,
        }
    }

    /// Returns the status of the response, if there is one.
    pub fn status(&self) -> Option<i64> {
        self.response.as_ref()?.status
    }

    /// Returns the MIME type of the response; empty if there is none.
    pub fn mime_type(&self) -> &str {
        let response = self.response.as_ref();
        response.map_or("", |response| response.mime_type.as_str())
    }

    /// Returns whether a service worker answered.
    pub fn is_from_service_worker(&self) -> bool {
        let response = self.response.as_ref();
        response.is_some_and(|response| response.from_service_worker)
    }

    /// Returns whether the response came from the disk cache.
    pub fn is_disk_cached(&self) -> bool {
        let is_from_disk =
            |response: &Response| response.from_disk && !response.from_service_worker;
        self.response.as_ref().is_some_and(is_from_disk) && self.transfer_bytes() == 0
    }

    /// Returns the timing of the network stack. A response from the memory cache did not use the
    /// network; its timing is that of the first load and is not returned.
    pub fn timing(&self) -> Option<&ResourceTiming> {
        let response = self.response.as_ref().filter(|_| !self.from_memory);
        response?.timing.as_ref()
    }

    /// Returns the time at which the network stack started the request, or else at which the page
    /// made it.
    pub fn network_start_us(&self) -> f64 {
        self.network_start_and_headers_us()
            .map_or(self.sent_us, |(start_us, _)| start_us)
    }

    /// Returns the time of the end, which is not before the response headers arrived.
    pub fn network_end_us(&self) -> Option<f64> {
        let end_us = self.end_us?;
        Some(match self.network_start_and_headers_us() {
            Some((start_us, headers_us)) => {
                let at_us = self
                    .response
                    .as_ref()
                    .map_or(end_us, |response| response.at_us);
                end_us.max(headers_us.min(at_us).max(start_us))
            }
            None => end_us,
        })
    }

    fn network_start_and_headers_us(&self) -> Option<(f64, f64)> {
        self.timing()?.network_start_and_headers_us()
    }

    /// Returns the resource type of the response, or else the one requested.
    pub fn resource_type(&self) -> Option<&str> {
        let response = self.response.as_ref();
        let response_type = response.and_then(|response| response.resource_type.as_deref());
        response_type.or(self.requested_type.as_deref())
    }

    /// Returns the resource type of the response, or else the one requested; empty for a redirect,
    /// which loads nothing, and if it is unknown.
    pub fn loaded_type(&self) -> &str {
        let is_redirected = self.redirected_to.is_some();
        let name = self.resource_type().filter(|_| !is_redirected);
        name.unwrap_or_default()
    }

    /// Returns whether the browser only discarded the body of an error response, such as that of a
    /// missing script. It reports this like a failed connection; traces do not name the error.
    pub(crate) fn has_unwanted_body(&self, failure: &LoadFailure) -> bool {
        let is_aborted = failure.blocked_reason.is_none()
            && failure
                .error_text
                .as_deref()
                .is_none_or(|error| error == "net::ERR_ABORTED");
        is_aborted && self.status().is_some_and(|status| status >= 400)
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

impl Response {
    /// Returns the headers as sent over the wire, or else as exposed to the page.
    pub fn sent_headers(&self) -> &Headers {
        self.wire_headers.as_ref().unwrap_or(&self.headers)
    }
}

/// Returns all values of a header; the name is case-insensitive.
pub fn header<'a>(headers: &'a [(String, String)], name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .iter()
        .filter(move |(header_name, _)| header_name.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}
