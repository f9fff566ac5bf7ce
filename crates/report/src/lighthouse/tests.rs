use plumbline_bundle::{Failure, FailureCode};
use plumbline_model::category::{CategoryId, CategoryResult};
use plumbline_model::check::{
    Cell, CheckResult, Details, Figure, Findings, Row, Savings, Unit, Verdict,
};
use plumbline_model::report::Report;

use super::*;
use crate::testing::{HOSTILE, agentic_browsing, bundle_with_log, report};

fn result_of(report: &Report, log: Option<&str>) -> Value {
    let bundle = log.map(bundle_with_log);
    result(&ExportSource {
        report,
        bundle: bundle.as_ref(),
        media: None,
        made_at_ms: 1_794_708_582_007,
        logo: None,
        junit: crate::JunitOptions::default(),
    })
}

#[test]
fn scores_metrics_and_verdicts_are_those_of_the_report() {
    let result = result_of(&report(), None);
    assert_eq!(result["categories"]["performance"]["score"], 0.97);
    assert_eq!(result["categories"]["pwa"]["score"], 0.3);
    assert_eq!(result["categories"]["seo"]["score"], Value::Null);
    assert_eq!(result["fetchTime"], "2026-11-15T02:09:42.007Z");
    let audits = &result["audits"];
    assert_eq!(audits["first-contentful-paint"]["numericValue"], 1234.4);
    assert_eq!(audits["interactive"]["scoreDisplayMode"], "error");
    let modes = [
        ("meta-description", "binary"),
        ("link-text", "binary"),
        ("canonical", "notApplicable"),
        ("hreflang", "error"),
    ];
    for (id, mode) in modes {
        assert_eq!(audits[id]["scoreDisplayMode"], mode, "{id}");
    }
    assert_eq!(audits["hreflang"]["errorMessage"], "the page hung");
    assert_eq!(
        audits["meta-description"]["details"]["items"][0]["node"]["snippet"],
        HOSTILE
    );
}

#[test]
fn the_benchmark_index_is_that_of_the_calibration_if_the_load_has_none() {
    let index = |host_index: Option<f64>, nominal_index: Option<f64>| {
        let mut report = report();
        let cpu = &mut report.conditions.cpu;
        (cpu.host_index, cpu.nominal_index) = (host_index, nominal_index);
        result_of(&report, None)["environment"]["benchmarkIndex"].clone()
    };
    assert_eq!(index(Some(1500.2), Some(1400.0)), 1500.0);
    assert_eq!(index(None, Some(1400.0)), 1400.0);
    assert_eq!(index(None, None), 0.0);
}

#[test]
fn every_reference_has_an_audit_and_every_group_a_name() {
    let result = result_of(&report(), Some("[]"));
    for category in result["categories"].as_object().unwrap().values() {
        for reference in category["auditRefs"].as_array().unwrap() {
            let id = reference["id"].as_str().unwrap();
            assert_eq!(result["audits"][id]["id"], id);
            // Manual audits have no group, as in Lighthouse.
            if let Some(group) = reference["group"].as_str() {
                assert!(result["categoryGroups"][group].is_object());
            }
        }
    }
}

#[test]
fn transfers_are_summed_up_by_type_and_party() {
    let sent = |id: &str, url: &str, kind: &str, same: bool| {
        json!({ "method": "Network.requestWillBeSent", "params": { "requestId": id, "timestamp": 1.0,
            "type": kind, "request": { "url": url, "isSameSite": same } } })
    };
    let ended = |id: &str, bytes: u64| {
        json!({ "method": "Network.loadingFinished",
            "params": { "requestId": id, "timestamp": 2.0, "encodedDataLength": bytes } })
    };
    let log = json!([
        sent("1", "https://example.com/", "Document", true),
        ended("1", 1000),
        sent("2", "https://cdn.test/x.js", "Script", false),
        ended("2", 5000),
        sent("3", "https://example.com/favicon.ico", "Other", true),
        ended("3", 9000),
        sent("4", "data:image/png;base64,AA", "Image", true),
    ]);
    let result = result_of(&report(), Some(&log.to_string()));
    let items = result["audits"]["resource-summary"]["details"]["items"]
        .as_array()
        .unwrap();
    let row = |kind: &str| {
        let item = items
            .iter()
            .find(|item| item["resourceType"] == kind)
            .unwrap();
        (
            item["requestCount"].as_u64().unwrap(),
            item["transferSize"].as_u64().unwrap(),
        )
    };
    assert_eq!(row("total"), (2, 6000));
    assert_eq!(row("script"), (1, 5000));
    assert_eq!(row("third-party"), (1, 5000));
    assert_eq!(row("image"), (0, 0));
    assert_eq!(items.last().unwrap()["resourceType"], "third-party");
    assert_eq!(result["entities"][0]["isFirstParty"], true);
    assert_eq!(result["entities"][1]["name"], "cdn.test");
}

#[test]
fn a_page_that_could_not_be_measured_is_a_runtime_error_with_empty_categories() {
    let conditions = report().conditions;
    let failure = Failure::new(FailureCode::NoPaint, "Nothing was painted.");
    let result = result_of(
        &Report::failed("https://example.com/", conditions, failure),
        None,
    );
    assert_eq!(result["runtimeError"]["code"], "NO_PAINT");
    assert_eq!(result["categories"]["performance"]["score"], Value::Null);
    assert_eq!(
        result["audits"]["speed-index"]["errorMessage"],
        "Nothing was painted."
    );
}

#[test]
fn a_page_cannot_put_links_into_warnings() {
    let result = result_of(&report(), None);
    let warning = result["runWarnings"][0].as_str().unwrap();
    assert!(!warning.contains("]("), "{warning}");
}

