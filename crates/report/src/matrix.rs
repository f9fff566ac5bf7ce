//! Renders the results of a page under several devices and networks for terminals and documents.

use std::fmt::Write;

use plumbline_model::interval::{Interval, Intervals, PERFORMANCE};
use plumbline_model::matrix::{Matrix, MatrixCell};
use plumbline_model::scoring::MetricKind;

use crate::csv::text_cell;
use crate::html::recording::missing_requests;
use crate::html::summary::{METRICS, interval_text, score_interval_text, value_text};
use crate::terminal::plain;

/// The formats of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixFormat {
    Text,
    Json,
    Markdown,
    Csv,
}

/// Renders a matrix.
pub fn render(matrix: &Matrix, format: MatrixFormat) -> String {
    match format {
        MatrixFormat::Text => text(matrix),
        MatrixFormat::Json => json(matrix),
        MatrixFormat::Markdown => markdown(matrix),
        MatrixFormat::Csv => csv(matrix),
    }
}

fn json(matrix: &Matrix) -> String {
    // A matrix has no keys that JSON cannot express.
    let text = serde_json::to_string_pretty(matrix).unwrap_or_default();
    text + "\n"
}

/// Formats a score with its interval: `73 ± 4`, or `97 (92 to 100)`.
pub(crate) fn score_text(score: u8, intervals: &Intervals) -> String {
    let interval = intervals.get(PERFORMANCE);
    match interval.map(|interval| score_interval_text(score, interval)) {
        Some(text) if text.starts_with('±') => format!("{score}\u{a0}{text}"),
        Some(text) => format!("{score} ({text})"),
        None => score.to_string(),
    }
}

/// Returns the metrics of a cell.
pub(crate) fn metrics(cell: &MatrixCell) -> [(MetricKind, Option<f64>); 5] {
    [
        (MetricKind::Fcp, cell.fcp_ms),
        (MetricKind::Lcp, cell.lcp_ms),
        (MetricKind::Tbt, cell.tbt_ms),
        (MetricKind::Si, cell.si_ms),
        (MetricKind::Cls, cell.cls),
    ]
}

/// Returns the level of the intervals, such as `90 %`; `None` if there are none.
pub(crate) fn level(matrix: &Matrix) -> Option<String> {
    let intervals = matrix.cells.iter().flat_map(|cell| cell.intervals.values());
    let level = intervals.map(|interval| interval.level).next()?;
    Some(format!("{:.0}\u{a0}%", level * 100.0))
}

/// A column of figures: the score, or a metric.
#[derive(Debug, Clone, Copy)]
enum Figure {
    Score,
    Metric(MetricKind),
}

impl Figure {
    fn name(self) -> &'static str {
        match self {
            Self::Score => "Performance score",
            Self::Metric(kind) => {
                let metric = METRICS.iter().find(|(other, ..)| *other == kind);
                metric.map_or("", |(_, name, _)| name)
            }
        }
    }

    /// Returns the figure of a cell with its interval; `None` if the cell does not have it.
    fn text(self, cell: &MatrixCell) -> Option<String> {
        match self {
            Self::Score => Some(score_text(cell.performance?, &cell.intervals)),
            Self::Metric(kind) => {
                let metric = metrics(cell).into_iter().find(|(other, _)| *other == kind);
                let value = value_text(kind, metric?.1?);
                Some(match interval_text(&cell.intervals, kind) {
                    Some(interval) => format!("{value} ({interval})"),
                    None => value,
                })
            }
        }
    }
}

/// Returns the header and the rows of a table of figures, with the networks in its first column.
fn table(matrix: &Matrix, figures: &[Figure]) -> Vec<Vec<String>> {
    let cell_text = |cell: &MatrixCell| {
        let texts = figures.iter().filter_map(|figure| figure.text(cell));
        let texts: Vec<String> = texts.collect();
        match (&texts[..], &cell.error) {
            ([], Some(_)) => "failed".to_owned(),
            ([], None) => "-".to_owned(),
            (texts, _) => texts.join("  "),
        }
    };
    let devices = matrix.devices.iter().map(|device| device.name.clone());
    let header = std::iter::once("Network".to_owned()).chain(devices);
    let rows = matrix.rows().map(|(network, cells)| {
        let name = std::iter::once(network.name.clone());
        name.chain(cells.iter().map(cell_text)).collect()
    });
    std::iter::once(header.collect()).chain(rows).collect()
}

