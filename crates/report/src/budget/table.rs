//! What failed and by how much, for a person at a terminal.

use super::Verdicts;
use super::assertion::{Finding, Kind, Level};

const HEAD: [&str; 5] = ["", "budget", "allowed", "found", "off by"];

pub(super) fn render(verdicts: &Verdicts, runs: usize) -> String {
    let failed: Vec<&Finding> = verdicts
        .findings
        .iter()
        .filter(|finding| !finding.passed)
        .collect();
    let total = verdicts.findings.len();
    let of_runs = if runs > 1 {
        format!(", {runs} runs")
    } else {
        String::new()
    };
    let mut out = match failed.len() {
        0 => format!("Budget kept: all {total} hold{of_runs}.\n"),
        count => format!("Budget: {count} of {total} not kept{of_runs}.\n"),
    };
    let mut rows: Vec<[String; 5]> = vec![HEAD.map(str::to_owned)];
    let errors_first = |finding: &&Finding| finding.level != Level::Error;
    let mut failed = failed;
    failed.sort_by_key(errors_first);
    rows.extend(failed.iter().map(|finding| row(finding)));
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
    if verdicts.not_there > 0 {
        out += &format!(
            "\n{} of the preset's audits are not part of the report.\n",
            verdicts.not_there
        );
    }
    out
}

fn row(finding: &Finding) -> [String; 5] {
    let level = match finding.level {
        Level::Warn => "warning",
        _ => "failed",
    };
    let (allowed, found, off_by) = match (finding.kind, finding.actual) {
        (Kind::AuditRan, _) | (_, None) => {
            let message = finding.message.clone().unwrap_or_default();
            ("a value".to_owned(), "none".to_owned(), message)
        }
        (kind, Some(actual)) => {
            let sign = if kind == Kind::MinScore { '≥' } else { '≤' };
            let amount = |value: f64| amount(value, kind, &finding.unit);
            let off = (actual - finding.expected).abs();
            let share = match finding.expected {
                0.0 => String::new(),
                expected => format!(" ({:+.0} %)", (actual - expected) / expected * 100.0),
            };
            (
                format!("{sign} {}", amount(finding.expected)),
                amount(actual),
                format!("{}{share}", amount(off)),
            )
        }
    };
    [
        level.to_owned(),
        finding.key.clone(),
        allowed,
        found,
        off_by,
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
