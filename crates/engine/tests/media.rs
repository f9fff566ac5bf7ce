//! Tests that the report media of every recorded page load are consistent.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

use flate2::read::GzDecoder;
use plumbline_bundle::{BrowserIdentity, Bundle, FORMAT, MainDocument};
use plumbline_engine::media::report_media;
use std::io::Read;

use plumbline_model::media::ReportMedia;
use serde_json::{Value, json};

/// Returns the recorded loads of `tests/data` as bundles.
fn bundles() -> Vec<(String, Bundle)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let unpacked = |file: &Path| {
        let mut text = Vec::new();
        let packed = fs::read(file).ok()?;
        GzDecoder::new(&packed[..]).read_to_end(&mut text).ok()?;
        Some(text)
    };
    let mut bundles_by_name = Vec::new();
    for entry in fs::read_dir(&data).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".trace.json.gz") else {
            continue;
        };
        let log = unpacked(&data.join(format!("{name}.log.json.gz")));
        let bundle = Bundle {
            recording: None,
            profile_trace: None,
            format: FORMAT,
            requested_url: "http://127.0.0.1/".to_owned(),
            final_url: "http://127.0.0.1/".to_owned(),
            document: MainDocument::default(),
            browser: BrowserIdentity::default(),
            trace: unpacked(&data.join(&file)).unwrap(),
            log: log.unwrap_or_else(|| b"[]".to_vec()),
            screenshot: None,
            artifacts: Default::default(),
            warnings: Vec::new(),
            timings: Vec::new(),
        };
        bundles_by_name.push((name.to_owned(), bundle));
    }
    assert!(!bundles_by_name.is_empty());
    bundles_by_name
}

fn check(name: &str, shown: &ReportMedia) {
    assert!(shown.film.len() <= 12, "{name}");
    for pair in shown.film.windows(2) {
        let even = pair[1].at_ms - pair[0].at_ms - shown.film[0].at_ms;
        assert!(even.abs() < 1e-6, "{name}: frames are at regular intervals");
    }
    if let (Some(last), Some(change_ms)) = (shown.film.last(), shown.marks.last_change_ms) {
        assert!(
            last.at_ms >= change_ms - 0.001,
            "{name}: the last change is shown"
        );
    }
    for frame in &shown.film {
        assert!(
            frame
                .picture
                .is_none_or(|index| index < shown.pictures.len())
        );
    }
    let used = |index| shown.film.iter().any(|frame| frame.picture == Some(index));
    assert!(
        (0..shown.pictures.len()).all(used),
        "{name}: every picture is used"
    );
    for pair in shown.requests.windows(2) {
        assert!(pair[0].start_ms <= pair[1].start_ms, "{name}: in order");
    }
    for request in &shown.requests {
        let phases = request.phases;
        let sum: f64 = [
            Some(phases.queue_ms),
            phases.dns_ms,
            phases.connect_ms,
            phases.tls_ms,
            phases.wait_ms,
            phases.receive_ms,
        ]
        .into_iter()
        .flatten()
        .sum();
        if let Some(end_ms) = request.end_ms {
            let took = end_ms - request.start_ms;
            assert!(
                sum <= took + 5.0,
                "{name} {}: {sum} of {took} ms",
                request.url
            );
            assert!(end_ms <= shown.end_ms + 0.001, "{name}");
        }
    }
    let by_type: u64 = shown.by_type.iter().map(|share| share.bytes).sum();
    let by_host: u64 = shown.by_host.iter().map(|share| share.bytes).sum();
    assert_eq!(by_type, by_host, "{name}");
    let busy: f64 = shown.main_thread.total_ms.iter().sum();
    assert!(
        busy <= shown.end_ms + 5.0,
        "{name}: one thread, one thing at a time"
    );
}

#[test]
fn media_of_every_recorded_load_are_consistent() {
    for (name, bundle) in bundles() {
        if let Some(shown) = report_media(&bundle) {
            check(&name, &shown);
            let packed = shown.pack().unwrap();
            let unpacked = ReportMedia::unpack(&packed).unwrap();
            assert!(unpacked == shown, "{name} comes back as it was");
        }
    }
}

#[test]
fn totals_include_the_requests_that_are_not_listed() {
    const ADDED: usize = 1_100;
    let (_, mut bundle) = bundles().swap_remove(0);
    let before = report_media(&bundle).unwrap();
    let mut log: Vec<Value> = serde_json::from_slice(&bundle.log).unwrap();
    for number in 0..ADDED {
        let (id, url) = (
            format!("added-{number}"),
            format!("https://cdn.test/{number}"),
        );
        log.extend([
            json!({"method": "Network.requestWillBeSent", "params": {"requestId": id,
                "type": "Font", "timestamp": 1e6, "request": {"url": url}}}),
            json!({"method": "Network.responseReceived", "params": {"requestId": id, "type": "Font",
                "timestamp": 1e6, "response": {"url": url, "status": 200}}}),
            json!({"method": "Network.loadingFinished", "params": {"requestId": id,
                "timestamp": 1e6, "encodedDataLength": 1_000}}),
        ]);
    }
    bundle.log = serde_json::to_vec(&log).unwrap();
    let media = report_media(&bundle).unwrap();
    assert_eq!(media.requests.len(), 1_000);
    assert_eq!(media.request_count(), before.request_count() + ADDED);
    let added_bytes = ADDED as u64 * 1_000;
    assert_eq!(
        media.transfer_bytes(),
        before.transfer_bytes() + added_bytes
    );
    assert_eq!(
        media.render_blocking_requests,
        before.render_blocking_requests
    );
    let of_host = media.by_host.iter().find(|total| total.name == "cdn.test");
    assert_eq!(of_host.unwrap().requests, ADDED);
    let fonts = media.total_of_type("Font");
    assert_eq!(
        fonts.requests,
        before.total_of_type("Font").requests + ADDED
    );
}

#[test]
fn the_same_bundle_gives_the_same_bytes() {
    let (_, bundle) = bundles().swap_remove(0);
    let pack = || report_media(&bundle).map(|shown| shown.pack().unwrap());
    assert_eq!(pack(), pack());
}

#[test]
fn without_a_readable_trace_there_are_no_media() {
    let (_, mut bundle) = bundles().swap_remove(0);
    bundle.trace = b"{".to_vec();
    assert_eq!(report_media(&bundle), None);
}
