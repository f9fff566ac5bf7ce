//! Intervals of the figures of an audit: the range in which the mean of further audits is expected.
//!
//! An interval is computed from the values of the visits of the audit, together with a standard
//! deviation that is known from other pages, which counts as much as two more visits would. The
//! fewer visits there are, the more the other pages count; for a single visit there is nothing
//! else. The scores of categories other than performance depend on verdicts, which do not vary, so
//! they have no interval.

mod coverage;
mod residuals;
#[cfg(test)]
mod simulation;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use coverage::{Coverage, coverage};
pub use residuals::{Origin, PageClass, ResidualTable};

use crate::report::Report;
use crate::runs::figure;
use crate::scoring::{MetricKind, PERFORMANCE_WEIGHTS};

/// The confidence level of all intervals.
pub const LEVEL: f64 = 0.9;

/// The number of further audits whose mean an interval contains with the probability [`LEVEL`].
pub const FURTHER_AUDITS: usize = 20;

/// The short name of the performance score among figures.
pub const PERFORMANCE: &str = "performance";

/// The basis of an interval that the visits of the audit contribute to.
pub const VISITS: &str = "visits";

/// The basis of an interval of a single visit.
pub const SIMILAR_PAGES: &str = "similar pages";

/// The degrees of freedom of the standard deviation that is known from other pages. Pages vary so
/// differently that it says as much about one of them as two more visits would. In the simulations
/// of this module, in which the standard deviations of pages differ by a factor of ten, 89 to 94
/// per cent of the intervals contain the mean. With one degree it is 82 per cent for the score of
/// two visits; three degrees make no difference.
const DEGREES_OF_OTHER_PAGES: usize = 2;

/// The error in points by which a score differs from the exact one because it is rounded.
const ROUNDING_POINTS: f64 = 0.5;

/// The quantiles of Student's t for a two-sided interval of [`LEVEL`], by degrees of freedom from 1
/// on. More degrees have practically the last one.
const STUDENT_T: [f64; 30] = [
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
    1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706,
    1.703, 1.701, 1.699, 1.697,
];

/// A confidence interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// The confidence level.
    pub level: f64,
    /// The data that the interval is computed from.
    pub basis: String,
}

impl Interval {
    /// Returns half of the width.
    #[cfg(test)]
    fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The intervals of a report by the short names of its figures: `performance` and the metrics.
pub type Intervals = BTreeMap<String, Interval>;

/// Returns the intervals of the figures of `reported`, which is one of the `visits` of its audit.
/// There are none if the page was not measured.
pub fn intervals(reported: &Report, visits: &[&Report]) -> Intervals {
    intervals_by(ResidualTable::built_in(), reported, visits)
}

fn intervals_by(table: &ResidualTable, reported: &Report, visits: &[&Report]) -> Intervals {
    let class = table.class_of(reported);
    let class = class.filter(|_| reported.error.is_none());
    let of = |figure: Figure| {
        let class = class?;
        let value = figure.value(reported)?;
        let half_width = figure.unit(class, reported)? * class.residual(figure)?;
        let values = visits.iter().filter_map(|visit| figure.value(visit));
        let interval = figure.interval(value, &values.collect::<Vec<_>>(), half_width);
        Some((figure.name().to_owned(), interval))
    };
    Figure::all().filter_map(of).collect()
}

/// A figure that has an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    Performance,
    Metric(MetricKind),
}

impl Figure {
    fn all() -> impl Iterator<Item = Self> {
        let metrics = MetricKind::ALL.into_iter().map(Self::Metric);
        std::iter::once(Self::Performance).chain(metrics)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Performance => PERFORMANCE,
            Self::Metric(kind) => kind.as_str(),
        }
    }

    fn value(self, report: &Report) -> Option<f64> {
        figure(report, self.name())
    }

    /// Returns the unit in which residuals are expressed: the value of a metric, but not less than
    /// a minimum, since a metric may be 0; for the score the points that it changes by with its
    /// metrics.
    fn unit(self, class: &PageClass, report: &Report) -> Option<f64> {
        match self {
            Self::Performance => {
                let effects = PERFORMANCE_WEIGHTS.into_iter();
                let effects = effects.map(|(kind, weight)| effect(kind, weight, class, report));
                let effects: Option<Vec<f64>> = effects.collect();
                let squares: f64 = effects?.iter().map(|points| points * points).sum();
                Some(squares.sqrt().hypot(ROUNDING_POINTS))
            }
            Self::Metric(kind) => Some(self.value(report)?.max(min_unit(kind))),
        }
    }

    /// Returns the interval around the mean of the values of some visits. `half_width` is that of
    /// the interval of a single visit. It contains the reported value in any case.
    fn interval(self, reported: f64, values: &[f64], half_width: f64) -> Interval {
        let further = 1.0 / FURTHER_AUDITS as f64;
        let count = values.len().max(1) as f64;
        let mean = if values.is_empty() {
            reported
        } else {
            values.iter().sum::<f64>() / count
        };
        let degrees_before = DEGREES_OF_OTHER_PAGES as f64;
        let deviation_before =
            half_width / (student_t(DEGREES_OF_OTHER_PAGES) * (1.0 + further).sqrt());
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let degrees = DEGREES_OF_OTHER_PAGES + values.len().saturating_sub(1);
        let variance = (degrees_before * deviation_before.powi(2) + squares) / degrees as f64;
        let half_width = student_t(degrees) * (variance * (1.0 + further) / count).sqrt();
        let (max, decimals) = match self {
            Self::Performance => (100.0, 10.0),
            Self::Metric(MetricKind::Cls) => (f64::MAX, 10_000.0),
            Self::Metric(_) => (f64::MAX, 1.0),
        };
        let low = (mean - half_width).clamp(0.0, max).min(reported);
        let high = (mean + half_width).clamp(0.0, max).max(reported);
        Interval {
            low: (low * decimals).floor() / decimals,
            high: (high * decimals).ceil() / decimals,
            level: LEVEL,
            basis: if values.len() > 1 {
                VISITS
            } else {
                SIMILAR_PAGES
            }
            .to_owned(),
        }
    }
}

