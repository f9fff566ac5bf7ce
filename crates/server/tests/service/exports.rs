//! Exports of reports.

use std::sync::Arc;

use plumbline_bundle::{Bundle, FORMAT};
use plumbline_store::FileBlobs;
use serde_json::{Value, json};

use crate::rig::{Reply, Rig, failure, get};

fn report() -> Value {
    json!({
        "format": 1, "requestedUrl": "https://example.com/", "finalUrl": "https://example.com/",
        "conditions": {
            "device": { "id": "mobile", "name": "Phone", "mode": "mobile" },
            "network": { "id": "cable", "name": "Cable", "downKbps": 5000.0, "upKbps": 1000.0, "rttMs": 28.0 },
            "location": { "id": "eu", "name": "Frankfurt", "mode": "agent", "addedRttMs": 0.0 },
            "cpu": { "rate": 1.0, "deviceIndex": null, "hostIndex": null, "hostIndexAfter": null },
        },
        "scores": { "performance": 91, "accessibility": null, "seo": null, "bestPractices": null, "pwa": null },
        "metrics": { "fcp": { "value": 1.0, "score": 1.0 }, "lcp": null, "tbt": null, "cls": null, "si": null, "tti": null },
        "error": null, "document": null, "browser": null,
    })
}

fn packed_bundle() -> Vec<u8> {
    bundle().pack().unwrap()
}

fn bundle() -> Bundle {
    Bundle {
        recording: None,
        profile_trace: None,
        format: FORMAT,
        requested_url: "https://example.com/".to_owned(),
        final_url: "https://example.com/".to_owned(),
        document: Default::default(),
        browser: Default::default(),
        trace: br#"{"traceEvents":[]}"#.to_vec(),
        log: b"[]".to_vec(),
        screenshot: None,
        artifacts: Default::default(),
        warnings: Vec::new(),
        timings: Vec::new(),
    }
}

/// A trace with screenshots, shared with the engine's tests.
const TRACE: &[u8] = include_bytes!("../../../engine/tests/data/renders-in-steps.trace.json.gz");

/// Returns the name of the first attempt's blob.
fn blob_name(audit_id: &str) -> String {
    format!("{audit_id}-1")
}

/// A service with one completed audit and its evidence.
struct CompletedAudit {
    rig: Rig,
    audit_id: String,
    bundles: FileBlobs,
    _dir: tempfile::TempDir,
}

impl CompletedAudit {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bundles = FileBlobs::open(dir.path()).unwrap();
        let app_bundles = bundles.clone();
        let rig = Rig::with(|app| app.bundles = Some(Arc::new(app_bundles))).await;
        rig.start().await;
        let lease = rig.lease().await;
        bundles
            .put(&blob_name(&lease.audit_id), &packed_bundle())
            .unwrap();
        rig.finish(&lease, report(), None).await;
        Self {
            rig,
            audit_id: lease.audit_id,
            bundles,
            _dir: dir,
        }
    }

    async fn send(&self, query: &str) -> Reply {
        let path = format!("/v1/audit/report/{}{query}", self.audit_id);
        self.rig.send(&get(&path).key(&self.rig.key)).await
    }
}

#[tokio::test]
async fn evidence_stored_by_an_earlier_version_is_found() {
    let audit = CompletedAudit::new().await;
    let (old_name, name) = (&audit.audit_id, blob_name(&audit.audit_id));
    let bytes = audit.bundles.get(&name).unwrap().unwrap();
    audit.bundles.remove(&name).unwrap();
    assert_eq!(audit.send("?format=trace").await.status, 404);
    audit.bundles.put(old_name, &bytes).unwrap();
    assert_eq!(audit.send("?format=trace").await.status, 200);
}

#[tokio::test]
async fn each_format_is_a_file_with_its_type_and_a_name() {
    let audit = CompletedAudit::new().await;
    for (format, content_type, extension) in [
        ("json", "application/json", "report.json"),
        ("lighthouse", "application/json", "lighthouse.json"),
        ("har", "application/json", "har"),
        ("csv", "text/csv; charset=utf-8", "csv"),
        ("junit", "application/xml", "junit.xml"),
        ("trace", "application/json", "trace.json"),
    ] {
        let reply = audit.send(&format!("?format={format}")).await;
        assert_eq!(reply.status, 200, "{format}: {reply:?}");
        assert_eq!(reply.header("content-type"), Some(content_type));
        let name = format!("attachment; filename=\"{}.{extension}\"", audit.audit_id);
        assert_eq!(reply.header("content-disposition"), Some(name.as_str()));
    }
    let lighthouse = audit.send("?format=lighthouse").await.json();
    assert_eq!(lighthouse["categories"]["performance"]["score"], 0.91);
    assert_eq!(lighthouse["fetchTime"], "2027-01-15T08:00:00.007Z");
}

