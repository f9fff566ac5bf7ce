//! The requests of the visit and their responses, as the checks need them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use plumbline_trace::{Exchange, Navigation, ProtocolLog, Trace};
use url::Url;

use super::{Fact, Facts, Missing};

/// Every request of the visit in the order of their start. A redirect counts as two requests.
#[derive(Debug, Default)]
pub struct Requests {
    pub all: Vec<Request>,
    by_id: HashMap<String, usize>,
}

/// A view of an exchange with what only the checks need.
#[derive(Debug, Clone)]
pub struct Request {
    pub exchange: Arc<Exchange>,
    /// The URL of the response, or else the requested one.
    pub url: Url,
    /// The index of the request that this one was redirected to.
    redirected_to: Option<usize>,
    /// True if the request loads a service worker or was sent by one. Lighthouse does not record
    /// these requests.
    pub is_of_service_worker: bool,
    /// True if the page repeated an earlier request after the load.
    pub is_repeat: bool,
}

impl Requests {
    pub fn contains(&self, request_id: &str) -> bool {
        self.by_id.contains_key(request_id)
    }

    /// Returns the requests of the load, without those of service workers, which Lighthouse does
    /// not record, and without those that the page repeated after the load.
    pub fn of_load(&self) -> impl Iterator<Item = &Request> {
        let requests = self.all.iter();
        requests.filter(|request| !request.is_of_service_worker && !request.is_repeat)
    }

    /// Returns the requests for the documents that led to the measured one, and for that, in order.
    pub fn of_documents(&self, navigation: &Navigation) -> Vec<&Request> {
        let ids = navigation.earlier_documents.iter();
        let ids = ids.chain(&navigation.document_request);
        let requests = ids.flat_map(|id| self.all.iter().filter(move |it| it.exchange.id == *id));
        requests.collect()
    }

    /// Returns whether the request was protected in transit: by its scheme, by going to localhost,
    /// or because the browser upgraded it to HTTPS (HSTS).
    pub fn is_secure(&self, request: &Request) -> bool {
        let scheme_is_safe = SAFE_SCHEMES.contains(&request.url.scheme());
        let protocol_is_safe = SAFE_SCHEMES.contains(&request.exchange.protocol());
        let host = request.url.host_str().unwrap_or_default();
        scheme_is_safe || protocol_is_safe || super::is_localhost(host) || self.is_upgraded(request)
    }

    fn is_upgraded(&self, request: &Request) -> bool {
        let by_hsts = request
            .headers()
            .iter()
            .find(|(name, _)| name == "Non-Authoritative-Reason")
            .is_some_and(|(_, reason)| reason == "HSTS");
        let target = self.redirect_target(request);
        by_hsts && target.is_some_and(|target| self.is_secure(target))
    }

    /// Returns the request that this one was redirected to.
    pub fn redirect_target(&self, request: &Request) -> Option<&Request> {
        self.all.get(request.redirected_to?)
    }

    fn of(log: &ProtocolLog) -> Self {
        let mut requests = Self::default();
        // The index of each exchange among the requests.
        let mut indexes = vec![None; log.exchanges.len()];
        let mut service_workers = HashSet::new();
        for (index, exchange) in indexes.iter_mut().zip(&log.exchanges) {
            // A URL that cannot be parsed was never requested.
            if let Ok(url) = Url::parse(&exchange.url)
                && !exchange.is_web_socket
            {
                let at = requests.all.len();
                *index = Some(at);
                requests.by_id.insert(exchange.id.clone(), at);
                let is_service_worker = exchange.is_service_worker_script();
                if is_service_worker {
                    service_workers.insert(exchange.url.as_str());
                }
                let by_service_worker = service_workers.contains(exchange.document_url.as_str());
                let response = exchange.response.as_ref();
                let response_url = response.and_then(|response| response.url.as_deref());
                requests.all.push(Request {
                    url: response_url
                        .and_then(|url| Url::parse(url).ok())
                        .unwrap_or(url),
                    exchange: Arc::clone(exchange),
                    redirected_to: None,
                    is_of_service_worker: is_service_worker || by_service_worker,
                    is_repeat: false,
                });
            }
        }
        for (index, exchange) in indexes.iter().zip(&log.exchanges) {
            if let (Some(at), Some(next)) = (*index, exchange.redirected_to) {
                requests.all[at].redirected_to = indexes.get(next).copied().flatten();
            }
        }
        requests
    }
}

