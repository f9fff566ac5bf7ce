//! The requests of the graph.

use std::sync::Arc;

use plumbline_trace::{Exchange, Resource};
use url::Url;

use crate::facts::is_render_blocking;

/// A view of an exchange as a node of the graph; every redirect is a node of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestNode {
    /// The last exchange of the redirect chain.
    pub(crate) exchange: Arc<Exchange>,
    /// The index of the request among the trace's resources.
    pub(crate) resource: usize,
    pub(crate) url: String,
    pub(crate) origin: String,
    pub(crate) host: String,
    pub(crate) is_tls: bool,
    /// True if it needs no connection because it comes from a cache or the page itself, or because
    /// it failed.
    pub(crate) is_local: bool,
    /// The time that it took to fail; `None` if it succeeded.
    pub(crate) failed_ms: Option<f64>,
    /// Whether Chromium marked it as render-blocking.
    pub(crate) is_render_blocking: bool,
    pub(crate) is_redirect: bool,
    /// The time at which the network stack started it.
    pub(crate) network_us: f64,
    pub(crate) headers_us: f64,
    pub(crate) transfer_bytes: f64,
    /// The type of resource. Data fetched by scripts is `XHR` or `Fetch`, which the trace calls
    /// `Other`; a redirect has none.
    pub(crate) resource_type: String,
    pub(crate) is_by_script: bool,
}

impl RequestNode {
    pub(super) fn of(at: usize, resource: &Resource) -> Option<Self> {
        let url = Url::parse(&resource.url).ok()?;
        let timing = resource.timing();
        let headers_us = timing.map_or(resource.start_us, |timing| {
            timing.request_time_us + timing.receive_headers_end_us
        });
        let has_failed = resource.failure.is_some();
        Some(Self {
            exchange: Arc::clone(&resource.exchange),
            resource: at,
            url: resource.url.clone(),
            origin: url.origin().ascii_serialization(),
            host: url.host_str().unwrap_or_default().to_owned(),
            is_tls: matches!(url.scheme(), "https" | "wss"),
            is_local: has_failed
                || resource.is_disk_cached()
                || !matches!(url.scheme(), "http" | "https"),
            failed_ms: has_failed.then(|| (resource.finish_us - resource.start_us) / 1000.0),
            is_render_blocking: is_render_blocking(resource),
            is_redirect: false,
            network_us: timing.map_or(headers_us, |timing| timing.request_time_us),
            headers_us,
            transfer_bytes: resource.transfer_bytes() as f64,
            resource_type: match resource.fetch_kind.as_str() {
                "xmlhttprequest" => "XHR".to_owned(),
                "fetch" => "Fetch".to_owned(),
                _ => resource.traced_type().to_owned(),
            },
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

    pub(super) fn is_h2(&self) -> bool {
        self.exchange.protocol() == "h2"
    }

    /// Returns the connection that the request used, if the trace names it.
    pub(super) fn connection_id(&self) -> Option<u64> {
        self.exchange.response.as_ref()?.connection_id
    }

    /// Returns whether nothing is painted until the request has ended.
    pub(super) fn blocks_rendering(&self) -> bool {
        let has_priority = match self.exchange.priority.as_str() {
            "VeryHigh" => true,
            "High" => self.resource_type == "Script",
            _ => false,
        };
        has_priority && self.is_render_blocking && !self.is_by_script
    }

    pub(super) fn has_failed(&self) -> bool {
        self.exchange.failure.is_some() || self.exchange.end_us.is_none()
    }
}

/// Returns the duration of a local request: 8 ms and 20 ms per megabyte from disk, otherwise 2 ms
/// and 10 ms, and that of the load if it failed.
pub(super) fn local_ms(request: &RequestNode) -> f64 {
    if let Some(failed_ms) = request.failed_ms {
        return failed_ms;
    }
    let megabytes = request.exchange.resource_bytes as f64 / 1024.0 / 1024.0;
    if request.exchange.is_disk_cached() {
        8.0 + 20.0 * megabytes
    } else {
        2.0 + 10.0 * megabytes
    }
}
