//! Links to reports, by the API.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::{
    rig::{HttpRequest, NOW, Rig, failure, get, post},
    visitor::completed,
};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn share(key: &str, id: &str, body: &str) -> HttpRequest {
    let path = format!("/v1/audit/share/{id}");
    post(&path, body).key(key).json()
}

fn stop(key: &str, id: &str) -> HttpRequest {
    HttpRequest::new("DELETE", &format!("/v1/audit/share/{id}")).key(key)
}

#[tokio::test]
async fn a_report_is_shared_until_its_link_expires_or_is_revoked() {
    let rig = Rig::with_pages().await;
    let id = completed(&rig).await;
    let list = get("/v1/shares").key(&rig.key);
    assert_eq!(rig.send(&list).await.json()["data"], json!([]));
    let forever = rig.send(&share(&rig.key, &id, "{}")).await;
    assert_eq!(forever.status, 200);
    assert_eq!(forever.json()["data"]["expiresAt"], json!(null));
    let first = forever.json()["data"]["path"].as_str().unwrap().to_owned();
    assert_eq!(rig.browse(&get(&first)).await.status, 200);

    let reply = rig.send(&share(&rig.key, &id, r#"{"days":2}"#)).await;
    let link = reply.json()["data"].clone();
    let second = link["path"].as_str().unwrap().to_owned();
    assert_eq!(link["createdAt"], "2027-01-15T08:00:00.000Z");
    assert_eq!(link["expiresAt"], "2027-01-17T08:00:00.000Z");
    assert_eq!(rig.browse(&get(&first)).await.status, 404, "replaced");
    assert_eq!(rig.browse(&get(&second)).await.status, 200);
    let mut listed = link.clone();
    listed["url"] = json!("https://example.com/");
    assert_eq!(rig.send(&list).await.json()["data"], json!([listed]));

    rig.clock.store(NOW.0 + 2 * DAY_MS, Ordering::SeqCst);
    assert_eq!(rig.browse(&get(&second)).await.status, 404, "expired");
    assert_eq!(rig.send(&list).await.json()["data"], json!([]));

    let reply = rig.send(&share(&rig.key, &id, r#"{"days":366}"#)).await;
    let third = reply.json()["data"]["path"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        let reply = rig.send(&stop(&rig.key, &id)).await;
        assert_eq!(reply.json()["data"], json!({ "auditId": id }));
    }
    assert_eq!(rig.browse(&get(&third)).await.status, 404, "revoked");
    assert_eq!(rig.send(&list).await.json()["data"], json!([]));
}

#[tokio::test]
async fn reports_of_others_and_invalid_days_are_refused() {
    let rig = Rig::with_pages().await;
    let id = completed(&rig).await;
    let stranger = rig.new_key(&rig.new_account(1).await, None).await;
    for request in [
        share(&stranger, &id, "{}"),
        stop(&stranger, &id),
        share(&rig.key, "unknown", "{}"),
    ] {
        rig.check(request, 404, failure("Resource Not Found")).await;
    }
    for days in ["0", "367", "-1", "1e9"] {
        let body = format!("{{\"days\":{days}}}");
        let request = share(&rig.key, &id, &body);
        let reply = rig.check(request, 406, failure("Invalid Days")).await;
        assert_eq!(reply.whole_json()["field"], "days");
    }
    for body in [
        "",
        "[]",
        r#"{"days":"1"}"#,
        r#"{"days":null}"#,
        r#"{"days":1.5}"#,
    ] {
        assert_eq!(
            rig.send(&share(&rig.key, &id, body)).await.status,
            400,
            "{body}"
        );
    }
    let without_pages = Rig::new().await;
    let list = get("/v1/shares").key(&without_pages.key);
    without_pages
        .check(list, 404, failure("Resource Not Found"))
        .await;
}
