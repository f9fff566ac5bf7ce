//! The report as test results, for build servers: a suite per category, a test per check.
//!
//! A check that counts and fails is a failure; so is a metric below 0.9, which is what Lighthouse CI
//! asks for when nothing else was asked for. What weighs nothing is told and fails nobody. What could
//! not be measured is an error.

use std::fmt::Write;

use plumbline_engine::category::CheckResult;
use plumbline_engine::checks::{Details, Verdict};
use serde_json::Value;

use crate::export::Subject;
use crate::lighthouse;

const GOOD_SCORE: f64 = 0.9;
/// A build server shows a failure's text whole: enough of it to find the rest.
const ITEMS_SHOWN: usize = 20;

enum Outcome {
    Passed,
    /// What is worth knowing although nothing failed.
    Noted(String),
    Failed {
        message: String,
        text: String,
    },
    Skipped(String),
    Broken(String),
}

struct Case {
    name: String,
    outcome: Outcome,
}

pub(crate) fn render(subject: &Subject) -> String {
    let report = subject.report;
    let mut suites: Vec<(String, Vec<Case>)> = Vec::new();
    match &report.error {
        Some(error) => suites.push((
            "audit".to_owned(),
            vec![Case {
                name: "the page could be measured".to_owned(),
                outcome: Outcome::Broken(format!("{}: {}", error.code, error.message)),
            }],
        )),
        None => suites.push(("performance".to_owned(), metrics(subject))),
    }
    for category in &report.categories {
        let id = category.id.as_str();
        let cases = category.checks.iter().map(case);
        match suites.iter_mut().find(|(name, _)| name == id) {
            Some((_, known)) => known.extend(cases),
            None => suites.push((id.to_owned(), cases.collect())),
        }
    }
    let mut xml = String::new();
    // Writing to a string cannot fail.
    let _ = write_suites(&mut xml, &suites, subject);
    xml
}

fn metrics(subject: &Subject) -> Vec<Case> {
    let result = lighthouse::result(&Subject {
        bundle: None,
        ..*subject
    });
    let references = result["categories"]["performance"]["auditRefs"].as_array();
    let metrics = references
        .into_iter()
        .flatten()
        .filter(|reference| reference["group"] == "metrics");
    metrics
        .map(|reference| {
            let audit = &result["audits"][reference["id"].as_str().unwrap_or_default()];
            let text = |member: &str| audit[member].as_str().unwrap_or_default().to_owned();
            let outcome = match audit["score"].as_f64() {
                None => Outcome::Broken(text("errorMessage")),
                Some(score) if score < GOOD_SCORE => Outcome::Failed {
                    message: format!(
                        "{} (score {score}, good is {GOOD_SCORE})",
                        text("displayValue")
                    ),
                    text: text("description"),
                },
                Some(score) => Outcome::Noted(format!("{} (score {score})", text("displayValue"))),
            };
            Case {
                name: format!("{}: {}", text("id"), text("title")),
                outcome,
            }
        })
        .collect()
}

fn case(check: &CheckResult) -> Case {
    let summary = check.summary.clone().unwrap_or_default();
    let outcome = match check.verdict {
        Verdict::Pass => Outcome::Passed,
        Verdict::Fail if check.weight > 0.0 => Outcome::Failed {
            message: if summary.is_empty() {
                check.title.clone()
            } else {
                summary
            },
            text: explained(check),
        },
        Verdict::Fail => Outcome::Noted(explained(check)),
        Verdict::NotApplicable => Outcome::Skipped("not applicable".to_owned()),
        Verdict::Informative => Outcome::Skipped(format!("for information: {summary}")),
        Verdict::CouldNotMeasure => Outcome::Broken(summary),
    };
    Case {
        name: format!("{}: {}", check.id, check.title),
        outcome,
    }
}

