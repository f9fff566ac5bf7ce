//! The load state of a page, computed from events of the protocol and given times.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use plumbline_bundle::{Failure, FailureCode, MainDocument};
use plumbline_clock::PageTime;

use super::events::{
    Frame, Lifecycle, LoadingEnded, RequestWillBeSent, Response, ResponseReceived,
};
use super::failure::{from_net_error, http_error, is_html, not_html};
use super::link_header::LinkHeaders;
use crate::VisitPlan;

/// Number of requests in flight with which the network still counts as idle (the definition of Time
/// to Interactive, and Lighthouse's "network-2-quiet").
const MAX_IDLE_REQUESTS: usize = 2;

/// Maximum number of documents in one visit. Chromium's own limit for redirects by the server is
/// 20.
const MAX_DOCUMENTS: u32 = 20;

/// Maximum number of origins of documents that are remembered.
const MAX_ORIGINS: usize = 64;

/// A session and the id of a request in it.
pub(super) type RequestKey = (String, String);

pub(crate) struct Loading {
    main_frame: String,
    /// URL of the first document, before redirects.
    first_url: Option<String>,
    /// URL of the last document that was requested, after redirects.
    last_url: Option<String>,
    document: Option<Document>,
    documents: u32,
    loaded: bool,
    painted: bool,
    /// Whether a frame of the page was painted.
    frame_painted: bool,
    in_flight: HashMap<RequestKey, InFlight>,
    network_idle_since: PageTime,
    /// Request of a document that is loading and will replace the current one.
    next_document: Option<String>,
    /// Responses to requests of documents, by request.
    responses: HashMap<String, Response>,
    /// Errors of requests of documents, by request.
    errors: HashMap<String, String>,
    /// Number of requests so far.
    requests: u32,
    /// Number of transferred bytes so far, including headers.
    transfer_bytes: u64,
    bytes: u64,
    max_bytes: u64,
    allow_error_status: bool,
    failure: Option<Failure>,
    /// True if documents of any kind and number are accepted, for the steps before a visit.
    accepts_any_document: bool,
    /// Number of navigations of the page, including those within its document.
    navigations: u32,
    /// Origins of requested documents, also of those in frames.
    document_origins: BTreeSet<String>,
}

struct InFlight {
    loader: String,
}

#[derive(Clone)]
struct Document {
    loader: String,
    url: String,
    mime_type: String,
}

impl Loading {
    pub(super) fn new(main_frame: String, plan: &VisitPlan, now: PageTime) -> Self {
        Self {
            main_frame,
            first_url: None,
            last_url: None,
            document: None,
            documents: 0,
            loaded: false,
            painted: false,
            frame_painted: false,
            in_flight: HashMap::new(),
            network_idle_since: now,
            next_document: None,
            responses: HashMap::new(),
            errors: HashMap::new(),
            requests: 0,
            transfer_bytes: 0,
            bytes: 0,
            max_bytes: plan.max_bytes,
            allow_error_status: plan.allow_error_status,
            failure: None,
            accepts_any_document: false,
            navigations: 0,
            document_origins: BTreeSet::new(),
        }
    }

    /// Creates the load state of a page in which steps are performed.
    pub(super) fn of_steps(main_frame: String, plan: &VisitPlan, now: PageTime) -> Self {
        Self {
            accepts_any_document: true,
            ..Self::new(main_frame, plan, now)
        }
    }

    pub(crate) fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// Returns the number of navigations of the page, including those within its document.
    pub(crate) fn navigations(&self) -> u32 {
        self.navigations
    }

    /// Returns the origins of requested documents, up to a limit.
    pub(crate) fn document_origins(&self) -> &BTreeSet<String> {
        &self.document_origins
    }

