//! The data that a report shows besides the verdicts: requests with their phases, a filmstrip, the
//! final screenshot and the main thread's activity. It is computed once when a visit is evaluated,
//! so that showing a report does not need the trace.

mod film;
mod full_page;
mod main_thread;
mod packed;
mod requests;
mod totals;

use plumbline_bundle::Bundle;
use plumbline_catalog::Mode;
use plumbline_trace::{ProtocolLog, Trace};
use serde::{Deserialize, Serialize};

pub use film::{Frame, Picture};
pub use full_page::FullPageScreenshot;
pub use main_thread::{MainThread, WORK_KINDS};
pub use packed::ReportMediaError;
pub use requests::{Phases, RequestEntry};
pub use totals::RequestTotals;

use crate::facts::{Facts, LargestContent};
use crate::metrics::Measured;

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
    /// The requests in the order of their start.
    pub requests: Vec<RequestEntry>,
    /// The number of requests that are left out.
    pub requests_left_out: usize,
    /// The filmstrip of the load, at regular intervals.
    pub film: Vec<Frame>,
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
    /// Requests and bytes by type of resource, the largest first.
    pub by_type: Vec<RequestTotals>,
    /// Requests and bytes by host, the largest first.
    pub by_host: Vec<RequestTotals>,
}

/// The times that charts mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Marks {
    pub fcp_ms: Option<f64>,
    pub lcp_ms: Option<f64>,
    pub dom_content_loaded_ms: Option<f64>,
    pub load_ms: Option<f64>,
}

/// The time that charts show after the last event. An idle page is observed for five seconds more.
const TAIL_MS: f64 = 400.0;

/// Collects the report media of a visit; returns `None` without a readable trace.
pub fn report_media(bundle: &Bundle) -> Option<ReportMedia> {
    // The report media do not depend on the device.
    of(&Facts::new(bundle, Mode::Mobile))
}

pub(crate) fn of(facts: &Facts) -> Option<ReportMedia> {
    let bundle = facts.bundle;
    let trace = facts.get::<Trace>().ok()?;
    let measured = facts.get::<Measured>().ok()?;
    let marks = Marks {
        fcp_ms: measured.fcp.ok(),
        lcp_ms: measured.lcp.ok(),
        dom_content_loaded_ms: measured.dom_content_loaded_ms,
        load_ms: measured.load_ms,
    };
    let largest = facts.get::<LargestContent>().ok();
    let lcp_image = largest.as_ref().and_then(|largest| largest.image.as_ref());
    let lcp_image = lcp_image.map(|image| image.url.as_str());
    // Measuring needs the log, so it is available.
    let log = facts.get::<ProtocolLog>().ok()?;
    let (mut requests, requests_left_out) =
        requests::requests(&log, &bundle.final_url, &trace, lcp_image);
    let busy_until_ms = main_thread::last_work_ms(&trace);
    let last = requests.iter().filter_map(|request| request.end_ms);
    let metric_times = [marks.fcp_ms, marks.lcp_ms, marks.load_ms, measured.si.ok()];
    let end_ms = last
        .chain(metric_times.into_iter().flatten())
        .chain([busy_until_ms])
        .fold(0.0, f64::max)
        .min(trace.since_origin_ms(trace.end_us))
        + TAIL_MS;
    let (film, pictures) = film::film(&trace, end_ms, &marks);
    requests.iter_mut().for_each(RequestEntry::round);
    Some(ReportMedia {
        format: FORMAT,
        marks: Marks {
            fcp_ms: marks.fcp_ms.map(to_us),
            lcp_ms: marks.lcp_ms.map(to_us),
            dom_content_loaded_ms: marks.dom_content_loaded_ms.map(to_us),
            load_ms: marks.load_ms.map(to_us),
        },
        end_ms: to_us(end_ms),
        by_type: totals::by_type(&requests),
        by_host: totals::by_host(&requests),
        requests,
        requests_left_out,
        film,
        pictures,
        screenshot: film::screenshot(bundle),
        screenshot_css_width: css_width(bundle),
        full_page: full_page::full_page(bundle),
        main_thread: main_thread::main_thread(&trace, end_ms),
    })
}

/// Rounds to the microsecond: the resolution of a trace, short in JSON, and equal when read back.
fn to_us(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

/// Returns the width of the window in CSS pixels of the page, which may be zoomed out, or 0 if
/// unknown.
fn css_width(bundle: &Bundle) -> f64 {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Window {
        inner_width: f64,
    }
    match bundle.artifacts.get("page") {
        Some(plumbline_bundle::Artifact::Gathered(raw)) => {
            serde_json::from_str::<Window>(raw.get()).map_or(0.0, |window| window.inner_width)
        }
        _ => 0.0,
    }
}
