//! Everything the trace tells about what was loaded: priorities, what blocked rendering, who asked, how long
//! each step took, how many bytes came. One resource per request, its redirects within it; the shape and the
//! rules are those of DevTools' trace engine (models/trace/handlers/NetworkRequestsHandler), so that insights
//! start from the same figures.

mod events;
mod missed;
mod repeats;
mod story;

use std::collections::BTreeSet;

use crate::timing::ResourceTiming;

pub(crate) use events::ResourceEvents;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resource {
    /// The loader's id for a document, else `process.number`.
    pub id: String,
    pub url: String,
    pub frame: String,
    /// Who asked for it; none where the trace does not tell.
    pub process_id: Option<i64>,
    /// When it was first asked for; redirects come after this.
    pub start_us: f64,
    /// When the renderer was told of the end.
    pub end_us: f64,
    /// When the network stack had the last byte.
    pub finish_us: f64,
    /// When the request left; `start_us` where the network stack gives no figures.
    pub send_start_us: f64,
    /// From the first request to the last of a chain of redirects.
    pub redirection_us: f64,
    pub redirects: Vec<Redirect>,
    /// None where memory answered, or nobody did.
    pub timing: Option<ResourceTiming>,
    /// Headers included.
    pub transfer_bytes: f64,
    pub decoded_bytes: f64,
    pub mime_type: String,
    pub resource_type: String,
    pub status: i64,
    /// As the network stack names it: `http/1.1`, `h2` …; `unknown` without an answer.
    pub protocol: String,
    pub priority: String,
    pub initial_priority: String,
    pub fetch_priority_hint: String,
    /// Chromium's word for it: `blocking`, `non_blocking`, `in_body_parser_blocking` …
    pub render_blocking: String,
    pub is_link_preload: bool,
    /// None without an answer. Names as the server wrote them.
    pub headers: Option<Vec<(String, String)>>,
    /// Who asked for it, as far as Chromium says: a document, a style sheet, or else the script on top of the
    /// stack. Empty where nobody is named.
    pub initiator_url: String,
    /// All that asked: whoever is named, or else every script on the stack, the innermost first.
    pub asked_by: Vec<String>,
    /// `parser`, `script`, `preload` …
    pub initiator_kind: String,
    /// What asked, in Chromium's words: `link`, `img`, `script`, `fetch`, `xmlhttprequest` …
    pub fetch_kind: String,
    pub failed: bool,
    pub finished: bool,
    pub from_service_worker: bool,
    pub is_memory_cached: bool,
    pub is_disk_cached: bool,
    pub connection_id: Option<f64>,
    pub connection_reused: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Redirect {
    pub url: String,
    pub start_us: f64,
    pub dur_us: f64,
}

impl Resource {
    /// All values of a header, whatever the case of its name.
    pub fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .flatten()
            .filter(move |(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
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
    /// Of the file.
    pub natural_width_px: f64,
    pub natural_height_px: f64,
    pub is_css: bool,
    pub is_picture: bool,
    pub has_srcset: bool,
}

/// A font that a style sheet asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RemoteFont {
    pub ts_us: f64,
    /// The id of its resource.
    pub resource_id: String,
    pub url: String,
    /// The value of `font-display`.
    pub display: String,
}

/// An origin that an element asked to connect to early.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preconnect {
    pub ts_us: f64,
    pub url: String,
    pub node_id: Option<i64>,
}

/// All in order of time.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    pub all: Vec<Resource>,
    /// What was asked for once more when the load was over; not among the others.
    pub repeats: Vec<Resource>,
    pub image_paints: Vec<ImagePaint>,
    pub remote_fonts: Vec<RemoteFont>,
    pub preconnects: Vec<Preconnect>,
    /// By process, the addresses of whose XMLHttpRequests a script heard something.
    pub awaited: BTreeSet<(i64, String)>,
}

impl Resources {
    pub fn by_id(&self, id: &str) -> Option<&Resource> {
        let mut resources = self.all.iter().chain(&self.repeats);
        resources.find(|resource| resource.id == id)
    }
}
