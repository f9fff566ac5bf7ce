//! The top of a report page: a summary sentence, five scores, six metrics.

use plumbline_catalog::Mode;
use plumbline_model::report::{Metric, Metrics, Report};
use plumbline_model::scoring::{MetricKind, PERFORMANCE_WEIGHTS};

use super::charts;
use super::figures::{Grade, ms};

/// A score as a ring.
pub(super) struct Ring {
    pub(super) label: &'static str,
    pub(super) href: Option<&'static str>,
    pub(super) svg: String,
}

/// Returns the rings of the five categories.
pub(super) fn rings(report: &Report) -> Vec<Ring> {
    let scores = &report.scores;
    let has_checks = |id: &str| report.categories.iter().any(|c| c.id.as_str() == id);
    [
        ("Performance", "#metrics", true, scores.performance),
        (
            "Accessibility",
            "#accessibility",
            has_checks("accessibility"),
            scores.accessibility,
        ),
        (
            "Best practices",
            "#best-practices",
            has_checks("best-practices"),
            scores.best_practices,
        ),
        ("SEO", "#seo", has_checks("seo"), scores.seo),
        ("PWA", "#pwa", has_checks("pwa"), scores.pwa),
    ]
    .into_iter()
    .map(|(label, href, is_linked, score)| Ring {
        label,
        href: is_linked.then_some(href),
        svg: charts::ring(label, score),
    })
    .collect()
}

/// A metric with its scoring curve.
pub(super) struct MetricCard {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) class: &'static str,
    pub(super) grade: &'static str,
    /// Its weight in the performance score.
    pub(super) weight: String,
    pub(super) curve: String,
}

/// The metrics with their names and abbreviations.
pub const METRICS: [(MetricKind, &str, &str); 6] = [
    (MetricKind::Fcp, "First Contentful Paint", "FCP"),
    (MetricKind::Lcp, "Largest Contentful Paint", "LCP"),
    (MetricKind::Tbt, "Total Blocking Time", "TBT"),
    (MetricKind::Cls, "Cumulative Layout Shift", "CLS"),
    (MetricKind::Si, "Speed Index", "SI"),
    (MetricKind::Tti, "Time to Interactive", "TTI"),
];

/// Returns a metric by its kind.
pub fn metric(metrics: &Metrics, kind: MetricKind) -> Option<Metric> {
    match kind {
        MetricKind::Fcp => metrics.fcp,
        MetricKind::Lcp => metrics.lcp,
        MetricKind::Tbt => metrics.tbt,
        MetricKind::Cls => metrics.cls,
        MetricKind::Si => metrics.si,
        MetricKind::Tti => metrics.tti,
    }
}

/// Formats the value of a metric.
pub fn value_text(kind: MetricKind, value: f64) -> String {
    match kind {
        MetricKind::Cls => format!("{value:.3}"),
        _ => ms(value),
    }
}

/// Formats a limit of a metric without trailing zeros.
pub fn limit_text(kind: MetricKind, value: f64) -> String {
    match kind {
        _ if value == 0.0 => "0".to_owned(),
        MetricKind::Cls => format!("{}", (value * 1000.0).round() / 1000.0),
        _ if value < 1000.0 => ms(value),
        _ => super::figures::tick(value),
    }
}

/// Returns the cards of the six metrics.
pub(super) fn cards(metrics: &Metrics, mode: Mode) -> Vec<MetricCard> {
    METRICS
        .into_iter()
        .map(|(kind, name, _)| {
            let measured = metric(metrics, kind);
            let grade = Grade::of_metric(measured);
            let curve = kind.curve(mode);
            let limits = [limit_text(kind, curve.p10), limit_text(kind, curve.median)];
            let value = measured.map_or("–".to_owned(), |m| value_text(kind, m.value));
            let aria_label = format!(
                "{name}: {value}, {}; good up to {}, poor above {}",
                grade.label(),
                limits[0],
                limits[1]
            );
            let weight = PERFORMANCE_WEIGHTS.iter().find(|(other, _)| *other == kind);
            MetricCard {
                name,
                class: grade.class(),
                grade: grade.label(),
                weight: weight.map_or("not in the score".to_owned(), |(_, weight)| {
                    format!("{weight}\u{a0}% of the score")
                }),
                curve: charts::curve(
                    curve,
                    measured.map(|m| (m.value, m.score)),
                    &aria_label,
                    [&limits[0], &limits[1]],
                ),
                value,
            }
        })
        .collect()
}

/// Summarises the report in a few short sentences.
pub(super) fn headline(report: &Report) -> String {
    let Some(metrics) = &report.metrics else {
        return String::new();
    };
    let lead = match Grade::of_score(report.scores.performance) {
        Grade::Good => "Fast.",
        Grade::Middling => "Could be faster.",
        Grade::Poor => "Slow.",
        Grade::Unknown => "Partly measured.",
    };
    let mut sentences = vec![lead.to_owned()];
    if let Some(lcp) = metrics.lcp {
        sentences.push(format!("The main content appears after {}.", ms(lcp.value)));
    }
    let mut problems = Vec::new();
    if let Some(tbt) = metrics.tbt.filter(|metric| metric.score < 0.9) {
        problems.push(format!(
            "scripts block the main thread for {}",
            ms(tbt.value)
        ));
    }
    if let Some(cls) = metrics.cls.filter(|metric| metric.score < 0.9) {
        problems.push(format!("the layout shifts by {:.2}", cls.value));
    }
    match &problems[..] {
        [] => {}
        [one] => sentences.push(format!("While it loads, {one}.")),
        [one, two, ..] => sentences.push(format!("While it loads, {one} and {two}.")),
    }
    sentences.join(" ")
}