/// Schemes that are encrypted or never leave the machine.
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
    #[cfg(test)]
    pub(crate) fn new(exchange: Arc<Exchange>, url: Url) -> Self {
        Self {
            exchange,
            url,
            redirected_to: None,
            is_of_service_worker: false,
            is_repeat: false,
        }
    }

    /// Returns whether the request did not use the network.
    pub fn is_local(&self) -> bool {
        const SCHEMES: [&str; 6] = [
            "blob",
            "data",
            "intent",
            "file",
            "filesystem",
            "chrome-extension",
        ];
        SCHEMES.contains(&self.exchange.protocol()) || SCHEMES.contains(&self.url.scheme())
    }

    /// Returns whether the body was transferred compressed.
    pub fn is_compressed(&self) -> bool {
        self.headers().iter().any(|(name, value)| {
            let is_named = name.eq_ignore_ascii_case("content-encoding")
                || name.eq_ignore_ascii_case("x-content-encoding-over-network");
            is_named && matches!(value.as_str(), "gzip" | "br" | "deflate" | "zstd")
        })
    }

    /// Returns the status of the response; `None` without a response.
    pub fn status(&self) -> Option<u16> {
        let response = self.exchange.response.as_ref()?;
        u16::try_from(response.status.unwrap_or_default()).ok()
    }

    /// Returns the response headers with names as the server wrote them; a repeated name has
    /// several entries.
    pub fn headers(&self) -> &[(String, String)] {
        let response = self.exchange.response.as_ref();
        response.map_or(&[], |response| &response.headers)
    }

    /// Returns the number of transferred bytes, including headers.
    pub fn transfer_bytes(&self) -> f64 {
        self.exchange.transfer_bytes() as f64
    }

    /// Returns the part of the transferred bytes that is response headers.
    pub fn header_bytes(&self) -> f64 {
        let response = self.exchange.response.as_ref();
        response.map_or(0.0, |response| response.header_bytes as f64)
    }

    /// Returns the size of the decoded body.
    pub fn resource_bytes(&self) -> f64 {
        self.exchange.resource_bytes as f64
    }

    /// Returns the time at which the network stack sent the request.
    pub fn sent_us(&self) -> f64 {
        let response = self.exchange.response.as_ref();
        let timing = response.and_then(|response| response.timing);
        let sent_us = timing.map(|timing| timing.request_time_us);
        sent_us
            .filter(|us| *us > 0.0)
            .unwrap_or(self.exchange.sent_us)
    }
}

impl Fact for Requests {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let mut requests = facts.get::<ProtocolLog>().map(|log| Self::of(&log))?;
        if let Ok(trace) = facts.get::<Trace>() {
            let repeats = trace.resources.repeats.iter();
            let repeats: HashSet<&str> = repeats.map(|resource| resource.id.as_str()).collect();
            for request in &mut requests.all {
                request.is_repeat = repeats.contains(request.exchange.id.as_str());
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
        Requests::compute(&Facts::new(&bundle, Mode::Mobile)).unwrap()
    }

    #[test]
    fn a_redirect_is_two_requests_and_later_events_concern_the_second() {
        let parsed = requests(
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
        assert_eq!(parsed.all.len(), 2);
        let [first, second] = &parsed.all[..] else {
            panic!("two requests");
        };
        assert_eq!(first.status(), Some(307));
        assert_eq!(second.status(), Some(200));
        assert_eq!(second.headers().len(), 2);
        assert!(second.exchange.end_us.is_some() && second.exchange.failure.is_none());
        assert!(parsed.is_secure(first), "the browser upgraded it to HTTPS");
    }

    #[test]
    fn a_service_worker_is_recognised_by_its_request_header() {
        let parsed = requests(
            r#"[
            {"method": "Network.requestWillBeSent", "params": {"requestId": "1", "documentURL": "https://a.test/",
              "request": {"url": "https://a.test/a.js", "headers": {"Accept": "*/*"}}}},
            {"method": "Network.requestWillBeSent", "params": {"requestId": "2", "documentURL": "https://a.test/sw.js",
              "request": {"url": "https://a.test/sw.js", "headers": {"Service-Worker": "script"}}}},
            {"method": "Network.requestWillBeSent", "params": {"requestId": "3", "documentURL": "https://a.test/sw.js",
              "request": {"url": "https://a.test/offline.html"}}}
        ]"#,
        );
        let of_worker: Vec<bool> = parsed
            .all
            .iter()
            .map(|request| request.is_of_service_worker)
            .collect();
        assert_eq!(of_worker, [false, true, true]);
    }

    #[test]
    fn requests_repeated_after_the_load_are_not_part_of_it() {
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
        // The load ends at 3.5 s: a second after the load event, without other activity.
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
        let requests = Requests::compute(&Facts::new(&bundle, Mode::Mobile)).unwrap();
        assert_eq!(requests.all.len(), 4, "all of them are listed");
        let of_load: Vec<&str> = requests
            .of_load()
            .map(|request| request.exchange.id.as_str())
            .collect();
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
            let parsed = sent(url);
            assert_eq!(parsed.is_secure(&parsed.all[0]), is_secure, "{url}");
        }
        assert!(sent("no address").all.is_empty());
    }
}
