//! The gain from passing a failed check: estimated, or measured by an experiment.

use std::cmp::Ordering;

use plumbline_model::category::CategoryResult;
use plumbline_model::check::{CheckResult, Savings, Verdict};
use plumbline_model::comparison::{Answer, Comparison};
use plumbline_model::experiment::Subject;
use plumbline_model::interval::PERFORMANCE;
use plumbline_model::report::{Metrics, Report};
use plumbline_model::scoring::{MetricKind, PERFORMANCE_WEIGHTS};

use super::concerns::concerns;
use super::figures::{Grade, bytes};
use super::replays::Replays;
use super::summary::{metric, value_text};

/// The possible gain from a fix.
#[derive(Debug, Default)]
pub(super) struct Gain {
    /// The points of the category's score.
    pub(super) points: f64,
    /// The share of the worst metric that would be saved; 0 for checks of other categories.
    pub(super) saved_share: f64,
    /// Whether the advice concerns the worst metric, even if no figure is known.
    concerns_worst: bool,
    /// The most time that is saved of any metric.
    saved_ms: f64,
    wasted_bytes: f64,
    pub(super) text: String,
}

impl Gain {
    /// Orders gains of one category, the largest first. Time saved on the worst metric counts more
    /// than points: the score of a very slow page hardly changes with any single fix.
    pub(super) fn largest_first(a: &Self, b: &Self) -> Ordering {
        b.saved_share
            .total_cmp(&a.saved_share)
            .then(b.concerns_worst.cmp(&a.concerns_worst))
            .then(b.points.total_cmp(&a.points))
            .then(b.saved_ms.total_cmp(&a.saved_ms))
            .then(b.wasted_bytes.total_cmp(&a.wasted_bytes))
    }
}

/// Returns the gain from passing a check, or `None` if it does not fail, or if nothing can be
/// estimated and it does not concern the worst metric. What was measured replaces the estimate.
pub(super) fn gain(
    report: &Report,
    category: &CategoryResult,
    check: &CheckResult,
    replays: &Replays<'_>,
) -> Option<Gain> {
    // A category that is shown as a fraction has no points to gain.
    if check.verdict != Verdict::Fail || category.fraction.is_some() {
        return None;
    }
    let counted = category.checks.iter().filter(|c| c.score.is_some());
    let weights: f64 = counted.map(|check| check.weight).sum();
    if check.weight > 0.0 && weights > 0.0 {
        let left = 1.0 - check.score.unwrap_or_default();
        let points = check.weight * left / weights * 100.0;
        return Some(Gain {
            points,
            text: points_text(points),
            ..Gain::default()
        });
    }
    let experiment = replays.experiment(&Subject::Check(check.id.clone()));
    if let Some(comparison) = experiment.and_then(|it| it.comparison.as_ref()) {
        return Some(measured_gain(report, comparison));
    }
    let mut gain = check
        .savings
        .as_ref()
        .map_or_else(Gain::default, |savings| performance_gain(report, savings));
    let worst = report.metrics.as_ref().and_then(worst_metric);
    if let Some(worst) = worst.filter(|worst| concerns(check, *worst)) {
        gain.concerns_worst = true;
        if gain.text.is_empty() {
            gain.text = format!("concerns {}", worst.as_str().to_uppercase());
        }
    }
    Some(gain).filter(|gain| !gain.text.is_empty())
}

/// Returns the gain that an experiment has measured. Figures without a shown difference count as
/// unchanged.
fn measured_gain(report: &Report, comparison: &Comparison) -> Gain {
    let worst = report.metrics.as_ref().and_then(worst_metric);
    let (mut gain, mut texts) = (Gain::default(), Vec::new());
    let shown = comparison.figures.iter();
    for figure in shown.filter(|it| it.answer != Answer::NoDifferenceShown) {
        let [before, after] = figure.medians;
        if figure.name == PERFORMANCE {
            gain.points = after - before;
            let points = figure.shift.round() as i64;
            texts.insert(0, format!("{}{} points", sign(figure.shift), points.abs()));
            continue;
        }
        let kinds = PERFORMANCE_WEIGHTS.iter().map(|(kind, _)| *kind);
        let Some(kind) = kinds.into_iter().find(|kind| kind.as_str() == figure.name) else {
            continue;
        };
        let difference = if figure.is_relative {
            before * figure.shift
        } else {
            figure.shift
        };
        let share = saved_share(report, worst, kind, -difference);
        gain.saved_share = gain.saved_share.max(share);
        if kind != MetricKind::Cls {
            gain.saved_ms = gain.saved_ms.max(-difference);
        }
        let (name, text) = (
            kind.as_str().to_uppercase(),
            value_text(kind, difference.abs()),
        );
        texts.push(format!("{name} {}{text}", sign(difference)));
    }
    if texts.is_empty() {
        texts.push("no difference shown".to_owned());
    }
    gain.text = format!("measured: {}", texts.join(", "));
    gain
}

