//! The load state of a page, computed from events of the protocol and given times.

use std::collections::HashMap;
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

/// A session and the id of a request in it.
pub(super) type RequestKey = (String, String);

pub(crate) struct Loading {
    main_frame: String,
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
    bytes: u64,
    max_bytes: u64,
    allow_error_status: bool,
    failure: Option<Failure>,
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
            bytes: 0,
            max_bytes: plan.max_bytes,
            allow_error_status: plan.allow_error_status,
            failure: None,
        }
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
        let is_document = event.kind == "Document" && event.frame_id == self.main_frame;
        if is_document && !self.is_current(&event.loader_id) {
            self.next_document = Some(event.request_id.clone());
        }
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
        if let Some(url) = frame.unreachable_url {
            let mut failure = self.status_failure(&frame.loader_id).unwrap_or_else(|| {
                let error = self.errors.get(&frame.loader_id).map(String::as_str);
                let status = self.status_of(&frame.loader_id);
                from_net_error(error.unwrap_or("ERR_FAILED"), status)
            });
            if self.documents > 0 {
                failure.message = format!("{} The page had navigated to {url}.", failure.message);
            }
            return self.fail(failure);
        }
        // Chromium opens this instead of URLs that no page may open, such as those of `chrome:`.
        if frame.url == "about:blank#blocked" {
            return self.fail(Failure::new(
                FailureCode::BlockedTarget,
                "The page navigated to a URL that no page may open.",
            ));
        }
        if let Some(failure) = self.status_failure(&frame.loader_id) {
            return self.fail(failure);
        }
        if !is_html(&frame.mime_type) {
            return self.fail(not_html(&frame.mime_type));
        }
        self.documents += 1;
        if self.documents > MAX_DOCUMENTS {
            return self.fail(Failure::new(
                FailureCode::TooManyRedirects,
                format!("The page navigated more than {MAX_DOCUMENTS} times."),
            ));
        }
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

    /// Handles a change of the URL without a new document.
    pub(super) fn navigated_within_document(&mut self, frame: &str, url: String) {
        if frame == self.main_frame
            && let Some(document) = &mut self.document
        {
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
mod tests {
    use super::*;
    use serde_json::json;

    const IDLE: Duration = Duration::from_secs(5);

    /// A load state with a simulated clock in milliseconds.
    struct Scenario {
        loading: Loading,
        start: PageTime,
    }

    impl Scenario {
        fn new() -> Self {
            let start = PageTime::from_nanos(0);
            let catalog = plumbline_catalog::Catalog::load(plumbline_catalog::BUILT_IN).unwrap();
            let device = catalog.device("mobile").unwrap().clone();
            let plan = VisitPlan {
                max_bytes: 1_000_000,
                ..VisitPlan::new("https://example.com/", device)
            };
            let loading = Loading::new("main".to_owned(), &plan, start);
            Self { loading, start }
        }

        fn at(&self, ms: u64) -> PageTime {
            self.start + Duration::from_millis(ms)
        }

        fn sent(&mut self, ms: u64, id: &str, url: &str, kind: &str) {
            let event = json!({
                "requestId": id, "loaderId": if kind == "Document" { id } else { "L1" },
                "frameId": "main", "type": kind, "request": {"url": url},
            });
            let now = self.at(ms);
            let event = serde_json::from_value(event).unwrap();
            self.loading.request_sent("S", event, now);
        }

        fn ended(&mut self, ms: u64, id: &str, error: Option<&str>) {
            let event = json!({"requestId": id, "errorText": error});
            let now = self.at(ms);
            let event = serde_json::from_value(event).unwrap();
            self.loading.request_ended("S", event, now);
        }

        fn committed(&mut self, ms: u64, loader: &str, url: &str) {
            let frame = json!({
                "id": "main", "loaderId": loader, "url": url, "mimeType": "text/html",
            });
            let now = self.at(ms);
            let frame = serde_json::from_value(frame).unwrap();
            self.loading.navigated(frame, now);
        }

        fn lifecycle_event(&mut self, ms: u64, loader: &str, name: &str) {
            let event = json!({"frameId": "main", "loaderId": loader, "name": name});
            let now = self.at(ms);
            let event = serde_json::from_value(event).unwrap();
            self.loading.lifecycle_event(&event, now);
        }

        /// Creates a page that is loaded and painted, without requests in flight.
        fn loaded() -> Self {
            let mut scenario = Self::new();
            scenario.sent(0, "L1", "http://a.test/", "Document");
            scenario.committed(100, "L1", "http://a.test/");
            scenario.ended(150, "L1", None);
            scenario.lifecycle_event(200, "L1", "load");
            scenario.lifecycle_event(300, "L1", "firstContentfulPaint");
            scenario
        }

        fn idle_at(&self) -> Option<PageTime> {
            self.loading.idle_at(IDLE)
        }
    }

    #[test]
    fn idle_time_begins_with_the_later_of_load_and_paint() {
        let scenario = Scenario::loaded();
        assert_eq!(scenario.idle_at(), Some(scenario.at(5300)));
        assert!(scenario.loading.is_painted());
    }

    #[test]
    fn the_network_is_idle_with_two_requests_in_flight_but_not_with_three() {
        let mut scenario = Scenario::loaded();
        scenario.sent(1000, "1", "http://a.test/1", "Fetch");
        scenario.sent(1100, "2", "http://a.test/2", "Fetch");
        assert_eq!(scenario.idle_at(), Some(scenario.at(5300)));
        scenario.sent(1200, "3", "http://a.test/3", "Fetch");
        scenario.sent(1250, "4", "http://a.test/4", "Fetch");
        scenario.ended(1300, "2", None);
        assert_eq!(
            scenario.idle_at().filter(|at| *at <= scenario.at(6300)),
            None
        );
        scenario.ended(1400, "1", Some("net::ERR_FAILED"));
        assert_eq!(scenario.idle_at(), Some(scenario.at(6400)));
    }

    #[test]
    fn requests_without_network_do_not_count() {
        let mut scenario = Scenario::loaded();
        for (id, url) in [
            ("1", "data:,x"),
            ("2", "blob:http://a/b"),
            ("3", "about:blank"),
        ] {
            scenario.sent(1000, id, url, "Image");
        }
        assert_eq!(scenario.idle_at(), Some(scenario.at(5300)));
    }

    #[test]
    fn requests_of_an_ended_frame_do_not_count() {
        let mut scenario = Scenario::loaded();
        for id in ["1", "2", "3"] {
            scenario.sent(1000, id, "http://a.test/", "Fetch");
        }
        let now = scenario.at(2000);
        scenario.loading.session_ended("S", now);
        assert_eq!(scenario.idle_at(), Some(scenario.at(7000)));
    }

    #[test]
    fn the_page_is_not_idle_while_a_document_is_loading() {
        let mut scenario = Scenario::loaded();
        scenario.sent(1000, "L2", "http://b.test/", "Document");
        assert_eq!(scenario.idle_at(), None);
        scenario.committed(2000, "L2", "http://b.test/");
        assert!(!scenario.loading.is_painted());
        assert_eq!(scenario.idle_at(), None);
        scenario.lifecycle_event(2050, "L1", "load");
        assert_eq!(
            scenario.idle_at(),
            None,
            "an event of the previous document"
        );
        scenario.lifecycle_event(2100, "L2", "load");
        assert_eq!(scenario.idle_at(), Some(scenario.at(7100)));
        assert_eq!(scenario.loading.final_url(), "http://b.test/");
        assert_eq!(scenario.loading.redirects_by_page(), 1);
    }

    #[test]
    fn a_download_does_not_change_the_page() {
        let mut scenario = Scenario::loaded();
        scenario.sent(1000, "L2", "http://a.test/zip", "Document");
        scenario.ended(1100, "L2", Some("net::ERR_ABORTED"));
        assert_eq!(scenario.idle_at(), Some(scenario.at(5300)));
        assert!(scenario.loading.failure().is_none());
    }

    #[test]
    fn the_failure_of_a_navigation_contains_its_url() {
        let mut scenario = Scenario::loaded();
        scenario.sent(1000, "L2", "http://b.test/", "Document");
        scenario.ended(1100, "L2", Some("net::ERR_CONNECTION_REFUSED"));
        let frame = json!({
            "id": "main", "loaderId": "L2", "url": "chrome-error://chromewebdata/",
            "mimeType": "text/html", "unreachableUrl": "http://b.test/",
        });
        let now = scenario.at(1200);
        scenario
            .loading
            .navigated(serde_json::from_value(frame).unwrap(), now);
        let failure = scenario.loading.failure().unwrap();
        assert_eq!(failure.code, FailureCode::ConnectionFailed);
        assert!(failure.message.contains("http://b.test/"));
    }

    #[test]
    fn the_numbers_of_documents_and_bytes_are_limited() {
        let mut scenario = Scenario::new();
        for n in 0..=MAX_DOCUMENTS {
            scenario.committed(u64::from(n), &format!("L{n}"), "http://a.test/");
        }
        let code = scenario.loading.failure().map(|failure| failure.code);
        assert_eq!(code, Some(FailureCode::TooManyRedirects));

        let mut scenario = Scenario::loaded();
        scenario.loading.data_received(1_000_000);
        assert!(scenario.loading.failure().is_none());
        scenario.loading.data_received(1);
        let code = scenario.loading.failure().map(|failure| failure.code);
        assert_eq!(code, Some(FailureCode::TooLarge));
    }
}
