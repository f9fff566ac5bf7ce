//! The resources of the page load in the trace, and the savings from transferring fewer bytes.

use plumbline_model::check::Savings;
use plumbline_trace::{Resource, Trace};

use super::{Facts, Missing};
use crate::replay::{Paint, Replay};

/// Returns the resources of the measured navigation in the order of their requests.
pub fn loaded(trace: &Trace) -> impl Iterator<Item = &Resource> {
    let origin_us = trace.navigation.time_origin_us;
    let resources = trace.resources.all.iter();
    resources.filter(move |resource| resource.notified_us >= origin_us)
}

/// Returns the resource of the page's document.
pub fn document(trace: &Trace) -> Result<&Resource, Missing> {
    let id = trace.navigation.document_request.as_deref();
    id.and_then(|id| trace.resources.by_id(id))
        .ok_or_else(|| Missing("the trace has no request for the document".to_owned()))
}

/// Returns whether Chromium marked the resource as render-blocking.
pub fn is_render_blocking(resource: &Resource) -> bool {
    !matches!(
        resource.render_blocking.as_str(),
        "non_blocking" | "dynamically_injected_non_blocking" | "potentially_blocking"
    )
}

/// Returns whether the body was transferred compressed (Lighthouse 13.5: trace engine,
/// insights/Common.js).
pub fn is_compressed(resource: &Resource) -> bool {
    [
        "content-encoding",
        "x-content-encoding-over-network",
        "x-original-content-encoding",
    ]
    .iter()
    .flat_map(|name| resource.header(name))
    .any(|value| matches!(value, "gzip" | "br" | "deflate" | "zstd"))
}

/// Returns the ratio of transferred to decoded bytes (Lighthouse 13.5: trace engine,
/// insights/Common.js).
pub fn compression(resource: &Resource) -> f64 {
    if resource.resource_bytes == 0 {
        return 1.0;
    }
    let share = resource.transfer_bytes() as f64 / resource.resource_bytes as f64;
    // Almost nothing was transferred: the response is from a cache, so the usual ratio is assumed.
    let is_cached = resource.response.is_some()
        && resource.failure.is_none()
        && (resource.status() == Some(304) || share < 0.01);
    if is_cached {
        0.33
    } else if is_compressed(resource) {
        share
    } else {
        1.0
    }
}

/// The granularity of estimated paint savings (trace engine, insights/Common.js).
const STEP_MS: f64 = 50.0;

/// Estimates how much earlier the two paints would be without these bytes, given by resource id.
/// The savings are empty if the load cannot be replayed.
pub fn time_saved(facts: &Facts, wasted: &[(&str, f64)]) -> Savings {
    time_saved_in_steps(facts, wasted, STEP_MS)
}

/// Estimates the savings like [`time_saved`], rounded to a multiple of `step_ms`.
pub fn time_saved_in_steps(facts: &Facts, wasted: &[(&str, f64)], step_ms: f64) -> Savings {
    let Ok(replay) = facts.get::<Replay>() else {
        return Savings::default();
    };
    let saved_ms = |paint| replay.saved_ms_without_bytes(paint, wasted);
    // Negative savings count as 0, and -0 becomes 0.
    let round_to_step = |ms: f64| ((ms / step_ms).round() * step_ms).max(0.0) + 0.0;
    Savings {
        fcp_ms: saved_ms(Paint::First).map(round_to_step),
        lcp_ms: saved_ms(Paint::Largest).map(round_to_step),
        ..Savings::default()
    }
}
