//! Requests as the checks need them: what was asked, and how it was answered.
//!
//! The rules by which protocol events become requests are those of Lighthouse's network records
//! (core/lib/network-recorder.js, network-request.js).

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use url::Url;

use super::node::or_default;
use super::{Fact, Facts, Missing};

/// Every request of the visit, in the order in which they began. A redirect is two.
#[derive(Debug, Default)]
pub struct Requests {
    pub all: Vec<Request>,
    by_id: HashMap<String, usize>,
    service_workers: HashSet<String>,
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
    pub headers: Vec<(String, String)>,
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
}

impl Requests {
    pub const NAME: &'static str = "log";

    pub fn knows(&self, request_id: &str) -> bool {
        self.by_id.contains_key(request_id)
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

    fn latest(&mut self, id: &str) -> Option<&mut Request> {
        self.all.get_mut(*self.by_id.get(id)?)
    }

    fn see(&mut self, message: &Message) {
        let Some(params) = message.params else { return };
        match message.method.as_ref() {
            "Network.requestWillBeSent" => self.see_sent(params),
            "Network.responseReceived" => {
                let Some(received) = read::<Received>(params) else {
                    return;
                };
                if let Some(request) = self.latest(&received.request_id) {
                    request.answer(received.response, received.kind);
                }
            }
            "Network.dataReceived" => {
                let Some(data) = read::<Data>(params) else {
                    return;
                };
                if let Some(request) = self.latest(&data.request_id) {
                    request.resource_bytes += data.data_length;
                    if let Some(bytes) = data.encoded_data_length.filter(|bytes| *bytes != -1.0) {
                        request.transfer_bytes += bytes;
                    }
                }
            }
            name @ ("Network.loadingFinished" | "Network.loadingFailed") => {
                let Some(ended) = read::<Ended>(params) else {
                    return;
                };
                if let Some(request) = self.latest(&ended.request_id)
                    && !request.is_finished
                {
                    request.is_finished = true;
                    request.is_failed = name == "Network.loadingFailed";
                    if let Some(bytes) = ended.encoded_data_length {
                        request.transfer_bytes = bytes;
                    }
                }
            }
            _ => {}
        }
    }

    fn see_sent(&mut self, params: &RawValue) {
        let Some(sent) = read::<Sent>(params) else {
            return;
        };
        // An address that cannot be parsed is no request to anywhere.
        let Ok(url) = Url::parse(&sent.request.url) else {
            return;
        };
        if sent.request.headers.service_worker.is_some() {
            self.service_workers.insert(sent.request.url.clone());
        }
        let is_of_service_worker = sent.request.headers.service_worker.is_some()
            || self.service_workers.contains(&sent.document_url);
        let next = self.all.len();
        if let Some(earlier) = self.latest(&sent.request_id) {
            let Some(response) = sent.redirect_response else {
                return;
            };
            earlier.answer(response, None);
            earlier.resource_type.clear();
            earlier.is_finished = true;
            earlier.redirected_to = Some(next);
        }
        self.by_id.insert(sent.request_id.clone(), next);
        self.all.push(Request {
            id: sent.request_id,
            url,
            protocol: String::new(),
            resource_type: sent.kind.unwrap_or_default(),
            status: None,
            mime_type: String::new(),
            headers: Vec::new(),
            is_finished: false,
            is_failed: false,
            frame_id: sent.frame_id.unwrap_or_default(),
            is_same_site: sent.request.is_same_site,
            wall_time_s: sent.wall_time,
            redirected_to: None,
            transfer_bytes: 0.0,
            header_bytes: 0.0,
            resource_bytes: 0.0,
            sent_s: sent.timestamp.unwrap_or_default(),
            is_of_service_worker,
        });
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

    fn answer(&mut self, response: Response, kind: Option<String>) {
        if let Ok(url) = Url::parse(&response.url) {
            self.url = url;
        }
        if let Some(protocol) = response.protocol.filter(|name| !name.is_empty()) {
            self.protocol = protocol;
        }
        if let Some(kind) = kind {
            self.resource_type = kind;
        }
        self.status = u16::try_from(response.status.unwrap_or_default()).ok();
        self.mime_type = response.mime_type;
        self.header_bytes = response.encoded_data_length.unwrap_or_default();
        self.transfer_bytes = self.header_bytes;
        let taken_up = response.timing.and_then(|timing| timing.request_time);
        if let Some(seconds) = taken_up.filter(|seconds| *seconds > 0.0) {
            self.sent_s = seconds;
        }
        self.headers = response
            .headers
            .into_iter()
            .flat_map(|(name, values)| {
                let values = values.split('\n').map(str::to_owned).collect::<Vec<_>>();
                values.into_iter().map(move |value| (name.clone(), value))
            })
            .collect();
    }
}

impl Fact for Requests {
    fn find(facts: &Facts) -> Result<Self, Missing> {
        let messages: Vec<Message> = serde_json::from_slice(&facts.bundle.log)
            .map_err(|e| Missing(format!("the protocol log is unreadable: {e}")))?;
        let mut requests = Self::default();
        for message in &messages {
            requests.see(message);
        }
        Ok(requests)
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    method: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    request_id: String,
    request: Asked,
    wall_time: Option<f64>,
    timestamp: Option<f64>,
    frame_id: Option<String>,
    #[serde(default, rename = "documentURL", deserialize_with = "or_default")]
    document_url: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    redirect_response: Option<Response>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    url: String,
    is_same_site: Option<bool>,
    #[serde(default, deserialize_with = "or_default")]
    headers: AskedHeaders,
}

/// What Chromium says when it fetches a service worker's script (Service Workers, "Service-Worker").
#[derive(Default, Deserialize)]
struct AskedHeaders {
    #[serde(rename = "Service-Worker")]
    service_worker: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Received {
    request_id: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default, deserialize_with = "or_default")]
    url: String,
    status: Option<i64>,
    #[serde(default, deserialize_with = "or_default")]
    mime_type: String,
    protocol: Option<String>,
    encoded_data_length: Option<f64>,
    timing: Option<Timing>,
    #[serde(default, deserialize_with = "or_default")]
    headers: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timing {
    request_time: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    request_id: String,
    encoded_data_length: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    request_id: String,
    #[serde(default)]
    data_length: f64,
    encoded_data_length: Option<f64>,
}

fn read<'a, T: Deserialize<'a>>(params: &'a RawValue) -> Option<T> {
    serde_json::from_str(params.get()).ok()
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::Mode;

    use super::*;
    use crate::checks::testing::Visit;

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