/// What was found, why it matters, what to do.
fn explained(check: &CheckResult) -> String {
    let mut text = String::new();
    if let Some(summary) = &check.summary {
        text += &format!("{summary}\n");
    }
    for warning in &check.warnings {
        text += &format!("{warning}\n");
    }
    let found = check.details.as_ref().map(items).unwrap_or_default();
    for item in found.iter().take(ITEMS_SHOWN) {
        text += &format!("- {item}\n");
    }
    if found.len() > ITEMS_SHOWN {
        text += &format!("… and {} more\n", found.len() - ITEMS_SHOWN);
    }
    text + &format!("Why: {}\nFix: {}", check.why, check.fix)
}

/// One line per thing found, from the report's own JSON: the first texts of each item tell which it is.
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

fn texts_of(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.is_empty() && text != "nothing" => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts_of(value, texts)),
        Value::Object(members) => members.values().for_each(|value| texts_of(value, texts)),
        Value::Number(number) => texts.push(number.to_string()),
        _ => {}
    }
}

fn count(cases: &[Case], is: fn(&Outcome) -> bool) -> usize {
    cases.iter().filter(|case| is(&case.outcome)).count()
}

fn is_failed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed { .. })
}

fn is_broken(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Broken(_))
}

fn is_skipped(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Skipped(_))
}

fn write_suites(
    xml: &mut String,
    suites: &[(String, Vec<Case>)],
    subject: &Subject,
) -> std::fmt::Result {
    let sum = |is| {
        suites
            .iter()
            .map(|(_, cases)| count(cases, is))
            .sum::<usize>()
    };
    let url = subject
        .report
        .final_url
        .as_deref()
        .unwrap_or(&subject.report.requested_url);
    writeln!(xml, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        xml,
        r#"<testsuites name="{}" tests="{}" failures="{}" errors="{}" skipped="{}">"#,
        attribute(url),
        sum(|_| true),
        sum(is_failed),
        sum(is_broken),
        sum(is_skipped),
    )?;
    for (name, cases) in suites {
        writeln!(
            xml,
            r#"  <testsuite name="{}" tests="{}" failures="{}" errors="{}" skipped="{}" timestamp="{}">"#,
            attribute(name),
            cases.len(),
            count(cases, is_failed),
            count(cases, is_broken),
            count(cases, is_skipped),
            crate::contract::iso8601_ms(subject.made_at_ms),
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
    match &case.outcome {
        Outcome::Passed => return writeln!(xml, "/>"),
        Outcome::Noted(text) => write!(xml, "><system-out>{}</system-out>", content(text))?,
        Outcome::Failed { message, text } => write!(
            xml,
            r#"><failure message="{}" type="check">{}</failure>"#,
            attribute(message),
            content(text)
        )?,
        Outcome::Skipped(why) => write!(xml, r#"><skipped message="{}"/>"#, attribute(why))?,
        Outcome::Broken(why) => {
            write!(
                xml,
                r#"><error message="{}" type="not measured"/>"#,
                attribute(why)
            )?;
        }
    }
    writeln!(xml, "</testcase>")
}

/// XML 1.0, 2.2: some characters cannot be written at all, not even escaped.
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

/// Line breaks in an attribute would be read as spaces.
fn attribute(text: &str) -> String {
    content(text).replace('\n', "&#10;").replace('\t', "&#9;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, report};

    fn xml() -> String {
        render(&Subject {
            report: &report(),
            bundle: None,
            made_at_ms: 0,
        })
    }

    #[test]
    fn there_is_a_suite_per_category_and_failures_say_what_and_why() {
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
    fn what_a_page_says_is_text_and_never_a_control_character() {
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
        fn whatever_a_page_says_the_file_is_well_formed(said in "\\PC*|[\\x00-\\x1f<>&\"'\u{fffe}]*") {
            let mut report = report();
            report.requested_url = said.clone();
            report.final_url = None;
            for check in &mut report.categories[0].checks {
                check.summary = Some(said.clone());
                check.title = said.clone();
            }
            let xml = render(&Subject { report: &report, bundle: None, made_at_ms: 0 });
            let parsed = roxmltree::Document::parse(&xml);
            proptest::prop_assert!(parsed.is_ok(), "{parsed:?}");
        }
    }
}
