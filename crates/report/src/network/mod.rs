//! What went over the network during a visit, as exports and budgets need it: from the bundle's protocol log.

use plumbline_bundle::Bundle;
use plumbline_trace::{self as trace, ProtocolLog, ResourceTiming};
use url::Url;

pub(crate) use plumbline_trace::Headers;

/// All exchanges in the order in which they began; a redirect ends one and begins the next.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pub(crate) exchanges: Vec<Exchange>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange {
    pub(crate) url: String,
    pub(crate) method: String,
    pub(crate) request_headers: Headers,
    pub(crate) post_data: Option<String>,
    /// As the protocol names it; empty for what was redirected.
    pub(crate) resource_type: String,
    pub(crate) priority: String,
    pub(crate) target_type: String,
    /// Whether Chromium counts it to the same site as the page.
    pub(crate) is_same_site: Option<bool>,
    /// When it was asked for: seconds since 1970, and on Chromium's monotonic clock.
    pub(crate) wall_time_s: Option<f64>,
    pub(crate) sent_s: f64,
    pub(crate) answer: Option<Answer>,
    pub(crate) end_s: Option<f64>,
    /// Of the body, as the page sees it.
    pub(crate) resource_bytes: u64,
    /// Over the wire, headers included.
    pub(crate) transfer_bytes: u64,
    pub(crate) failure: Option<String>,
    pub(crate) from_memory: bool,
    pub(crate) redirected_to: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) at_s: f64,
    pub(crate) status: i64,
    pub(crate) status_text: String,
    pub(crate) headers: Headers,
    pub(crate) mime_type: String,
    pub(crate) protocol: String,
    pub(crate) connection_id: Option<u64>,
    pub(crate) header_bytes: u64,
    pub(crate) from_disk: bool,
    pub(crate) from_service_worker: bool,
    pub(crate) timing: Option<Timing>,
}

/// Milliseconds since `request_time_s`; none where there was no such phase.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timing {
    pub(crate) request_time_s: f64,
    pub(crate) dns: Option<(f64, f64)>,
    pub(crate) connect: Option<(f64, f64)>,
    pub(crate) ssl: Option<(f64, f64)>,
    pub(crate) send: Option<(f64, f64)>,
    pub(crate) headers_end: Option<f64>,
}

impl Network {
    /// An unreadable log is an empty one: the judge has already said so in the report.
    pub(crate) fn of(bundle: &Bundle) -> Self {
        let log = ProtocolLog::read(&bundle.log);
        let told = log.map_or_else(|_| Vec::new(), |log| log.exchanges);
        let addresses: Vec<String> = told.iter().map(|exchange| exchange.url.clone()).collect();
        let exchanges = told.into_iter().map(|exchange| {
            let next = exchange.redirected_to.and_then(|at| addresses.get(at));
            Exchange::of(exchange, next.cloned())
        });
        Self {
            exchanges: exchanges.collect(),
        }
    }
}

/// When the visit's first request was made, in milliseconds since 1970.
pub fn visited_at_ms(bundle: &Bundle) -> Option<i64> {
    let network = Network::of(bundle);
    let wall_time_s = network
        .exchanges
        .iter()
        .find_map(|exchange| exchange.wall_time_s)?;
    Some((wall_time_s * 1e3) as i64)
}

impl Exchange {
    fn of(told: trace::Exchange, redirected_to: Option<String>) -> Self {
        Self {
            resource_type: match redirected_to {
                None => told.resource_type().unwrap_or_default().to_owned(),
                Some(_) => String::new(),
            },
            transfer_bytes: told.transfer_bytes(),
            url: told.url,
            method: told.method,
            request_headers: told.request_headers,
            post_data: told.post_data,
            priority: told.initial_priority,
            target_type: told.target_type,
            is_same_site: told.is_same_site,
            wall_time_s: told.wall_time_s,
            sent_s: told.sent_s,
            answer: told.response.map(Answer::of),
            end_s: told.end_s,
            resource_bytes: told.resource_bytes,
            failure: told.failure.map(|failure| {
                let error = failure.error_text.unwrap_or_default();
                match failure.blocked_reason {
                    Some(reason) => format!("{error} ({reason})"),
                    None => error,
                }
            }),
            from_memory: told.from_memory,
            redirected_to,
        }
    }

    /// Whether anything of it could have gone over a network.
    pub(crate) fn is_on_network(&self) -> bool {
        let scheme = self.url.split(':').next().unwrap_or_default();
        matches!(scheme, "http" | "https" | "ws" | "wss")
    }

    pub(crate) fn is_cached(&self) -> bool {
        self.from_memory || self.answer.as_ref().is_some_and(|answer| answer.from_disk)
    }

    pub(crate) fn is_first_party(&self, page: Option<&Url>) -> bool {
        let host = Url::parse(&self.url).ok();
        let host = host.as_ref().and_then(Url::host_str);
        self.is_same_site == Some(true) || host.is_some() && host == page.and_then(Url::host_str)
    }

    /// Lighthouse's names for what a budget counts (core/computed/resource-summary.js).
    pub(crate) fn budget_type(&self) -> &'static str {
        match self.resource_type.as_str() {
            "Stylesheet" => "stylesheet",
            "Image" => "image",
            "Media" => "media",
            "Font" => "font",
            "Script" => "script",
            "Document" => "document",
            _ => "other",
        }
    }
}

impl Answer {
    fn of(told: trace::Response) -> Self {
        Self {
            at_s: told.at_s,
            status: told.status.unwrap_or_default(),
            status_text: told.status_text,
            headers: told.wire_headers.unwrap_or(told.headers),
            mime_type: told.mime_type,
            protocol: told.protocol,
            connection_id: told.connection_id,
            header_bytes: told.header_bytes,
            from_disk: told.from_disk,
            from_service_worker: told.from_service_worker,
            timing: told.timing.as_ref().and_then(Timing::of),
        }
    }

    pub(crate) fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

impl Timing {
    fn of(told: &ResourceTiming) -> Option<Self> {
        let phase = |start: f64, end: f64| (start >= 0.0 && end >= start).then_some((start, end));
        let headers_end = told.receive_headers_end_ms;
        (told.request_time_s > 0.0).then(|| Self {
            request_time_s: told.request_time_s,
            dns: phase(told.dns_start_ms, told.dns_end_ms),
            connect: phase(told.connect_start_ms, told.connect_end_ms),
            ssl: phase(told.ssl_start_ms, told.ssl_end_ms),
            send: phase(told.send_start_ms, told.send_end_ms),
            headers_end: (headers_end >= 0.0).then_some(headers_end),
        })
    }
}

#[cfg(test)]
mod tests;
