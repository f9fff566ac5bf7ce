//! First Contentful Paint: the time of the first paint of text or an image in the main frame.

use plumbline_catalog::Mode;
use plumbline_trace::{Milestone, Trace};

use super::MetricError;
use crate::scoring::Curve;

/// Returns the scoring curve of Lighthouse 13.5.0 (core/audits/metrics/first-contentful-paint.js).
pub fn curve(mode: Mode) -> Curve {
    match mode {
        Mode::Mobile => Curve {
            p10: 1800.0,
            median: 3000.0,
        },
        Mode::Desktop => Curve {
            p10: 934.0,
            median: 1600.0,
        },
    }
}

pub fn first_contentful_paint(trace: &Trace) -> Result<f64, MetricError> {
    trace
        .first_us(Milestone::FirstContentfulPaint)
        .map(|ts_us| trace.since_origin_ms(ts_us))
        .ok_or(MetricError::NoFirstContentfulPaint)
}