/// Returns the points by which the score changes if a metric changes by its residual.
fn effect(kind: MetricKind, weight: f64, class: &PageClass, report: &Report) -> Option<f64> {
    let metric = Figure::Metric(kind);
    let value = metric.value(report)?;
    let half_width = metric.unit(class, report)? * class.residual(metric)?;
    let curve = kind.curve(report.conditions.device.mode);
    let better = curve.smooth((value - half_width).max(0.0));
    Some((better - curve.smooth(value + half_width)) / 2.0 * weight)
}

/// Returns the value of a metric below which its variation is no longer proportional to it: about
/// the length of a task or of some frames, and a shift of 0.01.
fn min_unit(kind: MetricKind) -> f64 {
    match kind {
        MetricKind::Cls => 0.01,
        _ => 100.0,
    }
}

fn student_t(degrees: usize) -> f64 {
    STUDENT_T[degrees.clamp(1, STUDENT_T.len()) - 1]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::simulation::report;
    use super::*;

    const FCP: Figure = Figure::Metric(MetricKind::Fcp);

    #[test]
    fn a_report_has_an_interval_of_its_score_and_of_every_metric_it_has() {
        let mut report = report([1000.0, 2000.0, 300.0, 0.05, 1500.0, 3000.0]);
        let names = ["cls", "fcp", "lcp", "performance", "si", "tbt", "tti"];
        let found = intervals(&report, &[&report]);
        assert!(found.keys().eq(names.iter()), "{found:?}");
        for (name, interval) in &found {
            let value = figure(&report, name).unwrap();
            assert!(interval.contains(value), "{name}: {interval:?}");
            assert_eq!((interval.level, &*interval.basis), (LEVEL, SIMILAR_PAGES));
        }
        report.metrics.as_mut().unwrap().si = None;
        let found = intervals(&report, &[&report]);
        assert!(!found.contains_key("si"));
        assert!(
            !found.contains_key(PERFORMANCE),
            "it depends on all metrics"
        );
        report.error = Some(plumbline_bundle::Failure::new(
            plumbline_bundle::FailureCode::Timeout,
            "late",
        ));
        assert!(intervals(&report, &[&report]).is_empty());
    }

    #[test]
    fn the_interval_of_one_visit_is_that_of_other_pages() {
        let interval = FCP.interval(1000.0, &[1000.0], 50.0);
        let expected = (950.0, 1050.0, SIMILAR_PAGES);
        assert_eq!((interval.low, interval.high, &*interval.basis), expected);
    }

    #[test]
    fn visits_that_agree_narrow_the_interval_and_others_widen_it() {
        let width = |values: &[f64]| FCP.interval(values[0], values, 50.0).half_width();
        let one = width(&[1000.0]);
        assert!(width(&[1000.0, 1001.0]) < 0.7 * one);
        assert!(width(&[1000.0, 1400.0]) > 2.0 * one);
        assert_eq!(FCP.interval(1000.0, &[1000.0, 1001.0], 50.0).basis, VISITS);
    }

    #[test]
    fn a_figure_that_never_varies_has_an_interval_without_width() {
        let shift = Figure::Metric(MetricKind::Cls);
        let interval = shift.interval(0.0, &[0.0], 0.0);
        assert_eq!((interval.low, interval.high), (0.0, 0.0));
    }

    #[test]
    fn a_score_of_many_points_in_reserve_is_more_certain_than_one_at_a_steep_curve() {
        let fast = report([300.0, 400.0, 10.0, 0.0, 400.0, 500.0]);
        let middling = report([2500.0, 3800.0, 10.0, 0.2, 5000.0, 5000.0]);
        let width = |report: &Report| intervals(report, &[report])[PERFORMANCE].half_width();
        assert!(width(&fast) < width(&middling));
    }

    proptest! {
        #[test]
        fn an_interval_contains_the_reported_value(
            values in prop::collection::vec(0.0..20_000.0_f64, 1..8),
            chosen in 0usize..8,
            half_width in 0.0..3000.0_f64,
        ) {
            let reported = values[chosen % values.len()];
            for figure in Figure::all() {
                let scale = match figure {
                    Figure::Performance => 0.005,
                    Figure::Metric(MetricKind::Cls) => 0.0001,
                    Figure::Metric(_) => 1.0,
                };
                let values: Vec<f64> = values.iter().map(|value| value * scale).collect();
                let interval = figure.interval(reported * scale, &values, half_width * scale);
                prop_assert!(interval.contains(reported * scale), "{:?}", interval);
                prop_assert!(interval.low >= 0.0);
            }
        }

        #[test]
        fn more_visits_of_the_same_spread_narrow_the_interval(
            spread in 0.0..500.0_f64,
            half_width in 1.0..500.0_f64,
            count in 2usize..20,
        ) {
            // All visits but two are in the middle; those two have the variance of all.
            let width = |count: usize| {
                let offset = spread * ((count as f64 - 1.0) / 2.0).sqrt();
                let mut values = vec![5000.0; count];
                (values[0], values[1]) = (5000.0 - offset, 5000.0 + offset);
                FCP.interval(5000.0, &values, half_width).half_width()
            };
            // Bounds are whole milliseconds.
            prop_assert!(width(count + 1) <= width(count) + 1.0);
        }
    }
}
