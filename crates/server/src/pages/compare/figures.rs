//! The figures of two audits and their changes.

use plumbline_catalog::Mode;
use plumbline_model::interval::PERFORMANCE;
use plumbline_model::media::ReportMedia;
use plumbline_model::report::{Metric, Report};
use plumbline_model::scoring::{MetricKind, PERFORMANCE_WEIGHTS};
use plumbline_report::html::figures::{Grade, bytes};
use plumbline_report::html::summary::{
    METRICS, interval_text, metric, score_interval_text, value_text,
};

/// A figure of both audits.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// The figure before and after.
    pub(super) values: [Figure; 2],
    /// `better`, `worse` or empty.
    pub(super) class: &'static str,
    pub(super) change: String,
    /// Whether the change is not larger than the uncertainty of the figures.
    pub(super) is_noise: bool,
}

/// A figure of one audit.
pub(super) struct Figure {
    number: Option<f64>,
    /// The class of its grade; empty if it has none.
    pub(super) class: &'static str,
    pub(super) text: String,
    /// The interval of the figure, if it has one.
    pub(super) interval: Option<String>,
}

impl Figure {
    /// Returns a figure without a grade and an interval.
    fn plain(number: Option<f64>, text: impl Fn(f64) -> String) -> Self {
        Self {
            number,
            class: "",
            text: number.map_or("–".to_owned(), text),
            interval: None,
        }
    }
}

/// The change of a metric below which two visits of the same page do not differ.
const ALWAYS_NOISE: f64 = 0.03;
/// The largest change of a metric that may be noise: the score of a very slow page hardly changes,
/// however much faster the page becomes.
const MAX_NOISE: f64 = 0.1;

/// Returns the scores, metrics and sizes of two audits.
pub(super) fn rows(reports: &[Report; 2], media: [Option<&ReportMedia>; 2]) -> Vec<Row> {
    let mut rows = score_rows(reports);
    let metrics = METRICS.into_iter();
    rows.extend(metrics.map(|(kind, name, _)| metric_row(reports, kind, name)));
    let is_certain = |_| false;
    let weights = media.map(|media| {
        let weight = media.map(|media| media.transfer_bytes() as f64);
        Figure::plain(weight, |it| bytes(it as u64))
    });
    rows.push(row("Transferred", weights, false, is_certain, |change| {
        format!("{}{}", sign(change), bytes(change.abs() as u64))
    }));
    let counts = media.map(|media| {
        let count = media.map(|media| media.request_count() as f64);
        Figure::plain(count, |count| count.to_string())
    });
    rows.push(row("Requests", counts, false, is_certain, whole));
    rows
}

