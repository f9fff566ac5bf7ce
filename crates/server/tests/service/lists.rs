//! Lists of audits, the balance, and the catalog.

use std::sync::Arc;

use std::{collections::HashSet, sync::atomic::Ordering};

use plumbline_server::summaries;
use plumbline_store::{AuditError, FileBlobs, FinishedAudit, Store};
use serde_json::{Value, json};

use crate::contract::report;
use crate::rig::{HttpRequest, NOW, Rig, failure, get, order};

async fn list(rig: &Rig, query: &str) -> Value {
    let reply = rig
        .send(&get(&format!("/v1/audits?{query}")).key(&rig.key))
        .await;
    assert_eq!(reply.status, 200, "{query}: {}", reply.text());
    reply.json()
}

fn ids(list: &Value) -> Vec<String> {
    let rows = list["data"].as_array().unwrap().iter();
    rows.map(|row| row["trackingId"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn past_audits_are_listed_newest_first_with_all_details() {
    let rig = Rig::new().await;
    let first = rig.start().await;
    rig.clock.fetch_add(5, Ordering::SeqCst);
    let second = rig.start().await;
    let lease = rig.lease().await;
    let error = AuditError {
        code: "TIMEOUT".to_owned(),
        message: "too slow".to_owned(),
    };
    rig.finish(&lease, json!({}), Some(error)).await;
    let base = |id: &str, at: &str| {
        json!({
            "trackingId": id, "url": "https://example.com/", "device": "mobile",
            "network": "normal4g", "location": "eu", "runs": 1, "createdAt": at,
        })
    };
    let mut waiting = base(&second, "2027-01-15T08:00:00.005Z");
    waiting["status"] = json!("not-started");
    let mut done = base(&first, "2027-01-15T08:00:00.000Z");
    done["status"] = json!("completed");
    done["completedAt"] = json!("2027-01-15T08:00:00.007Z");
    done["auditId"] = json!(lease.audit_id);
    done["error"] = json!({ "code": "TIMEOUT", "message": "too slow" });
    let expected = json!({ "status": "SUCCESS", "data": [waiting, done], "next": null });
    assert_eq!(list(&rig, "").await, expected);
}

#[tokio::test]
async fn measured_audits_are_listed_with_the_figures_of_their_reports() {
    let rig = Rig::new().await;
    rig.start().await;
    let lease = rig.lease().await;
    rig.finish(&lease, report(Value::Null), None).await;
    let path = format!("/v1/audit/data/{}", lease.audit_id);
    let shown = rig.send(&get(&path).key(&rig.key)).await.json();
    assert_eq!(shown["data"]["labData"]["performance"], 87);
    let listed = list(&rig, "").await;
    assert_eq!(listed["data"][0]["labData"], shown["data"]["labData"]);
}

#[tokio::test]
async fn a_report_that_cannot_be_read_is_summarized_once_and_listed_without_figures() {
    let rig = Rig::new().await;
    rig.start().await;
    let lease = rig.lease().await;
    let finished = FinishedAudit {
        report: "invalid".to_owned(),
        error: None,
        finished_at: NOW,
        summary: None,
    };
    rig.store.finish(&lease, finished).await.unwrap();
    assert_eq!(summaries::add_missing(&*rig.store).await.unwrap(), 1);
    assert_eq!(summaries::add_missing(&*rig.store).await.unwrap(), 0);
    assert!(list(&rig, "").await["data"][0].get("labData").is_none());
}

#[tokio::test]
async fn pages_are_complete_while_new_audits_are_started() {
    let rig = Rig::new().await;
    let mut started = Vec::new();
    for _ in 0..5 {
        started.push(rig.start().await);
        rig.clock.fetch_add(1, Ordering::SeqCst);
    }
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    for _ in 0..3 {
        let page = list(&rig, &format!("limit=2{cursor}")).await;
        listed.extend(ids(&page));
        rig.start().await;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    started.reverse();
    assert_eq!(listed, started);
}

#[tokio::test]
async fn filters_match_exactly_and_all_must_match() {
    let rig = Rig::new().await;
    let mut by_device = Vec::new();
    for (device, network) in [
        ("mobile", "cable"),
        ("desktop", "cable"),
        ("mobile", "fiber"),
    ] {
        let mut body = order();
        body["device"] = json!(device);
        body["network"] = json!(network);
        body["url"] = json!(format!("https://example.com/?a=1&b={device}"));
        by_device.push(rig.start_with(&body).await);
        rig.clock.fetch_add(1000, Ordering::SeqCst);
    }
    let [mobile, desktop, fiber] = &by_device[..] else {
        panic!()
    };
    let leased = rig.lease().await;
    assert_eq!(&leased.tracking_id, mobile);
    for (query, expected) in [
        ("device=mobile", vec![fiber, mobile]),
        ("device=mobile&network=cable", vec![mobile]),
        ("device=desktop&network=fiber", vec![]),
        ("device=MOBILE", vec![]),
        ("location=eu&network=cable", vec![desktop, mobile]),
        (
            "url=https%3A%2F%2Fexample.com%2F%3Fa%3D1%26b%3Ddesktop",
            vec![desktop],
        ),
        ("state=not-started", vec![fiber, desktop]),
        ("state=in-progress", vec![mobile]),
        ("state=completed", vec![]),
        ("from=2027-01-15T08:00:01Z", vec![fiber, desktop]),
        ("to=2027-01-15T08:00:01Z", vec![mobile]),
        (
            "from=2027-01-15T09:00:01%2B01:00&to=2027-01-15T08:00:01.001Z",
            vec![desktop],
        ),
    ] {
        let listed = ids(&list(&rig, query).await);
        assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "{query}");
    }
}

#[tokio::test]
async fn a_failure_names_the_invalid_parameter() {
    let rig = Rig::new().await;
    let long = "x".repeat(2049);
    for (query, message) in [
        ("limit=0", "Invalid Limit"),
        ("limit=101", "Invalid Limit"),
        ("limit=ten", "Invalid Limit"),
        ("limit=", "Invalid Limit"),
        ("limit=1&limit=2", "Invalid Limit"),
        ("cursor=", "Invalid Cursor"),
        ("cursor=x", "Invalid Cursor"),
        ("state=done", "Invalid State"),
        ("from=yesterday", "Invalid From"),
        ("to=2027-01-15", "Invalid To"),
        ("device=", "Invalid Device"),
        ("network=%00", "Invalid Network"),
        (&format!("url={long}"), "Invalid Url"),
    ] {
        let request = get(&format!("/v1/audits?{query}")).key(&rig.key);
        let reply = rig.send(&request).await;
        assert_eq!(
            (reply.status, reply.json()),
            (400, failure(message)),
            "{query}"
        );
    }
}

#[tokio::test]
async fn deleting_an_audit_removes_its_report_and_evidence() {
    let dir = tempfile::tempdir().unwrap();
    let bundles = FileBlobs::open(dir.path()).unwrap();
    let app_bundles = bundles.clone();
    let rig = Rig::with(|app| app.bundles = Some(Arc::new(app_bundles))).await;
    let tracking_id = rig.start().await;
    let lease = rig.lease().await;
    let data = format!("/v1/audit/data/{}", lease.audit_id);
    let delete = |key: &str| HttpRequest::new("DELETE", &data).key(key);
    let not_found = || failure("Resource Not Found");
    rig.check(delete(&rig.key), 404, not_found()).await;
    // The first name is that of an earlier version.
    let names = [lease.audit_id.clone(), format!("{}-1", lease.audit_id)];
    for name in &names {
        bundles.put(name, b"evidence").unwrap();
    }
    rig.finish(&lease, json!({}), None).await;

    let stranger = rig.new_key(&rig.new_account(1).await, None).await;
    rig.check(delete(&stranger), 404, not_found()).await;
    let gone = json!({ "status": "SUCCESS", "data": { "auditId": lease.audit_id } });
    rig.check(delete(&rig.key), 200, gone).await;
    for name in &names {
        assert_eq!(bundles.get(name).unwrap(), None);
    }
    rig.check(delete(&rig.key), 404, not_found()).await;
    for path in [
        data.clone(),
        format!("/v1/audit/report/{}", lease.audit_id),
        format!("/v1/audit/status/{tracking_id}"),
    ] {
        rig.check(get(&path).key(&rig.key), 404, not_found()).await;
    }
    assert_eq!(ids(&list(&rig, "").await), Vec::<String>::new());
    assert_eq!(rig.credits().await, 99);
}

#[tokio::test]
async fn the_balance_can_be_read() {
    let rig = Rig::new().await;
    rig.start().await;
    let expected = json!({ "status": "SUCCESS", "data": { "credits": 99 } });
    rig.check(get("/v1/credits").key(&rig.key), 200, expected)
        .await;
}

#[tokio::test]
async fn locations_and_networks_are_listed_like_devices() {
    let rig = Rig::new().await;
    for (path, count) in [
        ("/v1/locations", 9),
        ("/v1/networks", 14),
        ("/v1/devices", 41),
    ] {
        let reply = rig.send(&get(path)).await.json();
        let rows = reply["data"].as_array().unwrap();
        let ids: HashSet<_> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), count, "{path}");
        assert!(rows.iter().all(|row| row["name"].is_string()));
    }
    let reply = rig.send(&get("/v1/networks")).await.json();
    assert!(reply["data"][0]["downKbps"].is_number());
    assert_eq!(NOW.0, 1_800_000_000_000);
}
