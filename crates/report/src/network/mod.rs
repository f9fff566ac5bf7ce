//! The network requests of a visit, from the bundle's protocol log, as exports and budgets need
//! them.

use plumbline_bundle::Bundle;
use plumbline_trace::{self as trace, ProtocolLog, ResourceTiming};
use url::Url;

pub(crate) use plumbline_trace::Headers;

/// All exchanges in the order in which they began. A redirect ends one exchange and begins the
/// next.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pub(crate) exchanges: Vec<Exchange>,
}

/// A request with its response.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange {
    pub(crate) url: String,
    pub(crate) method: String,
    pub(crate) request_headers: Headers,
    pub(crate) post_data: Option<String>,
    /// The resource type in the DevTools protocol; empty for redirects.
    pub(crate) resource_type: String,
    pub(crate) priority: String,
    pub(crate) target_type: String,
    /// Whether Chromium considers it to be of the same site as the page.
    pub(crate) is_same_site: Option<bool>,
    /// The time of the request in seconds since 1970.
    pub(crate) wall_time_s: Option<f64>,
    /// The time of the request on Chromium's monotonic clock.
    pub(crate) sent_s: f64,
    pub(crate) response: Option<Response>,
    pub(crate) end_s: Option<f64>,
    /// The size of the decoded body.
    pub(crate) resource_bytes: u64,
    /// The size as transferred, including headers.
    pub(crate) transfer_bytes: u64,
    pub(crate) failure: Option<String>,
    pub(crate) from_memory: bool,
    pub(crate) redirected_to: Option<String>,
}

/// A response.
#[derive(Debug, Clone, Default)]
pub(crate) struct Response {
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

/// The start and end of each phase in milliseconds since `request_time_s`; `None` if there was no
/// such phase.
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
    /// Reads the log of a bundle. An invalid log gives no exchanges; the report already contains a
    /// warning.
    pub(crate) fn of(bundle: &Bundle) -> Self {
        let log = ProtocolLog::read(&bundle.log);
        let exchanges = log.map_or_else(|_| Vec::new(), |log| log.exchanges);
        let urls: Vec<String> = exchanges
            .iter()
            .map(|exchange| exchange.url.clone())
            .collect();
        let exchanges = exchanges.into_iter().map(|exchange| {
            let next = exchange.redirected_to.and_then(|index| urls.get(index));
            Exchange::of(exchange, next.cloned())
        });
        Self {
            exchanges: exchanges.collect(),
        }
    }
}

/// Returns the time of the visit's first request, in milliseconds since 1970.
pub fn visited_at_ms(bundle: &Bundle) -> Option<i64> {
    let network = Network::of(bundle);
    let wall_time_s = network
        .exchanges
        .iter()
        .find_map(|exchange| exchange.wall_time_s)?;
    Some((wall_time_s * 1e3) as i64)
}

impl Exchange {
    fn of(logged: trace::Exchange, redirected_to: Option<String>) -> Self {
        Self {
            resource_type: match redirected_to {
                None => logged.resource_type().unwrap_or_default().to_owned(),
                Some(_) => String::new(),
            },
            transfer_bytes: logged.transfer_bytes(),
            url: logged.url,
            method: logged.method,
            request_headers: logged.request_headers,
            post_data: logged.post_data,
            priority: logged.initial_priority,
            target_type: logged.target_type,
            is_same_site: logged.is_same_site,
            wall_time_s: logged.wall_time_s,
            sent_s: logged.sent_s,
            response: logged.response.map(Response::of),
            end_s: logged.end_s,
            resource_bytes: logged.resource_bytes,
            failure: logged.failure.map(|failure| {
                let error = failure.error_text.unwrap_or_default();
                match failure.blocked_reason {
                    Some(reason) => format!("{error} ({reason})"),
                    None => error,
                }
            }),
            from_memory: logged.from_memory,
            redirected_to,
        }
    }

    /// Whether the URL's scheme uses the network.
    pub(crate) fn is_on_network(&self) -> bool {
        let scheme = self.url.split(':').next().unwrap_or_default();
        matches!(scheme, "http" | "https" | "ws" | "wss")
    }

    pub(crate) fn is_cached(&self) -> bool {
        self.from_memory
            || self
                .response
                .as_ref()
                .is_some_and(|response| response.from_disk)
    }

    pub(crate) fn is_first_party(&self, page: Option<&Url>) -> bool {
        let host = Url::parse(&self.url).ok();
        let host = host.as_ref().and_then(Url::host_str);
        self.is_same_site == Some(true) || host.is_some() && host == page.and_then(Url::host_str)
    }

    /// The resource type in budgets, as in Lighthouse (core/computed/resource-summary.js).
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

impl Response {
    fn of(logged: trace::Response) -> Self {
        Self {
            at_s: logged.at_s,
            status: logged.status.unwrap_or_default(),
            status_text: logged.status_text,
            headers: logged.wire_headers.unwrap_or(logged.headers),
            mime_type: logged.mime_type,
            protocol: logged.protocol,
            connection_id: logged.connection_id,
            header_bytes: logged.header_bytes,
            from_disk: logged.from_disk,
            from_service_worker: logged.from_service_worker,
            timing: logged.timing.as_ref().and_then(Timing::of),
        }
    }

    /// Returns all values of a header.
    pub(crate) fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

impl Timing {
    fn of(logged: &ResourceTiming) -> Option<Self> {
        let phase = |start: f64, end: f64| (start >= 0.0 && end >= start).then_some((start, end));
        let headers_end = logged.receive_headers_end_ms;
        (logged.request_time_s > 0.0).then(|| Self {
            request_time_s: logged.request_time_s,
            dns: phase(logged.dns_start_ms, logged.dns_end_ms),
            connect: phase(logged.connect_start_ms, logged.connect_end_ms),
            ssl: phase(logged.ssl_start_ms, logged.ssl_end_ms),
            send: phase(logged.send_start_ms, logged.send_end_ms),
            headers_end: (headers_end >= 0.0).then_some(headers_end),
        })
    }
}

#[cfg(test)]
mod tests;
