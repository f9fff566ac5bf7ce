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
fn an_error_page_after_a_redirect_names_its_url() {
    let failure_at = |url: &str| {
        let mut scenario = Scenario::new();
        scenario.sent(0, "L1", "http://a.test/", "Document");
        let response = json!({
            "requestId": "L1", "type": "Document", "response": {"url": url, "status": 404},
        });
        let response = serde_json::from_value(response).unwrap();
        scenario.loading.response_received(response);
        scenario.committed(100, "L1", url);
        scenario.loading.failure().unwrap().message.clone()
    };
    let not_found = "The server responded with status 404.";
    assert_eq!(failure_at("http://a.test/"), not_found);
    assert_eq!(
        failure_at("http://a.test/gone"),
        format!("{not_found} The page had redirected to http://a.test/gone.")
    );
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
