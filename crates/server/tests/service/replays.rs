//! Audits of a recording: following the advice of a report, prices of third parties, and other
//! devices and networks, through the API and on the report page.

use std::sync::Arc;

use plumbline_model::check::{Cell, Details, Findings, Row, Unit};
use plumbline_model::experiment::Subject;
use plumbline_store::FileBlobs;
use serde_json::{Value, json};

use crate::{
    recordings::recorded_bundle,
    rig::{Reply, Rig, get, order, post},
    visitor::{form, report, sign_in},
};

const CHECK: &str = "viewport-insight";
const URL: &str = "https://example.com/";

/// Returns a report with a failed check that can be measured, and with a third party.
fn report_with_advice() -> Value {
    let mut report = report();
    let check = |id: &str, details: Value| {
        json!({
            "id": id, "title": id, "verdict": "fail", "weight": 0.0, "score": 0.0,
            "group": "insights", "why": "", "fix": "", "savings": { "inpMs": 300.0 },
            "details": details,
        })
    };
    let party = Row::new([Cell::text("Example")]).with([Row::new([Cell::url(URL)])]);
    let parties = Findings::new([("entity", "Third party", Unit::Text)]).rows([party]);
    let to_json = |findings: Findings| serde_json::to_value(Details::from(findings)).unwrap();
    let (parties, nothing) = (to_json(parties), to_json(Findings::default()));
    report["categories"] = json!([{
        "id": "performance", "title": "Performance", "score": 91,
        "checks": [check(CHECK, nothing), check("third-parties-insight", parties)],
    }]);
    report
}

/// A service with pages and one completed audit with its recording.
struct Recorded {
    rig: Rig,
    audit_id: String,
    _dir: tempfile::TempDir,
}

impl Recorded {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bundles = FileBlobs::open(dir.path()).unwrap();
        let of_app = bundles.clone();
        let rig = Rig::with_pages_and(move |app| app.bundles = Some(Arc::new(of_app))).await;
        let mut recorded = order();
        recorded["record"] = json!(true);
        rig.start_with(&recorded).await;
        let lease = rig.lease().await;
        let name = format!("{}-1", lease.audit_id);
        bundles.put(&name, &recorded_bundle()).unwrap();
        rig.finish(&lease, report_with_advice(), None).await;
        Self {
            rig,
            audit_id: lease.audit_id,
            _dir: dir,
        }
    }

    async fn post(&self, what: &str, body: Value) -> Reply {
        let path = format!("/v1/audits/{}/{what}", self.audit_id);
        let request = post(&path, body.to_string()).json().key(&self.rig.key);
        self.rig.fetch(&request).await
    }

    async fn get(&self, what: &str) -> Reply {
        let path = format!("/v1/audits/{}/{what}", self.audit_id);
        self.rig.fetch(&get(&path).key(&self.rig.key)).await
    }

    async fn page(&self) -> String {
        let owner = sign_in(&self.rig, &self.rig.key).await;
        let path = format!("/reports/{}", self.audit_id);
        let page = self.rig.browse(&get(&path).header("Cookie", &owner)).await;
        assert_eq!(page.status, 200);
        page.text().to_owned()
    }
}

fn faster_lcp() -> Value {
    let interval = json!({ "low": -0.3, "high": -0.2, "level": 0.9, "basis": "pairs of visits" });
    json!({ "urls": [URL, URL], "pairs": 4, "figures": [{
        "name": "lcp", "medians": [2000.0, 1500.0], "shift": -0.25, "isRelative": true,
        "interval": interval, "answer": "faster",
    }] })
}

