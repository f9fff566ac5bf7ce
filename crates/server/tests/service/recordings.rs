//! Recordings of audits: exported, changed and replayed.

use std::sync::Arc;

use bytes::Bytes;
use plumbline_bundle::{Bundle, FORMAT};
use plumbline_recording::{
    BodyChunk, Change, ConnectResult, Endpoint, Handling, Protocol, RecordedEndpoint,
    RecordedExchange, RecordedResponse, Recording,
};
use plumbline_server::App;
use plumbline_store::{AuditState, FileBlobs, Store};
use serde_json::{Value, json};

use crate::rig::{Reply, Rig, get, post};

const COOKIE: &str = "sid=a-secret-of-a-session";

fn recording() -> Recording {
    let endpoint = Endpoint {
        is_secure: true,
        host: "example.com".to_owned(),
        port: 443,
    };
    let body = Bytes::from_static(b"<!doctype html><title>Recorded</title>");
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Recording {
        url: "https://example.com/".to_owned(),
        recorded_at: "2027-01-15T08:00:00Z".to_owned(),
        endpoints: vec![RecordedEndpoint {
            endpoint: endpoint.clone(),
            result: ConnectResult::Connected {
                protocol: Protocol::Http2,
                connect_ms: 20.0,
                tls_ms: 25.0,
            },
        }],
        exchanges: vec![RecordedExchange {
            endpoint,
            method: "GET".to_owned(),
            path: "/".to_owned(),
            request_headers: vec![header("cookie", COOKIE)],
            request_bytes: 0,
            started_ms: 0.0,
            response: Some(RecordedResponse {
                status: 200,
                headers: vec![header("content-type", "text/html")],
                wait_ms: 30.0,
                chunks: vec![BodyChunk {
                    after_ms: 0.0,
                    bytes: body.len() as u64,
                }],
                is_cut_off: false,
                body,
            }),
            handling: Handling::Answered,
            is_open: false,
        }],
    }
}

/// Returns the packed evidence of a recorded audit.
pub fn recorded_bundle() -> Vec<u8> {
    let bundle = Bundle {
        recording: Some(recording().pack().unwrap()),
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
    };
    bundle.pack().unwrap()
}

/// A service with one completed audit and its recording.
struct RecordedAudit {
    rig: Rig,
    audit_id: String,
    bundles: FileBlobs,
    _dir: tempfile::TempDir,
}

impl RecordedAudit {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut App)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bundles = FileBlobs::open(dir.path()).unwrap();
        let of_app = bundles.clone();
        let rig = Rig::with(|app| {
            app.bundles = Some(Arc::new(of_app));
            change(app);
        });
        let rig = rig.await;
        rig.start().await;
        let lease = rig.lease().await;
        let name = format!("{}-1", lease.audit_id);
        bundles.put(&name, &recorded_bundle()).unwrap();
        rig.finish(&lease, json!({}), None).await;
        Self {
            rig,
            audit_id: lease.audit_id,
            bundles,
            _dir: dir,
        }
    }

    async fn get(&self, query: &str) -> Reply {
        let path = format!("/v1/audits/{}/recording{query}", self.audit_id);
        self.rig.fetch(&get(&path).key(&self.rig.key)).await
    }

    async fn post(&self, what: &str, body: Value) -> Reply {
        let path = format!("/v1/audits/{}/{what}", self.audit_id);
        let request = post(&path, body.to_string()).json().key(&self.rig.key);
        self.rig.fetch(&request).await
    }
}

#[tokio::test]
async fn a_recording_is_exported_in_its_formats_and_without_secrets() {
    let audit = RecordedAudit::new().await;
    let reply = audit.get("").await;
    assert_eq!(reply.status, 200);
    assert_eq!(Recording::unpack(&reply.body).unwrap(), recording());

    let har = audit.get("?format=har").await;
    assert_eq!(har.header("content-type"), Some("application/json"));
    assert!(har.text().contains(COOKIE));
    assert_eq!(Recording::from_har(&har.json()).unwrap().exchanges.len(), 1);

    for query in ["?redact=true", "?redact=true&format=har"] {
        let reply = audit.get(query).await;
        assert_eq!(reply.status, 200, "{query}");
        let text = match Recording::unpack(&reply.body) {
            Ok(recording) => format!("{recording:?}"),
            Err(_) => reply.text().to_owned(),
        };
        assert!(!text.contains("a-secret-of-a-session"), "{query}: {text}");
    }
    assert_eq!(audit.get("?format=zip").await.status, 406);
    assert_eq!(audit.get("?redact=perhaps").await.status, 400);
}

#[tokio::test]
async fn audits_without_a_recording_and_those_of_others_have_none() {
    let audit = RecordedAudit::new().await;
    let name = format!("{}-1", audit.audit_id);
    audit.bundles.remove(&name).unwrap();
    assert_eq!(audit.get("").await.whole_json()["code"], "NO_EVIDENCE");
    let body = json!({ "devices": ["mobile"], "networks": ["cable"] });
    let reply = audit.post("matrix", body).await;
    assert_eq!(reply.whole_json()["code"], "NO_EVIDENCE");
    let path = "/v1/audits/aud_unknown/recording";
    let reply = audit.rig.fetch(&get(path).key(&audit.rig.key)).await;
    assert_eq!(reply.status, 404);
}

