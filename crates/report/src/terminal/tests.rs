use plumbline_bundle::{Failure, FailureCode, InteractionRecords};
use plumbline_catalog::Mode;
use plumbline_model::report::{
    Conditions, CpuConditions, DeviceConditions, LocationConditions, Metric, Metrics,
    NetworkConditions, ReplayConditions, Report, TracedMetrics, View,
};

use super::*;
use crate::testing::agentic_browsing;

fn report() -> Report {
    let conditions = Conditions {
        device: DeviceConditions {
            id: "mobile".to_owned(),
            name: "Phone (412x823)".to_owned(),
            mode: Mode::Mobile,
        },
        network: NetworkConditions {
            id: "cable".to_owned(),
            name: "Cable".to_owned(),
            down_kbps: 5000.0,
            up_kbps: 1000.0,
            rtt_ms: 151.0,
            isolation: None,
        },
        location: LocationConditions {
            id: "eu".to_owned(),
            name: "Frankfurt, Germany".to_owned(),
            mode: LocationMode::Simulated,
            added_rtt_ms: 123.0,
            is_stated: Some(true),
        },
        cpu: CpuConditions {
            rate: 1.0,
            ..CpuConditions::default()
        },
        state: None,
        steps: Vec::new(),
        consent: None,
        view: View::First,
        session: None,
        replay: None,
    };
    let failure = Failure::new(FailureCode::NoPaint, "Nothing was painted.");
    Report::failed("https://example.com/", conditions, failure)
}

#[test]
fn a_page_that_could_not_be_measured_has_a_reason() {
    let text = render(&report(), Colors::None);
    assert!(text.contains("Not measured: Nothing was painted. (NO_PAINT)"));
    assert!(text.contains("Frankfurt, Germany (simulated, +123 ms round trip)"));
}

#[test]
fn a_device_that_is_faster_than_the_machine_is_noted_with_the_indexes_that_are_known() {
    let note = |host_index: Option<f64>, nominal_index: Option<f64>| {
        let mut report = crate::testing::report();
        let cpu = &mut report.conditions.cpu;
        cpu.limited_by_host = true;
        cpu.device_index = Some(900);
        (cpu.host_index, cpu.nominal_index) = (host_index, nominal_index);
        let text = render(&report, Colors::None);
        let note = text.lines().find_map(|line| line.strip_prefix("  Note: "));
        note.unwrap().to_owned()
    };
    let expected = |indexes: &str| {
        format!("The device is faster than this machine{indexes}, so the CPU was not slowed down.")
    };
    assert_eq!(
        note(Some(700.0), Some(800.0)),
        expected(" (CPU index 900 against 700)")
    );
    assert_eq!(
        note(None, Some(800.0)),
        expected(" (CPU index 900 against 800)")
    );
    assert_eq!(note(None, None), expected(""));
}

#[test]
fn a_replay_names_its_recording_and_what_was_missing() {
    let mut report = crate::testing::report();
    assert!(!render(&report, Colors::None).contains("Recording"));
    report.conditions.replay = Some(Box::new(ReplayConditions {
        recorded_at: "2027-01-15T08:00:00Z".to_owned(),
        missing_requests: 2,
        missing: vec!["https://a.test/\u{1b}".to_owned()],
    }));
    let text = render(&report, Colors::None);
    let line = "\n  Recording of 15 Jan 2027, 08:00 UTC; 2 requests were not in it, such as \
                https://a.test/\u{fffd}\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn the_longest_interaction_is_one_line_with_its_control() {
    let records = serde_json::json!({
        "controls": 1, "error": "Too slow.",
        "interactions": [{
            "kind": "menu", "name": "Shop\u{1b}", "selector": "#m", "snippet": "<button>",
            "timing": {
                "input": "tap", "event": "click", "durationMs": 304.0, "inputDelayMs": 4.0,
                "processingMs": 280.0, "presentationDelayMs": 20.0,
            },
        }],
    });
    let records: InteractionRecords = serde_json::from_value(records).unwrap();
    let report = Report {
        responsiveness: Some(Box::new(records.into())),
        ..report()
    };
    let text = render(&report, Colors::None);
    let line =
        "  Interaction to Next Paint  304 ms  needs improvement in the lab, Menu “Shop\u{fffd}”\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("Interactions could not be measured completely: Too slow."));
}

