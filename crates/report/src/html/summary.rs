//! The top of a report page: a summary sentence, five scores, six metrics.

use plumbline_model::interval::{Interval, Intervals, PERFORMANCE, SIMILAR_PAGES, VISITS};
use plumbline_model::report::{Metric, Metrics, Report};
use plumbline_model::scoring::{MetricKind, PERFORMANCE_WEIGHTS};

use super::charts;
use super::figures::{Grade, ms};

/// A score as a ring.
pub(super) struct Ring {
    pub(super) label: &'static str,
    pub(super) href: Option<&'static str>,
    pub(super) svg: String,
    /// Whether the ring is shown below the others: Lighthouse no longer has this category.
    pub(super) is_secondary: bool,
    /// The interval of the score, if there is one.
    pub(super) interval: Option<String>,
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
        is_secondary: label == "PWA",
        interval: report
            .intervals
            .get(PERFORMANCE)
            .filter(|_| label == "Performance" && score.is_some())
            .map(score_interval_text),
    })
    .collect()
}

/// A category that is shown by the number of its passed checks.
pub(super) struct FractionView {
    pub(super) label: String,
    pub(super) href: String,
    pub(super) text: String,
    pub(super) class: &'static str,
}

/// Returns the categories that are shown as fractions.
pub(super) fn fractions(report: &Report) -> Vec<FractionView> {
    let categories = report.categories.iter();
    categories
        .filter_map(|category| {
            let fraction = category.fraction?;
            Some(FractionView {
                label: category.title.clone(),
                href: format!("#{}", category.id.as_str()),
                text: fraction.to_string(),
                class: Grade::of_fraction(fraction).class(),
            })
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
    /// The smallest and the largest value of several runs.
    pub(super) range: Option<String>,
    /// The interval of the value, if it has a width.
    pub(super) interval: Option<String>,
    /// The reason why there is no value.
    pub(super) missing: Option<String>,
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

/// Formats the interval of a score in whole points.
pub fn score_interval_text(interval: &Interval) -> String {
    format!("{} to {}", interval.low.floor(), interval.high.ceil())
}

/// Formats the interval of a metric; `None` if it has none, or one without a visible width.
pub fn interval_text(intervals: &Intervals, kind: MetricKind) -> Option<String> {
    let interval = intervals.get(kind.as_str())?;
    let [low, high] = [interval.low, interval.high].map(|value| value_text(kind, value));
    (low != high).then(|| format!("{low} to {high}"))
}

/// Describes the intervals of a report: their level, and the data they come from.
pub fn intervals_summary(intervals: &Intervals) -> Option<String> {
    let interval = intervals.values().next()?;
    let basis = match interval.basis.as_str() {
        VISITS => "the visits of this audit",
        SIMILAR_PAGES => "visits of similar pages",
        other => other,
    };
    let percentage = interval.level * 100.0;
    Some(format!("{percentage:.0}\u{a0}%, from {basis}"))
}

/// Returns the cards of the six metrics.
pub(super) fn cards(metrics: &Metrics, report: &Report) -> Vec<MetricCard> {
    let mode = report.conditions.device.mode;
    let runs = report.runs.as_ref();
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
            let range = runs.and_then(|runs| runs.range(kind)).map(|(min, max)| {
                let [min, max] = [min, max].map(|value| value_text(kind, value));
                format!("{min} to {max} in all runs")
            });
            let weight = PERFORMANCE_WEIGHTS.iter().find(|(other, _)| *other == kind);
            MetricCard {
                name,
                class: grade.class(),
                grade: grade.label(),
                range,
                interval: interval_text(&report.intervals, kind).filter(|_| measured.is_some()),
                missing: metrics.missing.get(kind.as_str()).map(|it| sentence(it)),
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

/// Makes a sentence of a phrase: `the page …` becomes `The page ….`.
pub(crate) fn sentence(phrase: &str) -> String {
    let mut chars = phrase.chars();
    match chars.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), chars.as_str()),
        None => String::new(),
    }
}

/// Summarises the report in a sentence or two. It begins with the worst grade of Largest Contentful
/// Paint, Total Blocking Time and Cumulative Layout Shift, and with what has that grade.
pub(super) fn headline(report: &Report) -> String {
    let Some(metrics) = &report.metrics else {
        return String::new();
    };
    let graded: Vec<(Grade, String)> = [
        metrics.lcp.map(|lcp| {
            let text = format!("the largest content appears after {}", ms(lcp.value));
            (Grade::of_metric(Some(lcp)), text)
        }),
        metrics.tbt.map(|tbt| {
            let text = format!("scripts block the main thread for {}", ms(tbt.value));
            (Grade::of_metric(Some(tbt)), text)
        }),
        metrics.cls.map(|cls| {
            let text = format!("the layout shifts by {:.2}", cls.value);
            (Grade::of_metric(Some(cls)), text)
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    let texts = |wanted: Grade| {
        let wanted = graded.iter().filter(|(grade, _)| *grade == wanted);
        wanted.map(|(_, text)| text.as_str()).collect::<Vec<_>>()
    };
    let (poor, middling, good) = (
        texts(Grade::Poor),
        texts(Grade::Middling),
        texts(Grade::Good),
    );
    if !poor.is_empty() {
        let also = match &middling[..] {
            [] => String::new(),
            also => format!(" Also, {}.", listed(also)),
        };
        format!("Slow: {}.{also}", listed(&poor))
    } else if !middling.is_empty() {
        format!("Could be faster: {}.", listed(&middling))
    } else if let [first, ..] = good[..] {
        format!("Fast: {first}.")
    } else {
        "Partly measured.".to_owned()
    }
}

/// Joins phrases: `a`, `a and b`, `a, b and c`.
fn listed(phrases: &[&str]) -> String {
    match phrases {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{agentic_browsing, intervals, report};

    fn headline_of(lcp: (f64, f64), tbt: (f64, f64), cls: (f64, f64)) -> String {
        let mut report = report();
        let metric = |(value, score)| Some(Metric { value, score });
        if let Some(metrics) = &mut report.metrics {
            (metrics.lcp, metrics.tbt, metrics.cls) = (metric(lcp), metric(tbt), metric(cls));
        }
        headline(&report)
    }

    #[test]
    fn a_category_without_a_score_is_shown_by_its_passed_checks() {
        let mut report = report();
        assert!(fractions(&report).is_empty());
        report.categories.push(agentic_browsing());
        let fraction = &fractions(&report)[0];
        assert_eq!(
            (&*fraction.label, &*fraction.text),
            ("Agentic browsing", "2/3")
        );
        assert_eq!(
            (&*fraction.href, fraction.class),
            ("#agentic-browsing", "middling")
        );
    }

    #[test]
    fn the_cards_of_several_runs_show_their_range() {
        let mut report = report();
        let metrics = report.metrics.clone().unwrap();
        assert!(cards(&metrics, &report)[1].range.is_none());
        let mut slower = report.clone();
        if let Some(lcp) = slower.metrics.as_mut().and_then(|it| it.lcp.as_mut()) {
            lcp.value += 1000.0;
        }
        let lcp = metrics.lcp.unwrap().value;
        let runs = plumbline_model::runs::spread(&[report.clone(), slower], 2, 0);
        report.runs = Some(runs);
        let cards = cards(&metrics, &report);
        let expected = format!("{} to {} in all runs", ms(lcp), ms(lcp + 1000.0));
        assert_eq!(cards[1].range.as_deref(), Some(&*expected));
        let rows = super::super::environment::rows(&report, None);
        let row = rows.iter().find(|(name, _)| *name == "Runs").unwrap();
        assert!(
            row.1
                .starts_with("2, run 1 shown (median); performance scores from ")
        );
    }

    #[test]
    fn the_ring_and_the_cards_show_intervals_that_have_a_width() {
        let mut report = report();
        assert!(rings(&report).iter().all(|ring| ring.interval.is_none()));
        report.intervals = intervals();
        let rings = rings(&report);
        assert_eq!(rings[0].interval.as_deref(), Some("94 to 100"));
        assert!(rings[1..].iter().all(|ring| ring.interval.is_none()));
        let cards = cards(report.metrics.as_ref().unwrap(), &report);
        let interval = cards[1].interval.as_deref();
        assert_eq!(interval, Some("1.90\u{a0}s to 2.10\u{a0}s"));
        let shift = METRICS
            .iter()
            .position(|(kind, ..)| *kind == MetricKind::Cls);
        assert_eq!(cards[shift.unwrap()].interval, None, "it never varies");
        assert_eq!(
            intervals_summary(&report.intervals).unwrap(),
            "90\u{a0}%, from the visits of this audit"
        );
    }

    #[test]
    fn the_headline_follows_the_worst_of_three_grades() {
        let good = (1200.0, 0.99);
        assert_eq!(
            headline_of(good, (0.0, 1.0), (0.0, 1.0)),
            "Fast: the largest content appears after 1.20\u{a0}s."
        );
        assert_eq!(
            headline_of((13_100.0, 0.0), (300.0, 0.6), (0.0, 1.0)),
            "Slow: the largest content appears after 13.1\u{a0}s. \
             Also, scripts block the main thread for 300\u{a0}ms."
        );
        assert_eq!(
            headline_of(good, (300.0, 0.6), (0.2, 0.6)),
            "Could be faster: scripts block the main thread for 300\u{a0}ms and the layout shifts \
             by 0.20."
        );
    }
}