#[tokio::test]
async fn an_experiment_is_a_comparison_of_the_recording_with_a_changed_one() {
    let audit = RecordedAudit::new().await;
    let changes = json!([{ "type": "delay", "pattern": "example.com", "ms": 500 }]);
    let body = json!({ "changes": changes, "maxPairs": 4, "network": "cable" });
    let reply = audit.post("experiments", body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let lease = audit.rig.lease().await;
    assert_eq!(lease.runs, 4);
    assert_eq!(lease.order.network, "cable");
    let options = &lease.order.options;
    assert_eq!(
        options.compare_with.as_deref(),
        Some("https://example.com/")
    );
    let [first, second] = [&options.replay, &options.replay_second].map(|it| it.as_ref().unwrap());
    assert_eq!((&first.recording, first.attempt), (&audit.audit_id, 1));
    assert_eq!(first.changes, []);
    let change: Change = serde_json::from_value(changes[0].clone()).unwrap();
    assert_eq!(second.changes, [change]);
}

#[tokio::test]
async fn changes_that_affect_nothing_or_cannot_be_read_are_refused() {
    let audit = RecordedAudit::new().await;
    let credits = audit.rig.credits().await;
    for changes in [
        json!([]),
        json!({}),
        json!([{ "type": "explode" }]),
        json!([{ "type": "block", "pattern": "nowhere.example" }]),
        json!([{ "type": "delay", "pattern": "example.com", "ms": -1 }]),
    ] {
        let reply = audit
            .post("experiments", json!({ "changes": changes }))
            .await;
        assert_eq!(reply.status, 406, "{changes}: {}", reply.text());
        assert_eq!(reply.whole_json()["field"], "changes");
    }
    let block = json!({ "type": "block", "pattern": "example.com" });
    for (change, reason) in [
        (
            json!({ "type": "delay", "pattern": "example.com", "ms": "abc" }),
            "`ms` must be a whole number of at least 0.",
        ),
        (
            json!({ "type": "insertHead", "html": "a\0" }),
            "The character U+0000 is not allowed.",
        ),
    ] {
        let body = json!({ "changes": [block, change] });
        let reply = audit.post("experiments", body).await;
        let reply = reply.whole_json();
        assert_eq!(
            (&reply["field"], &reply["index"]),
            (&json!("changes"), &json!(1))
        );
        assert_eq!(reply["reason"], reason);
    }
    assert_eq!(audit.rig.credits().await, credits);
}

#[tokio::test]
async fn values_and_credits_are_checked_before_a_recording_is_read() {
    let audit = RecordedAudit::new().await;
    let name = format!("{}-1", audit.audit_id);
    audit.bundles.remove(&name).unwrap();
    let code = async |what: &str, body: Value| {
        let reply = audit.post(what, body).await;
        reply.whole_json()["code"].as_str().unwrap().to_owned()
    };
    let changes = json!([{ "type": "block", "pattern": "a" }]);
    let experiment = |own: Value| {
        let mut body = own;
        body["changes"] = changes.clone();
        body
    };
    let valid = json!({ "devices": ["mobile"], "networks": ["cable"] });
    for (what, body, expected) in [
        ("experiments", experiment(json!({})), "NO_EVIDENCE"),
        (
            "experiments",
            experiment(json!({ "device": "none" })),
            "INVALID_DEVICE",
        ),
        (
            "experiments",
            experiment(json!({ "network": "none" })),
            "INVALID_NETWORK",
        ),
        (
            "third-parties",
            json!({ "device": "none" }),
            "INVALID_DEVICE",
        ),
        (
            "matrix",
            json!({ "devices": ["none"], "networks": ["cable"] }),
            "INVALID_DEVICE",
        ),
        ("matrix", valid.clone(), "NO_EVIDENCE"),
    ] {
        assert_eq!(code(what, body.clone()).await, expected, "{what}: {body}");
    }
    while audit.rig.credits().await > 0 {
        audit.rig.start().await;
    }
    for (what, body) in [
        ("experiments", experiment(json!({}))),
        ("third-parties", json!({})),
        ("matrix", valid),
    ] {
        assert_eq!(code(what, body).await, "INSUFFICIENT_CREDITS", "{what}");
    }
}

#[tokio::test]
async fn experiments_that_need_a_recording_count_before_it_is_read() {
    let audit = RecordedAudit::with(|app| app.limits.starts_per_minute = 2).await;
    let changes = json!([{ "type": "block", "pattern": "nowhere.example" }]);
    let body = json!({ "changes": changes });
    let statuses = [
        audit.post("experiments", body.clone()).await.status,
        audit.post("experiments", body).await.status,
    ];
    assert_eq!(statuses, [406, 429]);
}

#[tokio::test]
async fn a_matrix_is_a_batch_of_quick_audits_of_the_recording() {
    let audit = RecordedAudit::new().await;
    let body = json!({ "devices": ["mobile", "desktop"], "networks": ["cable", "normal4g"] });
    let reply = audit.post("matrix", body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let data = &reply.json()["data"];
    assert_eq!(data["audits"], 4);
    let batch = audit
        .rig
        .store
        .batch(&audit.rig.account_id, data["batchId"].as_str().unwrap());
    let batch = batch.await.unwrap().unwrap();
    assert_eq!(batch.audits.len(), 4);
    assert!(
        batch
            .audits
            .iter()
            .all(|it| it.state == AuditState::NotStarted)
    );
    let lease = audit.rig.lease().await;
    assert!(lease.order.options.quick);
    let replay = lease.order.options.replay.unwrap();
    assert_eq!(replay.recording, audit.audit_id);
}
