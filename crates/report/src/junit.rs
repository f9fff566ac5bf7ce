//! JUnit XML for CI servers.
//!
//! With a budget there is one suite with a test case per limit. Without one there is a suite per
//! category with a test case per check; what the checks found is the output of their cases. Only on
//! request a failed check with a weight is a failure, and so is a metric with a score below 0.9,
//! the default of Lighthouse CI. What could not be measured is skipped, or on the same request an
//! error. A page that could not be measured is always an error.

use std::fmt::Write;

use plumbline_model::check::{Cell, CheckResult, Details, Verdict};

use crate::budget::{AssertionResult, BudgetResult, Level};
use crate::export::ExportSource;
use crate::html::figures::{bytes, ms};
use crate::lighthouse;

const GOOD_SCORE: f64 = 0.9;
/// The number of cells of a row that identify it.
const MAX_CELLS: usize = 3;

/// The contents of a JUnit file.
#[derive(Debug, Clone, Copy, Default)]
pub struct JunitOptions<'a> {
    /// The result of the budget that the audit was checked against.
    pub budget: Option<&'a BudgetResult>,
    /// Whether failed checks are failures.
    pub checks_fail: bool,
}

/// The most items listed per failure, because CI servers show the whole text.
const MAX_ITEMS: usize = 20;

pub(crate) enum CaseResult {
    Passed,
    /// The case passed, with a text as its output.
    PassedWithOutput(String),
    Failed {
        message: String,
        text: String,
    },
    Skipped(String),
    Error(String),
}

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) result: CaseResult,
}

/// Renders a report as JUnit XML.
pub(crate) fn render(source: &ExportSource) -> String {
    let report = source.report;
    let has_checks = source.junit.budget.is_none() || source.junit.checks_fail;
    let mut suites: Vec<(String, Vec<Case>)> = Vec::new();
    match &report.error {
        Some(error) => suites.push((
            "audit".to_owned(),
            vec![Case {
                name: "the page could be measured".to_owned(),
                result: CaseResult::Error(format!("{}: {}", error.code, error.message)),
            }],
        )),
        None => {
            if let Some(budget) = source.junit.budget {
                let cases = budget.results.iter().map(budget_case);
                suites.push(("budget".to_owned(), cases.collect()));
            }
            if has_checks {
                suites.push(("performance".to_owned(), metrics(source)));
            }
        }
    }
    for category in report.categories.iter().filter(|_| has_checks) {
        let id = category.id.as_str();
        // A category that is shown as a fraction has no score that its checks could lower.
        let checks_fail = source.junit.checks_fail && category.fraction.is_none();
        let cases = category.checks.iter().map(|check| case(check, checks_fail));
        match suites.iter_mut().find(|(name, _)| name == id) {
            Some((_, existing)) => existing.extend(cases),
            None => suites.push((id.to_owned(), cases.collect())),
        }
    }
    let mut xml = String::new();
    let url = report.final_url.as_deref().unwrap_or(&report.requested_url);
    let made_at = crate::contract::iso8601_ms(source.made_at_ms);
    // Writing to a string cannot fail.
    let _ = write_suites(&mut xml, &suites, url, &made_at);
    xml
}

fn metrics(source: &ExportSource) -> Vec<Case> {
    let lighthouse_result = lighthouse::result(&ExportSource {
        bundle: None,
        ..*source
    });
    let references = lighthouse_result["categories"]["performance"]["auditRefs"].as_array();
    let metrics = references
        .into_iter()
        .flatten()
        .filter(|reference| reference["group"] == "metrics");
    metrics
        .map(|reference| {
            let audit = &lighthouse_result["audits"][reference["id"].as_str().unwrap_or_default()];
            let text = |member: &str| audit[member].as_str().unwrap_or_default().to_owned();
            let result = match audit["score"].as_f64() {
                None => not_measured(&text("errorMessage"), source.junit.checks_fail),
                Some(score) if score < GOOD_SCORE && source.junit.checks_fail => {
                    CaseResult::Failed {
                        message: format!(
                            "{} (score {score}, expected at least {GOOD_SCORE})",
                            text("displayValue")
                        ),
                        text: text("description"),
                    }
                }
                Some(score) => CaseResult::PassedWithOutput(format!(
                    "{} (score {score})",
                    text("displayValue")
                )),
            };
            Case {
                name: format!("{}: {}", text("id"), text("title")),
                result,
            }
        })
        .collect()
}

