use serde_json::json;

use super::assertion::Kind;
use super::*;
use crate::lighthouse::INTERVAL;

/// Returns a run with this First Contentful Paint and Time to Interactive, a score of 0.8, a script
/// of 200 KiB, a failed check with two items, one that does not apply, and one that could not be
/// measured.
fn run(fcp_ms: f64, tti_ms: f64) -> Value {
    json!({
        "finalUrl": "https://example.com/shop/",
        "categories": { "performance": { "score": 0.8 }, "seo": { "score": null } },
        "audits": {
            "first-contentful-paint": { "score": 0.5, "numericValue": fcp_ms, "numericUnit": "millisecond" },
            "interactive": { "score": 0.5, "numericValue": tti_ms, "numericUnit": "millisecond" },
            "image-alt": { "score": 0, "scoreDisplayMode": "binary", "details": { "items": [{}, {}] } },
            "canonical": { "score": null, "scoreDisplayMode": "notApplicable" },
            "hreflang": { "score": null, "scoreDisplayMode": "error" },
            "resource-summary": { "score": 1, "scoreDisplayMode": "informative", "details": { "items": [
                { "resourceType": "script", "requestCount": 3, "transferSize": 204_800 },
            ] } },
        },
    })
}

fn runs() -> Vec<Value> {
    vec![run(900.0, 3000.0), run(1000.0, 3100.0), run(2000.0, 3200.0)]
}