/// Returns lines about the cells that were not measured, and about requests that were missing.
fn notes(matrix: &Matrix) -> Vec<String> {
    let notes = matrix.cells.iter().flat_map(|cell| {
        let missing = missing_requests(cell.missing_requests);
        let missing = missing.map(|missing| format!("{missing} not in the recording"));
        let notes = cell.error.clone().into_iter().chain(missing);
        notes.map(|note| plain(&format!("{} on {}: {note}", cell.device, cell.network)))
    });
    notes.collect()
}

fn text(matrix: &Matrix) -> String {
    let table = table(matrix, &[Figure::Score, Figure::Metric(MetricKind::Lcp)]);
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = table.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let level = level(matrix);
    let level = level.map_or_else(String::new, |it| format!(", each with its {it} interval"));
    let mut text = format!(
        "{}\nPerformance score and Largest Contentful Paint{level}\n\n",
        plain(&matrix.url)
    );
    for row in &table {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let padding = width - cell.chars().count() + 2;
            let _ = write!(line, "{cell}{:padding$}", "");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for note in notes(matrix) {
        let _ = writeln!(text, "{note}");
    }
    text += "\nThe other metrics are in --output markdown, csv and json.\n";
    text.replace('\u{a0}', " ")
}

/// Renders a table for each figure.
fn markdown(matrix: &Matrix) -> String {
    let level = level(matrix);
    let level = level.map_or_else(String::new, |it| format!(", with {it} intervals"));
    let mut text = format!("Results of {}{level}\n", plain(&matrix.url));
    let metrics = metrics(&MatrixCell::default()).map(|(kind, _)| Figure::Metric(kind));
    for figure in std::iter::once(Figure::Score).chain(metrics) {
        let _ = writeln!(text, "\n**{}**\n", figure.name());
        for (index, row) in table(matrix, &[figure]).iter().enumerate() {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
            if index == 0 {
                let _ = writeln!(text, "|{}", "---|".repeat(row.len()));
            }
        }
    }
    let notes = notes(matrix);
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        let _ = writeln!(text, "- {note}");
    }
    text
}

/// Renders a line for each cell. Columns that were added later come last.
fn csv(matrix: &Matrix) -> String {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(String::new, |value| format!("{value:.digits$}"))
    };
    let columns = [
        "network,device,performance,fcp_ms,lcp_ms,tbt_ms,si_ms,cls",
        "performance_low,performance_high,fcp_ms_low,fcp_ms_high,lcp_ms_low,lcp_ms_high",
        "tbt_ms_low,tbt_ms_high,si_ms_low,si_ms_high,cls_low,cls_high,missing_requests,error",
    ];
    let mut text = columns.join(",") + "\n";
    for cell in &matrix.cells {
        let mut fields = vec![cell.network.clone(), cell.device.clone()];
        let score = cell.performance.map(|score| score.to_string());
        fields.push(score.unwrap_or_default());
        let digits = |kind: MetricKind, of_cls: usize| match kind {
            MetricKind::Cls => of_cls,
            _ => 0,
        };
        let metrics = metrics(cell);
        fields.extend(metrics.map(|(kind, value)| number(value, digits(kind, 3))));
        let mut add_bounds = |interval: Option<&Interval>, digits: usize| {
            let bounds = [interval.map(|it| it.low), interval.map(|it| it.high)];
            fields.extend(bounds.map(|bound| number(bound, digits)));
        };
        // As precise as intervals are.
        add_bounds(cell.intervals.get(PERFORMANCE), 1);
        for (kind, _) in metrics {
            add_bounds(cell.intervals.get(kind.as_str()), digits(kind, 4));
        }
        let is_measured = cell.performance.is_some() || cell.error.is_some();
        let missing = is_measured.then(|| cell.missing_requests.to_string());
        fields.push(missing.unwrap_or_default());
        fields.push(cell.error.as_deref().map(text_cell).unwrap_or_default());
        let _ = writeln!(text, "{}", fields.join(","));
    }
    text
}

#[cfg(test)]
mod tests {
    use plumbline_model::matrix::MatrixCondition;

    use super::*;

