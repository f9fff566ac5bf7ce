//! Renders assertions that failed, or whose value exceeds the limit, as a table for a terminal.

use super::BudgetResult;
use super::assertion::{AssertionResult, Kind, Level};

const HEAD: [&str; 5] = ["", "budget", "allowed", "actual", "difference"];

pub(super) fn render(result: &BudgetResult, runs: usize) -> String {
    let failed: Vec<&AssertionResult> = result
        .results
        .iter()
        .filter(|assertion| !assertion.passed)
        .collect();
    let total = result.results.len();
    let of_runs = if runs > 1 {
        format!(", {runs} runs")
    } else {
        String::new()
    };
    let mut out = match failed.len() {
        0 => format!("Budget passed: {total} of {total}{of_runs}.\n"),
        count => format!("Budget failed: {count} of {total}{of_runs}.\n"),
    };
    let within: Vec<&AssertionResult> = result
        .results
        .iter()
        .filter(|assertion| assertion.is_within_interval)
        .collect();
    let mut rows: Vec<[String; 5]> = vec![HEAD.map(str::to_owned)];
    let errors_first = |assertion: &&AssertionResult| assertion.level != Level::Error;
    let mut failed = failed;
    failed.sort_by_key(errors_first);
    rows.extend(failed.iter().chain(&within).map(|assertion| row(assertion)));
    if rows.len() > 1 {
        out += "\n";
        let width = |column: usize| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
        for row in &rows {
            let cells = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            out += &format!("  {}\n", line.trim_end());
        }
    }
    if !within.is_empty() {
        out +=
            "\n\"within interval\": the value exceeds the limit, but not surely, so it passes.\n";
    }
    if result.missing_audits > 0 {
        out += &format!(
            "\n{} audits of the preset are not in the report.\n",
            result.missing_audits
        );
    }
    out
}

pub(super) fn row(assertion: &AssertionResult) -> [String; 5] {
    let level = match assertion.level {
        _ if assertion.is_within_interval => "within interval",
        Level::Warn => "warning",
        _ => "failed",
    };
    let (allowed, actual, difference) = match (assertion.kind, assertion.actual) {
        (Kind::AuditRan, _) | (_, None) => {
            let message = assertion.message.clone().unwrap_or_default();
            ("a value".to_owned(), "none".to_owned(), message)
        }
        (kind, Some(value)) => {
            let sign = if kind == Kind::MinScore { '≥' } else { '≤' };
            let amount = |value: f64| amount(value, kind, &assertion.unit);
            let difference = (value - assertion.expected).abs();
            let share = match assertion.expected {
                0.0 => String::new(),
                expected => format!(" ({:+.0} %)", (value - expected) / expected * 100.0),
            };
            (
                format!("{sign} {}", amount(assertion.expected)),
                amount(value),
                format!("{}{share}", amount(difference)),
            )
        }
    };
    [
        level.to_owned(),
        assertion.key.clone(),
        allowed,
        actual,
        difference,
    ]
}

fn amount(value: f64, kind: Kind, unit: &str) -> String {
    match (kind, unit) {
        (Kind::MinScore, _) => format!("{}", (value * 100.0).round()),
        (Kind::MaxLength, _) => format!("{value} items"),
        (_, "millisecond") => format!("{} ms", value.round()),
        (_, "byte") => format!("{:.1} KiB", value / 1024.0),
        _ => format!("{}", (value * 10_000.0).round() / 10_000.0),
    }
}