/// Returns the case of one limit of a budget. A limit that only warns never fails.
fn budget_case(assertion: &AssertionResult) -> Case {
    let row = assertion.row();
    let (name, allowed, actual) = (&row.name, &row.allowed, &row.actual);
    let text = match &*row.difference {
        "" => format!("{name}: {actual}"),
        _ if assertion.passed && !assertion.is_within_interval => {
            format!("allowed {allowed}, actual {actual}")
        }
        difference => format!("allowed {allowed}, actual {actual}, difference {difference}"),
    };
    let result = match (assertion.passed, assertion.level) {
        (true, _) if assertion.is_within_interval => {
            CaseResult::PassedWithOutput(format!("{text}, which is within the interval"))
        }
        (true, _) => CaseResult::PassedWithOutput(text),
        (false, Level::Error) => CaseResult::Failed {
            message: text,
            text: String::new(),
        },
        (false, Level::Warn | Level::Off) => {
            CaseResult::PassedWithOutput(format!("warning: {text}"))
        }
    };
    Case {
        name: format!("{name} {allowed}"),
        result,
    }
}

fn case(check: &CheckResult, can_fail: bool) -> Case {
    let summary = check.summary.clone().unwrap_or_default();
    let result = match check.verdict {
        Verdict::Pass => CaseResult::Passed,
        Verdict::Fail if can_fail && check.weight > 0.0 => CaseResult::Failed {
            message: if summary.is_empty() {
                check.title.clone()
            } else {
                summary
            },
            text: explanation(check),
        },
        Verdict::Fail => CaseResult::PassedWithOutput(explanation(check)),
        Verdict::NotApplicable if summary.is_empty() => {
            CaseResult::Skipped("not applicable".to_owned())
        }
        Verdict::NotApplicable => CaseResult::Skipped(format!("not applicable: {summary}")),
        Verdict::Informative => CaseResult::Skipped(format!("for information: {summary}")),
        Verdict::CouldNotMeasure => not_measured(&summary, can_fail),
    };
    Case {
        name: format!("{}: {}", check.id, check.title),
        result,
    }
}

/// Returns the result of a metric or check that could not be measured.
fn not_measured(reason: &str, can_fail: bool) -> CaseResult {
    if can_fail {
        CaseResult::Error(reason.to_owned())
    } else {
        CaseResult::Skipped(format!("not measured: {reason}"))
    }
}

/// Returns the text of a failed check: its summary, its items, why it matters and how to fix it.
fn explanation(check: &CheckResult) -> String {
    let mut text = String::new();
    if let Some(summary) = &check.summary {
        text += &format!("{summary}\n");
    }
    for warning in &check.warnings {
        text += &format!("{warning}\n");
    }
    let items = check.details.as_ref().map(items).unwrap_or_default();
    for item in items.iter().take(MAX_ITEMS) {
        text += &format!("- {item}\n");
    }
    if items.len() > MAX_ITEMS {
        text += &format!("… and {} more\n", items.len() - MAX_ITEMS);
    }
    text + &format!("Why: {}\nFix: {}", check.why, check.fix)
}

