//! The top of a report page: a summary sentence, five scores, six metrics.

use plumbline_bundle::MainDocument;
use plumbline_model::interval::{Interval, Intervals, PERFORMANCE, SIMILAR_PAGES, VISITS};
use plumbline_model::report::{Metric, Metrics, Report};
use plumbline_model::runs::Runs;
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
            .filter(|_| label == "Performance")
            .zip(score)
            .map(|(interval, score)| score_interval_text(score, interval)),
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

/// Formats the interval of a score in whole points: `± 6` if the score is in its middle, give or
/// take a point, and `68 to 80` otherwise. It has at most two lines in a narrow column.
pub fn score_interval_text(score: u8, interval: &Interval) -> String {
    let (low, high) = (interval.low.floor(), interval.high.ceil());
    let (below, above) = (f64::from(score) - low, high - f64::from(score));
    let points = below.max(above);
    let is_possible = f64::from(score) - points >= 0.0 && f64::from(score) + points <= 100.0;
    if (below - above).abs() <= 1.0 && is_possible {
        format!("±\u{a0}{points}")
    } else {
        format!("{low} to\u{a0}{high}")
    }
}

/// Formats the interval of a metric; `None` if it has none, or one without a visible width. It has
/// at most two lines in a narrow column.
pub fn interval_text(intervals: &Intervals, kind: MetricKind) -> Option<String> {
    let interval = intervals.get(kind.as_str())?;
    let [low, high] = [interval.low, interval.high].map(|value| value_text(kind, value));
    (low != high).then(|| format!("{low} to\u{a0}{high}"))
}

/// Formats the smallest and the largest value of a metric in several runs, if they differ as shown.
pub(crate) fn range_text(runs: &Runs, kind: MetricKind) -> Option<String> {
    let (min, max) = runs.range(kind)?;
    let [min, max] = [min, max].map(|value| value_text(kind, value));
    (min != max).then(|| format!("{min} to {max} in all runs"))
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
                range: report.runs.as_ref().and_then(|runs| range_text(runs, kind)),
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

/// Summarises the report in a sentence or two. The figures of an error page say little about the
/// site, so its headline begins with the status.
pub(super) fn headline(report: &Report) -> String {
    let Some(metrics) = &report.metrics else {
        return String::new();
    };
    let grade = grade_of(metrics);
    let document = report.document.as_ref();
    match document.and_then(MainDocument::error_status) {
        Some(status) => {
            format!("Error page: the server answered with status {status}. {grade}")
        }
        None => grade,
    }
}

/// Summarises the metrics. The text begins with the worst grade of Largest Contentful Paint, Total
/// Blocking Time and Cumulative Layout Shift, and with what has that grade. A page that lacks one
/// of them is not called fast.
fn grade_of(metrics: &Metrics) -> String {
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
    } else if graded.len() < 3 {
        match &good[..] {
            [] => "Partly measured.".to_owned(),
            good => format!("Partly measured: {}.", listed(good)),
        }
    } else {
        format!("Fast: {}.", listed(&good[..1]))
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
        slower.scores.performance = Some(91);
        if let Some(lcp) = slower.metrics.as_mut().and_then(|it| it.lcp.as_mut()) {
            lcp.value += 1000.0;
        }
        let lcp = metrics.lcp.unwrap().value;
        let runs = plumbline_model::runs::spread(&[report.clone(), slower], 2, 0);
        report.runs = Some(runs);
        let cards = cards(&metrics, &report);
        let expected = format!("{} to {} in all runs", ms(lcp), ms(lcp + 1000.0));
        assert_eq!(cards[1].range.as_deref(), Some(&*expected));
        assert!(
            cards[3].range.is_none(),
            "the layout shifts equally in all runs"
        );
        let rows = super::super::environment::rows(&report, None);
        let row = rows.iter().find(|(name, _)| *name == "Runs").unwrap();
        assert!(
            row.1
                .starts_with("2, run 1 shown (median); performance scores from 91 to 97")
        );
    }

    #[test]
    fn the_ring_and_the_cards_show_intervals_that_have_a_width() {
        let mut report = report();
        assert!(rings(&report).iter().all(|ring| ring.interval.is_none()));
        report.intervals = intervals();
        let rings = rings(&report);
        assert_eq!(rings[0].interval.as_deref(), Some("±\u{a0}3"));
        assert!(rings[1..].iter().all(|ring| ring.interval.is_none()));
        let cards = cards(report.metrics.as_ref().unwrap(), &report);
        let interval = cards[1].interval.as_deref();
        assert_eq!(interval, Some("1.90\u{a0}s to\u{a0}2.10\u{a0}s"));
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
    fn the_interval_of_a_score_is_shown_by_its_half_width_if_the_score_is_in_its_middle() {
        for (score, low, high, text) in [
            (74, 68.2, 80.0, "±\u{a0}6"),
            (74, 68.0, 79.0, "±\u{a0}6"),
            (92, 68.0, 96.0, "68 to\u{a0}96"),
            (100, 99.0, 100.0, "99 to\u{a0}100"),
            (99, 98.0, 100.0, "±\u{a0}1"),
        ] {
            let mut interval = intervals()[PERFORMANCE].clone();
            (interval.low, interval.high) = (low, high);
            assert_eq!(score_interval_text(score, &interval), text);
        }
    }

    #[test]
    fn the_headline_of_an_error_page_begins_with_its_status() {
        let mut report = report();
        let grade = headline(&report);
        assert!(grade.starts_with("Fast: "), "{grade}");
        if let Some(document) = &mut report.document {
            document.status = 500;
        }
        let expected = format!("Error page: the server answered with status 500. {grade}");
        assert_eq!(headline(&report), expected);
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

    #[test]
    fn a_page_without_a_largest_content_is_partly_measured_and_not_fast() {
        let mut report = report();
        let metrics = report.metrics.as_mut().unwrap();
        metrics.lcp = None;
        let headline_with = |tbt: Option<(f64, f64)>| {
            let mut report = report.clone();
            report.metrics.as_mut().unwrap().tbt =
                tbt.map(|(value, score)| Metric { value, score });
            headline(&report)
        };
        assert_eq!(
            headline_with(Some((0.0, 1.0))),
            "Partly measured: scripts block the main thread for 0\u{a0}ms and the layout shifts by \
             0.01."
        );
        assert_eq!(
            headline_with(Some((900.0, 0.2))),
            "Slow: scripts block the main thread for 900\u{a0}ms."
        );
        assert_eq!(
            headline_with(None),
            "Partly measured: the layout shifts by 0.01."
        );
    }
}
