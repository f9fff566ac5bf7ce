//! Largest Contentful Paint: the paint time of the main frame's last candidate for its largest
//! element.

use plumbline_trace::Trace;

use super::MetricError;

/// Returns the time of the frame's last event after the time origin if it is a candidate. If it is
/// an invalidation, or there is none, the last invalidation of the browser process is used instead,
/// as in Lighthouse (trace-processor.js, `computeValidLCPAllFrames`).
pub fn largest_contentful_paint(trace: &Trace) -> Result<f64, MetricError> {
    let last = trace.paints.largest.iter().rfind(|paint| {
        paint.frame == trace.frames.main_id && paint.ts_us > trace.navigation.time_origin_us
    });
    let candidate_us = last
        .filter(|paint| paint.size_px2.is_some())
        .map(|paint| paint.ts_us);
    candidate_us
        .or_else(|| trace.paints.largest_dropped_us.last().copied())
        .map(|ts_us| trace.since_origin_ms(ts_us))
        .ok_or(MetricError::NoLargestContentfulPaint)
}
