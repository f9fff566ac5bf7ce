//! The computation of the report media of a visit.

mod critical_path;
mod film;
mod full_page;
mod main_thread;
mod requests;
mod totals;

use plumbline_bundle::{Bundle, FailedConnections, FlowRecords, Record, StepRecords};
use plumbline_catalog::Mode;
use plumbline_model::media::{FORMAT, Marks, Picture, ReportMedia, StepEntry};
use plumbline_trace::{ProtocolLog, Trace};
use serde::Deserialize;

use crate::facts::{DeviceWork, Facts, LargestContent, ScriptUrls};
use crate::metrics::Measured;
use critical_path::CriticalPath;

/// The time that charts show after the last event. An idle page is observed for five seconds more.
const TAIL_MS: f64 = 400.0;

/// The maximum number of requests that are listed.
const MAX_REQUESTS: usize = 1000;

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
        last_change_ms: film::last_change_ms(&trace),
    };
    let largest = facts.get::<LargestContent>().ok();
    let lcp_image = largest.as_ref().and_then(|largest| largest.image.as_ref());
    let lcp_image = lcp_image.map(|image| image.url.as_str());
    // Measuring needs the log, so it is available.
    let log = facts.get::<ProtocolLog>().ok()?;
    let mut requests = requests::requests(&log, &bundle.final_url, &trace, lcp_image);
    let connections = facts.get::<FailedConnections>().ok()?;
    for request in &mut requests {
        let error = request.error.take();
        request.error = error.map(|error| connections.without_proxy(&error, &request.url));
    }
    let work = facts.get::<DeviceWork>().ok()?;
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
    requests.iter_mut().for_each(requests::round);
    let paint = largest.as_ref().and_then(|largest| largest.paint.as_ref());
    let critical_path = match (facts.get::<ScriptUrls>(), paint) {
        (Ok(scripts), Some(paint)) => {
            let image = largest.as_ref().and_then(|largest| largest.image.as_ref());
            critical_path::critical_path(&trace, &scripts, paint.ts_us, image)
        }
        _ => CriticalPath::default(),
    };
    // Totals include the requests that are left out.
    let by_type = totals::by_type(&requests);
    let by_host = totals::by_host(&requests);
    let render_blocking = requests.iter().filter(|request| request.render_blocking);
    let render_blocking_requests = Some(render_blocking.count());
    let requests_left_out = requests.len().saturating_sub(MAX_REQUESTS);
    requests.truncate(MAX_REQUESTS);
    Some(ReportMedia {
        format: FORMAT,
        marks: Marks {
            fcp_ms: marks.fcp_ms.map(to_us),
            lcp_ms: marks.lcp_ms.map(to_us),
            dom_content_loaded_ms: marks.dom_content_loaded_ms.map(to_us),
            load_ms: marks.load_ms.map(to_us),
            last_change_ms: marks.last_change_ms.map(to_us),
        },
        end_ms: to_us(end_ms),
        by_type,
        by_host,
        requests,
        requests_left_out,
        render_blocking_requests,
        film,
        film_end_ms: trace
            .screenshots_end_us
            .map(|end_us| to_us(trace.since_origin_ms(end_us))),
        pictures,
        screenshot: film::screenshot(bundle),
        screenshot_css_width: css_width(bundle),
        full_page: full_page::full_page(bundle),
        main_thread: main_thread::main_thread(&trace, &work, end_ms),
        critical_path: critical_path.steps,
        critical_path_totals: critical_path.totals,
        steps: steps(bundle),
        flow: flow(bundle),
    })
}

/// Rounds to the microsecond: the resolution of a trace, short in JSON, and equal when read back.
fn to_us(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

/// Returns the steps before the visit, without pictures of unknown types.
fn steps(bundle: &Bundle) -> Vec<StepEntry> {
    let records = StepRecords::stored_in(bundle)
        .unwrap_or_default()
        .0
        .into_iter();
    let mut steps: Vec<StepEntry> = records.map(StepEntry::from).collect();
    for step in &mut steps {
        let is_known = |picture: &Picture| film::is_known_type(&picture.mime_type);
        step.picture = step.picture.take().filter(is_known);
    }
    steps
}

/// Returns the pictures of the measured steps, without those of unknown types.
fn flow(bundle: &Bundle) -> Vec<Option<Picture>> {
    let mut records = FlowRecords::stored_in(bundle).unwrap_or_default();
    let screenshots = records.take_screenshots().into_iter();
    let pictures = screenshots.map(|screenshot| screenshot.map(Picture::from));
    let known = pictures
        .map(|picture| picture.filter(|picture: &Picture| film::is_known_type(&picture.mime_type)));
    known.collect()
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
