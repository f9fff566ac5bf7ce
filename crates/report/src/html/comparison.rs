//! The comparison with a second page, on the report page.

use plumbline_model::comparison::{Answer, ComparedFigure, ComparedPages};
use plumbline_model::report::ReplayConditions;

use super::figures::count;
use super::links::Link;
use super::recording::recording_text;
use crate::comparison::{evidence_cells, figure_cells, headline, interval_name, request_cells};

/// A comparison as a page shows it.
pub(super) struct ComparisonView {
    pub(super) headline: String,
    pub(super) first_url: String,
    pub(super) second: Link,
    /// The URL that the second page redirects to. The report is about the first one, and says it.
    pub(super) second_redirects_to: Option<String>,
    /// The changes that make the second page of an experiment.
    pub(super) changes: Vec<String>,
    pub(super) left_out: Vec<String>,
    /// Sentences about the recordings that were visited in place of the servers.
    pub(super) recordings: Vec<String>,
    pub(super) pairs: String,
    pub(super) interval_name: String,
    pub(super) figures: Vec<FigureView>,
    pub(super) evidence: Vec<[String; 3]>,
    pub(super) requests: Vec<[String; 3]>,
}

/// A figure of both pages.
pub(super) struct FigureView {
    pub(super) cells: [String; 6],
    /// The class of the answer.
    pub(super) class: &'static str,
}

pub(super) fn comparison_view(compared: &ComparedPages) -> ComparisonView {
    let [first_url, second_url] = &compared.urls;
    let figure = |figure: &ComparedFigure| FigureView {
        cells: figure_cells(figure),
        class: match figure.answer {
            Answer::Faster => "good",
            Answer::Slower => "poor",
            Answer::NoDifferenceShown => "muted",
        },
    };
    ComparisonView {
        headline: headline(compared),
        first_url: first_url.clone(),
        second: Link::new(second_url, ""),
        second_redirects_to: compared.redirected_to[1].clone(),
        changes: compared.changes.clone(),
        left_out: compared.left_out.clone(),
        recordings: recordings(compared),
        pairs: count(compared.comparison.pairs, "pair", "pairs"),
        interval_name: interval_name(compared),
        figures: compared.comparison.figures.iter().map(figure).collect(),
        evidence: compared.evidence.iter().map(evidence_cells).collect(),
        requests: compared.requests.iter().map(request_cells).collect(),
    }
}

fn recordings(compared: &ComparedPages) -> Vec<String> {
    let pages = ["A", "B"].into_iter().zip(&compared.replays);
    let sentence = |(page, replay): (&str, &Option<ReplayConditions>)| {
        let recording = recording_text(replay.as_ref()?);
        Some(format!("{page} is a recording {recording}."))
    };
    pages.filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_of_each_page_is_named() {
        let compared: ComparedPages = serde_json::from_value(serde_json::json!({
            "urls": ["https://a.test/", "https://b.test/"], "pairs": 4, "figures": [],
            "replays": [null, { "recordedAt": "2027-01-15T08:00:00Z", "missingRequests": 2 }],
        }))
        .unwrap();
        let expected = "B is a recording of 15 Jan 2027, 08:00 UTC; 2 requests were not in it.";
        assert_eq!(comparison_view(&compared).recordings, [expected]);
    }
}
