//! The performance score of a visit.

use plumbline_catalog::Mode;
use plumbline_model::scoring::{MetricKind, PERFORMANCE_WEIGHTS};

use crate::metrics::Measured;

/// Returns the performance score from 0 to 1, rounded to hundredths, or `None` if a weighted metric
/// is missing.
pub fn performance_score(mode: Mode, measured: &Measured) -> Option<f64> {
    let score = weighted(measured, |metric, value| metric.score(mode, value))?;
    Some((score * 100.0).round() / 100.0)
}

/// Returns the performance score without rounding, to estimate the effect of small changes.
pub(crate) fn smooth_performance_score(mode: Mode, measured: &Measured) -> Option<f64> {
    weighted(measured, |metric, value| metric.curve(mode).smooth(value))
}

fn weighted(measured: &Measured, score: impl Fn(MetricKind, f64) -> f64) -> Option<f64> {
    let mut sum = 0.0;
    let mut weights = 0.0;
    for (metric, weight) in PERFORMANCE_WEIGHTS {
        sum += score(metric, measured.get(metric)?) * weight;
        weights += weight;
    }
    Some(sum / weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(fcp: f64, lcp: f64, tbt: f64, cls: f64, si: f64) -> Measured {
        Measured {
            fcp: Ok(fcp),
            lcp: Ok(lcp),
            tbt: Ok(tbt),
            cls: Ok(cls),
            si: Ok(si),
            tti: Ok(lcp),
            first_paint_ms: None,
            dom_content_loaded_ms: None,
            load_ms: None,
            trace_end_ms: 0.0,
        }
    }

    #[test]
    fn the_category_is_the_weighted_mean_of_the_metrics() {
        let at_the_medians = measured(3000.0, 4000.0, 600.0, 0.25, 5800.0);
        assert_eq!(performance_score(Mode::Mobile, &at_the_medians), Some(0.5));
        let shifting = measured(0.0, 0.0, 0.0, 0.25, 1.0);
        assert_eq!(performance_score(Mode::Mobile, &shifting), Some(0.88));
    }

    #[test]
    fn without_one_weighted_metric_there_is_no_score() {
        let no_paint = Measured {
            lcp: Err(crate::metrics::MetricError::NoLargestContentfulPaint),
            ..measured(1.0, 1.0, 1.0, 0.0, 1.0)
        };
        assert_eq!(performance_score(Mode::Mobile, &no_paint), None);
    }
}
