//! Resources as the trace reports them: priorities, render blocking, initiators, timing of each
//! step, and sizes. There is one resource per request, with its redirects inside; the shape and the
//! rules are those of DevTools' trace engine (models/trace/handlers/NetworkRequestsHandler), so
//! that insights start from the same figures.

mod events;
mod latency;
mod missed;
mod repeats;
mod request_events;

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use crate::exchanges::{Exchange, header};

pub(crate) use events::ResourceEvents;
pub use latency::{OriginLatency, origin_latencies};

/// A view of an exchange with its redirects and with what only the trace reports about it. It
/// dereferences to the exchange, whose id is the loader id of a document, else `process.number`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resource {
    /// Last exchange of the redirect chain.
    pub exchange: Arc<Exchange>,
    /// Process that made the request; `None` if the trace does not report it.
    pub process_id: Option<i64>,
    /// Time of the first request, before redirects.
    pub start_us: f64,
    /// Time at which the renderer was notified of the end.
    pub notified_us: f64,
    /// Time at which the network stack received the last byte.
    pub finish_us: f64,
    /// Time at which the request was sent; `start_us` if the network stack reports no timing.
    pub send_start_us: f64,
    /// Time from the first request of a redirect chain to the last.
    pub redirection_us: f64,
    pub redirects: Vec<Redirect>,
    pub fetch_priority_hint: String,
    /// Render-blocking state in Chromium's terms: `blocking`, `non_blocking`,
    /// `in_body_parser_blocking` …
    pub render_blocking: String,
    pub is_link_preload: bool,
    /// URLs of all initiators: the named one, or else every script on the stack, innermost first.
    pub initiators: Vec<String>,
    /// Kind of the initiator: `parser`, `script`, `preload` …
    pub initiator_kind: String,
    /// Element or API that made the request, in Chromium's terms: `link`, `img`, `script`, `fetch`,
    /// `xmlhttprequest` …
    pub fetch_kind: String,
    pub connection_reused: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Redirect {
    pub url: String,
    pub start_us: f64,
    pub dur_us: f64,
}

impl Deref for Resource {
    type Target = Exchange;

    fn deref(&self) -> &Exchange {
        &self.exchange
    }
}

impl Resource {
    /// Returns the resource type in the trace's terms. They have none for data: a request that only
    /// the protocol reports is then `Other`.
    pub fn traced_type(&self) -> &str {
        match self.resource_type() {
            None => "Other",
            Some("XHR" | "Fetch") if self.process_id.is_none() => "Other",
            Some(name) => name,
        }
    }

    /// Returns the response headers with names as the server wrote them; empty without a response.
    pub fn headers(&self) -> &[(String, String)] {
        let response = self.response.as_ref();
        response.map_or(&[], |response| &response.headers)
    }

    /// Returns all values of a response header; the name is case-insensitive.
    pub fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        header(self.headers(), name)
    }
}

/// An image as it was painted, in device pixels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImagePaint {
    pub ts_us: f64,
    pub dur_us: f64,
    pub url: String,
    pub frame: String,
    pub node_id: Option<i64>,
    pub width_px: f64,
    pub height_px: f64,
    /// Intrinsic width of the image file.
    pub natural_width_px: f64,
    pub natural_height_px: f64,
    pub is_css: bool,
    pub is_picture: bool,
    pub has_srcset: bool,
}

/// A font that a style sheet loads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RemoteFont {
    pub ts_us: f64,
    /// Id of the font's resource.
    pub resource_id: String,
    pub url: String,
    /// Value of `font-display`.
    pub display: String,
}

/// A preconnect hint of an element.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preconnect {
    pub ts_us: f64,
    pub url: String,
    pub node_id: Option<i64>,
}

/// All resources and related events, in order of time.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    pub all: Vec<Resource>,
    /// Repeated requests after the load, which `all` does not contain.
    pub repeats: Vec<Resource>,
    pub image_paints: Vec<ImagePaint>,
    pub remote_fonts: Vec<RemoteFont>,
    pub preconnects: Vec<Preconnect>,
    /// Process and URL of every XMLHttpRequest of which a script handled an event.
    pub handled_xhrs: BTreeSet<(i64, String)>,
}

impl Resources {
    pub fn by_id(&self, id: &str) -> Option<&Resource> {
        let mut resources = self.all.iter().chain(&self.repeats);
        resources.find(|resource| resource.id == id)
    }
}
