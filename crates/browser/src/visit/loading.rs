//! How far a page has come: a pure account of what the protocol reports, with the time given.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use plumbline_bundle::{Failure, FailureCode, MainDocument};

use super::events::{Frame, Lifecycle, LoadingEnded, RequestWillBeSent, ResponseReceived};
use super::failure::{from_net_error, is_html, not_html};

/// With so many requests in flight the network still counts as quiet (the definition of Time to
/// Interactive, and Lighthouse's "network-2-quiet").
const QUIET_REQUESTS: usize = 2;

/// Documents that one visit follows. Chromium itself gives up after 20 redirects by the server.
const MAX_DOCUMENTS: u32 = 20;

/// A session of ours and the browser's id of a request in it.
pub(super) type RequestKey = (String, String);

pub(super) struct Loading {
    main_frame: String,
    document: Option<Document>,
    documents: u32,
    loaded: bool,
    painted: bool,
    /// A frame of it was.
    framed_painted: bool,
    in_flight: HashMap<RequestKey, InFlight>,
    quiet_since: Instant,
    /// A document that is on its way to replace the present one.
    next_document: Option<String>,
    /// Answers and errors of main documents, by request.
    answers: HashMap<String, MainDocument>,
    errors: HashMap<String, String>,
    bytes: u64,
    max_bytes: u64,
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
    pub(super) fn new(main_frame: String, max_bytes: u64, now: Instant) -> Self {
        Self {
            main_frame,
            document: None,
            documents: 0,
            loaded: false,
            painted: false,
            framed_painted: false,
            in_flight: HashMap::new(),
            quiet_since: now,
            next_document: None,
            answers: HashMap::new(),
            errors: HashMap::new(),
            bytes: 0,
            max_bytes,
            failure: None,
        }
    }

    /// Why the page cannot be measured, once that is known.
    pub(super) fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    pub(super) fn is_painted(&self) -> bool {
        self.painted
    }

    /// Whether a visitor sees something, though the document itself shows nothing: it is made of frames.
    pub(super) fn shows_only_frames(&self) -> bool {
        self.framed_painted && !self.painted
    }

    pub(super) fn has_document(&self) -> bool {
        self.document.is_some()
    }

    /// How many times the page itself sent the browser elsewhere.
    pub(super) fn redirects_by_page(&self) -> u32 {
        self.documents.saturating_sub(1)
    }

    /// How many there were, the present one among them.
    pub(super) fn documents(&self) -> u32 {
        self.documents
    }

    pub(super) fn final_url(&self) -> &str {
        self.document.as_ref().map_or("", |document| &document.url)
    }

    /// Of the present document.
    pub(super) fn loader(&self) -> &str {
        self.document
            .as_ref()
            .map_or("", |document| &document.loader)
    }

    pub(super) fn main_document(&self) -> MainDocument {
        let Some(document) = &self.document else {
            return MainDocument::default();
        };
        let answer = self.answers.get(&document.loader);
        MainDocument {
            status: answer.map_or(0, |answer| answer.status),
            mime_type: document.mime_type.clone(),
        }
    }

    /// Status of an answer that became no document.
    pub(super) fn status_of(&self, loader: &str) -> Option<u16> {
        self.answers.get(loader).map(|answer| answer.status)
    }

    /// When the page has been quiet for that long, if nothing else happens; `None` while it is busy.
    pub(super) fn quiet_at(&self, quiet: Duration) -> Option<Instant> {
        let busy = self.in_flight.len() > QUIET_REQUESTS || self.next_document.is_some();
        (self.loaded && !busy).then(|| self.quiet_since + quiet)
    }

    pub(super) fn request_sent(&mut self, session: &str, event: RequestWillBeSent, now: Instant) {
        let is_network = ["http:", "https:"]
            .iter()
            .any(|scheme| event.request.url.starts_with(scheme));
        if !is_network {
            return;
        }
        let is_document = event.kind == "Document" && event.frame_id == self.main_frame;
        if is_document && !self.is_present(&event.loader_id) {
            self.next_document = Some(event.request_id.clone());
        }
        let key = (session.to_owned(), event.request_id);
        let loader = event.loader_id;
        self.network(now, |in_flight| {
            _ = in_flight.insert(key, InFlight { loader })
        });
    }

