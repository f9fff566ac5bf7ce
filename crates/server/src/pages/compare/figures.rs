//! The figures of two audits and their changes.

use plumbline_catalog::Mode;
use plumbline_model::interval::PERFORMANCE;
use plumbline_model::media::ReportMedia;
use plumbline_model::report::{Metric, Report};
use plumbline_model::scoring::{MetricKind, PERFORMANCE_WEIGHTS};
use plumbline_report::html::figures::{Grade, bytes};
use plumbline_report::html::summary::{METRICS, metric, value_text};

/// A figure of both audits.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// The class and text of the figure before and after.
    pub(super) values: [(&'static str, String); 2],
    /// `better`, `worse` or empty.
    pub(super) class: &'static str,
    pub(super) change: String,
    /// Whether the change is not larger than the uncertainty of the figures.
    pub(super) is_noise: bool,
}

/// The change of a metric below which two visits of the same page do not differ.
const ALWAYS_NOISE: f64 = 0.03;
/// The largest change of a metric that may be noise: the score of a very slow page hardly changes,
/// however much faster the page becomes.
const MAX_NOISE: f64 = 0.1;

/// Returns the scores, metrics and sizes of two audits.
pub(super) fn rows(reports: &[Report; 2], media: [Option<&ReportMedia>; 2]) -> Vec<Row> {
    // Scores are whole numbers, so that they differ by a point for no reason.
    let doubt = doubt(reports, PERFORMANCE).unwrap_or_default().max(1.0);
    let mut rows = Vec::new();
    for (name, of) in [
        (
            "Performance",
            (|r: &Report| r.scores.performance) as fn(&Report) -> Option<u8>,
        ),
        ("Accessibility", |r| r.scores.accessibility),
        ("Best practices", |r| r.scores.best_practices),
        ("SEO", |r| r.scores.seo),
        ("PWA", |r| r.scores.pwa),
    ] {
        let scores = [of(&reports[0]), of(&reports[1])];
        let numbers = scores.map(|score| score.map(f64::from));
        let texts = scores.map(|score| {
            let text = score.map_or("–".to_owned(), |score| score.to_string());
            (Grade::of_score(score).class(), text)
        });
        // The scores of the other categories depend on verdicts, which are certain.
        let is_noise = |change: f64| name == "Performance" && change.abs() <= doubt;
        rows.push(row(name, numbers, texts, true, is_noise, whole));
    }
    let mode = reports[0].conditions.device.mode;
    for (kind, name, _) in METRICS {
        let measured = |report: &Report| metric(report.metrics.as_ref()?, kind);
        let values = [measured(&reports[0]), measured(&reports[1])];
        let texts = values.map(|value| {
            let text = value.map_or("–".to_owned(), |value| value_text(kind, value.value));
            (Grade::of_metric(value).class(), text)
        });
        let numbers = values.map(|value| value.map(|value| value.value));
        let is_noise = |change: f64| match self::doubt(reports, kind.as_str()) {
            Some(doubt) => change.abs() <= doubt,
            None => is_metric_noise(kind, mode, values, doubt),
        };
        rows.push(row(name, numbers, texts, false, is_noise, |change| {
            let size = value_text(kind, change.abs());
            format!("{}{size}", sign(change))
        }));
    }
    let weights = media.map(|media| {
        media.map(|media| media.requests.iter().map(|r| r.transfer_bytes).sum::<u64>())
    });
    let texts = weights.map(|weight| ("", weight.map_or("–".to_owned(), bytes)));
    let numbers = weights.map(|weight| weight.map(|weight| weight as f64));
    let is_certain = |_| false;
    rows.push(row(
        "Transferred",
        numbers,
        texts,
        false,
        is_certain,
        |change| format!("{}{}", sign(change), bytes(change.abs() as u64)),
    ));
    let counts = media.map(|media| media.map(|media| media.requests.len()));
    let texts = counts.map(|count| ("", count.map_or("–".to_owned(), |count| count.to_string())));
    let numbers = counts.map(|count| count.map(|count| count as f64));
    rows.push(row("Requests", numbers, texts, false, is_certain, whole));
    rows
}

/// Returns the uncertainty of the difference of a figure by the intervals of both reports; `None`
/// if one has none.
fn doubt(reports: &[Report; 2], name: &str) -> Option<f64> {
    let [before, after] = reports.each_ref().map(|report| report.intervals.get(name));
    Some(before?.half_width().hypot(after?.half_width()))
}

/// Whether the change of a metric without intervals is small, and does not change the score by more
/// than its uncertainty.
fn is_metric_noise(kind: MetricKind, mode: Mode, values: [Option<Metric>; 2], doubt: f64) -> bool {
    let [Some(before), Some(after)] = values.map(|value| value.map(|value| value.value)) else {
        return false;
    };
    let change = (after - before).abs() / before.max(after).max(f64::MIN_POSITIVE);
    let weight = PERFORMANCE_WEIGHTS.iter().find(|(other, _)| *other == kind);
    let effect = (kind.score(mode, after) - kind.score(mode, before)).abs()
        * weight.map_or(0.0, |(_, weight)| *weight);
    change < ALWAYS_NOISE || change < MAX_NOISE && effect <= doubt
}

/// Formats a change with a typographic minus sign, which is as wide as the plus sign.
fn whole(change: f64) -> String {
    format!("{}{:.0}", sign(change), change.abs())
}

fn sign(change: f64) -> char {
    if change < 0.0 { '−' } else { '+' }
}

fn row(
    name: &'static str,
    numbers: [Option<f64>; 2],
    values: [(&'static str, String); 2],
    more_is_better: bool,
    is_noise: impl Fn(f64) -> bool,
    text: impl Fn(f64) -> String,
) -> Row {
    let mut same = values[0].1 == values[1].1;
    let mut change = match numbers {
        [Some(before), Some(after)] if !same => Some(after - before),
        _ => None,
    };
    // Values on both sides of a rounding limit may differ by nothing that can be shown.
    let is_shown = |change: f64| text(change).contains(|digit| matches!(digit, '1'..='9'));
    if change.is_some_and(|change| !is_shown(change)) {
        (same, change) = (true, None);
    }
    let is_noise = change.is_some_and(is_noise);
    Row {
        name,
        values,
        class: match change {
            Some(_) if is_noise => "",
            Some(change) if (change > 0.0) == more_is_better => "better",
            Some(_) => "worse",
            None => "",
        },
        change: change.map_or_else(|| if same { "=" } else { "" }.to_owned(), text),
        is_noise,
    }
}

#[cfg(test)]
mod tests {
    use plumbline_model::interval::Interval;

    use super::super::super::testing::report;
    use super::*;

    #[test]
    fn a_change_that_cannot_be_shown_is_none() {
        let row = |numbers: [f64; 2]| {
            let values = numbers.map(|number| ("", format!("{number:.3}")));
            let numbers = numbers.map(Some);
            row(
                "Shift",
                numbers,
                values,
                false,
                |_| false,
                |change| format!("{change:+.3}"),
            )
        };
        let equal = row([0.0014, 0.0016]);
        assert_eq!((equal.change.as_str(), equal.class), ("=", ""));
        let worse = row([0.0014, 0.0020]);
        assert_eq!((worse.change.as_str(), worse.class), ("+0.001", "worse"));
    }

    /// Returns the rows of two reports with intervals of these half widths.
    fn change(scores: [u8; 2], doubts: [Option<f64>; 2], lcp_ms: [f64; 2]) -> Vec<Row> {
        let side = |index: usize| {
            let mut report = report("x");
            report.scores.performance = Some(scores[index]);
            if let Some(doubt) = doubts[index] {
                let score = f64::from(scores[index]);
                let interval = interval(score - doubt, score + doubt);
                report.intervals.insert(PERFORMANCE.to_owned(), interval);
            }
            if let Some(metrics) = &mut report.metrics {
                metrics.lcp = Some(Metric {
                    value: lcp_ms[index],
                    score: 0.5,
                });
            }
            report
        };
        rows(&[side(0), side(1)], [None, None])
    }

    fn interval(low: f64, high: f64) -> Interval {
        Interval {
            low,
            high,
            level: 0.9,
            basis: "visits".to_owned(),
        }
    }

    fn row_of<'a>(rows: &'a [Row], name: &str) -> &'a Row {
        rows.iter().find(|row| row.name == name).unwrap()
    }

    #[test]
    fn a_change_of_the_score_within_its_uncertainty_is_noise() {
        for (scores, doubts, is_noise) in [
            ([84, 86], [Some(1.5), Some(1.5)], true),
            ([84, 87], [Some(1.5), Some(1.5)], false),
            ([84, 85], [None, None], true),
            ([84, 86], [Some(0.2), None], false),
            ([84, 86], [Some(0.2), Some(0.2)], false),
        ] {
            let rows = change(scores, doubts, [2000.0, 2000.0]);
            let row = row_of(&rows, "Performance");
            assert_eq!(row.is_noise, is_noise, "{scores:?} {doubts:?}");
            assert_eq!(row.class, if is_noise { "" } else { "better" });
        }
    }

    #[test]
    fn a_change_of_a_metric_within_its_intervals_is_noise() {
        for (lcp_ms, is_noise) in [([2000.0, 2200.0], true), ([2000.0, 2400.0], false)] {
            let sides = lcp_ms.map(|ms| {
                let mut report = report("x");
                let metric = Metric {
                    value: ms,
                    score: 0.5,
                };
                report.metrics.as_mut().unwrap().lcp = Some(metric);
                let interval = interval(ms - 200.0, ms + 200.0);
                report.intervals.insert("lcp".to_owned(), interval);
                report
            });
            let rows = rows(&sides, [None, None]);
            let row = row_of(&rows, "Largest Contentful Paint");
            assert_eq!(row.is_noise, is_noise, "{lcp_ms:?}");
        }
    }

    #[test]
    fn a_metric_without_intervals_is_noise_if_it_hardly_changes_itself_and_the_score() {
        for (lcp_ms, is_noise) in [
            ([2000.0, 2050.0], true),
            ([20_000.0, 21_000.0], true),
            ([20_000.0, 10_000.0], false),
            ([2500.0, 3500.0], false),
        ] {
            let rows = change([84, 84], [Some(1.0), Some(1.0)], lcp_ms);
            let row = row_of(&rows, "Largest Contentful Paint");
            assert_eq!(row.is_noise, is_noise, "{lcp_ms:?}");
        }
    }
}
