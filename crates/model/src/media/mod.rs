//! The data that a report page shows besides the verdicts: requests with their phases, a filmstrip,
//! screenshots and the main thread's activity. It is computed once when a visit is evaluated, so
//! that showing a report does not need the trace.

mod packed;
mod picture_id;
mod steps;
mod totals;

use serde::{Deserialize, Serialize};

pub use picture_id::PictureId;
pub use steps::StepEntry;

/// The format that this version writes. Readers accept every older one.
pub const FORMAT: u32 = 1;

/// The data of a report's charts and pictures; times are in milliseconds since the navigation
/// started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportMedia {
    pub format: u32,
    pub marks: Marks,
    /// The end of charts of the load: after the last event, without a long idle tail.
    pub end_ms: f64,
    /// The first requests, in the order of their start.
    pub requests: Vec<RequestEntry>,
    /// The number of requests that are left out of `requests`.
    pub requests_left_out: usize,
    /// The number of render-blocking requests, including those left out; `None` in media of earlier
    /// versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render_blocking_requests: Option<usize>,
    /// The filmstrip of the load, at regular intervals.
    pub film: Vec<Frame>,
    /// The time of the last screenshot, if the page changed after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub film_end_ms: Option<f64>,
    /// The distinct pictures of the filmstrip, as JPEG.
    pub pictures: Vec<Picture>,
    /// The screenshot at the end of the visit.
    pub screenshot: Option<Picture>,
    /// The width of the screenshot in CSS pixels, in which elements are measured.
    pub screenshot_css_width: f64,
    /// The full-page screenshot, if the page is larger than the screen.
    #[serde(rename = "wholePage")]
    pub full_page: Option<FullPageScreenshot>,
    pub main_thread: MainThread,
    /// The steps that the largest content waited for, in order of time; empty if unknown.
    pub critical_path: Vec<PathStep>,
    /// The time of each kind of step, including steps that are too short or too many to be in
    /// `critical_path`; empty in media of earlier versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub critical_path_totals: Vec<PathTotal>,
    /// Requests and bytes by type of resource, the largest first. Those of earlier versions do not
    /// include the requests that are left out.
    pub by_type: Vec<RequestTotals>,
    /// Requests and bytes by host, the largest first, as in `by_type`.
    pub by_host: Vec<RequestTotals>,
    /// The steps before the visit, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepEntry>,
    /// The page after each measured step, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<Option<Picture>>,
}

/// The times that charts mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Marks {
    pub fcp_ms: Option<f64>,
    pub lcp_ms: Option<f64>,
    pub dom_content_loaded_ms: Option<f64>,
    pub load_ms: Option<f64>,
    /// The last visual change; `None` if it is not known.
    pub last_change_ms: Option<f64>,
}

/// A step on the way to the paint of the largest content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathStep {
    pub kind: PathStepKind,
    pub start_ms: f64,
    pub end_ms: f64,
    /// The URL of the request or of the evaluated script; empty if there is none. That of a wait is
    /// the script of the worker that ended it.
    pub url: String,
}

/// The time of all steps of a kind on the way to the paint of the largest content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathTotal {
    pub kind: PathStepKind,
    pub ms: f64,
}

/// The kind of a step on the way to a paint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PathStepKind {
    /// The request waits in the browser, for instance for a free connection.
    Queued,
    /// A connection is made: the name is resolved, and TLS is set up. Earlier versions add the time
    /// in which the request is queued.
    Connection,
    /// The server is awaited.
    Server,
    /// A response is received.
    Download,
    /// A script runs.
    Evaluation,
    /// The document is parsed, laid out or painted.
    Rendering,
    /// The main thread does other work.
    Other,
    /// Nothing of this is known: a request or task that has not begun yet is awaited, or a worker.
    #[default]
    Waiting,
}

/// One frame of the filmstrip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Frame {
    pub at_ms: f64,
    /// The index of the picture; `None` before the first screenshot, and after the last one if the
    /// page changed after it.
    pub picture: Option<usize>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Picture {
    pub mime_type: String,
    pub width_px: u32,
    pub height_px: u32,
    /// The image file in Base64.
    pub data: String,
}

/// The screenshot of a page that is larger than the screen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FullPageScreenshot {
    /// The picture, in CSS pixels.
    pub picture: Picture,
    /// The horizontal scroll offset of the page: elements are measured from the corner of the
    /// viewport, the picture starts at the corner of the page.
    pub scrolled_x: f64,
    /// The vertical scroll offset of the page.
    pub scrolled_y: f64,
}

/// One request of the waterfall.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestEntry {
    pub url: String,
    pub host: String,
    pub method: String,
    /// The type of resource: Document, Stylesheet, Script, Image, Font, Fetch …
    pub kind: String,
    pub status: Option<u16>,
    /// The browser's error if there is no response: `net::ERR_…`.
    pub error: Option<String>,
    pub mime_type: String,
    pub protocol: String,
    pub priority: String,
    pub remote_address: String,
    pub third_party: bool,
    pub render_blocking: bool,
    /// True if this image is the Largest Contentful Paint.
    pub is_lcp: bool,
    /// True if the response came from a cache or a service worker.
    pub cached: bool,
    /// The number of transferred bytes, including headers.
    pub transfer_bytes: u64,
    /// The size of the decoded body.
    pub resource_bytes: u64,
    pub start_ms: f64,
    pub end_ms: Option<f64>,
    pub phases: Phases,
    /// The document or script that initiated the request, if any.
    pub initiator: Option<String>,
    /// The response headers that affect the speed.
    pub headers: Vec<(String, String)>,
}

/// The duration of each phase; `None` for a phase that did not occur. A connection is set up once
/// for many requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Phases {
    /// The time before the request was processed.
    pub queue_ms: f64,
    pub dns_ms: Option<f64>,
    pub connect_ms: Option<f64>,
    pub tls_ms: Option<f64>,
    /// The time from the request to the start of the response.
    pub wait_ms: Option<f64>,
    pub receive_ms: Option<f64>,
}

/// The requests and bytes of one type of resource or one host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestTotals {
    pub name: String,
    pub requests: usize,
    /// The number of transferred bytes.
    pub bytes: u64,
    pub third_party: bool,
}

/// The kinds of the main thread's work, in the order of the figures of a slice.
pub const WORK_KINDS: [&str; 5] = ["Script", "Style and layout", "Paint", "Parse", "Other"];

/// The main thread's activity in time slices. Durations are those on the emulated device, without
/// CPU contention, unless `as_traced` is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MainThread {
    /// The length of a slice.
    pub slice_ms: f64,
    /// The time per kind of work in each slice, in whole milliseconds by [`WORK_KINDS`], starting
    /// at 0.
    pub slices: Vec<[u32; 5]>,
    /// The time per kind of work over the whole load.
    pub total_ms: [f64; 5],
    /// The start and duration of each task of 50 ms or more.
    pub long_tasks: Vec<(f64, f64)>,
    /// The number of these tasks, which may be larger than that of the listed ones; 0 in media of
    /// earlier versions, which list all that they count.
    pub long_task_count: usize,
    /// The figures of the trace; `None` in media of earlier versions, whose other figures are
    /// these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_traced: Option<TracedMainThread>,
}

/// The figures of the main thread as traced on the host, including CPU contention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TracedMainThread {
    /// The time per kind of work over the whole load.
    pub total_ms: [f64; 5],
    pub long_task_count: usize,
    pub longest_task_ms: f64,
}
