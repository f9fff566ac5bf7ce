//! Requests with what each of their phases took, from the protocol log.

use std::collections::{BTreeMap, HashMap};

use plumbline_bundle::Bundle;
use plumbline_trace::Trace;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use url::Url;

use super::to_us;

/// One request as a waterfall shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestShown {
    pub url: String,
    pub host: String,
    pub method: String,
    /// In words of the page: Document, Stylesheet, Script, Image, Font, Fetch …
    pub kind: String,
    pub status: Option<u16>,
    /// What the browser said where there is no answer: `net::ERR_…`.
    pub error: Option<String>,
    pub mime_type: String,
    pub protocol: String,
    pub priority: String,
    pub remote_address: String,
    pub third_party: bool,
    pub render_blocking: bool,
    /// This picture was the largest contentful paint.
    pub is_lcp: bool,
    /// The answer came from a cache or a service worker.
    pub cached: bool,
    /// As sent, headers included.
    pub transfer_bytes: u64,
    /// Unpacked.
    pub resource_bytes: u64,
    pub start_ms: f64,
    pub end_ms: Option<f64>,
    pub phases: Phases,
    /// Who asked for it: a document or script, where there is one.
    pub initiator: Option<String>,
    /// A few headers of the answer that decide how fast it comes.
    pub headers: Vec<(String, String)>,
}

/// What each phase took. None where there was no such phase; a connection is set up once for many requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Phases {
    /// Before anything was done for it.
    pub queue_ms: f64,
    pub dns_ms: Option<f64>,
    pub connect_ms: Option<f64>,
    pub tls_ms: Option<f64>,
    /// From the request until the answer began.
    pub wait_ms: Option<f64>,
    pub receive_ms: Option<f64>,
}

impl RequestShown {
    pub(super) fn round(&mut self) {
        let phases = &mut self.phases;
        self.start_ms = to_us(self.start_ms);
        phases.queue_ms = to_us(phases.queue_ms);
        for ms in [
            &mut self.end_ms,
            &mut phases.dns_ms,
            &mut phases.connect_ms,
            &mut phases.tls_ms,
            &mut phases.wait_ms,
            &mut phases.receive_ms,
        ] {
            *ms = ms.map(to_us);
        }
    }
}

/// More are counted and not kept.
const MOST: usize = 1000;
const LONGEST_URL: usize = 1000;
const LONGEST_HEADER: usize = 200;
/// Headers of an answer that say how it was cached, packed and made.
const HEADERS: [&str; 5] = [
    "cache-control",
    "content-encoding",
    "content-type",
    "server",
    "server-timing",
];

/// In order of their start, and how many were left out.
pub(super) fn requests(
    bundle: &Bundle,
    trace: &Trace,
    lcp_image: Option<&str>,
) -> (Vec<RequestShown>, usize) {
    let Ok(messages) = serde_json::from_slice::<Vec<Message>>(&bundle.log) else {
        return (Vec::new(), 0);
    };
    let mut seen = Seen {
        origin_ms: trace.navigation.time_origin_us / 1000.0,
        all: Vec::new(),
        by_id: HashMap::new(),
    };
    for message in &messages {
        seen.see(message);
    }
    let page_host = host_of(&bundle.final_url);
    let mut shown: Vec<RequestShown> = seen
        .all
        .into_iter()
        .map(|pending| {
            let mut request = pending.shown;
            let resource = trace.resources.by_id(&pending.id);
            request.render_blocking = resource.is_some_and(|resource| {
                matches!(
                    resource.render_blocking.as_str(),
                    "blocking" | "in_body_parser_blocking"
                )
            });
            request.is_lcp = lcp_image == Some(request.url.as_str());
            request.third_party = pending
                .is_same_site
                .map_or(request.host != page_host, |same| !same);
            request.url = shortened(&request.url, LONGEST_URL);
            request
        })
        .collect();
    shown.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
    let left_out = shown.len().saturating_sub(MOST);
    shown.truncate(MOST);
    (shown, left_out)
}

