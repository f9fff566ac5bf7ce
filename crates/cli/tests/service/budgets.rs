//! Tests of budgets: exit codes, output, and comparison with the assertions of Lighthouse CI.

use std::fs;

use plumbline_report::budget::{Budget, Level, median_run};
use serde_json::{Value, json};

use crate::hostile::exports;
use crate::pages;
use crate::server::plumbline;
use crate::tools;

#[test]
fn exit_codes_distinguish_passed_exceeded_and_invalid_budgets() {
    let bundle = exports().dir().join("bundle.gz");
    let dir = tempfile::tempdir().unwrap();
    for (name, text, code, expected) in [
        (
            "a.toml",
            "[scores]\nperformance = 1",
            0,
            "Budget met: 1 of 1.",
        ),
        ("b.toml", "[metrics]\nfcp-ms = 0.5", 3, "fcp-ms  ≤ 0.5 ms"),
        (
            "c.toml",
            "[metrics]\nfcp-ms = { max = 0.5, level = \"warn\" }",
            0,
            "Budget met, with 1 warning.",
        ),
        ("d.toml", "[checks]\nimage-alt = \"error\"", 3, "image-alt"),
        (
            "e.toml",
            "[checks]\nimage-alt = { max-items = 1 }",
            0,
            "Budget met",
        ),
        (
            "f.toml",
            "[sizes]\ntotal-kib = 1000\n[counts]\ntotal = 100",
            0,
            "Budget met: 2 of 2",
        ),
        (
            "g.toml",
            "[sizes]\ntotal-kib = 0",
            3,
            "total-kib  ≤ 0.0 KiB",
        ),
        ("h.toml", "[counts]\nscript = 0", 3, "script  ≤ 0 requests"),
        (
            "i.toml",
            "[scores]\nperformance = 1\nspeed = 1",
            2,
            "i.toml: line 3: `speed` in [scores]",
        ),
        ("j.toml", "[scores", 2, "line 1: invalid TOML"),
        (
            "k.json",
            r#"{"assertions": {"image-alt": "error"}}"#,
            3,
            "image-alt",
        ),
        (
            "l.json",
            r#"{"ci": {"assert": {"assertions": {"image-alt": "warn"}}}}"#,
            0,
            "warning",
        ),
        (
            "m.json",
            r#"{"assertions": {"image-alt": ["error", {"minScores": 1}]}}"#,
            2,
            "line 1: `minScores`",
        ),
        (
            "n.json",
            r#"[{"resourceCounts": [{"resourceType": "total", "budget": 1}]}]"#,
            3,
            "total:count",
        ),
        (
            "o.json",
            r#"{"preset": "lighthouse:recommended"}"#,
            3,
            "audits of the preset",
        ),
        (
            "p.toml",
            "[checks]\nimage-alts = \"error\"",
            2,
            "p.toml: unknown check `image-alts` (did you mean `image-alt`?); docs/checks.md lists all checks",
        ),
    ] {
        let file = dir.path().join(name);
        fs::write(&file, text).unwrap();
        let output = plumbline()
            .arg("judge")
            .arg(&bundle)
            .args(["--output", "csv", "--output-path"])
            .arg(dir.path().join("out.csv"))
            .arg("--budget")
            .arg(&file)
            .output()
            .unwrap();
        let all = [output.stdout, output.stderr].concat();
        let all = String::from_utf8(all).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}\n{all}");
        assert!(all.contains(expected), "{text}\n{all}");
    }
    let missing = plumbline()
        .arg("judge")
        .arg(&bundle)
        .args(["--budget", "none.toml"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn a_budget_that_is_judged_by_intervals_fails_only_if_it_is_surely_exceeded() {
    let bundle = exports().dir().join("bundle.gz");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("budget.toml");
    let judge = |arguments: &[&str]| {
        let mut command = plumbline();
        command.arg("judge").arg(&bundle).args(arguments);
        command.output().unwrap()
    };
    let report: Value = serde_json::from_slice(&judge(&[]).stdout).unwrap();
    let value = report["metrics"]["fcp"]["value"].as_f64().unwrap();
    let interval = &report["intervals"]["fcp"];
    let low = interval["low"].as_f64().unwrap();
    assert!(low < value && value <= interval["high"].as_f64().unwrap());
    assert_eq!(interval["level"], 0.9);
    for (limit, judge_line, flag, code) in [
        (f64::midpoint(low, value), "", None, 3),
        (
            f64::midpoint(low, value),
            "",
            Some("--budget-by-interval"),
            0,
        ),
        (f64::midpoint(low, value), "judge = \"interval\"\n", None, 0),
        (low - 1.0, "judge = \"interval\"\n", None, 3),
        (low - 1.0, "", Some("--budget-by-interval"), 3),
    ] {
        fs::write(&file, format!("{judge_line}[metrics]\nfcp-ms = {limit:?}")).unwrap();
        let budget = file.to_str().unwrap();
        let arguments = ["--budget", budget].into_iter().chain(flag);
        let output = judge(&arguments.collect::<Vec<_>>());
        let table = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{limit} {flag:?}: {table}"
        );
        let is_named = table.contains("within interval");
        assert_eq!(is_named, code == 0, "{table}");
    }
    let alone = judge(&["--budget-by-interval"]);
    assert_eq!(alone.status.code(), Some(2), "it needs a budget");
}

#[test]
fn an_unknown_id_of_a_budget_is_reported_before_anything_is_judged() {
    let bundle = exports().dir().join("bundle.gz");
    let dir = tempfile::tempdir().unwrap();
    let (budget, csv) = (dir.path().join("budget.toml"), dir.path().join("out.csv"));
    fs::write(&budget, "[checks]\nimage-alts = \"error\"").unwrap();
    let output = plumbline()
        .arg("judge")
        .arg(&bundle)
        .args(["--output", "csv", "--output-path"])
        .arg(&csv)
        .arg("--budget")
        .arg(&budget)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!csv.exists());
}