/// Returns a line per item: the texts that identify it, with figures as people read them.
fn items(details: &Details) -> Vec<String> {
    match details {
        Details::Elements { items } => items
            .iter()
            .map(|item| joined([&*item.node.label, item.note.as_deref().unwrap_or_default()]))
            .collect(),
        Details::Urls { items } => items
            .iter()
            .map(|item| joined([&*item.url, item.note.as_deref().unwrap_or_default()]))
            .collect(),
        Details::Console { items } => items
            .iter()
            .map(|item| joined([&*item.text, &item.url]))
            .collect(),
        Details::Values { items } => items
            .iter()
            .map(|item| format!("{}: {}", item.name, item.value))
            .collect(),
        Details::Table(table) => table
            .rows
            .iter()
            .map(|row| joined(row.iter().map(String::as_str)))
            .collect(),
        Details::Findings(findings) => findings
            .rows
            .iter()
            .map(|row| {
                let cells: Vec<_> = row.cells.iter().map(cell).collect();
                joined(cells.iter().map(String::as_str))
            })
            .collect(),
        Details::Checklist { items } => items
            .iter()
            .map(|item| {
                let state = if item.is_met { "met" } else { "not met" };
                format!("{}: {state}", item.label)
            })
            .collect(),
        Details::Parts { items: parts } => parts.iter().flat_map(items).collect(),
    }
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) | Cell::Url(text) => text.clone(),
        Cell::Element(node) => node.label.clone(),
        Cell::Source(place) => format!("{}:{}", place.url, place.line + 1),
        Cell::Bytes(size) => bytes(size.max(0.0) as u64),
        Cell::Ms(time) => ms(*time),
        Cell::Number(number) => format!("{}", (number * 1000.0).round() / 1000.0),
        Cell::Nothing => String::new(),
    }
}

/// Joins the first texts that are not empty.
fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts = texts.into_iter().filter(|text| !text.is_empty());
    texts.take(MAX_CELLS).collect::<Vec<_>>().join(" · ")
}

fn count(cases: &[Case], is: fn(&CaseResult) -> bool) -> usize {
    cases.iter().filter(|case| is(&case.result)).count()
}

fn is_failed(result: &CaseResult) -> bool {
    matches!(result, CaseResult::Failed { .. })
}

fn is_error(result: &CaseResult) -> bool {
    matches!(result, CaseResult::Error(_))
}

fn is_skipped(result: &CaseResult) -> bool {
    matches!(result, CaseResult::Skipped(_))
}

/// Writes suites, each given by its name and its cases.
pub(crate) fn write_suites(
    xml: &mut String,
    suites: &[(String, Vec<Case>)],
    name: &str,
    made_at: &str,
) -> std::fmt::Result {
    let sum = |is| {
        suites
            .iter()
            .map(|(_, cases)| count(cases, is))
            .sum::<usize>()
    };
    writeln!(xml, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        xml,
        r#"<testsuites name="{}" tests="{}" failures="{}" errors="{}" skipped="{}">"#,
        attribute(name),
        sum(|_| true),
        sum(is_failed),
        sum(is_error),
        sum(is_skipped),
    )?;
    for (suite, cases) in suites {
        writeln!(
            xml,
            r#"  <testsuite name="{}" tests="{}" failures="{}" errors="{}" skipped="{}" timestamp="{}">"#,
            attribute(suite),
            cases.len(),
            count(cases, is_failed),
            count(cases, is_error),
            count(cases, is_skipped),
            made_at,
        )?;
        for case in cases {
            write_case(xml, suite, case)?;
        }
        writeln!(xml, "  </testsuite>")?;
    }
    writeln!(xml, "</testsuites>")
}

fn write_case(xml: &mut String, suite: &str, case: &Case) -> std::fmt::Result {
    let (suite, name) = (attribute(suite), attribute(&case.name));
    write!(
        xml,
        r#"    <testcase classname="plumbline.{suite}" name="{name}" time="0""#
    )?;
    match &case.result {
        CaseResult::Passed => return writeln!(xml, "/>"),
        CaseResult::PassedWithOutput(text) => {
            write!(xml, "><system-out>{}</system-out>", content(text))?
        }
        CaseResult::Failed { message, text } => write!(
            xml,
            r#"><failure message="{}" type="check">{}</failure>"#,
            attribute(message),
            content(text)
        )?,
        CaseResult::Skipped(reason) => {
            write!(xml, r#"><skipped message="{}"/>"#, attribute(reason))?;
        }
        CaseResult::Error(reason) => {
            write!(
                xml,
                r#"><error message="{}" type="not measured"/>"#,
                attribute(reason)
            )?;
        }
    }
    writeln!(xml, "</testcase>")
}

/// Escapes a text and replaces characters that XML 1.0 (section 2.2) does not allow.
fn content(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Escapes an attribute value, including line breaks, which would be read as spaces.
fn attribute(text: &str) -> String {
    content(text).replace('\n', "&#10;").replace('\t', "&#9;")
}

#[cfg(test)]
mod tests;