struct Seen {
    origin_ms: f64,
    all: Vec<Pending>,
    by_id: HashMap<String, usize>,
}

struct Pending {
    id: String,
    shown: RequestShown,
    is_same_site: Option<bool>,
    headers_end_ms: Option<f64>,
}

impl Seen {
    fn see(&mut self, message: &Message) {
        let Some(params) = message.params else { return };
        match message.method.as_ref() {
            "Network.requestWillBeSent" => self.sent(params),
            "Network.responseReceived" => {
                if let Some(received) = read::<Received>(params) {
                    let origin_ms = self.origin_ms;
                    if let Some(pending) = self.latest(&received.request_id) {
                        pending.answer(received.response, origin_ms);
                        if let Some(kind) = received.kind {
                            pending.shown.kind = kind;
                        }
                    }
                }
            }
            "Network.dataReceived" => {
                if let Some(data) = read::<Data>(params)
                    && let Some(pending) = self.latest(&data.request_id)
                {
                    pending.shown.resource_bytes += data.data_length;
                    pending.shown.transfer_bytes += data.encoded_data_length;
                }
            }
            "Network.resourceChangedPriority" => {
                if let Some(changed) = read::<Priority>(params)
                    && let Some(pending) = self.latest(&changed.request_id)
                {
                    pending.shown.priority = changed.new_priority;
                }
            }
            "Network.loadingFinished" => {
                if let Some(ended) = read::<Ended>(params) {
                    self.ended(ended, None);
                }
            }
            "Network.loadingFailed" => {
                if let Some(ended) = read::<Ended>(params) {
                    let reason = ended.blocked_reason.clone().or(ended.error_text.clone());
                    self.ended(ended, reason);
                }
            }
            _ => {}
        }
    }

    fn sent(&mut self, params: &RawValue) {
        let Some(sent) = read::<Sent>(params) else {
            return;
        };
        // Only what went over the network has a place in a waterfall.
        let Ok(url) = Url::parse(&sent.request.url) else {
            return;
        };
        if !matches!(url.scheme(), "http" | "https" | "ws" | "wss") {
            return;
        }
        let start_ms = sent.timestamp * 1000.0 - self.origin_ms;
        let origin_ms = self.origin_ms;
        if let Some(earlier) = self.latest(&sent.request_id) {
            // The same id again is a redirect's next hop, or no news.
            let Some(response) = sent.redirect_response else {
                return;
            };
            let bytes = response.encoded_data_length.unwrap_or_default();
            earlier.answer(response, origin_ms);
            earlier.shown.transfer_bytes = bytes as u64;
            earlier.end(start_ms);
        }
        self.by_id.insert(sent.request_id.clone(), self.all.len());
        self.all.push(Pending {
            id: sent.request_id,
            is_same_site: sent.request.is_same_site,
            headers_end_ms: None,
            shown: RequestShown {
                host: host_of(url.as_str()),
                url: url.into(),
                method: sent.request.method,
                kind: sent.kind.unwrap_or_else(|| "Other".to_owned()),
                priority: sent.request.initial_priority,
                start_ms,
                initiator: sent
                    .initiator
                    .and_then(|initiator| initiator.address())
                    .map(|url| shortened(&url, LONGEST_URL)),
                ..RequestShown::default()
            },
        });
    }

    fn ended(&mut self, ended: Ended, error: Option<String>) {
        let end_ms = ended.timestamp * 1000.0 - self.origin_ms;
        if let Some(pending) = self.latest(&ended.request_id)
            && pending.shown.end_ms.is_none()
        {
            if let Some(bytes) = ended.encoded_data_length {
                pending.shown.transfer_bytes = bytes as u64;
            }
            pending.shown.error = error;
            pending.end(end_ms);
        }
    }

    fn latest(&mut self, id: &str) -> Option<&mut Pending> {
        self.all.get_mut(*self.by_id.get(id)?)
    }
}

