//! Requests as the checks need them: what was asked, and how it was answered.

use std::collections::{HashMap, HashSet};

use plumbline_trace::{Exchange, Headers, ProtocolLog, Trace};
use url::Url;

use super::{Fact, Facts, Missing};

/// Every request of the visit, in the order in which they began. A redirect is two.
#[derive(Debug, Default)]
pub struct Requests {
    pub all: Vec<Request>,
    by_id: HashMap<String, usize>,
}

#[derive(Debug, Clone)]
pub struct Request {
    /// Chromium's; the requests of a chain of redirects share one.
    pub id: String,
    pub url: Url,
    /// As the network stack names it: `h2`, `http/1.1`, `data` …; empty before an answer.
    pub protocol: String,
    pub resource_type: String,
    pub status: Option<u16>,
    pub mime_type: String,
    /// Names as the server wrote them; a name that came twice is two entries.
    pub headers: Headers,
    pub is_finished: bool,
    pub is_failed: bool,
    pub frame_id: String,
    /// Whether Chromium counts it to the same site as the page.
    pub is_same_site: Option<bool>,
    /// When it began, in seconds since 1970.
    pub wall_time_s: Option<f64>,
    /// The position of the request that this one was redirected to.
    pub redirected_to: Option<usize>,
    /// Over the network, headers included.
    pub transfer_bytes: f64,
    /// Of these, the headers of the answer.
    pub header_bytes: f64,
    /// The body, decoded.
    pub resource_bytes: f64,
    /// When the network stack took it up, in seconds of Chromium's monotonic clock.
    pub sent_s: f64,
    /// A service worker, or what one asked for: Lighthouse does not listen to these.
    pub is_of_service_worker: bool,
    /// Asked for once more when the load was over.
    pub is_repeat: bool,
}

impl Requests {
    pub const NAME: &'static str = "log";

    pub fn knows(&self, request_id: &str) -> bool {
        self.by_id.contains_key(request_id)
    }

    /// Those of the load: without what service workers asked for, which Lighthouse does not hear of, and without what was
    /// asked for once more when the load was over.
    pub fn of_load(&self) -> impl Iterator<Item = &Request> {
        let requests = self.all.iter();
        requests.filter(|request| !request.is_of_service_worker && !request.is_repeat)
    }

    /// Whether nobody on the way could read or change it: by its scheme, by staying on the machine,
    /// or because the browser itself turned it into HTTPS (HSTS).
    pub fn is_secure(&self, request: &Request) -> bool {
        let scheme_is_safe = SAFE_SCHEMES.contains(&request.url.scheme());
        let protocol_is_safe = SAFE_SCHEMES.contains(&request.protocol.as_str());
        let host = request.url.host_str().unwrap_or_default();
        scheme_is_safe
            || protocol_is_safe
            || super::is_like_localhost(host)
            || self.is_upgraded(request)
    }

    fn is_upgraded(&self, request: &Request) -> bool {
        let by_hsts = request
            .headers
            .iter()
            .find(|(name, _)| name == "Non-Authoritative-Reason")
            .is_some_and(|(_, reason)| reason == "HSTS");
        let target = request.redirected_to.and_then(|at| self.all.get(at));
        by_hsts && target.is_some_and(|target| self.is_secure(target))
    }

    fn of(log: &ProtocolLog) -> Self {
        let mut requests = Self::default();
        // Where each exchange stands among the requests.
        let mut places = vec![None; log.exchanges.len()];
        let mut service_workers = HashSet::new();
        for (place, exchange) in places.iter_mut().zip(&log.exchanges) {
            // An address that cannot be parsed is no request to anywhere.
            if let Ok(url) = Url::parse(&exchange.url)
                && !exchange.is_web_socket
            {
                let at = requests.all.len();
                *place = Some(at);
                requests.by_id.insert(exchange.id.clone(), at);
                let is_service_worker = exchange.asks_for_service_worker();
                if is_service_worker {
                    service_workers.insert(exchange.url.as_str());
                }
                let by_service_worker = service_workers.contains(exchange.document_url.as_str());
                requests.all.push(Request {
                    is_of_service_worker: is_service_worker || by_service_worker,
                    ..Request::of(exchange, url)
                });
            }
        }
        for (place, exchange) in places.iter().zip(&log.exchanges) {
            if let (Some(at), Some(next)) = (*place, exchange.redirected_to) {
                requests.all[at].redirected_to = places.get(next).copied().flatten();
            }
        }
        requests
    }
}

/// Schemes that never leave the machine in the clear.
const SAFE_SCHEMES: [&str; 8] = [
    "data",
    "https",
    "wss",
    "blob",
    "chrome",
    "chrome-extension",
    "about",
    "filesystem",
];