#[tokio::test]
async fn the_advice_of_a_check_is_followed_and_its_measured_saving_is_shown() {
    let recorded = Recorded::new().await;
    let page = recorded.page().await;
    assert!(page.contains("Measure it"), "{page}");
    let body = json!({ "check": CHECK, "maxPairs": 4 });
    let reply = recorded.post("experiments", body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let lease = recorded.rig.lease().await;
    let second = lease.order.options.replay_second.as_ref().unwrap();
    assert_eq!(second.subject, Some(Subject::Check(CHECK.to_owned())));
    assert_eq!(second.changes.len(), 1);

    let waiting = recorded.get("experiments").await.json();
    assert_eq!(waiting["data"][0]["subject"]["check"], CHECK);
    assert_eq!(waiting["data"][0]["auditId"], Value::Null);
    let mut finished = report();
    finished["comparison"] = faster_lcp();
    recorded.rig.finish(&lease, finished, None).await;
    let completed = recorded.get("experiments").await.json();
    let experiment = &completed["data"][0];
    assert_eq!(experiment["auditId"], lease.audit_id.as_str());
    assert_eq!(experiment["comparison"]["figures"][0]["answer"], "faster");
    let page = recorded.page().await;
    assert!(page.contains("measured: LCP −500"), "{page}");
    assert!(page.contains("Measure again"));
}

#[tokio::test]
async fn each_third_party_is_left_out_in_turn() {
    let recorded = Recorded::new().await;
    let reply = recorded
        .post("third-parties", json!({ "maxPairs": 4 }))
        .await;
    assert_eq!(reply.json()["data"]["audits"], 1, "{}", reply.text());
    let lease = recorded.rig.lease().await;
    let second = lease.order.options.replay_second.as_ref().unwrap();
    assert_eq!(
        second.subject,
        Some(Subject::ThirdParty("Example".to_owned()))
    );
    let reply = recorded
        .post("experiments", json!({ "thirdParty": "Other" }))
        .await;
    assert_eq!(reply.status, 406);
    assert_eq!(reply.whole_json()["field"], "thirdParty");
}

#[tokio::test]
async fn two_recordings_are_compared() {
    let recorded = Recorded::new().await;
    let body = json!({ "recording": recorded.audit_id, "repeatable": true });
    let reply = recorded.post("experiments", body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let options = recorded.rig.lease().await.order.options;
    assert_eq!(options.compare_with.as_deref(), Some(URL));
    for replay in options.replays() {
        assert_eq!(replay.recording, recorded.audit_id);
        assert!(replay.repeatable);
    }
    let body = json!({ "recording": "aud_unknown" });
    assert_eq!(recorded.post("experiments", body).await.status, 404);
}

#[tokio::test]
async fn an_experiment_tries_exactly_one_thing() {
    let recorded = Recorded::new().await;
    for (body, field) in [
        (json!({}), "changes"),
        (
            json!({ "check": CHECK, "thirdParty": "Example" }),
            "changes",
        ),
        (json!({ "check": "no-such-check" }), "check"),
        (json!({ "check": "third-parties-insight" }), "check"),
    ] {
        let reply = recorded.post("experiments", body.clone()).await;
        assert_eq!(reply.status, 406, "{body}: {}", reply.text());
        assert_eq!(reply.whole_json()["field"], field, "{body}");
    }
}

#[tokio::test]
async fn a_matrix_is_shown_as_a_heat_map() {
    let recorded = Recorded::new().await;
    let empty = recorded.get("matrix").await.json();
    assert_eq!(empty["data"]["cells"], json!([]));
    let owner = sign_in(&recorded.rig, &recorded.rig.key).await;
    let path = format!("/reports/{}/matrix", recorded.audit_id);
    let body = "network=cable&network=dsl&device=mobile";
    let reply = recorded
        .rig
        .browse(&form(&path, body).header("Cookie", &owner))
        .await;
    assert_eq!(reply.status, 303);
    let lease = recorded.rig.lease().await;
    assert_eq!(lease.order.network, "cable");
    let mut replayed = report();
    replayed["conditions"]["replay"] = json!({ "recordedAt": "", "missingRequests": 0 });
    recorded.rig.finish(&lease, replayed, None).await;
    let matrix = recorded.get("matrix").await.json();
    let cells = matrix["data"]["cells"].as_array().unwrap().clone();
    assert_eq!(cells.len(), 2);
    assert_eq!(cells[0]["performance"], 91);
    assert_eq!(cells[0]["auditId"], lease.audit_id.as_str());
    assert_eq!(cells[1]["performance"], Value::Null);
    let page = recorded.page().await;
    assert!(page.contains("table class=\"heat\""));
    assert!(page.contains("some are not completed yet"));
    let history = format!("/history?audit={}", recorded.audit_id);
    let history = get(&history).header("Cookie", &owner);
    let history = recorded.rig.browse(&history).await;
    assert!(history.text().contains(&recorded.audit_id));
    assert!(!history.text().contains(&lease.audit_id));
    let list = recorded
        .rig
        .browse(&get("/audits").header("Cookie", &owner))
        .await;
    assert!(
        list.text()
            .contains("<span class=\"label\">recording</span>")
    );
    let invalid = form(&path, "network=cable").header("Cookie", &owner);
    assert_eq!(recorded.rig.browse(&invalid).await.status, 406);
}

#[tokio::test]
async fn a_recording_is_downloaded_from_its_report_page() {
    let recorded = Recorded::new().await;
    let owner = sign_in(&recorded.rig, &recorded.rig.key).await;
    let path = format!("/reports/{}/recording", recorded.audit_id);
    let page = recorded.page().await;
    assert!(page.contains(&format!("href=\"{path}\"")));
    assert!(!page.contains("Audit again and record"));
    let file = recorded
        .rig
        .browse(&get(&path).header("Cookie", &owner))
        .await;
    assert_eq!(
        file.header("content-type"),
        Some("application/octet-stream")
    );
    let har = get(&format!("{path}?format=har&redact=true")).header("Cookie", &owner);
    let har = recorded.rig.browse(&har).await;
    assert_eq!(har.json()["log"]["entries"].as_array().unwrap().len(), 1);
    assert_eq!(recorded.rig.browse(&get(&path)).await.status, 303);
}

#[tokio::test]
async fn experiments_of_other_accounts_are_not_found() {
    let recorded = Recorded::new().await;
    let stranger = recorded.rig.new_account(10).await;
    let key = recorded.rig.new_key(&stranger, None).await;
    for path in ["experiments", "matrix"] {
        let path = format!("/v1/audits/{}/{path}", recorded.audit_id);
        let reply = recorded.rig.fetch(&get(&path).key(&key)).await;
        assert_eq!(reply.status, 404, "{path}");
    }
    let path = format!("/v1/audits/{}/third-parties", recorded.audit_id);
    let request = post(&path, "{}".to_owned()).json().key(&key);
    assert_eq!(recorded.rig.fetch(&request).await.status, 404);
}