#[test]
fn each_measured_step_has_a_line_with_its_figures() {
    let step = |title: &str, error: Option<&str>| {
        serde_json::json!({
            "title": title, "kind": "navigation", "url": "", "settledMs": 900.0, "requests": 1,
            "transferBytes": 1, "longTasks": 0, "tbtMs": 40.4, "cls": 0.01, "fcpMs": 800.0,
            "error": error,
        })
    };
    let steps = [
        step("go to /a\u{1b}", None),
        step("press Enter", Some("no field")),
    ];
    let records = serde_json::json!({ "steps": steps });
    let report = Report {
        flow: Some(serde_json::from_value(records).unwrap()),
        ..report()
    };
    let text = render(&report, Colors::None);
    let lines = "  1. go to /a\u{fffd} (navigation)\n     FCP 800 ms, TBT 40 ms, CLS 0.010\n  \
                 2. press Enter (navigation)\n     failed: no field\n";
    assert!(text.contains(lines), "{text}");
}

#[test]
fn a_missing_metric_is_a_dash_and_control_characters_are_replaced() {
    let none = None;
    let measured = Report {
        error: None,
        metrics: Some(Metrics {
            fcp: Some(Metric {
                value: 1234.4,
                score: 0.9,
            }),
            lcp: none,
            tbt: none,
            cls: none,
            si: none,
            tti: none,
            missing: Default::default(),
            as_traced: TracedMetrics::default(),
        }),
        final_url: Some("https://example.com/\u{1b}[31m".to_owned()),
        ..report()
    };
    let text = render(&measured, Colors::None);
    assert!(
        text.contains("First Contentful Paint     1.23 s  good\n"),
        "{text}"
    );
    assert!(
        text.contains("Largest Contentful Paint        –\n"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(!text.contains("– ms"), "{text}");
}

#[test]
fn agentic_browsing_is_shown_by_its_passed_checks() {
    let mut report = crate::testing::report();
    assert!(!render(&report, Colors::None).contains("Agentic browsing"));
    report.categories.push(agentic_browsing());
    let text = render(&report, Colors::None);
    assert!(
        text.contains("  Agentic browsing              2/3\n"),
        "{text}"
    );
    assert!(
        !text.contains("agent-accessibility-tree"),
        "it has no points to gain"
    );
}

#[test]
fn intervals_and_what_to_fix_first_are_shown() {
    let mut measured = Report {
        error: None,
        metrics: Some(Metrics {
            fcp: None,
            lcp: None,
            tbt: None,
            cls: None,
            si: None,
            tti: None,
            missing: Default::default(),
            as_traced: TracedMetrics::default(),
        }),
        categories: serde_json::from_value(serde_json::json!([{
            "id": "seo", "title": "SEO", "score": 50, "checks": [
                check("document-title", "Document has no title", "fail"),
                check("meta-description", "Document has a description", "pass"),
            ],
        }]))
        .unwrap(),
        ..report()
    };
    measured.scores.performance = Some(95);
    measured.intervals = crate::testing::intervals();
    let text = render(&measured, Colors::None);
    assert!(!text.contains("Runs"), "{text}");
    for expected in [
        "  Performance                    95  (94 to 100)\n",
        "  Intervals (in brackets)      90 %, from the visits of this audit\n",
        "\n  What to fix first\n  1. Document has no title (+50 points in SEO)\n",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains("has a description"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    let text = render(&measured, Colors::Ansi);
    assert!(text.contains("\u{1b}[32m     95\u{1b}[0m"), "{text:?}");
}

#[test]
fn the_range_of_several_runs_and_the_line_of_a_fix_are_shown() {
    let mut report = crate::testing::report();
    report.final_url = Some("https://example.com/".to_owned());
    report.metrics.as_mut().unwrap().lcp = Some(Metric {
        value: 1300.0,
        score: 0.99,
    });
    let mut faster = report.clone();
    faster.scores.performance = Some(91);
    faster.metrics.as_mut().unwrap().lcp.as_mut().unwrap().value = 1250.0;
    let mut failed = check("errors-in-console", "Errors in the console", "fail");
    failed["details"] = serde_json::json!({ "kind": "console", "items": [{
        "text": "x is not defined", "source": "exception", "url": "https://example.com/a.js",
        "line": 11, "column": 4,
    }] });
    report.categories = serde_json::from_value(serde_json::json!([{
        "id": "seo", "title": "SEO", "score": 50, "checks": [failed],
    }]))
    .unwrap();
    report.intervals = crate::testing::intervals();
    report.runs = Some(plumbline_model::runs::spread(
        &[report.clone(), faster],
        2,
        0,
    ));
    let text = render(&report, Colors::None);
    for expected in [
        "  Runs                         2, run 1 shown (median); performance scores from 91 to 97\n",
        "  Largest Contentful Paint   1.30 s  good  (1.90 s to 2.10 s)  1.25 s to 1.30 s in all runs\n",
        "  Cumulative Layout Shift     0.012  good\n",
        "  1. Errors in the console (+100 points in SEO)\n     /a.js:12:5\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_fix_names_the_categories_of_its_points_and_the_element() {
    let mut images = check("image-alt", "Images have no alternative text", "fail");
    images["details"] = serde_json::json!({ "kind": "elements", "items": [{ "node": {
        "selector": "img", "snippet": "<img src=\"a.png\">", "label": "img", "rect": null } }] });
    let mut report = crate::testing::report();
    let category = |id: &str, title: &str, checks: Vec<&serde_json::Value>| serde_json::json!({ "id": id, "title": title, "score": 50, "checks": checks });
    let other = check("html-has-lang", "Language", "pass");
    report.categories = serde_json::from_value(serde_json::json!([
        category("accessibility", "Accessibility", vec![&images, &other]),
        category("seo", "SEO", vec![&images]),
    ]))
    .unwrap();
    let text = render(&report, Colors::None);
    let fix = "  1. Images have no alternative text (+50 points in Accessibility, +100 points in SEO)\n     \
               <img src=\"a.png\">\n";
    assert!(text.contains(fix), "{text}");
}

#[test]
fn categories_are_in_the_order_of_the_page() {
    let mut report = crate::testing::report();
    report.scores.accessibility = Some(1);
    report.scores.seo = Some(2);
    report.categories.push(agentic_browsing());
    let text = render(&report, Colors::None);
    let names = [
        "Performance",
        "Accessibility",
        "Best practices",
        "SEO",
        "Agentic browsing",
        "PWA",
    ];
    let positions = names.map(|name| text.find(&format!("\n  {name}  ")));
    assert!(positions.iter().all(Option::is_some), "{text}");
    assert!(positions.is_sorted(), "{text}");
}

#[test]
fn an_error_status_names_the_flag_that_allows_it() {
    let failure = Failure::new(FailureCode::HttpError, "Status 404.\u{1b}");
    assert_eq!(
        not_measured(&failure),
        "Not measured: Status 404.\u{fffd} (HTTP_ERROR)\n\
         To measure the page that was sent, add: --allow-error-status"
    );
    let text = render(&report(), Colors::None);
    assert!(!text.contains("--allow-error-status"), "{text}");
}

fn check(id: &str, title: &str, verdict: &str) -> serde_json::Value {
    serde_json::json!({
        "id": id, "title": title, "verdict": verdict, "weight": 1.0,
        "score": f64::from(u8::from(verdict == "pass")), "group": "seo-content",
        "why": "", "fix": "",
    })
}