fn sign(number: f64) -> &'static str {
    if number < 0.0 { "−" } else { "+" }
}

/// Returns the share of the worst metric that is saved by what is saved of a metric. Time saved on
/// the first paint counts as time saved on the largest one.
fn saved_share(report: &Report, worst: Option<MetricKind>, kind: MetricKind, saved: f64) -> f64 {
    let is_counted =
        worst == Some(kind) || (worst, kind) == (Some(MetricKind::Lcp), MetricKind::Fcp);
    let metrics = report.metrics.as_ref();
    let current = worst.and_then(|worst| metric(metrics?, worst));
    match current {
        Some(current) if is_counted && current.value > 0.0 => {
            (saved / current.value).clamp(0.0, 1.0)
        }
        _ => 0.0,
    }
}

fn points_text(points: f64) -> String {
    match points.round() as i64 {
        0 => "less than 1 point".to_owned(),
        1 => "+1 point".to_owned(),
        points => format!("+{points} points"),
    }
}

/// Returns the points that the performance score would gain if each metric improved by its savings,
/// the share of the worst metric, and a description of the savings.
fn performance_gain(report: &Report, savings: &Savings) -> Gain {
    let Some(metrics) = &report.metrics else {
        return Gain::default();
    };
    let mode = report.conditions.device.mode;
    let (mut points, mut texts, mut saved_share) = (0.0, Vec::new(), 0.0);
    let mut saved_ms: f64 = 0.0;
    let worst = worst_metric(metrics);
    for (kind, name, saved) in [
        (MetricKind::Fcp, "FCP", savings.fcp_ms),
        (MetricKind::Lcp, "LCP", savings.lcp_ms),
        (MetricKind::Tbt, "TBT", savings.tbt_ms),
        (MetricKind::Cls, "CLS", savings.cls),
    ] {
        let (Some(current), Some(saved)) = (metric(metrics, kind), saved) else {
            continue;
        };
        saved_share = f64::max(saved_share, self::saved_share(report, worst, kind, saved));
        if kind != MetricKind::Cls {
            saved_ms = saved_ms.max(saved);
        }
        let better = kind.score(mode, (current.value - saved).max(0.0));
        let weight = PERFORMANCE_WEIGHTS.iter().find(|(other, _)| *other == kind);
        points += (better - current.score).max(0.0) * weight.map_or(0.0, |(_, weight)| *weight);
        let min_shown = if kind == MetricKind::Cls { 0.005 } else { 10.0 };
        if saved >= min_shown {
            texts.push(format!("{name} −{}", value_text(kind, saved)));
        }
    }
    let wasted_bytes = savings.wasted_bytes.unwrap_or_default();
    if wasted_bytes >= 1000.0 {
        texts.push(format!("−{}", bytes(wasted_bytes as u64)));
    }
    if points >= 0.5 {
        texts.insert(0, points_text(points));
    }
    Gain {
        points,
        saved_share,
        saved_ms,
        wasted_bytes,
        text: texts.join(", "),
        ..Gain::default()
    }
}

/// Returns the metric with the lowest score of those that the headline names; `None` if all of them
/// are good.
fn worst_metric(metrics: &Metrics) -> Option<MetricKind> {
    [MetricKind::Lcp, MetricKind::Tbt, MetricKind::Cls]
        .into_iter()
        .filter_map(|kind| Some((kind, metric(metrics, kind)?)))
        .filter(|(_, metric)| Grade::of_metric(Some(*metric)) != Grade::Good)
        .min_by(|(_, a), (_, b)| a.score.total_cmp(&b.score))
        .map(|(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_time_counts_more_than_saved_bytes() {
        let gain = |saved_ms, wasted_bytes| Gain {
            saved_ms,
            wasted_bytes,
            ..Gain::default()
        };
        let order = Gain::largest_first(&gain(400.0, 0.0), &gain(0.0, 90_000.0));
        assert_eq!(order, Ordering::Less);
        let order = Gain::largest_first(&gain(0.0, 1_000.0), &gain(0.0, 90_000.0));
        assert_eq!(order, Ordering::Greater);
    }
}
