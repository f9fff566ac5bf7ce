//! The requests of the protocol log with the durations of their phases.

use plumbline_model::media::{Phases, RequestEntry};
use plumbline_trace::{Exchange, Headers, ProtocolLog, ResourceTiming, Response, Trace};
use url::Url;

use super::to_us;

/// Rounds all times of a request to the microsecond.
pub(super) fn round(request: &mut RequestEntry) {
    let phases = &mut request.phases;
    request.start_ms = to_us(request.start_ms);
    phases.queue_ms = to_us(phases.queue_ms);
    for ms in [
        &mut request.end_ms,
        &mut phases.dns_ms,
        &mut phases.connect_ms,
        &mut phases.tls_ms,
        &mut phases.wait_ms,
        &mut phases.receive_ms,
    ] {
        *ms = ms.map(to_us);
    }
}

const MAX_URL_CHARS: usize = 1000;
const MAX_HEADER_CHARS: usize = 200;
/// The response headers about caching, compression and the server.
const HEADERS: [&str; 5] = [
    "cache-control",
    "content-encoding",
    "content-type",
    "server",
    "server-timing",
];

/// Returns the requests in the order of their start.
pub(super) fn requests(
    log: &ProtocolLog,
    final_url: &str,
    trace: &Trace,
    lcp_image: Option<&str>,
) -> Vec<RequestEntry> {
    let origin_ms = trace.navigation.time_origin_us / 1000.0;
    let page_host = host_of(final_url);
    let mut entries: Vec<RequestEntry> = log
        .exchanges
        .iter()
        .filter_map(|exchange| {
            let mut request = entry(exchange, origin_ms)?;
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
            request.url = shortened(&request.url, MAX_URL_CHARS);
            Some(request)
        })
        .collect();
    entries.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
    entries
}

/// Creates a row of the waterfall; returns `None` for requests that did not use the network.
fn entry(exchange: &Exchange, origin_ms: f64) -> Option<RequestEntry> {
    let url = Url::parse(&exchange.url).ok()?;
    let is_shown = matches!(url.scheme(), "http" | "https" | "ws" | "wss");
    if !is_shown || exchange.is_web_socket {
        return None;
    }
    let initiator = exchange.initiator_url.as_deref();
    let failure = exchange.failure.clone().unwrap_or_default();
    let mut entry = RequestEntry {
        host: host_of(url.as_str()),
        url: url.into(),
        method: exchange.method.clone(),
        kind: exchange.resource_type().unwrap_or("Other").to_owned(),
        error: failure.blocked_reason.or(failure.error_text),
        priority: exchange.priority.clone(),
        transfer_bytes: exchange.transfer_bytes(),
        resource_bytes: exchange.resource_bytes,
        start_ms: exchange.sent_us / 1000.0 - origin_ms,
        end_ms: exchange.end_us.map(|end_us| end_us / 1000.0 - origin_ms),
        initiator: initiator.map(|url| shortened(url, MAX_URL_CHARS)),
        ..RequestEntry::default()
    };
    if let Some(response) = &exchange.response {
        add_response(&mut entry, response, origin_ms);
    }
    Some(entry)
}

fn add_response(request: &mut RequestEntry, response: &Response, origin_ms: f64) {
    request.status = u16::try_from(response.status.unwrap_or_default()).ok();
    request.mime_type.clone_from(&response.mime_type);
    request.protocol.clone_from(&response.protocol);
    request.cached = response.from_disk || response.from_service_worker;
    request.remote_address = response.remote_address.clone().unwrap_or_default();
    request.headers = shown_headers(&response.headers);
    if let Some(timing) = &response.timing {
        let base_ms = timing.request_time_us / 1000.0 - origin_ms;
        let headers_end_ms = base_ms + timing.receive_headers_end_us / 1000.0;
        request.phases = Phases {
            receive_ms: request.end_ms.map(|ms| (ms - headers_end_ms).max(0.0)),
            ..phases(timing, base_ms, request.start_ms)
        };
    }
}

fn phases(timing: &ResourceTiming, base_ms: f64, start_ms: f64) -> Phases {
    let span_ms = |from_us: f64, to_us: f64| {
        (from_us >= 0.0 && to_us >= from_us).then_some((to_us - from_us) / 1000.0)
    };
    let tls_ms = span_ms(timing.ssl_start_us, timing.ssl_end_us);
    let start_offset_us = [
        timing.dns_start_us,
        timing.connect_start_us,
        timing.send_start_us,
    ]
    .into_iter()
    .filter(|us| *us >= 0.0)
    .reduce(f64::min)
    .unwrap_or(0.0);
    Phases {
        queue_ms: (base_ms + start_offset_us / 1000.0 - start_ms).max(0.0),
        dns_ms: span_ms(timing.dns_start_us, timing.dns_end_us),
        connect_ms: span_ms(timing.connect_start_us, timing.connect_end_us)
            .map(|ms| (ms - tls_ms.unwrap_or_default()).max(0.0)),
        tls_ms,
        wait_ms: span_ms(timing.send_start_us, timing.receive_headers_end_us),
        receive_ms: None,
    }
}

/// Selects the headers that are shown, with the values of a name in one entry.
fn shown_headers(headers: &Headers) -> Headers {
    let is_shown = |name: &str| {
        HEADERS
            .iter()
            .any(|header| header.eq_ignore_ascii_case(name))
    };
    let selection: Vec<_> = headers.iter().filter(|(name, _)| is_shown(name)).collect();
    selection
        .chunk_by(|(a, _), (b, _)| a == b)
        .map(|of_name| {
            let values: Vec<&str> = of_name.iter().map(|(_, value)| value.as_str()).collect();
            let value = shortened(&values.join("\n"), MAX_HEADER_CHARS);
            (of_name[0].0.to_ascii_lowercase(), value)
        })
        .collect()
}

fn host_of(url: &str) -> String {
    let host = Url::parse(url).ok();
    let host = host.as_ref().and_then(Url::host_str);
    host.unwrap_or_default().to_owned()
}

fn shortened(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
