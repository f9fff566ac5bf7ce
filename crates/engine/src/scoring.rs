//! The conversion of metrics to scores: log-normal curves per metric, weights per category.

use plumbline_catalog::Mode;

use crate::metrics::{Measured, cls, fcp, lcp, speed_index, tbt, tti};

/// The two points that define a metric's curve: a value of `p10` scores 0.9, one of `median` 0.5.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    pub p10: f64,
    pub median: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    Fcp,
    Lcp,
    Tbt,
    Cls,
    Si,
    Tti,
}

/// The weights of the performance category (Lighthouse 13.5.0, core/config/default-config.js).
pub const PERFORMANCE_WEIGHTS: [(Metric, f64); 5] = [
    (Metric::Fcp, 10.0),
    (Metric::Lcp, 25.0),
    (Metric::Tbt, 30.0),
    (Metric::Cls, 25.0),
    (Metric::Si, 10.0),
];

impl Metric {
    pub fn curve(self, mode: Mode) -> Curve {
        match self {
            Self::Fcp => fcp::curve(mode),
            Self::Lcp => lcp::curve(mode),
            Self::Tbt => tbt::curve(mode),
            Self::Cls => cls::curve(mode),
            Self::Si => speed_index::curve(mode),
            Self::Tti => tti::curve(mode),
        }
    }

    /// Returns the score from 0 to 1, truncated to hundredths. Like Lighthouse, it rounds a Speed
    /// Index to milliseconds first.
    pub fn score(self, mode: Mode, value: f64) -> f64 {
        let value = match self {
            Self::Si => value.round(),
            _ => value,
        };
        self.curve(mode).score(value)
    }

    pub fn of(self, measured: &Measured) -> Option<f64> {
        let value = match self {
            Self::Fcp => measured.fcp,
            Self::Lcp => measured.lcp,
            Self::Tbt => measured.tbt,
            Self::Cls => measured.cls,
            Self::Si => measured.si,
            Self::Tti => measured.tti,
        };
        value.ok()
    }
}

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

fn weighted(measured: &Measured, score: impl Fn(Metric, f64) -> f64) -> Option<f64> {
    let mut sum = 0.0;
    let mut weights = 0.0;
    for (metric, weight) in PERFORMANCE_WEIGHTS {
        sum += score(metric, metric.of(measured)?) * weight;
        weights += weight;
    }
    Some(sum / weights)
}

impl Curve {
    /// Returns the fraction of pages that are slower, raised slightly above 0.9 so that 1 can be
    /// reached, and truncated to hundredths (Lighthouse 13.5.0, shared/util.js
    /// `computeLogNormalScore`).
    pub fn score(&self, value: f64) -> f64 {
        (self.smooth(value) * 100.0).floor() / 100.0
    }

    /// Returns the score before truncation.
    fn smooth(&self, value: f64) -> f64 {
        let share = self.share_above(value);
        share + 0.05 * (share - 0.9).max(0.0)
    }

    /// Returns the complementary log-normal distribution through both points, clamped on the right
    /// side of each so that a value equal to a point never misses its score by rounding (Lighthouse
    /// 13.5.0, shared/statistics.js).
    fn share_above(&self, value: f64) -> f64 {
        /// The inverse complementary error function of 1/5, which gives the tenth percentile of the
        /// curve.
        const INVERSE_ERFC_OF_A_FIFTH: f64 = 0.906_193_802_436_823_2;
        if value <= 0.0 {
            return 1.0;
        }
        let distance = (value / self.median).ln();
        let distance_of_p10 = -(self.p10 / self.median).ln();
        let share = (1.0 - erf(distance * INVERSE_ERFC_OF_A_FIFTH / distance_of_p10)) / 2.0;
        let (low, high) = if value <= self.p10 {
            (0.9, 1.0)
        } else if value <= self.median {
            (0.5, 0.9_f64.next_down())
        } else {
            (0.0, 0.5_f64.next_down())
        };
        share.clamp(low, high)
    }
}

/// Approximates the error function to about 1.5e-7: Abramowitz and Stegun, Handbook of Mathematical
/// Functions, 7.1.26. Lighthouse uses the same approximation; a better one would give other scores.
fn erf(x: f64) -> f64 {
    const P: f64 = 0.327_591_1;
    const A: [f64; 5] = [
        0.254_829_592,
        -0.284_496_736,
        1.421_413_741,
        -1.453_152_027,
        1.061_405_429,
    ];
    if x == 0.0 {
        return 0.0;
    }
    let t = 1.0 / (1.0 + P * x.abs());
    let series = A.iter().rev().fold(0.0, |sum, a| t * (a + sum));
    x.signum() * (1.0 - series * (-x * x).exp())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Metric; 6] = [
        Metric::Fcp,
        Metric::Lcp,
        Metric::Tbt,
        Metric::Cls,
        Metric::Si,
        Metric::Tti,
    ];

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
    fn the_two_points_of_every_curve_score_ninety_and_fifty() {
        for mode in [Mode::Mobile, Mode::Desktop] {
            for metric in ALL {
                let Curve { p10, median } = metric.curve(mode);
                assert_eq!(metric.score(mode, p10), 0.9, "{metric:?}");
                assert_eq!(metric.score(mode, median), 0.5, "{metric:?}");
                assert!(metric.score(mode, median * 1.01 + 0.5) < 0.5, "{metric:?}");
            }
        }
    }

    #[test]
    fn zero_scores_one_and_infinity_scores_zero() {
        for metric in ALL {
            assert_eq!(metric.score(Mode::Mobile, 0.0), 1.0);
            assert_eq!(metric.score(Mode::Mobile, 1e9), 0.0);
        }
    }

    #[test]
    fn weights_sum_to_one_hundred_percent() {
        let sum: f64 = PERFORMANCE_WEIGHTS.iter().map(|(_, weight)| weight).sum();
        assert_eq!(sum, 100.0);
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

    proptest! {
        #[test]
        fn a_slower_page_never_scores_higher(a in 0.0..30_000.0_f64, b in 0.0..30_000.0_f64) {
            let (fast, slow) = if a < b { (a, b) } else { (b, a) };
            for metric in ALL {
                prop_assert!(metric.score(Mode::Mobile, fast) >= metric.score(Mode::Mobile, slow));
            }
        }
    }
}
