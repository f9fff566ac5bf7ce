//! The top of a report: what it comes to in a sentence, five scores, six metrics.

use plumbline_catalog::Mode;
use plumbline_engine::report::{Metric, Metrics, Report};
use plumbline_engine::scoring::{Metric as Kind, PERFORMANCE_WEIGHTS};

use super::charts;
use super::figures::{Grade, ms};

pub(super) struct Ring {
    pub(super) label: &'static str,
    pub(super) href: Option<&'static str>,
    pub(super) svg: String,
}

pub(super) fn rings(report: &Report) -> Vec<Ring> {
    let scores = &report.scores;
    let judged = |id: &str| report.categories.iter().any(|c| c.id.as_str() == id);
    [
        ("Performance", "#metrics", true, scores.performance),
        (
            "Accessibility",
            "#accessibility",
            judged("accessibility"),
            scores.accessibility,
        ),
        (
            "Best practices",
            "#best-practices",
            judged("best-practices"),
            scores.best_practices,
        ),
        ("SEO", "#seo", judged("seo"), scores.seo),
        ("PWA", "#pwa", judged("pwa"), scores.pwa),
    ]
    .into_iter()
    .map(|(label, href, there, score)| Ring {
        label,
        href: there.then_some(href),
        svg: charts::ring(label, score),
    })
    .collect()
}

pub(super) struct MetricCard {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) class: &'static str,
    pub(super) word: &'static str,
    /// How much it counts in the performance score.
    pub(super) weight: String,
    pub(super) curve: String,
}

pub(super) const METRICS: [(Kind, &str, &str); 6] = [
    (Kind::Fcp, "First Contentful Paint", "FCP"),
    (Kind::Lcp, "Largest Contentful Paint", "LCP"),
    (Kind::Tbt, "Total Blocking Time", "TBT"),
    (Kind::Cls, "Cumulative Layout Shift", "CLS"),
    (Kind::Si, "Speed Index", "SI"),
    (Kind::Tti, "Time to Interactive", "TTI"),
];

pub(super) fn metric(metrics: &Metrics, kind: Kind) -> Option<Metric> {
    match kind {
        Kind::Fcp => metrics.fcp,
        Kind::Lcp => metrics.lcp,
        Kind::Tbt => metrics.tbt,
        Kind::Cls => metrics.cls,
        Kind::Si => metrics.si,
        Kind::Tti => metrics.tti,
    }
}

pub(super) fn value_text(kind: Kind, value: f64) -> String {
    match kind {
        Kind::Cls => format!("{value:.3}"),
        _ => ms(value),
    }
}

/// A limit of a curve: as short as it can be said.
pub(super) fn limit_text(kind: Kind, value: f64) -> String {
    match kind {
        _ if value == 0.0 => "0".to_owned(),
        Kind::Cls => format!("{}", (value * 1000.0).round() / 1000.0),
        _ if value < 1000.0 => ms(value),
        _ => super::figures::tick(value),
    }
}

pub(super) fn cards(metrics: &Metrics, mode: Mode) -> Vec<MetricCard> {
    METRICS
        .into_iter()
        .map(|(kind, name, _)| {
            let measured = metric(metrics, kind);
            let grade = Grade::of_metric(measured);
            let curve = kind.curve(mode);
            let limits = [limit_text(kind, curve.p10), limit_text(kind, curve.median)];
            let value = measured.map_or("–".to_owned(), |m| value_text(kind, m.value));
            let said = format!(
                "{name}: {value}, {}; good up to {}, poor above {}",
                grade.word(),
                limits[0],
                limits[1]
            );
            let weight = PERFORMANCE_WEIGHTS.iter().find(|(other, _)| *other == kind);
            MetricCard {
                name,
                class: grade.class(),
                word: grade.word(),
                weight: weight.map_or("not in the score".to_owned(), |(_, weight)| {
                    format!("{weight}\u{a0}% of the score")
                }),
                curve: charts::curve(
                    curve,
                    measured.map(|m| (m.value, m.score)),
                    &said,
                    [&limits[0], &limits[1]],
                ),
                value,
            }
        })
        .collect()
}

/// What a person should know after ten seconds.
pub(super) fn headline(report: &Report) -> String {
    let Some(metrics) = &report.metrics else {
        return String::new();
    };
    let lead = match Grade::of_score(report.scores.performance) {
        Grade::Good => "Fast.",
        Grade::Middling => "Could be faster.",
        Grade::Poor => "Slow.",
        Grade::Unknown => "Measured in part.",
    };
    let mut sentences = vec![lead.to_owned()];
    if let Some(lcp) = metrics.lcp {
        sentences.push(format!("The main content appears after {}.", ms(lcp.value)));
    }
    let mut troubles = Vec::new();
    if let Some(tbt) = metrics.tbt.filter(|metric| metric.score < 0.9) {
        troubles.push(format!("scripts block it for {}", ms(tbt.value)));
    }
    if let Some(cls) = metrics.cls.filter(|metric| metric.score < 0.9) {
        troubles.push(format!("its layout shifts by {:.2}", cls.value));
    }
    match &troubles[..] {
        [] => {}
        [one] => sentences.push(format!("While it loads, {one}.")),
        [one, two, ..] => sentences.push(format!("While it loads, {one} and {two}.")),
    }
    sentences.join(" ")
}
