use plumbline_model::report::Report;

use super::*;
use crate::budget::Kind;
use crate::testing::{HOSTILE, agentic_browsing, report};

fn xml_of(report: &Report, junit: JunitOptions<'_>) -> String {
    render(&ExportSource {
        report,
        bundle: None,
        media: None,
        made_at_ms: 0,
        logo: None,
        junit,
    })
}

fn xml_with(junit: JunitOptions<'_>) -> String {
    xml_of(&report(), junit)
}

const CHECKS_FAIL: JunitOptions<'_> = JunitOptions {
    checks_fail: true,
    budget: None,
};

/// The file with failed checks as failures.
fn xml() -> String {
    xml_with(CHECKS_FAIL)
}

#[test]
fn checks_of_a_category_that_is_shown_as_a_fraction_do_not_fail() {
    let mut report = report();
    report.categories = vec![agentic_browsing()];
    let xml = xml_of(&report, CHECKS_FAIL);
    assert!(xml.contains("agent-accessibility-tree"), "{xml}");
    assert!(!xml.contains("<failure"), "{xml}");
}

#[test]
fn a_metric_that_the_page_lacks_is_skipped_unless_checks_fail() {
    let mut report = report();
    let metrics = report.metrics.as_mut().unwrap();
    metrics.lcp = None;
    let reason = "the page has no text or image";
    metrics.missing.insert("lcp".to_owned(), reason.to_owned());
    let xml = xml_of(&report, JunitOptions::default());
    assert!(xml.contains(r#"failures="0" errors="0""#), "{xml}");
    let skipped = r#"<skipped message="not measured: The page has no text or image."/>"#;
    assert!(xml.contains(skipped), "{xml}");
    let xml = xml_of(&report, CHECKS_FAIL);
    let error = r#"<error message="The page has no text or image." type="not measured"/>"#;
    assert!(xml.contains(error), "{xml}");
}

#[test]
fn checks_fail_on_request_only() {
    let xml = xml_with(JunitOptions::default());
    assert!(xml.contains(r#"failures="0" errors="0""#), "{xml}");
    assert!(!xml.contains("<failure"), "{xml}");
    assert!(xml.contains("<system-out>"), "{xml}");
}

#[test]
fn a_budget_is_one_suite_with_a_case_per_limit() {
    let assertion = |name: &str, level, actual, passed| AssertionResult {
        name: name.to_owned(),
        key: String::new(),
        kind: Kind::MaxNumericValue,
        level,
        expected: 2500.0,
        actual: Some(actual),
        values: vec![actual],
        unit: "millisecond".to_owned(),
        is_verdict: false,
        passed,
        is_within_interval: name == "tti-ms",
    };
    let check = AssertionResult {
        kind: Kind::MinScore,
        expected: 0.9,
        is_verdict: true,
        ..assertion("document-title", Level::Error, 0.0, false)
    };
    let budget = BudgetResult {
        results: vec![
            assertion("lcp-ms", Level::Error, 3000.123, false),
            assertion("fcp-ms", Level::Error, 1000.0, true),
            assertion("si-ms", Level::Warn, 2600.0, false),
            assertion("tti-ms", Level::Error, 2600.0, true),
            check,
        ],
        missing_audits: 0,
    };
    let xml = xml_with(JunitOptions {
        budget: Some(&budget),
        checks_fail: false,
    });
    let document = roxmltree::Document::parse(&xml).unwrap();
    let suites: Vec<_> = document
        .descendants()
        .filter(|node| node.has_tag_name("testsuite"))
        .collect();
    assert_eq!(suites.len(), 1, "{xml}");
    let counts = ["name", "tests", "failures", "errors"].map(|name| suites[0].attribute(name));
    assert_eq!(counts, [Some("budget"), Some("5"), Some("2"), Some("0")]);
    for text in [
        r#"name="lcp-ms ≤ 2500 ms""#,
        r#"message="allowed ≤ 2500 ms, actual 3000 ms, difference +500 ms (+20 %)""#,
        r#"name="document-title passes""#,
        r#"message="document-title: fails""#,
    ] {
        assert!(xml.contains(text), "{text}: {xml}");
    }
    assert!(xml.contains("warning: allowed"), "{xml}");
    assert!(xml.contains("which is within the interval"), "{xml}");
}

#[test]
fn items_have_no_definitions_of_columns_and_no_long_fractions() {
    use plumbline_model::check::{Findings, Row, Unit};
    let findings = Findings::new([("url", "URL", Unit::Url), ("ms", "Time", Unit::Ms)]).rows([
        Row::new([Cell::url("https://example.com/a.js"), Cell::Ms(12.345678)]),
    ]);
    let lines = items(&Details::parts([findings.into()]));
    assert_eq!(
        lines,
        [format!("https://example.com/a.js · {}", ms(12.345678))]
    );
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
        let xml = render(&ExportSource {
            report: &report,
            bundle: None,
            media: None,
            made_at_ms: 0,
            logo: None,
            junit: JunitOptions { checks_fail: true, ..JunitOptions::default() },
        });
        let parsed = roxmltree::Document::parse(&xml);
        proptest::prop_assert!(parsed.is_ok(), "{parsed:?}");
    }
}
