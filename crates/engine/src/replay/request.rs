//! The requests of the graph.

use plumbline_trace::Resource;
use url::Url;

/// One request; every redirect is a request of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// The index of the request among the trace's resources.
    pub(crate) resource: usize,
    pub(crate) url: String,
    pub(crate) origin: String,
    pub(crate) host: String,
    pub(crate) frame: String,
    pub(crate) is_tls: bool,
    pub(crate) is_h2: bool,
    /// True if it needs no connection because it comes from a cache or the page itself.
    pub(crate) is_local: bool,
    pub(crate) is_disk_cached: bool,
    pub(crate) is_redirect: bool,
    /// The time at which the network stack started it.
    pub(crate) network_us: f64,
    pub(crate) headers_us: f64,
    pub(crate) transfer_bytes: f64,
    pub(crate) decoded_bytes: f64,
    pub(crate) priority: String,
    /// The type of resource. Data fetched by scripts is `XHR` or `Fetch`, which the trace calls
    /// `Other`.
    pub(crate) resource_type: String,
    pub(crate) has_failed: bool,
    pub(crate) is_by_script: bool,
}

impl Request {
    pub(super) fn of(at: usize, resource: &Resource) -> Option<Self> {
        let url = Url::parse(&resource.url).ok()?;
        let headers_us = resource.timing.map_or(resource.start_us, |timing| {
            timing.request_time_s * 1e6 + timing.receive_headers_end_ms * 1e3
        });
        Some(Self {
            resource: at,
            url: resource.url.clone(),
            origin: url.origin().ascii_serialization(),
            host: url.host_str().unwrap_or_default().to_owned(),
            frame: resource.frame.clone(),
            is_tls: matches!(url.scheme(), "https" | "wss"),
            is_h2: resource.protocol == "h2",
            is_local: resource.is_disk_cached || !matches!(url.scheme(), "http" | "https"),
            is_disk_cached: resource.is_disk_cached,
            is_redirect: false,
            network_us: resource
                .timing
                .map_or(headers_us, |timing| timing.request_time_s * 1e6),
            headers_us,
            transfer_bytes: resource.transfer_bytes,
            decoded_bytes: resource.decoded_bytes,
            priority: resource.priority.clone(),
            resource_type: match resource.fetch_kind.as_str() {
                "xmlhttprequest" => "XHR".to_owned(),
                "fetch" => "Fetch".to_owned(),
                _ => resource.resource_type.clone(),
            },
            has_failed: resource.failed || !resource.finished,
            is_by_script: resource.initiator_kind == "script",
        })
    }

    /// Returns a copy for another URL of the same redirect chain.
    pub(super) fn with_url(url: &str, last: &Self) -> Option<Self> {
        let parsed = Url::parse(url).ok()?;
        Some(Self {
            url: url.to_owned(),
            origin: parsed.origin().ascii_serialization(),
            host: parsed.host_str().unwrap_or_default().to_owned(),
            is_tls: matches!(parsed.scheme(), "https" | "wss"),
            ..last.clone()
        })
    }
}

/// Returns the duration of a local request: 8 ms and 20 ms per megabyte from disk, otherwise 2 ms
/// and 10 ms.
pub(super) fn local_ms(request: &Request) -> f64 {
    let megabytes = request.decoded_bytes / 1024.0 / 1024.0;
    if request.is_disk_cached {
        8.0 + 20.0 * megabytes
    } else {
        2.0 + 10.0 * megabytes
    }
}
