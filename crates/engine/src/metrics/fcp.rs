//! First Contentful Paint: the time of the first paint of text or an image in the main frame.

use plumbline_trace::{Milestone, Trace};

use super::MetricError;

pub fn first_contentful_paint(trace: &Trace) -> Result<f64, MetricError> {
    trace
        .first_us(Milestone::FirstContentfulPaint)
        .map(|ts_us| trace.since_origin_ms(ts_us))
        .ok_or(MetricError::NoFirstContentfulPaint)
}