#[tokio::test]
async fn a_video_is_an_animated_png_of_the_screenshots() {
    let audit = CompletedAudit::new().await;
    let without = audit.send("?format=video").await;
    assert_eq!(without.status, 404, "the trace has no screenshots");
    let bundle = Bundle {
        trace: TRACE.to_vec(),
        ..bundle()
    };
    let packed = bundle.pack().unwrap();
    let name = blob_name(&audit.audit_id);
    audit.bundles.put(&name, &packed).unwrap();
    let reply = audit.send("?format=video").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("image/png"));
    let name = format!("attachment; filename=\"{}.video.png\"", audit.audit_id);
    assert_eq!(reply.header("content-disposition"), Some(name.as_str()));
    assert_animated(&reply.body);
}

/// Checks that a file is an animated PNG with several frames.
pub fn assert_animated(file: &[u8]) {
    assert!(file.starts_with(b"\x89PNG\r\n\x1a\n"));
    let control = file.windows(4).position(|kind| kind == b"acTL").unwrap();
    let frames = file[control + 4..].first_chunk().unwrap();
    assert!(u32::from_be_bytes(*frames) > 1);
    assert!(file.ends_with(b"IEND\xae\x42\x60\x82"));
}

#[tokio::test]
async fn without_a_format_the_report_is_in_an_envelope() {
    let audit = CompletedAudit::new().await;
    for query in ["", "?"] {
        let reply = audit.send(query).await;
        assert_eq!(
            reply.json()["data"]["auditId"],
            audit.audit_id.as_str(),
            "{query}"
        );
    }
}

#[tokio::test]
async fn without_evidence_only_the_formats_that_need_it_are_not_found() {
    let audit = CompletedAudit::new().await;
    let day = std::time::Duration::from_secs(24 * 60 * 60);
    let later = std::time::SystemTime::now() + 2 * day;
    assert_eq!(audit.bundles.remove_older(day, later).unwrap(), 1);
    for format in ["har", "trace"] {
        let reply = audit.send(&format!("?format={format}")).await;
        let gone = failure("The evidence of this audit is no longer kept");
        assert_eq!((reply.status, reply.json()), (404, gone), "{format}");
    }
    for format in ["json", "lighthouse", "csv", "junit"] {
        assert_eq!(
            audit.send(&format!("?format={format}")).await.status,
            200,
            "{format}"
        );
    }
}

#[tokio::test]
async fn a_corrupt_bundle_is_a_server_error_without_details() {
    let audit = CompletedAudit::new().await;
    audit
        .bundles
        .put(&blob_name(&audit.audit_id), b"corrupt")
        .unwrap();
    let reply = audit.send("?format=har").await;
    assert_eq!(
        (reply.status, reply.json()),
        (500, failure("Internal Server Error"))
    );
}

#[tokio::test]
async fn an_unknown_format_is_an_invalid_value_after_the_key_was_checked() {
    let audit = CompletedAudit::new().await;
    for query in [
        "?format=pdf",
        "?format=",
        "?format=HAR",
        "?format=har&format=csv",
        "?format=%ff",
    ] {
        let reply = audit.send(query).await;
        assert_eq!(
            (reply.status, reply.json()),
            (406, failure("Invalid Format")),
            "{query}"
        );
    }
    let path = format!("/v1/audit/report/{}?format=pdf", audit.audit_id);
    assert_eq!(audit.rig.send(&get(&path)).await.status, 401);
    let stranger = audit.rig.new_account(1).await;
    let key = audit.rig.new_key(&stranger, None).await;
    let path = format!("/v1/audit/report/{}?format=har", audit.audit_id);
    assert_eq!(audit.rig.send(&get(&path).key(&key)).await.status, 404);
    let unknown = get("/v1/audit/report/aud_none?format=har").key(&audit.rig.key);
    assert_eq!(audit.rig.send(&unknown).await.status, 404);
}
