//! Requests with what each of their phases took, from the protocol log.

use plumbline_trace::{Answer, Exchange, Headers, ProtocolLog, ResourceTiming, Trace};
use serde::{Deserialize, Serialize};
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
    log: &ProtocolLog,
    final_url: &str,
    trace: &Trace,
    lcp_image: Option<&str>,
) -> (Vec<RequestShown>, usize) {
    let origin_ms = trace.navigation.time_origin_us / 1000.0;
    let page_host = host_of(final_url);
    let mut shown: Vec<RequestShown> = log
        .exchanges
        .iter()
        .filter_map(|exchange| {
            let mut request = RequestShown::of(exchange, origin_ms)?;
            let resource = trace.resources.by_id(&exchange.id);
            request.render_blocking = resource.is_some_and(|resource| {
                matches!(
                    resource.render_blocking.as_str(),
                    "blocking" | "in_body_parser_blocking"
                )
            });
            request.is_lcp = lcp_image == Some(request.url.as_str());
            request.third_party = exchange
                .is_same_site
                .map_or(request.host != page_host, |same| !same);
            request.url = shortened(&request.url, LONGEST_URL);
            Some(request)
        })
        .collect();
    shown.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
    let left_out = shown.len().saturating_sub(MOST);
    shown.truncate(MOST);
    (shown, left_out)
}

impl RequestShown {
    /// Only what went over the network has a place in a waterfall.
    fn of(exchange: &Exchange, origin_ms: f64) -> Option<Self> {
        let url = Url::parse(&exchange.url).ok()?;
        let is_shown = matches!(url.scheme(), "http" | "https" | "ws" | "wss");
        if !is_shown || exchange.is_web_socket {
            return None;
        }
        let initiator = exchange.initiator_url.as_deref();
        let failure = exchange.failure.clone().unwrap_or_default();
        let mut shown = Self {
            host: host_of(url.as_str()),
            url: url.into(),
            method: exchange.method.clone(),
            kind: exchange.resource_type().unwrap_or("Other").to_owned(),
            error: failure.blocked_reason.or(failure.error_text),
            priority: exchange.priority.clone(),
            transfer_bytes: exchange.transfer_bytes(),
            resource_bytes: exchange.resource_bytes,
            start_ms: exchange.sent_s * 1000.0 - origin_ms,
            end_ms: exchange.end_s.map(|end_s| end_s * 1000.0 - origin_ms),
            initiator: initiator.map(|url| shortened(url, LONGEST_URL)),
            ..Self::default()
        };
        if let Some(answer) = &exchange.answer {
            shown.answer(answer, origin_ms);
        }
        Some(shown)
    }

    fn answer(&mut self, answer: &Answer, origin_ms: f64) {
        self.status = u16::try_from(answer.status.unwrap_or_default()).ok();
        self.mime_type.clone_from(&answer.mime_type);
        self.protocol.clone_from(&answer.protocol);
        self.cached = answer.from_disk || answer.from_service_worker;
        self.remote_address = answer.remote_address.clone().unwrap_or_default();
        self.headers = telling(&answer.headers);
        if let Some(timing) = &answer.timing {
            let base_ms = timing.request_time_s * 1000.0 - origin_ms;
            let headers_end_ms = base_ms + timing.receive_headers_end_ms;
            self.phases = Phases {
                receive_ms: self.end_ms.map(|ms| (ms - headers_end_ms).max(0.0)),
                ..Phases::of(timing, base_ms, self.start_ms)
            };
        }
    }
}

impl Phases {
    fn of(timing: &ResourceTiming, base_ms: f64, start_ms: f64) -> Self {
        let span = |from: f64, to: f64| (from >= 0.0 && to >= from).then_some(to - from);
        let tls_ms = span(timing.ssl_start_ms, timing.ssl_end_ms);
        let began = [
            timing.dns_start_ms,
            timing.connect_start_ms,
            timing.send_start_ms,
        ]
        .into_iter()
        .filter(|ms| *ms >= 0.0)
        .fold(f64::INFINITY, f64::min);
        let began = if began.is_finite() { began } else { 0.0 };
        Self {
            queue_ms: (base_ms + began - start_ms).max(0.0),
            dns_ms: span(timing.dns_start_ms, timing.dns_end_ms),
            connect_ms: span(timing.connect_start_ms, timing.connect_end_ms)
                .map(|ms| (ms - tls_ms.unwrap_or_default()).max(0.0)),
            tls_ms,
            wait_ms: span(timing.send_start_ms, timing.receive_headers_end_ms),
            receive_ms: None,
        }
    }
}

/// Those that are shown, the values of a name in one entry.
fn telling(headers: &Headers) -> Headers {
    let is_shown = |name: &str| HEADERS.iter().any(|shown| shown.eq_ignore_ascii_case(name));
    let shown: Vec<_> = headers.iter().filter(|(name, _)| is_shown(name)).collect();
    shown
        .chunk_by(|(a, _), (b, _)| a == b)
        .map(|of_name| {
            let values: Vec<&str> = of_name.iter().map(|(_, value)| value.as_str()).collect();
            let value = shortened(&values.join("\n"), LONGEST_HEADER);
            (of_name[0].0.to_ascii_lowercase(), value)
        })
        .collect()
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
