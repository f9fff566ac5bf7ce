//! Batches.

use plumbline_store::AuditError;
use serde_json::{Value, json};

use crate::rig::{HttpRequest, Rig, failure, get, post};

fn body() -> Value {
    json!({
        "urls": ["https://example.com/", "https://example.com/b"],
        "devices": ["mobile", "desktop"],
        "networks": ["cable"],
        "locations": ["eu", "us-tx"],
    })
}

fn batch(key: &str, body: &Value) -> HttpRequest {
    post("/v1/batches", body.to_string()).key(key).json()
}

#[tokio::test]
async fn every_combination_is_accepted_and_followed_together() {
    let rig = Rig::new().await;
    let started = rig.send(&batch(&rig.key, &body())).await;
    assert_eq!(started.status, 200);
    let started = started.json();
    assert_eq!(started["data"]["audits"], 8);
    let id = started["data"]["batchId"].as_str().unwrap();
    assert_eq!(rig.credits().await, 92);

    let request = get(&format!("/v1/batches/{id}")).key(&rig.key);
    let fresh = rig.send(&request).await.json();
    assert_eq!(fresh["data"]["status"], "not-started");
    let audits = fresh["data"]["audits"].as_array().unwrap();
    let mut combinations: Vec<_> = audits
        .iter()
        .map(|a| format!("{} {} {}", a["url"], a["device"], a["location"]))
        .collect();
    assert_eq!(
        combinations[0], "\"https://example.com/\" \"mobile\" \"eu\"",
        "in the order of the lists"
    );
    combinations.sort_unstable();
    combinations.dedup();
    assert_eq!(combinations.len(), 8);

    let first = rig.lease().await;
    let error = AuditError {
        code: "TIMEOUT".to_owned(),
        message: "late".to_owned(),
    };
    rig.finish(&first, json!({}), Some(error)).await;
    let second = rig.lease().await;
    let running = rig.send(&request).await.json();
    assert_eq!(running["data"]["status"], "in-progress");
    let counts = json!({
        "accepted": 8, "notStarted": 6, "inProgress": 1, "completed": 1, "failed": 1, "deleted": 0,
    });
    assert_eq!(running["data"]["counts"], counts);
    rig.finish(&second, json!({}), None).await;
    for _ in 0..6 {
        let lease = rig.lease().await;
        rig.finish(&lease, json!({}), None).await;
    }
    let gone =
        HttpRequest::new("DELETE", &format!("/v1/audit/data/{}", second.audit_id)).key(&rig.key);
    assert_eq!(rig.send(&gone).await.status, 200);
    let done = rig.send(&request).await.json();
    assert_eq!(done["data"]["status"], "completed");
    assert_eq!(done["data"]["counts"]["deleted"], 1);
    let stranger = rig.new_key(&rig.new_account(1).await, None).await;
    let theirs = get(&format!("/v1/batches/{id}")).key(&stranger);
    rig.check(theirs, 404, failure("Resource Not Found")).await;
}

#[tokio::test]
async fn a_batch_without_enough_credits_starts_nothing() {
    let rig = Rig::new().await;
    let poor = rig.new_key(&rig.new_account(7).await, None).await;
    rig.check(batch(&poor, &body()), 402, failure("Insufficient Credits"))
        .await;
    let list = rig.send(&get("/v1/audits").key(&poor)).await.json();
    assert_eq!(list["data"], json!([]));
    let mut with_runs = body();
    with_runs["runs"] = json!(9);
    assert_eq!(rig.send(&batch(&rig.key, &with_runs)).await.status, 200);
    assert_eq!(rig.credits().await, 28);
}

#[tokio::test]
async fn each_audit_of_a_batch_counts_as_a_start() {
    let rig = Rig::with(|app| app.limits.starts_per_minute = 10).await;
    let first = rig.send(&batch(&rig.key, &body())).await;
    assert_eq!(first.header("x-ratelimit-remaining"), Some("2"));
    let second = rig
        .check(
            batch(&rig.key, &body()),
            429,
            failure("Rate Limit Exceeded"),
        )
        .await;
    assert_eq!(second.header("retry-after"), Some("36"));
}

#[tokio::test]
async fn a_batch_is_safe_to_repeat() {
    let rig = Rig::new().await;
    let request = batch(&rig.key, &body()).header("Idempotency-Key", "k");
    let first = rig.send(&request).await.json();
    rig.check(request, 200, first).await;
    let mut other = body();
    other["devices"] = json!(["mobile"]);
    let other = batch(&rig.key, &other).header("Idempotency-Key", "k");
    rig.check(other, 409, failure("Idempotency Key Reused"))
        .await;
    assert_eq!(rig.credits().await, 92);
}

#[tokio::test]
async fn a_failure_names_the_invalid_part_of_a_batch() {
    let rig = Rig::with(|app| app.limits.batch_audits = 9).await;
    let changed = |member: &str, value: Value| {
        let mut body = body();
        body[member] = value;
        batch(&rig.key, &body)
    };
    for (member, value, message) in [
        ("urls", json!([]), "Invalid Batch"),
        ("devices", json!([]), "Invalid Batch"),
        ("devices", json!(vec!["mobile"; 10]), "Invalid Batch"),
        (
            "urls",
            json!([
                "https://a.example/",
                "https://b.example/",
                "https://c.example/"
            ]),
            "Invalid Batch",
        ),
        ("urls", json!(["https://private.example/"]), "Invalid Url"),
        ("devices", json!(["none"]), "Invalid Device"),
        ("locations", json!(["none"]), "Invalid Location"),
        ("networks", json!(["none"]), "Invalid Network"),
        ("runs", json!(10), "Invalid Runs"),
        ("webhook", json!("x"), "Invalid Webhook"),
    ] {
        rig.check(changed(member, value), 406, failure(message))
            .await;
    }
    let invalid = "Invalid Request body or missing required parameters";
    for (member, value) in [
        ("urls", json!("https://example.com/")),
        ("devices", json!([1])),
        ("networks", json!(null)),
    ] {
        rig.check(changed(member, value), 400, failure(invalid))
            .await;
    }
    // A repeated value counts once.
    let twice = changed("devices", json!(["mobile", "mobile"]));
    assert_eq!(rig.send(&twice).await.json()["data"]["audits"], 4);
    assert_eq!(rig.credits().await, 96);
}
