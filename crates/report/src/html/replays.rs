//! Results of the recording of a visit: measured savings, the prices of third parties, and other
//! devices and networks.

use plumbline_model::check::{CheckResult, Verdict};
use plumbline_model::comparison::{Answer, ComparedFigure, MAX_PAIRS};
use plumbline_model::experiment::{Experiment, Subject, experiment_of};
use plumbline_model::matrix::{Matrix, MatrixCell, MatrixCondition};
use plumbline_model::report::Report;
use plumbline_model::scoring::MetricKind;

use super::recording::missing_requests;
use super::summary::{METRICS, interval_text, value_text};
use crate::comparison::figure_cells;
use crate::matrix::{level, metrics, score_text};

/// The audits of the recording of a report.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replays<'a> {
    /// The path below which forms start such audits; `None` if the reader may not start any.
    pub path: Option<&'a str>,
    /// The ids of the checks whose advice can be followed in a recording.
    pub measurable_checks: &'a [&'a str],
    /// The experiments, the newest first.
    pub experiments: &'a [Experiment],
    pub matrix: Option<&'a Matrix>,
    /// The devices and networks that the reader can choose.
    pub devices: &'a [MatrixCondition],
    pub networks: &'a [MatrixCondition],
}

/// The experiment that follows the advice of a check or leaves out a third party.
pub(super) struct ExperimentView {
    /// The form that starts it: the path, the name of the field, and its value.
    pub(super) form: Option<(String, &'static str, String)>,
    pub(super) credits: u32,
    pub(super) result: Option<ResultView>,
}

/// The state of an experiment, or its result.
pub(super) struct ResultView {
    /// The path of its page, for readers who may see it.
    pub(super) href: Option<String>,
    /// The sentence before the table.
    pub(super) text: String,
    /// The figures that differ: the name, the medians without and with the changes, and the
    /// difference with its interval.
    pub(super) rows: Vec<[String; 4]>,
}

impl Replays<'_> {
    /// Returns the newest experiment of a subject that was measured, else the newest.
    pub(super) fn experiment(&self, subject: &Subject) -> Option<&Experiment> {
        experiment_of(self.experiments, subject)
    }

    /// Returns the experiment that follows the advice of a failed check, or that can be started.
    pub(super) fn of_check(&self, check: &CheckResult) -> Option<ExperimentView> {
        let subject = Subject::Check(check.id.clone());
        let result = self.experiment(&subject).map(|it| self.result(it));
        let is_measurable =
            check.verdict == Verdict::Fail && self.measurable_checks.contains(&check.id.as_str());
        if result.is_none() && !(is_measurable && self.path.is_some()) {
            return None;
        }
        let form = self.form("check", &check.id).filter(|_| is_measurable);
        Some(ExperimentView {
            form,
            credits: MAX_PAIRS,
            result,
        })
    }

    fn form(&self, field: &'static str, value: &str) -> Option<(String, &'static str, String)> {
        let path = self.path?;
        Some((format!("{path}/experiments"), field, value.to_owned()))
    }

    fn result(&self, experiment: &Experiment) -> ResultView {
        let href = self.path.map(|_| match &experiment.audit_id {
            Some(id) => format!("/reports/{id}"),
            None => format!("/audits/{}", experiment.tracking_id),
        });
        let text = match (&experiment.comparison, &experiment.error) {
            (Some(comparison), _) => {
                let is_any = comparison.figures.iter().any(is_shown);
                let pairs = comparison.pairs;
                if is_any {
                    format!("Measured with {pairs} pairs of visits:")
                } else {
                    format!("No difference was shown by {pairs} pairs of visits.")
                }
            }
            (None, Some(error)) => format!("The experiment failed: {error}"),
            (None, None) => "The experiment is not completed yet.".to_owned(),
        };
        let figures = experiment.comparison.iter().flat_map(|it| &it.figures);
        let rows = figures.filter(|figure| is_shown(figure)).map(|figure| {
            let [name, before, after, shift, interval, _] = figure_cells(figure);
            [name, before, after, format!("{shift} ({interval})")]
        });
        ResultView {
            href,
            text,
            rows: rows.collect(),
        }
    }
}

fn is_shown(figure: &ComparedFigure) -> bool {
    figure.answer != Answer::NoDifferenceShown
}

/// The section about the recording.
pub(super) struct ReplaysView<'a> {
    pub(super) path: Option<&'a str>,
    pub(super) matrix: Option<MatrixView<'a>>,
    pub(super) devices: &'a [MatrixCondition],
    pub(super) networks: &'a [MatrixCondition],
    pub(super) parties: Vec<PartyView<'a>>,
    /// The price of measuring each third party.
    pub(super) party_credits: u32,
}

/// The scores of a recording on devices and networks, as a heat map.
pub(super) struct MatrixView<'a> {
    pub(super) devices: &'a [MatrixCondition],
    /// The name of each network, its description in parentheses, and its cells.
    pub(super) rows: Vec<(&'a str, &'a str, Vec<HeatView>)>,
    /// The level of the intervals, if there are any.
    pub(super) level: Option<String>,
    /// Whether some cells are not measured yet.
    pub(super) is_incomplete: bool,
}

