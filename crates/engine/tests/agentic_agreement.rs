//! Tests that the agentic browsing checks have the verdicts of Lighthouse on generated evidence.
//! `bench/agentic_verdicts.mjs` writes the cases.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use plumbline_bundle::{Artifact, BrowserIdentity, Bundle, FORMAT, MainDocument};
use plumbline_catalog::Mode;
use plumbline_engine::facts::Facts;
use plumbline_engine::registry;
use plumbline_model::category::CategoryId;
use plumbline_model::check::Verdict;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Case {
    check: String,
    artifacts: BTreeMap<String, Box<RawValue>>,
    verdict: Verdict,
}

impl Case {
    fn bundle(self) -> Bundle {
        let gathered = |(name, raw)| (name, Artifact::Gathered(raw));
        Bundle {
            recording: None,
            profile_trace: None,
            format: FORMAT,
            requested_url: "https://example.test/".to_owned(),
            final_url: "https://example.test/".to_owned(),
            document: MainDocument::default(),
            browser: BrowserIdentity::default(),
            trace: b"[]".to_vec(),
            log: b"[]".to_vec(),
            screenshot: None,
            artifacts: self.artifacts.into_iter().map(gathered).collect(),
            warnings: Vec::new(),
            timings: Vec::new(),
        }
    }
}

#[test]
fn every_verdict_is_that_of_lighthouse() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/agentic.json");
    let text = fs::read_to_string(file).expect("the cases");
    let cases: Vec<Case> = serde_json::from_str(&text).expect("cases");
    assert!(cases.len() > 400, "{}", cases.len());
    let mut differences = Vec::new();
    for case in cases {
        let (check, expected) = (case.check.clone(), case.verdict);
        let evidence = serde_json::to_string(&case.artifacts).expect("JSON");
        let bundle = case.bundle();
        let facts = Facts::new(&bundle, Mode::Mobile);
        let entry = registry::categories()
            .into_iter()
            .filter(|category| category.id == CategoryId::AgenticBrowsing)
            .flat_map(|category| category.entries)
            .find(|entry| entry.check.id == check)
            .expect("the check");
        let outcome = (entry.check.run)(&facts);
        let verdict = outcome.map_or(Verdict::CouldNotMeasure, |outcome| outcome.verdict);
        if verdict != expected {
            differences.push(format!(
                "{check}: {verdict:?}, not {expected:?}: {evidence}"
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
