//! What the page loaded, as the trace has it, and what fewer bytes would have given.

use plumbline_trace::{Resource, Trace};

use super::{Facts, Missing};
use crate::checks::Savings;
use crate::replay::Replay;

/// The resources of the navigation that counts, in the order in which they were asked for.
pub fn loaded(trace: &Trace) -> impl Iterator<Item = &Resource> {
    let origin_us = trace.navigation.time_origin_us;
    let resources = trace.resources.all.iter();
    resources.filter(move |resource| resource.end_us >= origin_us)
}

/// The resource that became the page.
pub fn document(trace: &Trace) -> Result<&Resource, Missing> {
    let id = trace.navigation.document_request.as_deref();
    id.and_then(|id| trace.resources.by_id(id))
        .ok_or_else(|| Missing("the trace holds no request for the document".to_owned()))
}

/// Whether Chromium says that nothing could be painted before it was there.
pub fn is_render_blocking(resource: &Resource) -> bool {
    !matches!(
        resource.render_blocking.as_str(),
        "non_blocking" | "dynamically_injected_non_blocking" | "potentially_blocking"
    )
}

/// Whether the body came encoded (Lighthouse 13.5: trace engine, insights/Common.js).
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

/// What remained of the body on the network, as the trace tells it (the same place).
pub fn compression(resource: &Resource) -> f64 {
    if resource.decoded_bytes <= 0.0 {
        return 1.0;
    }
    let share = resource.transfer_bytes / resource.decoded_bytes;
    // Next to nothing came over the network: a cache answered, and the usual share is taken.
    let is_cached =
        resource.headers.is_some() && !resource.failed && (resource.status == 304 || share < 0.01);
    match (is_cached, is_compressed(resource)) {
        (true, _) => 0.33,
        (false, true) => share,
        (false, false) => 1.0,
    }
}

/// Paints are told in steps of this (trace engine, insights/Common.js).
const STEP_MS: f64 = 50.0;

/// What the two paints would gain if these bytes (by resource id) had not come. Nothing where that cannot be said.
pub fn time_saved(facts: &Facts, wasted: &[(&str, f64)]) -> Savings {
    time_saved_in_steps(facts, wasted, STEP_MS)
}

/// The same, told in steps of so many milliseconds.
pub fn time_saved_in_steps(facts: &Facts, wasted: &[(&str, f64)], step_ms: f64) -> Savings {
    let Ok(replay) = facts.get::<Replay>() else {
        return Savings::default();
    };
    let (fcp_ms, lcp_ms) = replay.saved_ms_without_bytes(wasted);
    // Less than nothing is nothing; and a nothing of -0 is 0.
    let told = |ms: f64| ((ms / step_ms).round() * step_ms).max(0.0) + 0.0;
    Savings {
        fcp_ms: fcp_ms.map(told),
        lcp_ms: lcp_ms.map(told),
        ..Savings::default()
    }
}
