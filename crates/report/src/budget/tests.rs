use serde_json::json;

use super::assertion::Kind;
use super::*;

/// A run with the given paint and interactive, a score of 0.8, a script of 200 KiB, a failed check with two
/// items, one that does not apply, and one that could not be measured.
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

/// What of each assertion came out: its key, what was found, whether it holds.
fn check(file_name: &str, text: &str) -> Vec<(String, Option<f64>, bool)> {
    let budget = Budget::read(file_name, text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let findings = budget.check(&runs()).findings.into_iter();
    findings
        .map(|finding| (finding.key, finding.actual, finding.passed))
        .collect()
}

#[test]
fn our_own_budget_is_held_against_the_median_run() {
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
fn lighthouse_cis_words_mean_what_they_mean_there() {
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
fn only_what_is_for_the_address_is_asserted() {
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
    let found = check("budgets.json", &budgets.to_string());
    assert_eq!(
        found,
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
fn a_preset_asserts_what_there_is_and_can_be_changed() {
    let preset = |assertions: Value| {
        let text = json!({ "preset": "lighthouse:recommended", "assertions": assertions });
        Budget::read("b.json", &text.to_string())
            .unwrap()
            .check(&runs())
    };
    let all = preset(json!({}));
    let failed = |verdicts: &Verdicts| {
        let failed = verdicts.findings.iter().filter(|finding| !finding.passed);
        failed
            .map(|finding| (finding.key.clone(), finding.level))
            .collect::<Vec<_>>()
    };
    assert!(all.not_there > 100, "{}", all.not_there);
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
    assert!(!changed.is_exceeded(), "warnings exceed nothing");
    // What was asked for by name must be there.
    let named = preset(json!({ "uses-http2": "error" }));
    assert!(
        named
            .findings
            .iter()
            .any(|f| f.key == "uses-http2" && f.kind == Kind::AuditRan)
    );
}

#[test]
fn a_wrong_file_names_the_line_and_what_is_wrong_there() {
    for (name, text, line, what) in [
        (
            "b.toml",
            "[scores]\nperformance = 80\nspeed = 3",
            Some(3),
            "`speed` in [scores] is no category",
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
            "`lcp` in [metrics] is no metric; there are fcp-ms",
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
            "no resource type `scripts`",
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
            "`budget` is no part of a budget",
        ),
        ("b.toml", "[scores]\nperformance = ", Some(2), "not TOML"),
        (
            "b.toml",
            "aggregate = \"mean\"",
            Some(1),
            "no way to aggregate",
        ),
        (
            "b.toml",
            "preset = \"strict\"",
            Some(1),
            "no preset `strict`",
        ),
        (
            "b.toml",
            "[assertions]\nimage-alt = \"fatal\"",
            Some(2),
            "there are error, warn, off",
        ),
        ("b.toml", "", None, "nothing is asserted"),
        (
            "b.json",
            "{\n\"assertions\": {\n}}",
            None,
            "nothing is asserted",
        ),
        ("b.json", "{\n\"assertions\": {,}}", Some(2), "not JSON"),
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
            "is no assertion",
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
            "no pattern",
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
            "`pathh` is no part",
        ),
        (
            "b.json",
            "{\"budgetsFile\": \"x.json\"}",
            Some(1),
            "names another file",
        ),
    ] {
        let error = Budget::read(name, text).unwrap_err();
        assert!(error.what.contains(what), "{text}: {error}");
        assert_eq!(error.line, line, "{text}: {error}");
    }
}

#[test]
fn the_table_says_what_failed_and_by_how_much() {
    let text = "[scores]\nperformance = 90\n[metrics]\nfcp-ms = { max = 800, level = \"warn\" }\n\
                [sizes]\nscript-kib = 100\n[checks]\nno-such = \"error\"\ncanonical = \"error\"";
    let verdicts = Budget::read("b.toml", text).unwrap().check(&runs());
    assert!(verdicts.is_exceeded());
    let table = verdicts.table(3);
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for line in [
        "Budget: 4 of 5 not kept, 3 runs.",
        "failed categories:performance ≥ 90 80 10 (-11 %)",
        "failed resource-summary:script:size ≤ 100.0 KiB 200.0 KiB 100.0 KiB (+100 %)",
        "failed no-such a value none the report has no `no-such`",
        "warning first-contentful-paint ≤ 800 ms 1000 ms 200 ms (+25 %)",
    ] {
        assert!(lines.iter().any(|found| found == line), "{line}\n{table}");
    }
}

/// Kept figures are judged again: one read a last digit off would be another figure.
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