impl Request {
    /// Whether it never went over a network.
    pub fn stays_here(&self) -> bool {
        const SCHEMES: [&str; 6] = [
            "blob",
            "data",
            "intent",
            "file",
            "filesystem",
            "chrome-extension",
        ];
        SCHEMES.contains(&self.protocol.as_str()) || SCHEMES.contains(&self.url.scheme())
    }

    /// Whether the body came encoded.
    pub fn is_compressed(&self) -> bool {
        self.headers.iter().any(|(name, value)| {
            let is_named = name.eq_ignore_ascii_case("content-encoding")
                || name.eq_ignore_ascii_case("x-content-encoding-over-network");
            is_named && matches!(value.as_str(), "gzip" | "br" | "deflate" | "zstd")
        })
    }

    fn of(exchange: &Exchange, asked: Url) -> Self {
        let is_redirected = exchange.redirected_to.is_some();
        let kind = exchange.resource_type().filter(|_| !is_redirected);
        let mut request = Self {
            id: exchange.id.clone(),
            url: asked,
            protocol: String::new(),
            resource_type: kind.unwrap_or_default().to_owned(),
            status: None,
            mime_type: String::new(),
            headers: Vec::new(),
            is_finished: exchange.end_s.is_some(),
            is_failed: exchange.failure.is_some(),
            frame_id: exchange.frame.clone().unwrap_or_default(),
            is_same_site: exchange.is_same_site,
            wall_time_s: exchange.wall_time_s,
            redirected_to: None,
            transfer_bytes: exchange.transfer_bytes() as f64,
            header_bytes: 0.0,
            resource_bytes: exchange.resource_bytes as f64,
            sent_s: exchange.sent_s,
            is_of_service_worker: false,
            is_repeat: false,
        };
        if let Some(answer) = &exchange.answer {
            if let Some(url) = answer.url.as_deref().and_then(|url| Url::parse(url).ok()) {
                request.url = url;
            }
            request.protocol.clone_from(&answer.protocol);
            request.status = u16::try_from(answer.status.unwrap_or_default()).ok();
            request.mime_type.clone_from(&answer.mime_type);
            request.headers.clone_from(&answer.headers);
            request.header_bytes = answer.header_bytes as f64;
            let taken_up = answer.timing.map(|timing| timing.request_time_s);
            if let Some(seconds) = taken_up.filter(|seconds| *seconds > 0.0) {
                request.sent_s = seconds;
            }
        }
        request
    }
}

impl Fact for Requests {
    fn find(facts: &Facts) -> Result<Self, Missing> {
        let mut requests = facts.get::<ProtocolLog>().map(|log| Self::of(&log))?;
        if let Ok(trace) = facts.get::<Trace>() {
            let repeats = trace.resources.repeats.iter();
            let repeats: HashSet<&str> = repeats.map(|resource| resource.id.as_str()).collect();
            for request in &mut requests.all {
                request.is_repeat = repeats.contains(request.id.as_str());
            }
        }
        Ok(requests)
    }
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::Mode;

    use serde_json::{Value, json};

    use super::*;
    use crate::checks::testing::{PAGE, Visit};

    fn requests(log: &str) -> Requests {
        let mut bundle = Visit::new().bundle();
        bundle.log = log.as_bytes().to_vec();
        Requests::find(&Facts::new(&bundle, Mode::Mobile)).unwrap()
    }

