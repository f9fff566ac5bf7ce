//! A report and a bundle for the tests of this crate.

use std::collections::BTreeMap;

use plumbline_bundle::{Bundle, FORMAT};
use plumbline_model::category::CategoryResult;
use plumbline_model::interval::Intervals;
use plumbline_model::report::Report;
use serde_json::json;

/// A text with which an audited page tries to inject markup.
pub(crate) const HOSTILE: &str = r#""><script>alert(1)</script>"#;

/// Returns a measured report of a hostile page, with checks of most verdicts.
pub(crate) fn report() -> Report {
    let metric = |value: f64, score: f64| json!({ "value": value, "score": score });
    let check = |id: &str, verdict: &str, weight: f64, more: serde_json::Value| {
        let mut check = json!({
            "id": id, "title": format!("About {id}"), "verdict": verdict, "weight": weight,
            "score": match verdict { "pass" => Some(1.0), "fail" => Some(0.0), _ => None },
            "group": "seo-content", "why": "It matters.", "fix": "Do it.",
        });
        for (name, value) in more.as_object().unwrap() {
            check[name] = value.clone();
        }
        check
    };
    let checks = json!([
        check(
            "meta-description",
            "fail",
            1.0,
            json!({
                "summary": format!("=cmd() {HOSTILE}\u{1b}[31m"),
                "details": { "kind": "elements", "items": [{ "node": {
                    "selector": HOSTILE, "snippet": HOSTILE, "label": HOSTILE, "rect": null } }] },
            })
        ),
        check("link-text", "pass", 1.0, json!({})),
        check("canonical", "notApplicable", 0.0, json!({})),
        check(
            "hreflang",
            "couldNotMeasure",
            1.0,
            json!({ "summary": "the page hung" })
        ),
    ]);
    serde_json::from_value(json!({
        "format": 1,
        "requestedUrl": "https://example.com/",
        "finalUrl": "https://example.com/%22%3E%3Cscript%3E",
        "conditions": {
            "device": { "id": "mobile", "name": "Phone (412x823)", "mode": "mobile" },
            "network": { "id": "cable", "name": "Cable", "downKbps": 5000.0, "upKbps": 1000.0, "rttMs": 28.0 },
            "location": { "id": "eu", "name": "Frankfurt", "mode": "agent", "addedRttMs": 0.0 },
            "cpu": { "rate": 4.0, "deviceIndex": 440, "hostIndex": 1500.2, "hostIndexAfter": 1500.0 },
        },
        "scores": { "performance": 97, "accessibility": null, "seo": null, "bestPractices": 100, "pwa": 30 },
        "metrics": {
            "fcp": metric(1234.4, 0.9), "lcp": metric(2000.0, 0.95), "tbt": metric(10.0, 1.0),
            "cls": metric(0.0123, 1.0), "si": metric(1500.0, 0.98), "tti": null,
        },
        "error": null,
        "categories": [{ "id": "seo", "title": "SEO", "score": null, "checks": checks }],
        "warnings": [format!("It says {HOSTILE} [so](http://evil.test/)")],
        "document": { "status": 200, "mime_type": "text/html" },
        "browser": { "product": "Chrome/156.0.0.1", "user_agent": "Mozilla/5.0 Chrome/156" },
        "timings": [{ "phase": "loading", "ms": 100.0 }, { "phase": "gathering", "ms": 50.0 }],
    }))
    .unwrap()
}

/// Returns intervals of the score, Largest Contentful Paint and layout shift of [`report`].
pub(crate) fn intervals() -> Intervals {
    let interval =
        |low: f64, high: f64| json!({ "low": low, "high": high, "level": 0.9, "basis": "visits" });
    serde_json::from_value(json!({
        "performance": interval(94.2, 99.1), "lcp": interval(1900.0, 2100.0),
        "cls": interval(0.0123, 0.0123),
    }))
    .unwrap()
}

/// Returns a category that is shown as a fraction, with four checks.
pub(crate) fn agentic_browsing() -> CategoryResult {
    let check = |id: &str, verdict: &str, score: Option<f64>| {
        json!({"id": id, "title": id, "verdict": verdict, "score": score, "weight": 1.0,
            "group": "agent-discoverability", "why": "", "fix": ""})
    };
    serde_json::from_value(json!({
        "id": "agentic-browsing", "title": "Agentic browsing", "score": 63,
        "fraction": {"passed": 2, "of": 3},
        "checks": [
            check("cumulative-layout-shift", "pass", Some(1.0)),
            check("ard-schema", "pass", Some(0.9)),
            check("llms-txt", "notApplicable", None),
            check("agent-accessibility-tree", "fail", Some(0.0)),
        ],
    }))
    .unwrap()
}

/// Returns a bundle with this protocol log.
pub(crate) fn bundle_with_log(log: &str) -> Bundle {
    Bundle {
        recording: None,
        profile_trace: Some(br#"{"traceEvents":[]}"#.to_vec()),
        format: FORMAT,
        requested_url: "https://example.com/".to_owned(),
        final_url: "https://example.com/".to_owned(),
        document: Default::default(),
        browser: Default::default(),
        trace: br#"{"traceEvents":[]}"#.to_vec(),
        log: log.as_bytes().to_vec(),
        screenshot: None,
        artifacts: BTreeMap::new(),
        warnings: Vec::new(),
        timings: Vec::new(),
    }
}