fn score_rows(reports: &[Report; 2]) -> Vec<Row> {
    type ScoreOf = fn(&Report) -> Option<u8>;
    let scores: [(&'static str, ScoreOf); 5] = [
        ("Performance", |r| r.scores.performance),
        ("Accessibility", |r| r.scores.accessibility),
        ("Best practices", |r| r.scores.best_practices),
        ("SEO", |r| r.scores.seo),
        ("PWA", |r| r.scores.pwa),
    ];
    let score_rows = scores.into_iter().map(|(name, of)| {
        // The scores of the other categories depend on verdicts, which are certain.
        let has_interval = name == "Performance";
        let figures = reports.each_ref().map(|report| {
            let (score, interval) = (of(report), report.intervals.get(PERFORMANCE));
            let interval = interval.filter(|_| has_interval).zip(score);
            Figure {
                class: Grade::of_score(score).class(),
                interval: interval.map(|(interval, score)| score_interval_text(score, interval)),
                ..Figure::plain(score.map(f64::from), |score| score.to_string())
            }
        });
        let is_noise = |change: f64| has_interval && change.abs() <= score_doubt(reports);
        row(name, figures, true, is_noise, whole)
    });
    score_rows.collect()
}

fn metric_row(reports: &[Report; 2], kind: MetricKind, name: &'static str) -> Row {
    let values = reports
        .each_ref()
        .map(|report| metric(report.metrics.as_ref()?, kind));
    let figure = |index: usize| {
        let (value, intervals) = (values[index], &reports[index].intervals);
        Figure {
            class: Grade::of_metric(value).class(),
            interval: value.and_then(|_| interval_text(intervals, kind)),
            ..Figure::plain(value.map(|it| it.value), |it| value_text(kind, it))
        }
    };
    let numbers = values.map(|value| value.map(|value| value.value));
    let is_noise = |change: f64| match doubt(reports, kind.as_str(), numbers) {
        Some(doubt) => change.abs() <= doubt,
        None => {
            let mode = reports[0].conditions.device.mode;
            is_metric_noise(kind, mode, values, score_doubt(reports))
        }
    };
    row(name, [figure(0), figure(1)], false, is_noise, |change| {
        format!("{}{}", sign(change), value_text(kind, change.abs()))
    })
}

/// Returns the uncertainty of the difference of two performance scores. Scores are whole numbers,
/// so that they differ by a point for no reason.
fn score_doubt(reports: &[Report; 2]) -> f64 {
    let scores = reports
        .each_ref()
        .map(|report| report.scores.performance.map(f64::from));
    let doubt = doubt(reports, PERFORMANCE, scores);
    doubt.unwrap_or_default().max(1.0)
}

/// Returns the uncertainty of the difference of a figure; `None` if one of the reports has no
/// interval of it. Of each interval, the side counts that faces the other value: above the lower
/// value, and below the higher one.
fn doubt(reports: &[Report; 2], name: &str, values: [Option<f64>; 2]) -> Option<f64> {
    let [before, after] = reports.each_ref().map(|report| report.intervals.get(name));
    let sides = [(values[0]?, before?), (values[1]?, after?)];
    let [lower, higher] = if sides[0].0 <= sides[1].0 {
        sides
    } else {
        [sides[1], sides[0]]
    };
    let above = (lower.1.high - lower.0).max(0.0);
    let below = (higher.0 - higher.1.low).max(0.0);
    Some(above.hypot(below))
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
    values: [Figure; 2],
    more_is_better: bool,
    is_noise: impl Fn(f64) -> bool,
    text: impl Fn(f64) -> String,
) -> Row {
    let mut same = values[0].text == values[1].text;
    let mut change = match [values[0].number, values[1].number] {
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
    use plumbline_model::media::{RequestEntry, RequestTotals};

    use super::super::super::testing::report;
    use super::*;

    #[test]
    fn a_change_that_cannot_be_shown_is_none() {
        let row = |numbers: [f64; 2]| {
            let values = numbers.map(|number| Figure::plain(Some(number), |it| format!("{it:.3}")));
            row(
                "Shift",
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

    /// Returns a report with a performance score and a Total Blocking Time, and their intervals.
    fn report_with(score: u8, score_range: [f64; 2], tbt_ms: f64, tbt_range: [f64; 2]) -> Report {
        let mut report = report("x");
        report.scores.performance = Some(score);
        report.metrics.as_mut().unwrap().tbt = Some(Metric {
            value: tbt_ms,
            score: 0.5,
        });
        for (name, [low, high]) in [(PERFORMANCE, score_range), ("tbt", tbt_range)] {
            let interval = interval(low, high);
            report.intervals.insert(name.to_owned(), interval);
        }
        report
    }

    #[test]
    fn of_an_interval_the_side_counts_that_faces_the_other_value() {
        let slow = || report_with(74, [68.0, 80.0], 1050.0, [685.0, 1430.0]);
        let fast = || report_with(92, [68.0, 96.0], 22.0, [0.0, 1430.0]);
        for reports in [[slow(), fast()], [fast(), slow()]] {
            let rows = rows(&reports, [None, None]);
            for name in ["Performance", "Total Blocking Time"] {
                let row = row_of(&rows, name);
                assert_eq!((row.is_noise, row.class), (true, ""), "{name}");
            }
        }
        // The interval of the better score is as wide as before, but on its other side.
        let better = report_with(92, [88.0, 100.0], 22.0, [0.0, 25.0]);
        let rows = rows(&[slow(), better], [None, None]);
        for name in ["Performance", "Total Blocking Time"] {
            let row = row_of(&rows, name);
            assert_eq!((row.is_noise, row.class), (false, "better"), "{name}");
        }
    }

    #[test]
    fn figures_have_their_intervals_beside_them() {
        let before = report_with(74, [68.0, 80.0], 1050.0, [685.0, 1430.0]);
        let after = report_with(92, [68.0, 96.0], 22.0, [22.0, 22.0]);
        let rows = rows(&[before, after], [None, None]);
        let intervals = |name: &str| {
            let row = row_of(&rows, name);
            row.values.each_ref().map(|value| value.interval.as_deref())
        };
        assert_eq!(
            intervals("Performance"),
            [Some("±\u{a0}6"), Some("68 to\u{a0}96")]
        );
        assert_eq!(
            intervals("Total Blocking Time"),
            [Some("685\u{a0}ms to\u{a0}1.43\u{a0}s"), None]
        );
        assert_eq!(intervals("Accessibility"), [None, None]);
    }

    #[test]
    fn requests_that_are_left_out_of_the_media_count() {
        let media = |left_out: usize| ReportMedia {
            requests: vec![RequestEntry::default()],
            requests_left_out: left_out,
            by_type: vec![RequestTotals {
                bytes: 2048 * (left_out as u64 + 1),
                ..RequestTotals::default()
            }],
            ..ReportMedia::default()
        };
        let (before, after) = (media(0), media(4));
        let reports = [report("x"), report("x")];
        let rows = rows(&reports, [Some(&before), Some(&after)]);
        let texts = |name: &str| {
            let row = row_of(&rows, name);
            row.values.each_ref().map(|value| value.text.as_str())
        };
        assert_eq!(texts("Requests"), ["1", "5"]);
        assert_eq!(texts("Transferred"), ["2.0\u{a0}KiB", "10\u{a0}KiB"]);
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