#[test]
fn the_median_of_several_runs_is_checked_against_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let budget = dir.path().join("budget.toml");
    fs::write(
        &budget,
        "[metrics]\nfcp-ms = 0.5\n[scores]\nperformance = 1\n",
    )
    .unwrap();
    let url = format!("http://{}/", pages::serve());
    let output = plumbline()
        .args([
            "audit",
            &url,
            "--device",
            "desktop",
            "--network",
            "wifiFast",
            "--runs",
            "2",
            "--budget",
        ])
        .arg(&budget)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("shown (median)"), "{stdout}");
    assert!(
        stdout.contains("Budget failed: 1 of 2 (2 runs)."),
        "{stdout}"
    );
    let unreachable = format!("http://{}/", pages::unused_address());
    let output = plumbline()
        .args(["audit", &unreachable, "--runs", "3", "--budget"])
        .arg(&budget)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// A pseudo-random number generator with the same numbers in every run of the test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // Knuth's linear congruential generator.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn the_median_run_is_that_of_lighthouse_ci() {
    let mut random = Random(7);
    let sets: Vec<Vec<Value>> = (0..2000)
        .map(|_| {
            // Few different values, so that there are ties; some values are missing.
            let values = [5, 100, 100_000][random.below(3) as usize];
            let runs = 1 + random.below(9);
            (0..runs)
                .map(|_| {
                    let mut audits = json!({});
                    for id in ["first-contentful-paint", "interactive"] {
                        if random.below(10) > 0 {
                            audits[id] =
                                json!({ "numericValue": random.below(values) as f64 / 8.0 });
                        }
                    }
                    json!({ "audits": audits })
                })
                .collect()
        })
        .collect();
    let input: Vec<Value> = sets.iter().map(|runs| json!({ "runs": runs })).collect();
    let outputs = tools::script("lhci.mjs", &[], &json!(input).to_string());
    let outputs: Vec<Value> = serde_json::from_str(&outputs).unwrap();
    assert_eq!(outputs.len(), sets.len());
    for (runs, output) in sets.iter().zip(&outputs) {
        assert_eq!(
            median_run(runs).map(|index| index as u64),
            output["median"].as_u64(),
            "{runs:?}"
        );
    }
}