    #[test]
    fn a_redirect_is_two_requests_and_later_news_is_about_the_second() {
        let found = requests(
            r#"[
            {"method": "Network.requestWillBeSent", "params": {"requestId": "1", "type": "Document",
              "request": {"url": "http://a.test/"}}},
            {"method": "Network.requestWillBeSent", "params": {"requestId": "1", "type": "Document",
              "request": {"url": "https://a.test/"},
              "redirectResponse": {"url": "http://a.test/", "status": 307,
                "headers": {"Non-Authoritative-Reason": "HSTS"}}}},
            {"method": "Network.responseReceived", "params": {"requestId": "1", "type": "Document",
              "response": {"url": "https://a.test/", "status": 200, "protocol": "h2",
                "mimeType": "text/html", "headers": {"Link": "<a>\n<b>"}}}},
            {"method": "Network.loadingFinished", "params": {"requestId": "1"}}
        ]"#,
        );
        assert_eq!(found.all.len(), 2);
        let [first, second] = &found.all[..] else {
            panic!("two requests");
        };
        assert_eq!(first.status, Some(307));
        assert_eq!(second.status, Some(200));
        assert_eq!(second.headers.len(), 2);
        assert!(second.is_finished && !second.is_failed);
        assert!(found.is_secure(first), "the browser itself made it HTTPS");
    }

    #[test]
    fn a_service_worker_is_known_by_how_it_is_asked_for() {
        let found = requests(
            r#"[
            {"method": "Network.requestWillBeSent", "params": {"requestId": "1", "documentURL": "https://a.test/",
              "request": {"url": "https://a.test/a.js", "headers": {"Accept": "*/*"}}}},
            {"method": "Network.requestWillBeSent", "params": {"requestId": "2", "documentURL": "https://a.test/sw.js",
              "request": {"url": "https://a.test/sw.js", "headers": {"Service-Worker": "script"}}}},
            {"method": "Network.requestWillBeSent", "params": {"requestId": "3", "documentURL": "https://a.test/sw.js",
              "request": {"url": "https://a.test/offline.html"}}}
        ]"#,
        );
        let of_worker: Vec<bool> = found.all.iter().map(|of| of.is_of_service_worker).collect();
        assert_eq!(of_worker, [false, true, true]);
    }

    #[test]
    fn what_a_page_asks_for_again_and_again_after_its_load_is_no_part_of_it() {
        let of_main_thread = |name: &str, ms: u32, args: Value| {
            json!({"name": name, "cat": "blink.user_timing,loading,devtools.timeline", "ph": "R",
                   "ts": ms * 1000, "pid": 2, "tid": 3, "args": args})
        };
        let mark =
            |name: &str, ms: u32| of_main_thread(name, ms, json!({"frame": "F", "data": {}}));
        let mut events = vec![
            json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "ts": 0, "pid": 2, "tid": 3,
                   "args": {"name": "CrRendererMain"}}),
            of_main_thread(
                "TracingStartedInBrowser",
                1,
                json!({"data": {"frames": [{"frame": "F", "url": PAGE, "processId": 2}]}}),
            ),
            of_main_thread(
                "navigationStart",
                1,
                json!({"frame": "F", "data": {"documentLoaderURL": PAGE, "isLoadingMainFrame": true}}),
            ),
            mark("firstContentfulPaint", 2000),
            mark("loadEventEnd", 2500),
        ];
        let mut log = Vec::new();
        // The load is over at 3.5 s: a second after the load event, with nothing else going on.
        for (id, ms) in [("2.1", 2000), ("2.2", 3400), ("2.3", 3600), ("2.4", 9000)] {
            let url = format!("https://example.test/alive?at={ms}");
            let data = json!({"requestId": id, "url": url, "frame": "F",
                "initiator": {"type": "script", "fetchType": "fetch"}});
            events.push(of_main_thread(
                "ResourceSendRequest",
                ms,
                json!({"data": data}),
            ));
            let data = json!({"requestId": id});
            events.push(of_main_thread(
                "ResourceFinish",
                ms + 10,
                json!({"data": data}),
            ));
            let seconds = f64::from(ms) / 1000.0;
            log.push(
                json!({"method": "Network.requestWillBeSent", "params": {"requestId": id,
                "timestamp": seconds, "type": "Fetch", "request": {"url": url}}}),
            );
            log.push(
                json!({"method": "Network.loadingFinished", "params": {"requestId": id,
                "timestamp": seconds + 0.01}}),
            );
        }
        let mut bundle = Visit::new().trace(&Value::Array(events)).bundle();
        bundle.log = serde_json::to_vec(&log).unwrap();
        let found = Requests::find(&Facts::new(&bundle, Mode::Mobile)).unwrap();
        assert_eq!(found.all.len(), 4, "all of them are known");
        let of_load: Vec<&str> = found.of_load().map(|request| request.id.as_str()).collect();
        assert_eq!(of_load, ["2.1", "2.2"]);
    }

    #[test]
    fn plain_http_is_secure_only_on_the_machine_itself() {
        let sent = |url: &str| {
            requests(&format!(
                r#"[{{"method": "Network.requestWillBeSent",
                     "params": {{"requestId": "1", "request": {{"url": "{url}"}}}}}}]"#
            ))
        };
        for (url, is_secure) in [
            ("http://example.com/", false),
            ("ws://example.com/", false),
            ("http://localhost:8080/", true),
            ("http://127.0.0.1/", true),
            ("http://a.localhost/", true),
            ("data:text/plain,hi", true),
            ("wss://example.com/", true),
        ] {
            let found = sent(url);
            assert_eq!(found.is_secure(&found.all[0]), is_secure, "{url}");
        }
        assert!(sent("no address").all.is_empty());
    }
}
