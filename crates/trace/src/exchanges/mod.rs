//! What went over the network, exchange by exchange, as the protocol's messages tell it: all that anybody needs to
//! know of a request, read once.
//!
//! Request ids are unique over all sessions of a visit: a frame in a process of its own is announced by its parent's
//! session and answered in its own, under one id. The rules by which messages become exchanges are those of
//! Lighthouse's network records (core/lib/network-recorder.js, network-request.js).

mod ledger;
mod told;

use crate::timing::ResourceTiming;

pub(crate) use ledger::Exchanges;

/// Names as they were sent; a name that came twice is two entries.
pub type Headers = Vec<(String, String)>;

/// One request and what came of it; a redirect ends one and begins the next. Times in seconds of Chromium's
/// monotonic clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exchange {
    /// Chromium's; the exchanges of a chain of redirects share one.
    pub id: String,
    pub url: String,
    pub method: String,
    /// As they went over the wire, where that is told.
    pub request_headers: Headers,
    pub post_data: Option<String>,
    pub frame: Option<String>,
    /// Of the document, or worker, that it was asked for in.
    pub document_url: String,
    /// What kind of thing the session that told of it is attached to.
    pub target_type: String,
    /// What it was asked for as, in the protocol's words.
    pub asked_type: Option<String>,
    pub initial_priority: String,
    pub priority: String,
    /// Whether Chromium counts it to the same site as the page.
    pub is_same_site: Option<bool>,
    /// A document or style sheet, else the innermost script that asked.
    pub initiator_url: Option<String>,
    /// When it was asked for, in seconds since 1970.
    pub wall_time_s: Option<f64>,
    pub sent_s: f64,
    pub from_memory: bool,
    pub is_web_socket: bool,
    pub answer: Option<Answer>,
    /// When the last byte came, or the redirect, or the failure; nothing while it was still in flight.
    pub end_s: Option<f64>,
    pub failure: Option<Failure>,
    /// The exchange that it was redirected to, by its place among all.
    pub redirected_to: Option<usize>,
    /// Of the body, unpacked.
    pub resource_bytes: u64,
    /// Of the body, as it arrived piece by piece.
    pub received_bytes: u64,
    /// Chromium's own sum over the wire, headers included, once it is known.
    pub wire_bytes: Option<u64>,
    /// Whether the wire's own headers were announced for it.
    pub(crate) has_wire_headers: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    pub at_s: f64,
    pub url: Option<String>,
    pub status: Option<i64>,
    pub status_text: String,
    /// What it turned out to be, in the protocol's words.
    pub resource_type: Option<String>,
    pub mime_type: String,
    /// As the network stack names it: `http/1.1`, `h2`, `data`, `blob` …
    pub protocol: String,
    /// As the page was told.
    pub headers: Headers,
    /// As they went over the wire, where that is told.
    pub wire_headers: Option<Headers>,
    pub header_bytes: u64,
    pub remote_address: Option<String>,
    pub connection_id: Option<u64>,
    pub from_disk: bool,
    pub from_service_worker: bool,
    pub timing: Option<ResourceTiming>,
}

/// What the browser said where no whole answer came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Failure {
    pub error_text: Option<String>,
    pub blocked_reason: Option<String>,
}

impl Exchange {
    /// What it is: as it was asked for, until the answer knows better.
    pub fn resource_type(&self) -> Option<&str> {
        let answered = self.answer.as_ref();
        let answered = answered.and_then(|answer| answer.resource_type.as_deref());
        answered.or(self.asked_type.as_deref())
    }

    /// Chromium says so in the request itself (Service Workers, "Service-Worker").
    pub fn asks_for_service_worker(&self) -> bool {
        let mut headers = self.request_headers.iter();
        headers.any(|(name, _)| name.eq_ignore_ascii_case("service-worker"))
    }

    /// Over the wire, headers included, as far as it came.
    pub fn transfer_bytes(&self) -> u64 {
        let headers = self.answer.as_ref().map_or(0, |answer| answer.header_bytes);
        self.wire_bytes.unwrap_or(headers + self.received_bytes)
    }
}
