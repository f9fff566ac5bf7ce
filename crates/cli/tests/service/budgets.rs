//! Budgets as people and build servers meet them, and beside Lighthouse CI's own assertions.

use std::fs;

use plumbline_report::budget::{Budget, Level, median_run};
use serde_json::{Value, json};

use crate::hostile::exports;
use crate::pages;
use crate::server::plumbline;
use crate::tools;

#[test]
fn exit_codes_tell_kept_budgets_from_exceeded_and_wrong_ones() {
    let bundle = exports().dir().join("bundle.gz");
    let dir = tempfile::tempdir().unwrap();
    for (name, text, code, said) in [
        (
            "a.toml",
            "[scores]\nperformance = 1",
            0,
            "Budget kept: all 1 hold.",
        ),
        (
            "b.toml",
            "[metrics]\nfcp-ms = 0.5",
            3,
            "first-contentful-paint",
        ),
        (
            "c.toml",
            "[metrics]\nfcp-ms = { max = 0.5, level = \"warn\" }",
            0,
            "warning",
        ),
        ("d.toml", "[checks]\nimage-alt = \"error\"", 3, "image-alt"),
        (
            "e.toml",
            "[checks]\nimage-alt = { max-items = 1 }",
            0,
            "Budget kept",
        ),
        (
            "f.toml",
            "[sizes]\ntotal-kib = 1000\n[counts]\ntotal = 100",
            0,
            "all 2 hold",
        ),
        (
            "g.toml",
            "[sizes]\ntotal-kib = 0",
            3,
            "resource-summary:total:size",
        ),
        (
            "h.toml",
            "[counts]\nscript = 0",
            3,
            "resource-summary:script:count",
        ),
        (
            "i.toml",
            "[scores]\nperformance = 1\nspeed = 1",
            2,
            "i.toml: line 3: `speed` in [scores]",
        ),
        ("j.toml", "[scores", 2, "line 1: not TOML"),
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
            "of the preset's audits",
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
        assert!(all.contains(said), "{text}\n{all}");
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
fn several_runs_are_made_and_the_median_one_is_held_against_the_budget() {
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
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("of 2 stands for all"), "{said}");
    assert!(said.contains("Budget: 1 of 2 not kept, 2 runs."), "{said}");
    let gone = format!("http://{}/", pages::nobody());
    let output = plumbline()
        .args(["audit", &gone, "--runs", "3", "--budget"])
        .arg(&budget)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// Numbers without a pattern, the same in every run of the test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's linear congruential generator.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[test]
fn the_median_run_is_the_one_that_lighthouse_ci_takes() {
    let mut dice = Dice(7);
    let sets: Vec<Vec<Value>> = (0..2000)
        .map(|_| {
            // Few different values, so that there are ties; sometimes none at all.
            let values = [5, 100, 100_000][dice.roll(3) as usize];
            let runs = 1 + dice.roll(9);
            (0..runs)
                .map(|_| {
                    let mut audits = json!({});
                    for id in ["first-contentful-paint", "interactive"] {
                        if dice.roll(10) > 0 {
                            audits[id] = json!({ "numericValue": dice.roll(values) as f64 / 8.0 });
                        }
                    }
                    json!({ "audits": audits })
                })
                .collect()
        })
        .collect();
    let asked: Vec<Value> = sets.iter().map(|runs| json!({ "runs": runs })).collect();
    let answers = tools::script("lhci.mjs", &[], &json!(asked).to_string());
    let answers: Vec<Value> = serde_json::from_str(&answers).unwrap();
    assert_eq!(answers.len(), sets.len());
    for (runs, answer) in sets.iter().zip(&answers) {
        assert_eq!(
            median_run(runs).map(|at| at as u64),
            answer["median"].as_u64(),
            "{runs:?}"
        );
    }
}

#[test]
fn assertions_find_what_lighthouse_ci_finds() {
    let result: Value = serde_json::from_str(&exports().text("lighthouse.json")).unwrap();
    // Three runs that differ in what is asserted most.
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
    let mut asked = vec![json!([{ "path": "/page*",
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
        // There Lighthouse CI takes the best of all runs for the median one, which we do not
        // repeat.
        if method != "median-run" {
            assertions["categories:performance"] = json!(["error", { "minScore": 0.9 }]);
        }
        asked.push(json!({ "assertions": assertions, "aggregationMethod": method }));
    }
    let input: Vec<Value> = asked
        .iter()
        .map(|options| json!({ "options": options, "runs": runs }))
        .collect();
    let answers = tools::script("lhci.mjs", &[], &json!(input).to_string());
    let answers: Vec<Value> = serde_json::from_str(&answers).unwrap();
    for (options, answer) in asked.iter().zip(&answers) {
        let budget = Budget::read("b.json", &options.to_string()).unwrap();
        let mut ours: Vec<Value> = budget
            .check(&runs)
            .results
            .iter()
            .map(|finding| {
                json!([
                    finding.key.replace(':', "."),
                    format!("{:?}", finding.kind),
                    finding.level == Level::Warn,
                    finding.expected,
                    finding.actual,
                    finding.passed,
                ])
            })
            .collect();
        let mut theirs: Vec<Value> = answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(in_our_words)
            .collect();
        ours.sort_by_key(Value::to_string);
        theirs.sort_by_key(Value::to_string);
        assert_eq!(ours, theirs, "{options}");
    }
}

fn in_our_words(result: &Value) -> Value {
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