/// A cell of a heat map.
pub(super) struct HeatView {
    /// The class of its colour.
    pub(super) class: &'static str,
    pub(super) score: String,
    /// The metrics, in a few words.
    pub(super) metrics: String,
    /// The intervals of the metrics.
    pub(super) intervals: Vec<String>,
    /// Why the cell was not measured, or what was missing.
    pub(super) notes: Vec<String>,
    pub(super) href: Option<String>,
}

/// A third party with the price that the page pays for it.
pub(super) struct PartyView<'a> {
    pub(super) name: &'a str,
    pub(super) requests: usize,
    pub(super) experiment: ExperimentView,
}

/// Returns the section about the recording; `None` if there is nothing to show or to start.
pub(super) fn replays_view<'a>(
    report: &'a Report,
    replays: &'a Replays<'a>,
) -> Option<ReplaysView<'a>> {
    let parties = report.third_parties().into_iter().map(|(name, urls)| {
        let subject = Subject::ThirdParty(name.to_owned());
        PartyView {
            name,
            requests: urls.len(),
            experiment: ExperimentView {
                form: replays.form("thirdParty", name),
                credits: MAX_PAIRS,
                result: replays.experiment(&subject).map(|it| replays.result(it)),
            },
        }
    });
    let parties: Vec<PartyView<'_>> = parties
        .filter(|party| replays.path.is_some() || party.experiment.result.is_some())
        .collect();
    let view = ReplaysView {
        path: replays.path,
        matrix: replays
            .matrix
            .map(|matrix| matrix_view(matrix, replays.path.is_some())),
        devices: replays.devices,
        networks: replays.networks,
        party_credits: MAX_PAIRS.saturating_mul(u32::try_from(parties.len()).unwrap_or(u32::MAX)),
        parties,
    };
    let is_empty = view.path.is_none() && view.matrix.is_none() && view.parties.is_empty();
    (!is_empty).then_some(view)
}

fn matrix_view(matrix: &Matrix, is_linked: bool) -> MatrixView<'_> {
    let rows = matrix.rows().map(|(network, cells)| {
        let cells = cells.iter().map(|cell| heat_view(cell, is_linked));
        let (name, description) = network.name.split_once(" (").unwrap_or((&network.name, ""));
        (name, description.trim_end_matches(')'), cells.collect())
    });
    MatrixView {
        devices: &matrix.devices,
        rows: rows.collect(),
        level: level(matrix),
        is_incomplete: matrix
            .cells
            .iter()
            .any(|cell| cell.performance.is_none() && cell.error.is_none()),
    }
}

fn heat_view(cell: &MatrixCell, is_linked: bool) -> HeatView {
    let class = match cell.performance {
        Some(90..) => "good",
        Some(50..90) => "middling",
        Some(_) => "poor",
        None => "unknown",
    };
    let score = match (cell.performance, &cell.error) {
        (Some(score), _) => score_text(score, &cell.intervals),
        (None, Some(_)) => "failed".to_owned(),
        (None, None) => "–".to_owned(),
    };
    let short_name = |kind: MetricKind| {
        let metric = METRICS.iter().find(|(other, ..)| *other == kind);
        metric.map_or("", |(_, _, short)| short)
    };
    let values = metrics(cell).into_iter().filter_map(|(kind, value)| {
        let value = value_text(kind, value?);
        Some(format!("{} {value}", short_name(kind)))
    });
    let intervals = metrics(cell).into_iter().filter_map(|(kind, value)| {
        value?;
        let interval = interval_text(&cell.intervals, kind)?;
        Some(format!("{} {interval}", short_name(kind)))
    });
    let missing = missing_requests(cell.missing_requests);
    let missing = missing.map(|missing| format!("{missing} not in the recording"));
    HeatView {
        class,
        score,
        metrics: values.collect::<Vec<_>>().join(", "),
        intervals: intervals.collect(),
        notes: cell.error.clone().into_iter().chain(missing).collect(),
        href: cell
            .audit_id
            .as_ref()
            .filter(|_| is_linked)
            .map(|id| format!("/reports/{id}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::intervals;

    #[test]
    fn a_cell_has_the_interval_of_the_report_and_those_of_its_metrics() {
        let cell = MatrixCell {
            performance: Some(99),
            lcp_ms: Some(2000.0),
            cls: Some(0.012),
            intervals: intervals(),
            missing_requests: 1,
            ..MatrixCell::default()
        };
        let view = heat_view(&cell, true);
        assert_eq!(view.score, "99 (94 to\u{a0}100)");
        assert_eq!(view.metrics, "LCP 2.00\u{a0}s, CLS 0.012");
        assert_eq!(view.intervals, ["LCP 1.90\u{a0}s to\u{a0}2.10\u{a0}s"]);
        assert_eq!(view.notes, ["1 request was not in the recording"]);
    }

    #[test]
    fn a_cell_that_failed_says_why() {
        let cell = MatrixCell {
            error: Some("The page did not load.".to_owned()),
            ..MatrixCell::default()
        };
        let view = heat_view(&cell, true);
        assert_eq!((&*view.score, &*view.metrics), ("failed", ""));
        assert_eq!(view.notes, ["The page did not load."]);
    }
}