    fn matrix() -> Matrix {
        let condition = |(id, name): (&str, &str)| MatrixCondition {
            id: id.to_owned(),
            name: name.to_owned(),
        };
        let devices = [("mobile", "Mobile"), ("desktop", "Desktop")].map(condition);
        let networks = [("dsl", "DSL"), ("slow", "Slow | old")].map(condition);
        let url = "https://example.com/".to_owned();
        let mut matrix = Matrix::empty(url, devices.to_vec(), networks.to_vec());
        let interval = |low: f64, high: f64| Interval {
            low,
            high,
            level: 0.9,
            basis: "similar pages".to_owned(),
        };
        let intervals = [
            ("performance", interval(92.4, 100.0)),
            ("lcp", interval(4100.0, 4600.0)),
            ("tbt", interval(0.0, 30.0)),
            ("cls", interval(0.0121, 0.0126)),
        ];
        matrix.set(MatrixCell {
            device: "mobile".to_owned(),
            network: "slow".to_owned(),
            performance: Some(97),
            lcp_ms: Some(4321.0),
            tbt_ms: Some(20.0),
            cls: Some(0.01234),
            intervals: intervals
                .map(|(name, interval)| (name.to_owned(), interval))
                .into(),
            missing_requests: 3,
            ..MatrixCell::default()
        });
        matrix.set(MatrixCell {
            device: "desktop".to_owned(),
            network: "dsl".to_owned(),
            error: Some("=The page did\tnot load.".to_owned()),
            ..MatrixCell::default()
        });
        matrix
    }

    #[test]
    fn a_score_has_the_interval_that_its_report_shows() {
        let mut intervals = matrix().cells[2].intervals.clone();
        assert_eq!(score_text(97, &intervals), "97 (92 to\u{a0}100)");
        assert_eq!(score_text(96, &intervals), "96\u{a0}±\u{a0}4");
        intervals.clear();
        assert_eq!(score_text(97, &intervals), "97");
    }

    #[test]
    fn a_terminal_shows_columns() {
        let expected = "https://example.com/\n\
            Performance score and Largest Contentful Paint, each with its 90 % interval\n\n\
            Network     Mobile                                     Desktop\n\
            DSL         -                                          failed\n\
            Slow | old  97 (92 to 100)  4.32 s (4.10 s to 4.60 s)  -\n\
            desktop on dsl: =The page did\u{fffd}not load.\n\
            mobile on slow: 3 requests were not in the recording\n\n\
            The other metrics are in --output markdown, csv and json.\n";
        assert_eq!(render(&matrix(), MatrixFormat::Text), expected);
    }

    #[test]
    fn a_document_shows_a_table_for_each_figure_with_its_intervals() {
        let text = render(&matrix(), MatrixFormat::Markdown).replace('\u{a0}', " ");
        assert_eq!(text.matches("|---|---|---|\n").count(), 6, "{text}");
        for expected in [
            "Results of https://example.com/, with 90 % intervals\n\n**Performance score**\n\n",
            "| Slow \\| old | 97 (92 to 100) | - |\n",
            "| Slow \\| old | 4.32 s (4.10 s to 4.60 s) | - |\n",
            "**Total Blocking Time**\n\n| Network | Mobile | Desktop |\n",
            "| Slow \\| old | 20 ms (0 ms to 30 ms) | - |\n",
            "| Slow \\| old | 0.012 (0.012 to 0.013) | - |\n",
            "| DSL | - | failed |\n",
            "\n- desktop on dsl: =The page did\u{fffd}not load.\n",
            "- mobile on slow: 3 requests were not in the recording\n",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn a_spreadsheet_has_a_line_for_each_cell_with_all_intervals() {
        let text = render(&matrix(), MatrixFormat::Csv);
        assert_eq!(text.lines().count(), 5);
        let header = "network,device,performance,fcp_ms,lcp_ms,tbt_ms,si_ms,cls,performance_low,";
        assert!(text.starts_with(header), "{text}");
        let columns = |line: &str| line.matches(',').count();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| columns(line) == columns(lines[0])));
        let measured = "slow,mobile,97,,4321,20,,0.012,92.4,100.0,,,4100,4600,0,30,,,0.0121,0.0126,\
                        3,";
        assert_eq!(lines[3], measured);
        let failed = "0,\"'=The page did\u{fffd}not load.\"\n";
        assert!(text.contains(failed), "{text}");
    }
}