impl Pending {
    fn answer(&mut self, response: Response, origin_ms: f64) {
        let shown = &mut self.shown;
        shown.status = u16::try_from(response.status.unwrap_or_default()).ok();
        shown.mime_type = response.mime_type;
        shown.protocol = response.protocol.unwrap_or_default();
        shown.cached = response.from_disk_cache || response.from_service_worker;
        shown.remote_address = response.remote_address.unwrap_or_default();
        shown.headers = response
            .headers
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .filter(|(name, _)| HEADERS.contains(&name.as_str()))
            .map(|(name, value)| (name, shortened(&value, LONGEST_HEADER)))
            .collect();
        let Some(timing) = response.timing else {
            return;
        };
        let base_ms = timing.request_time * 1000.0 - origin_ms;
        let span = |from: f64, to: f64| (from >= 0.0 && to >= from).then_some(to - from);
        let tls_ms = span(timing.ssl_start, timing.ssl_end);
        let began = [timing.dns_start, timing.connect_start, timing.send_start]
            .into_iter()
            .filter(|ms| *ms >= 0.0)
            .fold(f64::INFINITY, f64::min);
        let began = if began.is_finite() { began } else { 0.0 };
        shown.phases = Phases {
            queue_ms: (base_ms + began - shown.start_ms).max(0.0),
            dns_ms: span(timing.dns_start, timing.dns_end),
            connect_ms: span(timing.connect_start, timing.connect_end)
                .map(|ms| (ms - tls_ms.unwrap_or_default()).max(0.0)),
            tls_ms,
            wait_ms: span(timing.send_start, timing.receive_headers_end),
            receive_ms: None,
        };
        self.headers_end_ms = Some(base_ms + timing.receive_headers_end);
    }

    fn end(&mut self, end_ms: f64) {
        self.shown.end_ms = Some(end_ms);
        self.shown.phases.receive_ms = self
            .headers_end_ms
            .map(|headers_ms| (end_ms - headers_ms).max(0.0));
    }
}

fn host_of(url: &str) -> String {
    let host = Url::parse(url).ok();
    let host = host.as_ref().and_then(Url::host_str);
    host.unwrap_or_default().to_owned()
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
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
    timestamp: f64,
    #[serde(rename = "type")]
    kind: Option<String>,
    redirect_response: Option<Response>,
    initiator: Option<Initiator>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    url: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    initial_priority: String,
    is_same_site: Option<bool>,
}

#[derive(Deserialize)]
struct Initiator {
    url: Option<String>,
    stack: Option<Stack>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stack {
    #[serde(default)]
    call_frames: Vec<CallFrame>,
}

#[derive(Deserialize)]
struct CallFrame {
    url: String,
}

impl Initiator {
    fn address(self) -> Option<String> {
        let called = self.stack.map(|stack| stack.call_frames);
        let first = called.and_then(|frames| frames.into_iter().find(|f| !f.url.is_empty()));
        self.url.or(first.map(|frame| frame.url))
    }
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
    status: Option<i64>,
    #[serde(default)]
    mime_type: String,
    protocol: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(rename = "remoteIPAddress")]
    remote_address: Option<String>,
    #[serde(default)]
    from_disk_cache: bool,
    #[serde(default)]
    from_service_worker: bool,
    encoded_data_length: Option<f64>,
    timing: Option<Timing>,
}

/// Milliseconds since `request_time`, which is in seconds; -1 where there was no such moment.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timing {
    request_time: f64,
    dns_start: f64,
    dns_end: f64,
    connect_start: f64,
    connect_end: f64,
    ssl_start: f64,
    ssl_end: f64,
    send_start: f64,
    receive_headers_end: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    request_id: String,
    #[serde(default)]
    data_length: u64,
    #[serde(default)]
    encoded_data_length: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Priority {
    request_id: String,
    new_priority: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    request_id: String,
    timestamp: f64,
    encoded_data_length: Option<f64>,
    error_text: Option<String>,
    blocked_reason: Option<String>,
}

fn read<'a, T: Deserialize<'a>>(params: &'a RawValue) -> Option<T> {
    serde_json::from_str(params.get()).ok()
}