/// Returns the key, the actual value and the result of each assertion.
fn check(file_name: &str, text: &str) -> Vec<(String, Option<f64>, bool)> {
    let budget = Budget::read(file_name, text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let results = budget.check(&runs()).results.into_iter();
    results
        .map(|assertion| (assertion.key, assertion.actual, assertion.passed))
        .collect()
}

#[test]
fn a_toml_budget_is_checked_against_the_median_run() {
    for (text, key, actual, passed) in [
        (
            "[scores]\nperformance = 80",
            "categories:performance",
            Some(0.8),
            true,
        ),
        (
            "[scores]\nperformance = 81",
            "categories:performance",
            Some(0.8),
            false,
        ),
        ("[scores]\nseo = 1", "categories:seo", None, false),
        (
            "[metrics]\nfcp-ms = 1000",
            "first-contentful-paint",
            Some(1000.0),
            true,
        ),
        (
            "[metrics]\nfcp-ms = 999.5",
            "first-contentful-paint",
            Some(1000.0),
            false,
        ),
        (
            "[metrics]\nfcp-ms = { max = 1000, aggregate = \"pessimistic\" }",
            "first-contentful-paint",
            Some(2000.0),
            false,
        ),
        (
            "[sizes]\nscript-kib = 200",
            "resource-summary:script:size",
            Some(204_800.0),
            true,
        ),
        (
            "[sizes]\nscript-kib = 199",
            "resource-summary:script:size",
            Some(204_800.0),
            false,
        ),
        (
            "[counts]\nscript = 2",
            "resource-summary:script:count",
            Some(3.0),
            false,
        ),
        (
            "[counts]\nimage = 2",
            "resource-summary:image:count",
            Some(0.0),
            false,
        ),
        (
            "[checks]\nimage-alt = \"error\"",
            "image-alt",
            Some(0.0),
            false,
        ),
        (
            "[checks]\nimage-alt = { max-items = 2 }",
            "image-alt",
            Some(2.0),
            true,
        ),
        (
            "[checks]\ncanonical = \"error\"",
            "canonical",
            Some(1.0),
            true,
        ),
        ("[checks]\nhreflang = \"error\"", "hreflang", None, false),
        (
            "[checks]\nno-such-check = \"error\"",
            "no-such-check",
            Some(0.0),
            false,
        ),
    ] {
        assert_eq!(
            check("b.toml", text),
            [(key.to_owned(), actual, passed)],
            "{text}"
        );
    }
}

#[test]
fn assertions_have_the_same_meaning_as_in_lighthouse_ci() {
    for (assertions, key, actual, passed) in [
        // Without options: a score of 0.9. Without a method: the best run.
        (
            json!({ "interactive": "error" }),
            "interactive",
            Some(0.5),
            false,
        ),
        (
            json!({ "first-contentful-paint": ["error", { "maxNumericValue": 900 }] }),
            "first-contentful-paint",
            Some(900.0),
            true,
        ),
        (
            json!({ "firstContentfulPaint": ["warn", { "maxNumericValue": 1100, "aggregationMethod": "median" }] }),
            "first-contentful-paint",
            Some(1000.0),
            true,
        ),
        (
            json!({ "categories:performance": ["error", { "minScore": 0.9 }] }),
            "categories:performance",
            Some(0.8),
            false,
        ),
        (
            json!({ "resource-summary.script.size": ["error", { "maxNumericValue": 1 }] }),
            "resource-summary:script:size",
            Some(204_800.0),
            false,
        ),
        (
            json!({ "image-alt": ["error", { "maxLength": 1 }] }),
            "image-alt",
            Some(2.0),
            false,
        ),
    ] {
        let whole = json!({ "ci": { "collect": {}, "assert": { "assertions": assertions } } });
        let expected = [(key.to_owned(), actual, passed)];
        assert_eq!(
            check("lighthouserc.json", &whole.to_string()),
            expected,
            "{assertions}"
        );
        let part = json!({ "assertions": assertions });
        assert_eq!(
            check(".lighthouserc", &part.to_string()),
            expected,
            "{assertions}"
        );
    }
}

#[test]
fn only_assertions_for_the_url_are_checked() {
    let matrix = json!({ "assertMatrix": [
        { "matchingUrlPattern": "/shop/$", "assertions": { "interactive": "warn" } },
        { "matchingUrlPattern": "/blog/", "assertions": { "image-alt": "error" } },
    ]});
    assert_eq!(
        check("b.json", &matrix.to_string()),
        [("interactive".to_owned(), Some(0.5), false)]
    );
    let budgets = json!([
        { "path": "/shop*", "timings": [{ "metric": "interactive", "budget": 3000 }] },
        { "path": "/shop$", "timings": [{ "metric": "interactive", "budget": 1 }] },
        { "path": "/", "resourceSizes": [{ "resourceType": "script", "budget": 100 }],
          "resourceCounts": [{ "resourceType": "script", "budget": 3 }] },
    ]);
    let results = check("budgets.json", &budgets.to_string());
    assert_eq!(
        results,
        [
            ("interactive".to_owned(), Some(3000.0), true),
            ("resource-summary:script:count".to_owned(), Some(3.0), true),
            (
                "resource-summary:script:size".to_owned(),
                Some(204_800.0),
                false
            ),
        ]
    );
}

#[test]
fn a_preset_skips_unknown_audits_and_can_be_overridden() {
    let preset = |assertions: Value| {
        let text = json!({ "preset": "lighthouse:recommended", "assertions": assertions });
        Budget::read("b.json", &text.to_string())
            .unwrap()
            .check(&runs())
    };
    let all = preset(json!({}));
    let failed = |result: &BudgetResult| {
        let failed = result.results.iter().filter(|assertion| !assertion.passed);
        failed
            .map(|assertion| (assertion.key.clone(), assertion.level))
            .collect::<Vec<_>>()
    };
    assert!(all.missing_audits > 100, "{}", all.missing_audits);
    let expected = [
        ("first-contentful-paint", Level::Warn),
        ("hreflang", Level::Error),
        ("image-alt", Level::Error),
        ("interactive", Level::Warn),
    ];
    assert_eq!(
        failed(&all),
        expected.map(|(id, level)| (id.to_owned(), level))
    );
    let changed = preset(json!({ "hreflang": "off", "image-alt": "off", "interactive": "off" }));
    assert!(!changed.is_exceeded(), "warnings do not exceed the budget");
    // An audit named in the file must exist.
    let named = preset(json!({ "uses-http2": "error" }));
    assert!(
        named
            .results
            .iter()
            .any(|f| f.key == "uses-http2" && f.kind == Kind::AuditRan)
    );
}

#[test]
fn a_limit_of_an_audit_that_no_report_has_is_found_without_a_report() {
    for (name, text, unknown) in [
        (
            "b.toml",
            "[checks]\nimage-alt = \"error\"\nimage-alts = \"warn\"",
            Some("image-alts"),
        ),
        (
            "b.toml",
            "[checks]\nold-check = \"off\"\nimage-alt = \"error\"",
            None,
        ),
        (
            "b.toml",
            "[scores]\nseo = 1\n[metrics]\nlcp-ms = 1\n[sizes]\nthird-party-kib = 1",
            None,
        ),
        (
            "b.json",
            r#"{"preset": "lighthouse:all", "assertions": {"usesHttp2": "error"}}"#,
            Some("usesHttp2"),
        ),
        ("b.json", r#"{"preset": "lighthouse:all"}"#, None),
        (
            "b.json",
            r#"{"assertions": {"categories.speed": ["error", {"minScore": 0.5}]}}"#,
            Some("categories.speed"),
        ),
        (
            "b.json",
            r#"{"assertions": {"network-rtt": "error", "focus-traps": "warn"}}"#,
            None,
        ),
    ] {
        let budget = Budget::read(name, text).unwrap();
        assert_eq!(budget.unknown_audit(&["image-alt"]), unknown, "{text}");
    }
}

#[test]
fn an_invalid_file_is_an_error_with_its_line() {
    for (name, text, line, message) in [
        (
            "b.toml",
            "[scores]\nperformance = 80\nspeed = 3",
            Some(3),
            "`speed` in [scores] is not a category",
        ),
        (
            "b.toml",
            "[scores]\nperformance = 101",
            Some(2),
            "from 0 to 100",
        ),
        (
            "b.toml",
            "[metrics]\n\nlcp = 100",
            Some(3),
            "`lcp` in [metrics] is not a metric; metrics are fcp-ms",
        ),
        (
            "b.toml",
            "[metrics]\nlcp-ms = \"fast\"",
            Some(2),
            "must be a number",
        ),
        (
            "b.toml",
            "[metrics]\nlcp-ms = { max = 1, min = 2 }",
            Some(2),
            "has no option `min`",
        ),
        (
            "b.toml",
            "[sizes]\nscript = 100",
            Some(2),
            "must end in -kib",
        ),
        (
            "b.toml",
            "[sizes]\nscripts-kib = 100",
            Some(2),
            "unknown resource type `scripts`",
        ),
        (
            "b.toml",
            "[checks]\nimage-alt = \"fatal\"",
            Some(2),
            "\"error\", \"warn\", \"off\"",
        ),
        (
            "b.toml",
            "[budget]\nx = 1",
            Some(1),
            "`budget` is not a section of a budget",
        ),
        (
            "b.toml",
            "[scores]\nperformance = ",
            Some(2),
            "invalid TOML",
        ),
        (
            "b.toml",
            "[scores]\nperformance = 80\n= 3\n",
            Some(3),
            "invalid TOML",
        ),
        ("b.toml", "\n\n]", Some(3), "invalid TOML"),
        (
            "b.toml",
            "aggregate = \"mean\"",
            Some(1),
            "unknown aggregation method",
        ),
        (
            "b.toml",
            "preset = \"strict\"",
            Some(1),
            "unknown preset `strict`",
        ),
        (
            "b.toml",
            "[assertions]\nimage-alt = \"fatal\"",
            Some(2),
            "levels are error, warn, off",
        ),
        ("b.toml", "", None, "the budget has no limits"),
        (
            "b.json",
            "{\n\"assertions\": {\n}}",
            None,
            "the budget has no limits",
        ),
        ("b.json", "{\n\"assertions\": {,}}", Some(2), "invalid JSON"),
        (
            "b.json",
            "{\"assertions\": {\n\"image-alt\": [\"error\", {\"minimum\": 1}]}}",
            Some(2),
            "`minimum`",
        ),
        (
            "b.json",
            "{\"assertions\": {\n\"image-alt\": [\"error\", {\"minScore\": 90}]}}",
            Some(2),
            "from 0 to 1",
        ),
        (
            "b.json",
            "{\"assertions\": {\"categories:a:b\": \"error\"}}",
            Some(1),
            "is not an assertion",
        ),
        (
            "b.json",
            "{\"ci\": {\"collect\": {}}}",
            Some(1),
            "has no `assert`",
        ),
        (
            "b.json",
            "{\"assertMatrix\": [{\"matchingUrlPattern\": \"(\"}]}",
            Some(1),
            "not a valid pattern",
        ),
        (
            "b.json",
            "[{\"resourceSizes\": [{\"resourceType\": \"video\", \"budget\": 1}]}]",
            Some(1),
            "`video`",
        ),
        (
            "b.json",
            "[{\"pathh\": \"/\"}]",
            Some(1),
            "`pathh` is not a member",
        ),
        (
            "b.json",
            "{\"budgetsFile\": \"x.json\"}",
            Some(1),
            "is another file",
        ),
    ] {
        let error = Budget::read(name, text).unwrap_err();
        assert!(error.message.contains(message), "{text}: {error}");
        assert_eq!(error.line, line, "{text}: {error}");
    }
}

/// Returns a run whose First Contentful Paint of 1000 ms and score of 0.8 have intervals.
fn run_with_intervals() -> Value {
    let mut run = run(1000.0, 3000.0);
    run["audits"]["first-contentful-paint"][INTERVAL] = json!({ "low": 950.0, "high": 1050.0 });
    run["categories"]["performance"][INTERVAL] = json!({ "low": 0.78, "high": 0.83 });
    run
}

#[test]
fn a_limit_that_is_judged_by_the_interval_fails_only_if_all_of_it_is_beyond() {
    for (text, passed, is_within_interval) in [
        ("[metrics]\nfcp-ms = 960", false, false),
        ("judge = \"value\"\n[metrics]\nfcp-ms = 960", false, false),
        ("judge = \"interval\"\n[metrics]\nfcp-ms = 960", true, true),
        (
            "judge = \"interval\"\n[metrics]\nfcp-ms = 940",
            false,
            false,
        ),
        (
            "judge = \"interval\"\n[metrics]\nfcp-ms = 1000",
            true,
            false,
        ),
        // A limit just above the value passes, although the interval reaches beyond it.
        (
            "judge = \"interval\"\n[metrics]\nfcp-ms = 1010",
            true,
            false,
        ),
        (
            "judge = \"interval\"\n[scores]\nperformance = 82",
            true,
            true,
        ),
        (
            "judge = \"interval\"\n[scores]\nperformance = 84",
            false,
            false,
        ),
        // What has no interval is judged by its value.
        (
            "judge = \"interval\"\n[metrics]\ntti-ms = 2900",
            false,
            false,
        ),
        ("judge = \"interval\"\n[counts]\nscript = 2", false, false),
        (
            "judge = \"interval\"\n[checks]\nimage-alt = \"error\"",
            false,
            false,
        ),
        (
            "[metrics]\nfcp-ms = { max = 960, judge = \"interval\" }",
            true,
            true,
        ),
        (
            "judge = \"interval\"\n[metrics]\nfcp-ms = { max = 960, judge = \"value\" }",
            false,
            false,
        ),
        // The score of a metric has another interval than its value.
        (
            "judge = \"interval\"\n[assertions]\nfirst-contentful-paint = [\"error\", { minScore = 0.6 }]",
            false,
            false,
        ),
        (
            "judge = \"interval\"\n[assertions]\nfirst-contentful-paint = [\"error\", { maxNumericValue = 960 }]",
            true,
            true,
        ),
    ] {
        let budget = Budget::read("b.toml", text).unwrap();
        let result = &budget.check(&[run_with_intervals()]).results[0];
        let found = (result.passed, result.is_within_interval);
        assert_eq!(found, (passed, is_within_interval), "{text}");
    }
    for (text, message) in [
        (
            "judge = \"mean\"\n[scores]\nseo = 1",
            "must be \"value\" or",
        ),
        (
            "[scores]\nseo = { min = 1, judge = \"x\" }",
            "must have value or",
        ),
        (
            "[counts]\nscript = { max = 1, judge = \"value\" }",
            "no option",
        ),
    ] {
        let error = Budget::read("b.toml", text).unwrap_err();
        assert!(error.message.contains(message), "{text}: {error}");
    }
}

#[test]
fn a_budget_of_lighthouse_ci_can_be_judged_by_intervals_and_names_what_is_within() {
    let text = r#"{"assertions": {"categories:performance": ["error", {"minScore": 0.82}]}}"#;
    let mut budget = Budget::read("b.json", text).unwrap();
    let runs = [run_with_intervals()];
    assert!(budget.check(&runs).is_exceeded());
    budget.judge_by_intervals();
    let result = budget.check(&runs);
    assert!(!result.is_exceeded());
    let table = result.table(1);
    assert!(table.starts_with("Budget met: 1 of 1.\n"), "{table}");
    let line = table.lines().find(|line| line.contains("categories:"));
    let line: Vec<&str> = line.unwrap().split_whitespace().collect();
    let expected = "within interval categories:performance ≥ 82 80 −2 points";
    assert_eq!(line.join(" "), expected);
    assert!(table.contains("but not surely, so it passes"), "{table}");
}

#[test]
fn the_table_lists_failed_assertions_with_the_difference() {
    let text = "[scores]\nperformance = 90\n[metrics]\nfcp-ms = { max = 800, level = \"warn\" }\n\
                [sizes]\nscript-kib = 100\n[counts]\nscript = 1\n[checks]\nno-such = \"error\"\n\
                canonical = \"error\"\nimage-alt = \"error\"\nhreflang = \"error\"";
    let result = Budget::read("b.toml", text).unwrap().check(&runs());
    assert!(result.is_exceeded());
    let table = result.table(3);
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for line in [
        "Budget failed: 6 of 8, with 1 warning (3 runs).",
        "failed performance ≥ 90 80 −10 points",
        "failed script-kib ≤ 100.0 KiB 200.0 KiB +100.0 KiB (+100 %)",
        "failed script ≤ 1 request 3 requests +2 requests (+200 %)",
        "failed no-such in the report not in the report",
        "failed image-alt passes fails",
        "failed hreflang passes not measured",
        "warning fcp-ms ≤ 800 ms 1000 ms +200 ms (+25 %)",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line}\n{table}");
    }
}

#[test]
fn warnings_do_not_fail_a_budget() {
    let warning = "[metrics]\nfcp-ms = { max = 800, level = \"warn\" }\n";
    let first_line = |text: &str, runs| {
        let result = Budget::read("b.toml", text).unwrap().check(&self::runs());
        result.table(runs).lines().next().unwrap().to_owned()
    };
    let two =
        format!("{warning}tti-ms = {{ max = 1, level = \"warn\" }}\n[scores]\nperformance = 1");
    assert_eq!(first_line(warning, 1), "Budget met, with 1 warning.");
    assert_eq!(first_line(&two, 3), "Budget met, with 2 warnings (3 runs).");
    let kept = "[scores]\nperformance = 1";
    assert_eq!(first_line(kept, 1), "Budget met: 1 of 1.");
}

/// Stored numbers are evaluated again, so they must be exact to the last digit.
#[test]
fn a_number_is_read_back_as_it_was_written() {
    for written in [
        "207.52200000000002",
        "138.348",
        "0.6333333333333333",
        "1e-320",
    ] {
        let read: f64 = serde_json::from_str(written).unwrap();
        assert_eq!(read, written.parse::<f64>().unwrap());
        let again: f64 = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
        assert_eq!(again, read);
    }
}