#[test]
fn categories_are_written_in_the_order_in_which_they_are_shown() {
    let mut report = report();
    report.categories.push(agentic_browsing());
    let text = serde_json::to_string(&OrderedResult(&result_of(&report, None))).unwrap();
    let at = CATEGORIES.map(|id| text.find(&format!("\"{id}\":{{\"auditRefs\"")).unwrap());
    assert!(at.is_sorted(), "{at:?}");
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read, result_of(&report, None));
}

#[test]
fn agentic_browsing_is_a_category_that_is_shown_as_a_fraction() {
    let mut report = report();
    report.categories.push(agentic_browsing());
    let result = result_of(&report, None);
    let category = &result["categories"]["agentic-browsing"];
    assert_eq!(category["categoryScoreDisplayMode"], "fraction");
    assert_eq!(category["score"], 0.63);
    let shift = json!({"id": "cumulative-layout-shift", "weight": 1.0, "acronym": "CLS"});
    assert_eq!(category["auditRefs"][0], shift);
    assert_eq!(
        result["audits"]["cumulative-layout-shift"]["scoreDisplayMode"],
        "numeric"
    );
    assert_eq!(result["audits"]["ard-schema"]["score"], 0.9);
    assert_eq!(
        result["audits"]["llms-txt"]["scoreDisplayMode"],
        "notApplicable"
    );
}

#[test]
fn a_report_of_an_earlier_version_has_no_agentic_browsing() {
    let result = result_of(&report(), None);
    assert_eq!(result["categories"].get("agentic-browsing"), None);
    let written = serde_json::to_string(&OrderedResult(&result)).unwrap();
    assert!(!written.contains("agentic-browsing"));
}

#[test]
fn manual_audits_are_part_of_their_categories() {
    let result = result_of(&report(), None);
    let audit = &result["audits"]["structured-data"];
    assert_eq!(
        (&audit["scoreDisplayMode"], &audit["score"]),
        (&json!("manual"), &Value::Null)
    );
    let references = result["categories"]["seo"]["auditRefs"].as_array().unwrap();
    assert!(references.contains(&json!({"id": "structured-data", "weight": 0})));
    // The report has no checks of this category.
    assert_eq!(result["audits"].get("focus-traps"), None);
}

#[test]
fn numbers_savings_and_scores_of_performance_checks_are_in_lighthouses_units() {
    let mut report = report();
    let mut check = report.categories[0].checks[0].clone();
    check.verdict = Verdict::Fail;
    check.score = Some(0.0);
    check.details = Some(Details::urls([]));
    check.figure = Some(Figure {
        value: 1234.5,
        unit: Unit::Bytes,
    });
    let saving = |id: &str, lcp_ms: f64| CheckResult {
        id: id.to_owned(),
        savings: Some(Savings::paints(0.0, lcp_ms)),
        ..check.clone()
    };
    report.categories.push(CategoryResult {
        id: CategoryId::Performance,
        title: "Performance".to_owned(),
        score: None,
        fraction: None,
        checks: vec![saving("nothing-gained", 20.0), saving("gained", 30.0)],
    });
    let result = result_of(&report, None);
    let audits = &result["audits"];
    assert_eq!(audits["gained"]["numericValue"], 1234.5);
    assert_eq!(audits["gained"]["numericUnit"], "byte");
    assert_eq!(audits["gained"]["metricSavings"]["LCP"], 50.0);
    assert_eq!(audits["gained"]["score"], 0.0);
    assert_eq!(audits["nothing-gained"]["metricSavings"]["LCP"], 0.0);
    assert_eq!(audits["nothing-gained"]["score"], 0.5);
}

#[test]
fn diagnostics_have_the_durations_of_tasks_that_the_checks_have() {
    let mut report = report();
    let check = report.categories[0].checks[0].clone();
    let tasks = [(100.0, 60.0), (300.0, 51.0), (500.0, 12.0), (600.0, 6.0)];
    let columns = [
        ("startTime", "Start", Unit::Ms),
        ("duration", "Duration", Unit::Ms),
    ];
    let rows = tasks.map(|(start, duration)| Row::new([Cell::Ms(start), Cell::Ms(duration)]));
    report.categories.push(CategoryResult {
        id: CategoryId::Performance,
        title: "Performance".to_owned(),
        score: None,
        fraction: None,
        checks: vec![
            CheckResult {
                id: "mainthread-work-breakdown".to_owned(),
                figure: Some(Figure {
                    value: 140.0,
                    unit: Unit::Ms,
                }),
                ..check.clone()
            },
            CheckResult {
                id: "main-thread-tasks".to_owned(),
                details: Some(Findings::new(columns).rows(rows).into()),
                ..check
            },
        ],
    });
    let result = result_of(&report, Some("[]"));
    let figures = &result["audits"]["diagnostics"]["details"]["items"][0];
    assert_eq!(figures["totalTaskTime"], 140.0);
    let counts = ["numTasksOver10ms", "numTasksOver50ms", "numTasksOver100ms"];
    assert_eq!(counts.map(|name| &figures[name]), [3, 2, 0]);
}

#[test]
fn every_audit_is_a_check_or_known_besides_checks() {
    let report = report();
    let result = result_of(&report, Some("[]"));
    let checks: Vec<&str> = report
        .categories
        .iter()
        .flat_map(|category| &category.checks)
        .map(|check| &*check.id)
        .collect();
    for id in result["audits"].as_object().unwrap().keys() {
        assert!(
            checks.contains(&&**id) || is_audit_besides_checks(id),
            "{id}"
        );
    }
}