    pub(super) fn response_received(&mut self, event: ResponseReceived) {
        if event.kind == "Document" {
            let answer = MainDocument {
                status: event.response.status,
                mime_type: event.response.mime_type,
            };
            self.answers.insert(event.request_id, answer);
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

    pub(super) fn request_ended(&mut self, session: &str, event: LoadingEnded, now: Instant) {
        let is_next = self.next_document.as_ref() == Some(&event.request_id);
        if let Some(error) = event.error_text {
            // An error page may still follow under the same loader.
            if is_next {
                self.next_document = None;
                self.errors.insert(event.request_id.clone(), error);
            }
        }
        let key = (session.to_owned(), event.request_id);
        self.network(now, |in_flight| _ = in_flight.remove(&key));
    }

    /// A frame or worker went away, and with it what it was loading.
    pub(super) fn session_ended(&mut self, session: &str, now: Instant) {
        self.network(now, |in_flight| {
            in_flight.retain(|(of, _), _| of != session)
        });
    }

    /// A new document was committed.
    pub(super) fn navigated(&mut self, frame: Frame, now: Instant) {
        if frame.id != self.main_frame {
            return;
        }
        if let Some(address) = frame.unreachable_url {
            let error = self.errors.get(&frame.loader_id).cloned();
            let error = error.unwrap_or_else(|| "ERR_FAILED".to_owned());
            let mut failure = from_net_error(&error, self.status_of(&frame.loader_id));
            if self.documents > 0 {
                failure.message = format!("{} It was on its way to {address}.", failure.message);
            }
            return self.fail(failure);
        }
        // Chromium puts this in the place of addresses that no page may open (`chrome:` and the like).
        if frame.url == "about:blank#blocked" {
            return self.fail(Failure::new(
                FailureCode::BlockedTarget,
                "The page sent the browser to an address that no page may open.",
            ));
        }
        if !is_html(&frame.mime_type) {
            return self.fail(not_html(&frame.mime_type));
        }
        self.documents += 1;
        if self.documents > MAX_DOCUMENTS {
            return self.fail(Failure::new(
                FailureCode::TooManyRedirects,
                format!("The page sent the browser on more than {MAX_DOCUMENTS} times."),
            ));
        }
        self.in_flight
            .retain(|_, request| request.loader == frame.loader_id);
        self.document = Some(Document {
            loader: frame.loader_id,
            url: frame.url,
            mime_type: frame.mime_type,
        });
        (self.loaded, self.painted, self.framed_painted) = (false, false, false);
        self.next_document = None;
        self.quiet_since = now;
    }

    /// The address changed without a new document.
    pub(super) fn moved_within(&mut self, frame: &str, url: String) {
        if frame == self.main_frame
            && let Some(document) = &mut self.document
        {
            document.url = url;
        }
    }

    pub(super) fn came_to(&mut self, event: &Lifecycle, now: Instant) {
        if event.frame_id != self.main_frame {
            self.framed_painted |= event.name == "firstContentfulPaint";
            return;
        }
        if !self.is_present(&event.loader_id) {
            return;
        }
        match event.name.as_str() {
            "load" => self.loaded = true,
            "firstContentfulPaint" => self.painted = true,
            _ => return,
        }
        // The window begins when all three hold.
        self.quiet_since = self.quiet_since.max(now);
    }

    fn is_present(&self, loader: &str) -> bool {
        self.document
            .as_ref()
            .is_some_and(|document| document.loader == loader)
    }

    /// Quiet begins when the last request too many has ended, and never while there is one.
    fn network(&mut self, now: Instant, change: impl FnOnce(&mut HashMap<RequestKey, InFlight>)) {
        let before = self.in_flight.len();
        change(&mut self.in_flight);
        if before.max(self.in_flight.len()) > QUIET_REQUESTS {
            self.quiet_since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const QUIET: Duration = Duration::from_secs(5);

    /// A page whose clock is set by hand, in milliseconds.
    struct Story {
        loading: Loading,
        start: Instant,
    }

    impl Story {
        fn begin() -> Self {
            let start = Instant::now();
            let loading = Loading::new("main".to_owned(), 1_000_000, start);
            Self { loading, start }
        }

        fn at(&self, ms: u64) -> Instant {
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

        fn came_to(&mut self, ms: u64, loader: &str, name: &str) {
            let event = json!({"frameId": "main", "loaderId": loader, "name": name});
            let now = self.at(ms);
            let event = serde_json::from_value(event).unwrap();
            self.loading.came_to(&event, now);
        }

        /// Loaded and painted, with nothing in flight.
        fn loaded() -> Self {
            let mut story = Self::begin();
            story.sent(0, "L1", "http://a.test/", "Document");
            story.committed(100, "L1", "http://a.test/");
            story.ended(150, "L1", None);
            story.came_to(200, "L1", "load");
            story.came_to(300, "L1", "firstContentfulPaint");
            story
        }

        fn quiet_at(&self) -> Option<Instant> {
            self.loading.quiet_at(QUIET)
        }
    }

    #[test]
    fn quiet_is_counted_from_the_last_of_load_and_paint() {
        let story = Story::loaded();
        assert_eq!(story.quiet_at(), Some(story.at(5300)));
        assert!(story.loading.is_painted());
    }

    #[test]
    fn two_requests_in_flight_are_quiet_and_a_third_is_not() {
        let mut story = Story::loaded();
        story.sent(1000, "1", "http://a.test/1", "Fetch");
        story.sent(1100, "2", "http://a.test/2", "Fetch");
        assert_eq!(story.quiet_at(), Some(story.at(5300)));
        story.sent(1200, "3", "http://a.test/3", "Fetch");
        story.sent(1250, "4", "http://a.test/4", "Fetch");
        story.ended(1300, "2", None);
        assert_eq!(story.quiet_at().filter(|at| *at <= story.at(6300)), None);
        story.ended(1400, "1", Some("net::ERR_FAILED"));
        assert_eq!(story.quiet_at(), Some(story.at(6400)));
    }

    #[test]
    fn what_needs_no_network_is_not_counted() {
        let mut story = Story::loaded();
        for (id, url) in [
            ("1", "data:,x"),
            ("2", "blob:http://a/b"),
            ("3", "about:blank"),
        ] {
            story.sent(1000, id, url, "Image");
        }
        assert_eq!(story.quiet_at(), Some(story.at(5300)));
    }

    #[test]
    fn requests_of_a_frame_that_went_away_are_over() {
        let mut story = Story::loaded();
        for id in ["1", "2", "3"] {
            story.sent(1000, id, "http://a.test/", "Fetch");
        }
        let now = story.at(2000);
        story.loading.session_ended("S", now);
        assert_eq!(story.quiet_at(), Some(story.at(7000)));
    }

    #[test]
    fn a_document_on_its_way_keeps_the_page_from_being_quiet() {
        let mut story = Story::loaded();
        story.sent(1000, "L2", "http://b.test/", "Document");
        assert_eq!(story.quiet_at(), None);
        story.committed(2000, "L2", "http://b.test/");
        assert!(!story.loading.is_painted());
        assert_eq!(story.quiet_at(), None);
        story.came_to(2050, "L1", "load");
        assert_eq!(story.quiet_at(), None, "that was the document before");
        story.came_to(2100, "L2", "load");
        assert_eq!(story.quiet_at(), Some(story.at(7100)));
        assert_eq!(story.loading.final_url(), "http://b.test/");
        assert_eq!(story.loading.redirects_by_page(), 1);
    }

    #[test]
    fn a_document_that_became_a_download_leaves_the_page_as_it_is() {
        let mut story = Story::loaded();
        story.sent(1000, "L2", "http://a.test/zip", "Document");
        story.ended(1100, "L2", Some("net::ERR_ABORTED"));
        assert_eq!(story.quiet_at(), Some(story.at(5300)));
        assert!(story.loading.failure().is_none());
    }

    #[test]
    fn an_error_page_after_a_redirect_names_the_address() {
        let mut story = Story::loaded();
        story.sent(1000, "L2", "http://b.test/", "Document");
        story.ended(1100, "L2", Some("net::ERR_CONNECTION_REFUSED"));
        let frame = json!({
            "id": "main", "loaderId": "L2", "url": "chrome-error://chromewebdata/",
            "mimeType": "text/html", "unreachableUrl": "http://b.test/",
        });
        let now = story.at(1200);
        story
            .loading
            .navigated(serde_json::from_value(frame).unwrap(), now);
        let failure = story.loading.failure().unwrap();
        assert_eq!(failure.code, FailureCode::ConnectionFailed);
        assert!(failure.message.contains("http://b.test/"));
    }

    #[test]
    fn endless_documents_and_endless_bytes_come_to_an_end() {
        let mut story = Story::begin();
        for n in 0..=MAX_DOCUMENTS {
            story.committed(u64::from(n), &format!("L{n}"), "http://a.test/");
        }
        let code = story.loading.failure().map(|failure| failure.code);
        assert_eq!(code, Some(FailureCode::TooManyRedirects));

        let mut story = Story::loaded();
        story.loading.data_received(1_000_000);
        assert!(story.loading.failure().is_none());
        story.loading.data_received(1);
        let code = story.loading.failure().map(|failure| failure.code);
        assert_eq!(code, Some(FailureCode::TooLarge));
    }
}
