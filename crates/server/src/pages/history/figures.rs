//! The figures of audits under the same conditions, with their charts.

use plumbline_model::interval::{Interval, PERFORMANCE};
use plumbline_model::scoring::MetricKind;
use plumbline_model::summary::ReportSummary;
use plumbline_report::html::figures::{Grade, date, day};
use plumbline_report::html::summary::{
    METRICS, limit_text, metric, score_interval_text, value_text,
};

use super::trend::{self, Point, Scale};

/// A measured audit.
pub(super) struct Run<'a> {
    pub(super) at_ms: i64,
    pub(super) summary: &'a ReportSummary,
}

/// A figure of one or several audits.
pub(super) struct Trend {
    pub(super) name: &'static str,
    pub(super) newest: String,
    /// The interval of the newest value.
    pub(super) interval: Option<String>,
    pub(super) class: &'static str,
    /// The values of several audits; `None` if there is one only.
    pub(super) chart: Option<Chart>,
}

/// The chart of the values of several audits.
pub(super) struct Chart {
    pub(super) median: String,
    /// Whether it shows the intervals of the values.
    pub(super) has_band: bool,
    pub(super) svg: String,
}

/// A figure of one audit.
struct Value {
    at_ms: i64,
    value: f64,
    grade: Grade,
    /// The interval of the figure, if it has one.
    interval: Option<Interval>,
}

/// Returns the figures of audits under the same conditions, oldest first.
pub(super) fn trends(runs: &[Run<'_>]) -> Vec<Trend> {
    let performance = runs.iter().filter_map(|run| {
        let score = run.summary.scores.performance?;
        Some(Value {
            at_ms: run.at_ms,
            value: f64::from(score),
            grade: Grade::of_score(Some(score)),
            interval: run.summary.intervals.get(PERFORMANCE).cloned(),
        })
    });
    let mut trends = vec![trend_of(
        "Performance",
        performance.collect(),
        100.0,
        |value| format!("{value:.0}"),
        |value, it| score_interval_text(value as u8, it),
        |tick| format!("{tick:.0}"),
    )];
    for (kind, name, _) in METRICS {
        if kind == MetricKind::Tti {
            continue;
        }
        let values = runs.iter().filter_map(|run| {
            let measured = metric(run.summary.metrics.as_ref()?, kind)?;
            Some(Value {
                at_ms: run.at_ms,
                value: measured.value,
                grade: Grade::of_metric(Some(measured)),
                interval: run.summary.intervals.get(kind.as_str()).cloned(),
            })
        });
        // The scale includes the limit for good, so that good values appear low.
        let good = runs.first().map_or(0.0, |run| {
            kind.curve(run.summary.conditions.device.mode).p10
        });
        trends.push(trend_of(
            name,
            values.collect(),
            good,
            |value| value_text(kind, value),
            |_, it| {
                [it.low, it.high]
                    .map(|bound| value_text(kind, bound))
                    .join(" to ")
            },
            |tick| limit_text(kind, tick),
        ));
    }
    trends.into_iter().flatten().collect()
}

fn trend_of(
    name: &'static str,
    values: Vec<Value>,
    min_top: f64,
    text: impl Fn(f64) -> String,
    interval_text: impl Fn(f64, &Interval) -> String,
    tick: impl Fn(f64) -> String,
) -> Option<Trend> {
    let newest = values.last()?;
    let interval = |value: &Value| {
        let interval = value.interval.as_ref();
        interval.map(|interval| interval_text(value.value, interval))
    };
    let point = |value: &Value| {
        let range = interval(value).map_or(String::new(), |interval| format!(" ({interval})"));
        let title = format!("{}: {}{range}", date(value.at_ms), text(value.value));
        Some(Point {
            value: value.value,
            class: value.grade.class(),
            title,
            day: day(value.at_ms),
            interval: value.interval.as_ref().map(|it| [it.low, it.high]),
        })
    };
    let chart = || {
        let points: Vec<Option<Point>> = values.iter().map(point).collect();
        let median = median(values.iter().map(|value| value.value).collect());
        let highest = values.iter().map(|value| value.value);
        let scale = Scale::up_to(highest.fold(min_top, f64::max));
        let aria_label = format!(
            "{name} over {} audits: newest {}, median {}",
            points.len(),
            text(newest.value),
            text(median)
        );
        Chart {
            median: text(median),
            has_band: values.iter().any(|value| value.interval.is_some()),
            svg: trend::draw(&points, median, &scale, &tick, &aria_label),
        }
    };
    Some(Trend {
        name,
        newest: text(newest.value),
        interval: interval(newest),
        class: newest.grade.class(),
        chart: (values.len() > 1).then(chart),
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middles() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
    }
}