#[test]
fn assertions_have_the_results_of_lighthouse_ci() {
    let result: Value = serde_json::from_str(&exports().text("lighthouse.json")).unwrap();
    // Three runs that differ in the asserted values.
    let runs: Vec<Value> = [1.0, 1.5, 3.0]
        .into_iter()
        .map(|slower| {
            let mut run = result.clone();
            for id in [
                "first-contentful-paint",
                "interactive",
                "largest-contentful-paint",
            ] {
                let value = run["audits"][id]["numericValue"].as_f64().unwrap();
                run["audits"][id]["numericValue"] = json!(value * slower);
                run["audits"][id]["score"] = json!(1.0 / slower);
            }
            run["categories"]["performance"]["score"] = json!(0.95 / slower);
            run
        })
        .collect();
    let methods = ["median", "optimistic", "pessimistic", "median-run"];
    let mut options_list = vec![json!([{ "path": "/page*",
        "timings": [{ "metric": "interactive", "budget": 500 }],
        "resourceSizes": [{ "resourceType": "script", "budget": 1 }],
        "resourceCounts": [{ "resourceType": "third-party", "budget": 0 }] }])];
    for method in methods {
        let mut assertions = json!({
            "first-contentful-paint": ["error", { "maxNumericValue": 100 }],
            "largest-contentful-paint": ["warn", { "minScore": 0.5, "maxNumericValue": 100_000 }],
            "interactive": "error",
            "image-alt": ["error", { "maxLength": 0 }],
            "button-name": "warn",
            "hreflang": "error",
            "js-libraries": "error",
            "redirects-http": "error",
            "no-such-audit": "error",
            "speed-index": "off",
            "resource-summary:total:size": ["error", { "maxNumericValue": 1000 }],
            "resource-summary:font:count": ["error", { "maxNumericValue": 0 }],
            "total-byte-weight": ["error", { "maxNumericValue": 1 }],
        });
        // For categories, Lighthouse CI uses the best of all runs instead of the median run, which
        // is not repeated here.
        if method != "median-run" {
            assertions["categories:performance"] = json!(["error", { "minScore": 0.9 }]);
        }
        options_list.push(json!({ "assertions": assertions, "aggregationMethod": method }));
    }
    let input: Vec<Value> = options_list
        .iter()
        .map(|options| json!({ "options": options, "runs": runs }))
        .collect();
    let outputs = tools::script("lhci.mjs", &[], &json!(input).to_string());
    let outputs: Vec<Value> = serde_json::from_str(&outputs).unwrap();
    for (options, output) in options_list.iter().zip(&outputs) {
        let budget = Budget::read("b.json", &options.to_string()).unwrap();
        let mut ours: Vec<Value> = budget
            .check(&runs)
            .results
            .iter()
            .map(|assertion| {
                json!([
                    assertion.key.replace(':', "."),
                    format!("{:?}", assertion.kind),
                    assertion.level == Level::Warn,
                    assertion.expected,
                    assertion.actual,
                    assertion.passed,
                ])
            })
            .collect();
        let mut theirs: Vec<Value> = output["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(converted)
            .collect();
        ours.sort_by_key(Value::to_string);
        theirs.sort_by_key(Value::to_string);
        assert_eq!(ours, theirs, "{options}");
    }
}

/// Converts a result of Lighthouse CI for comparison.
fn converted(result: &Value) -> Value {
    let text = |member: &str| result[member].as_str().unwrap_or_default().to_owned();
    let key = match result["property"].as_str() {
        Some(property) => format!("{}.{property}", text("audit")),
        None => text("audit"),
    };
    let name = text("name");
    let kind = name[..1].to_uppercase() + &name[1..];
    json!([
        key,
        kind,
        text("level") == "warn",
        result["expected"].as_f64(),
        result["actual"].as_f64(),
        result["passed"],
    ])
}
