//! JUnit XML for CI servers: a suite per category, a test case per check.
//!
//! A failed check with a weight is a failure, and so is a metric with a score below 0.9, the
//! default of Lighthouse CI. Failed checks without a weight are only reported. What could not be
//! measured is an error.

use std::fmt::Write;

use plumbline_model::check::{CheckResult, Details, Verdict};
use serde_json::Value;

use crate::export::ExportSource;
use crate::lighthouse;

const GOOD_SCORE: f64 = 0.9;
/// The most items listed per failure, because CI servers show the whole text.
const MAX_ITEMS: usize = 20;

enum CaseResult {
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

struct Case {
    name: String,
    result: CaseResult,
}

/// Renders a report as JUnit XML.
pub(crate) fn render(source: &ExportSource) -> String {
    let report = source.report;
    let mut suites: Vec<(String, Vec<Case>)> = Vec::new();
    match &report.error {
        Some(error) => suites.push((
            "audit".to_owned(),
            vec![Case {
                name: "the page could be measured".to_owned(),
                result: CaseResult::Error(format!("{}: {}", error.code, error.message)),
            }],
        )),
        None => suites.push(("performance".to_owned(), metrics(source))),
    }
    for category in &report.categories {
        let id = category.id.as_str();
        let cases = category.checks.iter().map(case);
        match suites.iter_mut().find(|(name, _)| name == id) {
            Some((_, existing)) => existing.extend(cases),
            None => suites.push((id.to_owned(), cases.collect())),
        }
    }
    let mut xml = String::new();
    // Writing to a string cannot fail.
    let _ = write_suites(&mut xml, &suites, source);
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
                None => CaseResult::Error(text("errorMessage")),
                Some(score) if score < GOOD_SCORE => CaseResult::Failed {
                    message: format!(
                        "{} (score {score}, expected at least {GOOD_SCORE})",
                        text("displayValue")
                    ),
                    text: text("description"),
                },
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

fn case(check: &CheckResult) -> Case {
    let summary = check.summary.clone().unwrap_or_default();
    let result = match check.verdict {
        Verdict::Pass => CaseResult::Passed,
        Verdict::Fail if check.weight > 0.0 => CaseResult::Failed {
            message: if summary.is_empty() {
                check.title.clone()
            } else {
                summary
            },
            text: explanation(check),
        },
        Verdict::Fail => CaseResult::PassedWithOutput(explanation(check)),
        Verdict::NotApplicable => CaseResult::Skipped("not applicable".to_owned()),
        Verdict::Informative => CaseResult::Skipped(format!("for information: {summary}")),
        Verdict::CouldNotMeasure => CaseResult::Error(summary),
    };
    Case {
        name: format!("{}: {}", check.id, check.title),
        result,
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

/// Returns a line per item. The first texts of an item's JSON identify it.
fn items(details: &Details) -> Vec<String> {
    let details = serde_json::to_value(details).unwrap_or_default();
    let items = details["items"].as_array().or(details["rows"].as_array());
    items
        .into_iter()
        .flatten()
        .map(|item| {
            let mut texts = Vec::new();
            texts_of(item, &mut texts);
            texts.truncate(3);
            texts.join(" · ")
        })
        .collect()
}

/// Collects all texts and numbers of a JSON value.
fn texts_of(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.is_empty() && text != "nothing" => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts_of(value, texts)),
        Value::Object(members) => members.values().for_each(|value| texts_of(value, texts)),
        Value::Number(number) => texts.push(number.to_string()),
        _ => {}
    }
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

fn write_suites(
    xml: &mut String,
    suites: &[(String, Vec<Case>)],
    source: &ExportSource,
) -> std::fmt::Result {
    let sum = |is| {
        suites
            .iter()
            .map(|(_, cases)| count(cases, is))
            .sum::<usize>()
    };
    let url = source
        .report
        .final_url
        .as_deref()
        .unwrap_or(&source.report.requested_url);
    writeln!(xml, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        xml,
        r#"<testsuites name="{}" tests="{}" failures="{}" errors="{}" skipped="{}">"#,
        attribute(url),
        sum(|_| true),
        sum(is_failed),
        sum(is_error),
        sum(is_skipped),
    )?;
    for (name, cases) in suites {
        writeln!(
            xml,
            r#"  <testsuite name="{}" tests="{}" failures="{}" errors="{}" skipped="{}" timestamp="{}">"#,
            attribute(name),
            cases.len(),
            count(cases, is_failed),
            count(cases, is_error),
            count(cases, is_skipped),
            crate::contract::iso8601_ms(source.made_at_ms),
        )?;
        for case in cases {
            write_case(xml, name, case)?;
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
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, report};

    fn xml() -> String {
        render(&ExportSource {
            report: &report(),
            bundle: None,
            media: None,
            made_at_ms: 0,
        })
    }

    #[test]
    fn there_is_a_suite_per_category_and_failures_are_explained() {
        let xml = xml();
        assert!(
            xml.contains(r#"<testsuite name="performance" tests="5""#),
            "{xml}"
        );
        assert!(
            xml.contains(r#"<testsuite name="seo" tests="4" failures="1" errors="1" skipped="1""#),
            "{xml}"
        );
        assert!(xml.contains("Why: ") && xml.contains("Fix: "), "{xml}");
    }

    #[test]
    fn texts_from_a_page_are_escaped_and_contain_no_control_characters() {
        let xml = xml();
        assert!(!xml.contains(HOSTILE), "{xml}");
        assert!(xml.contains("&quot;&gt;&lt;script&gt;"), "{xml}");
        assert!(!xml.chars().any(|c| c.is_control() && c != '\n'), "{xml:?}");
        assert_eq!(
            attribute("a\nb\u{0}\u{1b}[31m\u{ffff}"),
            "a&#10;b\u{fffd}\u{fffd}[31m\u{fffd}"
        );
    }
    proptest::proptest! {
        #[test]
        fn the_file_is_well_formed_for_any_text(text in "\\PC*|[\\x00-\\x1f<>&\"'\u{fffe}]*") {
            let mut report = report();
            report.requested_url = text.clone();
            report.final_url = None;
            for check in &mut report.categories[0].checks {
                check.summary = Some(text.clone());
                check.title = text.clone();
            }
            let xml = render(&ExportSource { report: &report, bundle: None, media: None, made_at_ms: 0 });
            let parsed = roxmltree::Document::parse(&xml);
            proptest::prop_assert!(parsed.is_ok(), "{parsed:?}");
        }
    }
}
