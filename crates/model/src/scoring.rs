//! The conversion of metrics to scores: a log-normal curve per metric, and the weights of the
//! performance category.

use plumbline_catalog::Mode;

/// The two points that define a metric's curve: a value of `p10` scores 0.9, one of `median` 0.5.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    pub p10: f64,
    pub median: f64,
}

/// One of the lab metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    Fcp,
    Lcp,
    Tbt,
    Cls,
    Si,
    Tti,
}

/// The weights of the performance category (Lighthouse 13.5.0, core/config/default-config.js).
pub const PERFORMANCE_WEIGHTS: [(MetricKind, f64); 5] = [
    (MetricKind::Fcp, 10.0),
    (MetricKind::Lcp, 25.0),
    (MetricKind::Tbt, 30.0),
    (MetricKind::Cls, 25.0),
    (MetricKind::Si, 10.0),
];

impl MetricKind {
    pub const ALL: [Self; 6] = [
        Self::Fcp,
        Self::Lcp,
        Self::Tbt,
        Self::Cls,
        Self::Si,
        Self::Tti,
    ];

    /// Returns the short name, which reports and the API use for the metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fcp => "fcp",
            Self::Lcp => "lcp",
            Self::Tbt => "tbt",
            Self::Cls => "cls",
            Self::Si => "si",
            Self::Tti => "tti",
        }
    }

    /// Returns the scoring curve of Lighthouse 13.5.0, from the metric's file in
    /// core/audits/metrics. That of layout shift is the same for both form factors.
    pub fn curve(self, mode: Mode) -> Curve {
        let (p10, median) = match (self, mode) {
            (Self::Fcp, Mode::Mobile) => (1800.0, 3000.0),
            (Self::Fcp, Mode::Desktop) => (934.0, 1600.0),
            (Self::Lcp, Mode::Mobile) => (2500.0, 4000.0),
            (Self::Lcp, Mode::Desktop) => (1200.0, 2400.0),
            (Self::Tbt, Mode::Mobile) => (200.0, 600.0),
            (Self::Tbt, Mode::Desktop) => (150.0, 350.0),
            (Self::Cls, _) => (0.1, 0.25),
            (Self::Si, Mode::Mobile) => (3387.0, 5800.0),
            (Self::Si, Mode::Desktop) => (1311.0, 2300.0),
            (Self::Tti, Mode::Mobile) => (3785.0, 7300.0),
            (Self::Tti, Mode::Desktop) => (2468.0, 4500.0),
        };
        Curve { p10, median }
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
}

impl Curve {
    /// Returns the fraction of pages that are slower, raised slightly above 0.9 so that 1 can be
    /// reached, and truncated to hundredths (Lighthouse 13.5.0, shared/util.js
    /// `computeLogNormalScore`).
    pub fn score(&self, value: f64) -> f64 {
        (self.smooth(value) * 100.0).floor() / 100.0
    }

    /// Returns the score before truncation.
    pub fn smooth(&self, value: f64) -> f64 {
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

    const ALL: [MetricKind; 6] = MetricKind::ALL;

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