    /// Returns the reason why the page cannot be measured, if there is one.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    pub(crate) fn is_painted(&self) -> bool {
        self.painted
    }

    /// Returns whether only frames of the page are painted, and the document itself is not.
    pub(crate) fn shows_only_frames(&self) -> bool {
        self.frame_painted && !self.painted
    }

    pub(crate) fn has_document(&self) -> bool {
        self.document.is_some()
    }

    /// Returns the number of navigations by the page itself.
    pub(crate) fn redirects_by_page(&self) -> u32 {
        self.documents.saturating_sub(1)
    }

    /// Returns the number of documents, including the current one.
    pub(crate) fn documents(&self) -> u32 {
        self.documents
    }

    pub(crate) fn final_url(&self) -> &str {
        self.document.as_ref().map_or("", |document| &document.url)
    }

    /// Returns the loader of the current document.
    pub(super) fn loader(&self) -> &str {
        self.document
            .as_ref()
            .map_or("", |document| &document.loader)
    }

    pub(crate) fn main_document(&self) -> MainDocument {
        let Some(document) = &self.document else {
            return MainDocument::default();
        };
        MainDocument {
            status: self.status_of(&document.loader).unwrap_or(0),
            mime_type: document.mime_type.clone(),
        }
    }

    /// Returns the `Link` headers of the current document.
    pub(super) fn link_headers(&self) -> Option<&LinkHeaders> {
        let response = self.responses.get(self.loader());
        response.map(|response| &response.headers)
    }

    /// Returns the status of a response, also if it did not become a document.
    pub(crate) fn status_of(&self, loader: &str) -> Option<u16> {
        self.responses.get(loader).map(|response| response.status)
    }

    /// Returns the failure of a response whose status does not allow to measure its document.
    pub(crate) fn status_failure(&self, loader: &str) -> Option<Failure> {
        let status = self.status_of(loader)?;
        (status >= 400 && !self.allow_error_status).then(|| http_error(status))
    }

    /// Returns whether a document is loading that will replace the current one.
    pub(crate) fn is_navigating(&self) -> bool {
        self.next_document.is_some()
    }

    /// Returns the number of requests so far, and of the bytes that were transferred for them.
    pub(crate) fn transferred(&self) -> (u32, u64) {
        (self.requests, self.transfer_bytes)
    }

    /// Returns the number of requests that have not been answered completely.
    pub(super) fn requests_in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns the time at which the network will have been idle for `duration` if nothing happens;
    /// `None` while it is busy.
    pub(crate) fn idle_at(&self, duration: Duration) -> Option<PageTime> {
        let is_busy = self.in_flight.len() > MAX_IDLE_REQUESTS || self.next_document.is_some();
        (self.loaded && !is_busy).then(|| self.network_idle_since + duration)
    }

    pub(super) fn request_sent(&mut self, session: &str, event: RequestWillBeSent, now: PageTime) {
        let is_network = ["http:", "https:"]
            .iter()
            .any(|scheme| event.request.url.starts_with(scheme));
        if !is_network {
            return;
        }
        if event.kind == "Document" && self.document_origins.len() < MAX_ORIGINS {
            let url = url::Url::parse(&event.request.url);
            let origin = url.map(|url| url.origin().ascii_serialization());
            self.document_origins.extend(origin);
        }
        let is_document = event.kind == "Document" && event.frame_id == self.main_frame;
        if is_document && !self.is_current(&event.loader_id) {
            self.next_document = Some(event.request_id.clone());
            self.first_url
                .get_or_insert_with(|| event.request.url.clone());
            self.last_url = Some(event.request.url);
        }
        self.requests = self.requests.saturating_add(1);
        let key = (session.to_owned(), event.request_id);
        let loader = event.loader_id;
        self.update_requests(now, |in_flight| {
            _ = in_flight.insert(key, InFlight { loader })
        });
    }

    pub(super) fn response_received(&mut self, event: ResponseReceived) {
        if event.kind == "Document" {
            self.responses.insert(event.request_id, event.response);
        }
    }

    pub(super) fn data_received(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.max_bytes {
            let limit = self.max_bytes / 1_000_000;
            self.fail(Failure::new(
                FailureCode::TooLarge,
                format!("The page loads more than {limit} MB."),
            ));
        }
    }

    pub(super) fn request_ended(&mut self, session: &str, event: LoadingEnded, now: PageTime) {
        let bytes = event.encoded_data_length.max(0.0) as u64;
        self.transfer_bytes = self.transfer_bytes.saturating_add(bytes);
        let is_next = self.next_document.as_ref() == Some(&event.request_id);
        if let Some(error) = event.error_text {
            // An error page with the same loader may follow.
            if is_next {
                self.next_document = None;
                self.errors.insert(event.request_id.clone(), error);
            }
        }
        let key = (session.to_owned(), event.request_id);
        self.update_requests(now, |in_flight| _ = in_flight.remove(&key));
    }

    /// Removes the requests of a frame or worker that has ended.
    pub(super) fn session_ended(&mut self, session: &str, now: PageTime) {
        self.update_requests(now, |in_flight| {
            in_flight.retain(|(request_session, _), _| request_session != session)
        });
    }

    /// Handles a new document that was committed in a frame.
    pub(super) fn navigated(&mut self, frame: Frame, now: PageTime) {
        if frame.id != self.main_frame {
            return;
        }
        self.navigations += 1;
        if !self.accepts_any_document
            && let Some(failure) = self.document_failure(&frame)
        {
            return self.fail(failure);
        }
        self.documents += 1;
        self.in_flight
            .retain(|_, request| request.loader == frame.loader_id);
        self.document = Some(Document {
            loader: frame.loader_id,
            url: frame.url,
            mime_type: frame.mime_type,
        });
        (self.loaded, self.painted, self.frame_painted) = (false, false, false);
        self.next_document = None;
        self.network_idle_since = now;
    }

    /// Returns the reason why a new document of the page cannot be measured.
    fn document_failure(&self, frame: &Frame) -> Option<Failure> {
        if let Some(failure) = self.response_failure(frame) {
            let url = frame.unreachable_url.as_ref().unwrap_or(&frame.url);
            return Some(self.after_redirect(failure, url));
        }
        // Chromium opens this instead of URLs that no page may open, such as those of `chrome:`.
        if frame.url == "about:blank#blocked" {
            return Some(Failure::new(
                FailureCode::BlockedTarget,
                "The page navigated to a URL that no page may open.",
            ));
        }
        (self.documents >= MAX_DOCUMENTS).then(|| {
            Failure::new(
                FailureCode::TooManyRedirects,
                format!("The page navigated more than {MAX_DOCUMENTS} times."),
            )
        })
    }

    /// Returns a failure that names the URL to which the page had redirected, if it had.
    fn after_redirect(&self, failure: Failure, url: &str) -> Failure {
        if self.first_url.as_deref().is_none_or(|first| first == url) {
            return failure;
        }
        let message = format!("{} The page had redirected to {url}.", failure.message);
        Failure::new(failure.code, message)
    }

    /// Returns the failure of a document that was requested and did not arrive, with the URL to
    /// which the page had redirected, if it had.
    pub(crate) fn request_failure(&self, failure: Failure) -> Failure {
        match &self.last_url {
            Some(url) => self.after_redirect(failure, url),
            None => failure,
        }
    }

    /// Returns the reason why the response for a new document does not allow to measure it.
    fn response_failure(&self, frame: &Frame) -> Option<Failure> {
        let loader = &frame.loader_id;
        if let Some(failure) = self.status_failure(loader) {
            return Some(failure);
        }
        if frame.unreachable_url.is_some() {
            let error = self.errors.get(loader).map_or("ERR_FAILED", String::as_str);
            return Some(from_net_error(error, self.status_of(loader)));
        }
        let is_blocked = frame.url == "about:blank#blocked";
        (!is_blocked && !is_html(&frame.mime_type)).then(|| not_html(&frame.mime_type))
    }

    /// Handles a change of the URL without a new document.
    pub(super) fn navigated_within_document(&mut self, frame: &str, url: String) {
        if frame != self.main_frame {
            return;
        }
        self.navigations += 1;
        if let Some(document) = &mut self.document {
            document.url = url;
        }
    }

    pub(super) fn lifecycle_event(&mut self, event: &Lifecycle, now: PageTime) {
        if event.frame_id != self.main_frame {
            self.frame_painted |= event.name == "firstContentfulPaint";
            return;
        }
        if !self.is_current(&event.loader_id) {
            return;
        }
        match event.name.as_str() {
            "load" => self.loaded = true,
            "firstContentfulPaint" => self.painted = true,
            _ => return,
        }
        // The idle time begins when the page is loaded and painted and the network is idle.
        self.network_idle_since = self.network_idle_since.max(now);
    }

    fn is_current(&self, loader: &str) -> bool {
        self.document
            .as_ref()
            .is_some_and(|document| document.loader == loader)
    }

    /// Changes the requests in flight. The network is idle since the end of the last request above
    /// the limit.
    fn update_requests(
        &mut self,
        now: PageTime,
        change: impl FnOnce(&mut HashMap<RequestKey, InFlight>),
    ) {
        let before = self.in_flight.len();
        change(&mut self.in_flight);
        if before.max(self.in_flight.len()) > MAX_IDLE_REQUESTS {
            self.network_idle_since = now;
        }
    }
}

#[cfg(test)]
mod tests;
