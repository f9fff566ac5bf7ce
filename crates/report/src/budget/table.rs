//! Renders the result of a budget for a terminal: a sentence, and a table of the assertions that
//! failed, or whose value exceeds the limit.

use super::BudgetResult;
use super::assertion::{AssertionResult, Kind, Level};

const HEAD: [&str; 5] = ["", "budget", "allowed", "actual", "difference"];

/// An assertion as texts.
pub(crate) struct Row {
    level: &'static str,
    /// The name in the budget file.
    pub(crate) name: String,
    pub(crate) allowed: String,
    pub(crate) actual: String,
    /// The difference with its sign; empty if there are no two numbers.
    pub(crate) difference: String,
}

pub(super) fn render(result: &BudgetResult, runs: usize) -> String {
    let mut out = summary(result, runs);
    let failed = |level: Level| {
        let assertions = result.results.iter();
        assertions.filter(move |assertion| !assertion.passed && assertion.level == level)
    };
    let within = || {
        let assertions = result.results.iter();
        assertions.filter(|assertion| assertion.is_within_interval)
    };
    let listed = failed(Level::Error)
        .chain(failed(Level::Warn))
        .chain(within());
    let rows: Vec<[String; 5]> = listed.map(|it| Row::of(it).into_cells()).collect();
    if !rows.is_empty() {
        write_table(&mut out, &rows);
    }
    if within().next().is_some() {
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

/// Returns the first line. Warnings do not fail a budget.
fn summary(result: &BudgetResult, runs: usize) -> String {
    let count = |level: Level| {
        let failed = result.results.iter().filter(|it| !it.passed);
        failed.filter(|it| it.level == level).count()
    };
    let total = result.results.len();
    let warnings = match count(Level::Warn) {
        0 => String::new(),
        1 => ", with 1 warning".to_owned(),
        warnings => format!(", with {warnings} warnings"),
    };
    let of_runs = if runs > 1 {
        format!(" ({runs} runs)")
    } else {
        String::new()
    };
    match count(Level::Error) {
        0 if warnings.is_empty() => format!("Budget met: {total} of {total}{of_runs}.\n"),
        0 => format!("Budget met{warnings}{of_runs}.\n"),
        errors => format!("Budget failed: {errors} of {total}{warnings}{of_runs}.\n"),
    }
}

fn write_table(out: &mut String, rows: &[[String; 5]]) {
    let head = HEAD.map(str::to_owned);
    let lines = || std::iter::once(&head).chain(rows);
    let width = |column: usize| {
        let cells = lines().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(width);
    *out += "\n";
    for row in lines() {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        *out += &format!("  {}\n", line.trim_end());
    }
}

impl Row {
    pub(super) fn of(assertion: &AssertionResult) -> Self {
        let level = match assertion.level {
            _ if assertion.is_within_interval => "within interval",
            Level::Warn => "warning",
            _ => "failed",
        };
        let actual = match (assertion.kind, assertion.actual) {
            (Kind::AuditRan, _) => "not in the report".to_owned(),
            (_, None) => "not measured".to_owned(),
            (_, Some(_)) if assertion.is_verdict && assertion.passed => "passes".to_owned(),
            (_, Some(0.0)) if assertion.is_verdict => "fails".to_owned(),
            (_, Some(score)) if assertion.is_verdict => {
                format!("fails (score {})", amount(score, assertion))
            }
            (_, Some(value)) => amount(value, assertion),
        };
        Self {
            level,
            name: assertion.name.clone(),
            allowed: allowed(assertion),
            actual,
            difference: difference(assertion).unwrap_or_default(),
        }
    }

    fn into_cells(self) -> [String; 5] {
        [
            self.level.to_owned(),
            self.name,
            self.allowed,
            self.actual,
            self.difference,
        ]
    }
}

fn allowed(assertion: &AssertionResult) -> String {
    let limit = amount(assertion.expected, assertion);
    match assertion.kind {
        Kind::AuditRan => "in the report".to_owned(),
        Kind::MinScore if assertion.is_verdict => "passes".to_owned(),
        Kind::MinScore => format!("≥ {limit}"),
        Kind::MaxLength | Kind::MaxNumericValue => format!("≤ {limit}"),
    }
}

/// Returns the difference between the value and the limit with its sign, and its share of the limit
/// unless that is a score.
fn difference(assertion: &AssertionResult) -> Option<String> {
    let is_number = assertion.kind != Kind::AuditRan && !assertion.is_verdict;
    let value = assertion.actual.filter(|_| is_number)?;
    let limit = assertion.expected;
    let sign = if value < limit { '−' } else { '+' };
    let size = amount((value - limit).abs(), assertion);
    Some(match (assertion.kind, limit) {
        (Kind::MinScore, _) => format!("{sign}{size} points"),
        (_, 0.0) => format!("{sign}{size}"),
        _ => {
            let share = ((value - limit) / limit * 100.0).abs();
            format!("{sign}{size} ({sign}{share:.0} %)")
        }
    })
}

fn amount(value: f64, assertion: &AssertionResult) -> String {
    let counted = |noun: &str| match value {
        1.0 => format!("1 {noun}"),
        _ => format!("{value} {noun}s"),
    };
    match (assertion.kind, assertion.unit.as_str()) {
        (Kind::MinScore, _) => format!("{}", (value * 100.0).round()),
        (Kind::MaxLength, _) => counted("item"),
        (_, "request") => counted("request"),
        (_, "millisecond") if value < 10.0 => format!("{} ms", (value * 10.0).round() / 10.0),
        (_, "millisecond") => format!("{} ms", value.round()),
        (_, "byte") => format!("{:.1} KiB", value / 1024.0),
        _ => format!("{}", (value * 10_000.0).round() / 10_000.0),
    }
}
