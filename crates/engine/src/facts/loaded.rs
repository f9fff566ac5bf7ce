//! What the page loaded, as the trace has it, and what fewer bytes would have given.

use plumbline_trace::{Milestone, Resource, Trace};

use super::{Facts, Missing};
use crate::checks::Savings;
use crate::metrics::lcp;
use crate::report::Conditions;

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

/// Paints are told in steps of this.
const STEP_MS: f64 = 50.0;

/// What the two paints would gain if these bytes (by resource id) had not come: the time that they took on the
/// emulated line, as far as the paint had to wait for them. Lighthouse simulates the whole load instead.
pub fn time_saved(facts: &Facts, wasted: &[(&str, f64)]) -> Savings {
    let (Ok(trace), Ok(conditions)) = (facts.get::<Trace>(), facts.get::<Conditions>()) else {
        return Savings::default();
    };
    let down_kbps = conditions.network.down_kbps;
    if down_kbps <= 0.0 {
        return Savings::default();
    }
    let until = |paint_us: Option<f64>| {
        let paint_us = paint_us?;
        let waited_for = |resource: &Resource| {
            let is_document = trace.navigation.document_request.as_ref() == Some(&resource.id);
            resource.finish_us <= paint_us
                && (is_document
                    || is_render_blocking(resource)
                    || (resource.resource_type == "Image" && resource.priority != "Low"))
        };
        let bytes: f64 = wasted
            .iter()
            .filter(|(id, _)| trace.resources.by_id(id).is_some_and(waited_for))
            .map(|(_, bytes)| bytes)
            .sum();
        let ms = (bytes * 8.0 / down_kbps).min(trace.since_origin_ms(paint_us));
        // A sum of nothing is -0.
        Some((ms / STEP_MS).round() * STEP_MS + 0.0)
    };
    let lcp_ms = lcp::largest_contentful_paint(&trace).ok();
    let origin_us = trace.navigation.time_origin_us;
    Savings {
        fcp_ms: until(trace.first_us(Milestone::FirstContentfulPaint)),
        lcp_ms: until(lcp_ms.map(|ms| origin_us + ms * 1000.0)),
        ..Savings::default()
    }
}
