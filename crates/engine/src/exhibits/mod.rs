//! What a person wants to see beside the verdicts: requests with their phases, a filmstrip, the final picture,
//! what the main thread did. Computed once when a visit is judged, so that showing a report never needs
//! its trace again.

mod film;
mod main_thread;
mod packed;
mod requests;
mod totals;
mod whole_page;

use plumbline_bundle::Bundle;
use plumbline_catalog::Mode;
use plumbline_trace::{ProtocolLog, Trace};
use serde::{Deserialize, Serialize};

pub use film::{Frame, Picture};
pub use main_thread::{MainThread, WORK_KINDS};
pub use packed::ExhibitsError;
pub use requests::{Phases, RequestShown};
pub use totals::Share;
pub use whole_page::WholePage;

use crate::facts::{Facts, LargestContent};
use crate::metrics::Measured;

/// The format that this version writes. Readers accept every older one.
pub const FORMAT: u32 = 1;

/// Everything shown; times in milliseconds since the navigation began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Exhibits {
    pub format: u32,
    pub marks: Marks,
    /// Where a chart of the load may end: everything that happened, with no long quiet tail.
    pub end_ms: f64,
    /// In order of their start.
    pub requests: Vec<RequestShown>,
    /// How many more there were than are kept.
    pub requests_left_out: usize,
    /// Pictures of the page while it loaded, at even times.
    pub film: Vec<Frame>,
    /// The different pictures in the film, as JPEG.
    pub pictures: Vec<Picture>,
    /// The page at the end of the visit.
    pub screenshot: Option<Picture>,
    /// How wide the screenshot is in CSS pixels, which elements are measured in.
    pub screenshot_css_width: f64,
    /// Where there is more of the page than that.
    pub whole_page: Option<WholePage>,
    pub main_thread: MainThread,
    /// Requests and bytes by type of resource, the heaviest first.
    pub by_type: Vec<Share>,
    /// And by host.
    pub by_host: Vec<Share>,
}

/// The moments that charts mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Marks {
    pub fcp_ms: Option<f64>,
    pub lcp_ms: Option<f64>,
    pub dom_content_loaded_ms: Option<f64>,
    pub load_ms: Option<f64>,
}

/// A quiet page is watched for five seconds more: a chart need not show them all.
const TAIL_MS: f64 = 400.0;

/// Collects what there is to show. None where there is no readable trace to tell the times by.
pub fn exhibits(bundle: &Bundle) -> Option<Exhibits> {
    // Nothing shown depends on the device.
    of(&Facts::new(bundle, Mode::Mobile))
}

pub(crate) fn of(facts: &Facts) -> Option<Exhibits> {
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
    // Measuring needs the log, so it is there.
    let log = facts.get::<ProtocolLog>().ok()?;
    let (mut requests, requests_left_out) =
        requests::requests(&log, &bundle.final_url, &trace, lcp_image);
    let busy_until_ms = main_thread::last_work_ms(&trace);
    let last = requests.iter().filter_map(|request| request.end_ms);
    let seen = [marks.fcp_ms, marks.lcp_ms, marks.load_ms, measured.si.ok()];
    let end_ms = last
        .chain(seen.into_iter().flatten())
        .chain([busy_until_ms])
        .fold(0.0, f64::max)
        .min(trace.since_origin_ms(trace.end_us))
        + TAIL_MS;
    let (film, pictures) = film::film(&trace, end_ms, &marks);
    requests.iter_mut().for_each(RequestShown::round);
    Some(Exhibits {
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
        whole_page: whole_page::whole_page(bundle),
        main_thread: main_thread::main_thread(&trace, end_ms),
    })
}

/// To the microsecond: what a trace knows, short in JSON, and the same when read back.
fn to_us(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

/// The window's width in the pixels that the page is laid out in, which may be zoomed out; 0 where unknown.
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
