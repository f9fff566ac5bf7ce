//! A report and a bundle for the tests of this crate.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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

/// Returns a bundle with this protocol log, and with one screenshot in the trace.
pub(crate) fn bundle_with_log(log: &str) -> Bundle {
    Bundle {
        recording: None,
        profile_trace: Some(br#"{"traceEvents":[]}"#.to_vec()),
        format: FORMAT,
        requested_url: "https://example.com/".to_owned(),
        final_url: "https://example.com/".to_owned(),
        document: Default::default(),
        browser: Default::default(),
        trace: trace_with_screenshots(&[(300, jpeg(2, 4, |_, _| [40, 90, 200]))]),
        log: log.as_bytes().to_vec(),
        screenshot: None,
        artifacts: BTreeMap::new(),
        warnings: Vec::new(),
        timings: Vec::new(),
    }
}

/// Returns the trace of a load with these screenshots, each at a time in milliseconds since the
/// navigation.
pub(crate) fn trace_with_screenshots(screenshots: &[(u32, Vec<u8>)]) -> Vec<u8> {
    const URL: &str = "https://example.com/";
    const ORIGIN_US: u32 = 5000;
    let mut events = vec![
        json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "ts": 0, "pid": 2, "tid": 3,
               "args": {"name": "CrRendererMain"}}),
        json!({"name": "TracingStartedInBrowser", "cat": "devtools.timeline", "ph": "I", "ts": 1, "pid": 2,
               "tid": 3, "args": {"data": {"frames": [{"frame": "F", "url": URL, "processId": 2}]}}}),
        json!({"name": "navigationStart", "cat": "blink.user_timing", "ph": "R", "ts": ORIGIN_US, "pid": 2, "tid": 3,
               "args": {"frame": "F", "data": {"documentLoaderURL": URL, "isLoadingMainFrame": true}}}),
    ];
    for (at_ms, jpeg) in screenshots {
        events.push(
            json!({"name": "Screenshot", "cat": "disabled-by-default-devtools.screenshot", "ph": "O",
                   "ts": ORIGIN_US + at_ms * 1000, "pid": 1, "tid": 1, "args": {"snapshot": STANDARD.encode(jpeg)}}),
        );
    }
    serde_json::to_vec(&json!({ "traceEvents": events })).unwrap()
}

/// Returns a JPEG of blocks of 8 by 8 pixels, each of one colour: a baseline picture whose blocks
/// have no other coefficient than their mean.
pub(crate) fn jpeg(columns: u16, rows: u16, color: impl Fn(u16, u16) -> [u8; 3]) -> Vec<u8> {
    let mut jpeg = vec![0xff, 0xd8, 0xff, 0xdb, 0, 67, 0];
    jpeg.extend([8; 64]);
    let [[h1, h0], [w1, w0]] = [rows * 8, columns * 8].map(u16::to_be_bytes);
    jpeg.extend([0xff, 0xc0, 0, 17, 8, h1, h0, w1, w0, 3]);
    jpeg.extend([1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    // Twelve codes of four bits for the number of bits of a mean, and one of one bit for the end.
    jpeg.extend([0xff, 0xc4, 0, 31, 0x00, 0, 0, 0, 12]);
    jpeg.extend([0; 12]);
    jpeg.extend(0..12);
    jpeg.extend([0xff, 0xc4, 0, 20, 0x10, 1]);
    jpeg.extend([0; 15]);
    jpeg.push(0);
    jpeg.extend([0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
    let mut bits = String::new();
    let mut last = [0_i32; 3];
    for block in 0..u32::from(columns) * u32::from(rows) {
        let (row, column) = (block / u32::from(columns), block % u32::from(columns));
        let [r, g, b] = color(column as u16, row as u16).map(f64::from);
        let luma = 0.299 * r + 0.587 * g + 0.114 * b;
        let means = [luma - 128.0, (b - luma) * 0.564, (r - luma) * 0.713];
        for (last, mean) in last.iter_mut().zip(means.map(|mean| mean.round() as i32)) {
            let difference = mean - *last;
            *last = mean;
            let length = 32 - difference.unsigned_abs().leading_zeros() as usize;
            bits += &format!("{length:04b}");
            let value = if difference < 0 {
                difference + (1 << length) - 1
            } else {
                difference
            };
            if length > 0 {
                bits += &format!("{value:0length$b}");
            }
            bits.push('0');
        }
    }
    while !bits.len().is_multiple_of(8) {
        bits.push('1');
    }
    for byte in bits.as_bytes().chunks(8) {
        let byte = u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap();
        jpeg.push(byte);
        if byte == 0xff {
            jpeg.push(0);
        }
    }
    jpeg.extend([0xff, 0xd9]);
    jpeg
}
