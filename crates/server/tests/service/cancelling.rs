//! Cancelling audits and batches.

use serde_json::{Value, json};

use crate::{
    agent::Agent,
    rig::{HttpRequest, Rig, failure, get, order, post},
    visitor::{assert_is_page, form, sign_in},
};

fn cancel(key: &str, path: &str) -> HttpRequest {
    post(path, "").key(key)
}

fn error() -> Value {
    json!({ "code": "CANCELLED", "message": "The audit was cancelled." })
}

#[tokio::test]
async fn a_cancelled_audit_is_completed_with_an_error_and_refunded_once() {
    let rig = Rig::new().await;
    let id = rig
        .start_with(&{
            let mut order = order();
            order["runs"] = json!(3);
            order
        })
        .await;
    assert_eq!(rig.credits().await, 97);
    let path = format!("/v1/audit/cancel/{id}");
    let first = rig.send(&cancel(&rig.key, &path)).await;
    assert_eq!(first.status, 200);
    let status = first.json()["data"].clone();
    assert_eq!(status["status"], "completed");
    assert_eq!(status["error"], error());
    assert_eq!(rig.credits().await, 100);
    let again = rig.send(&cancel(&rig.key, &path)).await;
    assert_eq!(again.json(), first.json(), "cancelling is idempotent");
    assert_eq!(rig.credits().await, 100);
    let request = get(&format!("/v1/audit/status/{id}")).key(&rig.key);
    assert_eq!(rig.send(&request).await.json(), first.json());

    let audit_id = status["auditId"].as_str().unwrap();
    let request = get(&format!("/v1/audit/data/{audit_id}")).key(&rig.key);
    let data = rig.send(&request).await.json()["data"].clone();
    assert_eq!(data["error"], error());
    assert_eq!(data["location"], "Frankfurt, Germany");
    let figures = data["labData"].as_object().unwrap();
    assert_eq!(figures.len(), 11);
    assert!(figures.values().all(Value::is_null));
}

#[tokio::test]
async fn a_completed_audit_stays_as_it_is() {
    let rig = Rig::new().await;
    let id = rig.start().await;
    let lease = rig.lease().await;
    rig.finish(&lease, json!({}), None).await;
    let reply = rig
        .send(&cancel(&rig.key, &format!("/v1/audit/cancel/{id}")))
        .await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["data"].get("error"), None);
    assert_eq!(rig.credits().await, 99);
}

#[tokio::test]
async fn audits_and_batches_of_others_cannot_be_cancelled() {
    let rig = Rig::new().await;
    let id = rig.start().await;
    let stranger = rig.new_key(&rig.new_account(1).await, None).await;
    for path in [
        format!("/v1/audit/cancel/{id}"),
        "/v1/audit/cancel/unknown".to_owned(),
        "/v1/batches/unknown/cancel".to_owned(),
    ] {
        let request = cancel(&stranger, &path);
        rig.check(request, 404, failure("Resource Not Found")).await;
    }
    let without_key = post(&format!("/v1/audit/cancel/{id}"), "");
    rig.check(without_key, 401, failure("Unauthorized")).await;
    let request = get(&format!("/v1/audit/status/{id}")).key(&rig.key);
    assert_eq!(
        rig.send(&request).await.json()["data"]["status"],
        "not-started"
    );
}

#[tokio::test]
async fn an_agent_learns_of_the_cancellation_from_its_heartbeat() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "one", "eu").await;
    let id = rig.start().await;
    let job = agent.lease(&rig, 0).await;
    assert_eq!(agent.heartbeat(&rig, &job).await, "held");
    let phase = json!({ "phase": "loading" });
    assert_eq!(agent.post_step(&rig, "progress", &job, phase).await, "held");
    let reply = rig
        .send(&cancel(&rig.key, &format!("/v1/audit/cancel/{id}")))
        .await;
    assert_eq!(reply.json()["data"]["error"], error());
    assert_eq!(agent.heartbeat(&rig, &job).await, "lost");
    assert_eq!(agent.finish(&rig, &job).await, "lost");
    let request = get(&format!("/v1/audit/status/{id}")).key(&rig.key);
    let status = rig.send(&request).await.json();
    assert_eq!(status["data"]["error"], error());
    let next = agent.request_work(&rig, 0, 0).await;
    assert_eq!(next["job"], Value::Null);
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn the_unfinished_audits_of_a_batch_are_cancelled_together() {
    let rig = Rig::new().await;
    let body = json!({
        "urls": ["https://example.com/a", "https://example.com/b", "https://example.com/c"],
        "devices": ["mobile"], "networks": ["cable"], "locations": ["eu"],
    });
    let request = post("/v1/batches", body.to_string()).key(&rig.key).json();
    let started = rig.send(&request).await.json();
    let id = started["data"]["batchId"].as_str().unwrap();
    let finished = rig.lease().await;
    rig.finish(&finished, json!({}), None).await;
    rig.lease().await;
    let path = format!("/v1/batches/{id}/cancel");
    let first = rig.send(&cancel(&rig.key, &path)).await.json();
    assert_eq!(first["data"]["status"], "completed");
    let counts = json!({
        "accepted": 3, "notStarted": 0, "inProgress": 0, "completed": 3, "failed": 2, "deleted": 0,
    });
    assert_eq!(first["data"]["counts"], counts);
    assert_eq!(first["data"]["audits"][0].get("error"), None);
    assert_eq!(first["data"]["audits"][1]["error"], error());
    assert_eq!(first["data"]["audits"][2]["error"], error());
    assert_eq!(rig.credits().await, 99);
    let again = rig.send(&cancel(&rig.key, &path)).await.json();
    assert_eq!(again, first);
}

#[tokio::test]
async fn the_progress_page_cancels_an_audit() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let id = rig.start().await;
    let lease = rig.lease().await;
    let request = get(&format!("/audits/{id}")).header("Cookie", &cookie);
    let page = rig.browse(&request).await;
    let action = format!("action=\"/audits/{id}/cancel\"");
    assert!(page.text().contains(&action), "{}", page.text());
    let path = format!("/audits/{id}/cancel");
    let from_elsewhere = post(&path, "")
        .header("Cookie", &cookie)
        .header("Sec-Fetch-Site", "cross-site");
    assert_eq!(rig.browse(&from_elsewhere).await.status, 403);
    let reply = rig.browse(&form(&path, "").header("Cookie", &cookie)).await;
    let report = format!("/reports/{}", lease.audit_id);
    assert_eq!(
        (reply.status, reply.header("location")),
        (303, Some(&*report))
    );
    let page = rig.browse(&get(&report).header("Cookie", &cookie)).await;
    assert_is_page(&page);
    assert!(page.text().contains("The audit was cancelled."));
    assert!(page.text().contains("CANCELLED"));
    assert!(page.text().contains("<h2>Not measured</h2>"));
    assert!(page.text().contains(" requested</li>"), "{}", page.text());
    assert!(!page.text().contains("simulated"), "{}", page.text());
    assert!(
        page.text()
            .contains("The credit for this audit was refunded.")
    );
    assert!(!page.text().contains("could not be measured"));
    let start = rig.browse(&get("/").header("Cookie", &cookie)).await;
    assert!(start.text().contains("cancelled"), "{}", start.text());
    assert!(!start.text().contains("not measured"), "{}", start.text());
}
