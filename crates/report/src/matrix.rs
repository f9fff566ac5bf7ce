//! Renders the results of a page under several devices and networks for terminals and documents.

use std::fmt::Write;

use plumbline_model::interval::PERFORMANCE;
use plumbline_model::matrix::{Matrix, MatrixCell};

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

/// Returns the score of a cell with the time of its largest content.
fn cell_text(cell: &MatrixCell) -> String {
    match (cell.performance, &cell.error) {
        (Some(score), _) => {
            let interval = cell.intervals.get(PERFORMANCE);
            let points = interval.map(|it| it.half_width().ceil());
            let score = match points.filter(|points| *points > 0.0) {
                Some(points) => format!("{score} ±{points}"),
                None => score.to_string(),
            };
            match cell.lcp_ms {
                Some(ms) => format!("{score}  {:.1} s", ms / 1000.0),
                None => score,
            }
        }
        (None, Some(_)) => "failed".to_owned(),
        (None, None) => "-".to_owned(),
    }
}

/// Returns the header and the rows of a table, with the networks in its first column.
fn table(matrix: &Matrix) -> Vec<Vec<String>> {
    let devices = matrix.devices.iter().map(|device| device.name.clone());
    let header = std::iter::once("Network".to_owned()).chain(devices);
    let rows = matrix.rows().map(|(network, cells)| {
        let name = std::iter::once(network.name.clone());
        name.chain(cells.iter().map(cell_text)).collect()
    });
    std::iter::once(header.collect()).chain(rows).collect()
}

fn text(matrix: &Matrix) -> String {
    let table = table(matrix);
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = table.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = format!(
        "{}\nPerformance score and Largest Contentful Paint\n\n",
        matrix.url
    );
    for row in &table {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let padding = width - cell.chars().count() + 2;
            let _ = write!(line, "{cell}{:padding$}", "");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for cell in &matrix.cells {
        if let Some(error) = &cell.error {
            let _ = writeln!(text, "{} on {}: {error}", cell.device, cell.network);
        }
    }
    text
}

fn markdown(matrix: &Matrix) -> String {
    let table = table(matrix);
    let mut text = format!(
        "Performance score and Largest Contentful Paint of {}\n\n",
        matrix.url
    );
    for (index, row) in table.iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
        if index == 0 {
            let _ = writeln!(text, "|{}", "---|".repeat(row.len()));
        }
    }
    text
}

fn csv(matrix: &Matrix) -> String {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(String::new, |value| format!("{value:.digits$}"))
    };
    let mut text = "network,device,performance,fcp_ms,lcp_ms,tbt_ms,si_ms,cls\n".to_owned();
    for cell in &matrix.cells {
        let fields = [
            cell.network.clone(),
            cell.device.clone(),
            cell.performance
                .map_or_else(String::new, |it| it.to_string()),
            number(cell.fcp_ms, 0),
            number(cell.lcp_ms, 0),
            number(cell.tbt_ms, 0),
            number(cell.si_ms, 0),
            number(cell.cls, 3),
        ];
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
        matrix.set(MatrixCell {
            device: "mobile".to_owned(),
            network: "slow".to_owned(),
            performance: Some(73),
            lcp_ms: Some(4321.0),
            cls: Some(0.01234),
            ..MatrixCell::default()
        });
        matrix.set(MatrixCell {
            device: "desktop".to_owned(),
            network: "dsl".to_owned(),
            error: Some("The page did not load.".to_owned()),
            ..MatrixCell::default()
        });
        matrix
    }

    #[test]
    fn a_terminal_shows_columns() {
        let expected = "https://example.com/\n\
            Performance score and Largest Contentful Paint\n\n\
            Network     Mobile     Desktop\n\
            DSL         -          failed\n\
            Slow | old  73  4.3 s  -\n\
            desktop on dsl: The page did not load.\n";
        assert_eq!(render(&matrix(), MatrixFormat::Text), expected);
    }

    #[test]
    fn a_document_shows_a_table() {
        let text = render(&matrix(), MatrixFormat::Markdown);
        assert!(text.contains("|---|---|---|\n"), "{text}");
        assert!(text.contains("| Slow \\| old | 73  4.3 s | - |"), "{text}");
    }

    #[test]
    fn a_spreadsheet_has_a_line_for_each_cell() {
        let text = render(&matrix(), MatrixFormat::Csv);
        assert_eq!(text.lines().count(), 5);
        assert!(text.contains("slow,mobile,73,,4321,,,0.012\n"), "{text}");
    }
}
