//! Server errors: responses without details, and a service that keeps running.

use std::time::Duration;

use serde_json::json;

use crate::rig::{Rig, failure, get, order, start};

#[tokio::test]
async fn a_panic_is_a_500_and_the_connection_stays_open() {
    let rig = Rig::new().await;
    let mut body = order();
    body["url"] = json!("https://panic.example/");
    let mut connection = rig.connect().await;
    for _ in 0..3 {
        connection.write(&start(&rig.key, &body).bytes()).await;
        let reply = connection.reply().await;
        assert_eq!(
            (reply.status, reply.json()),
            (500, failure("Internal Server Error"))
        );
        connection.write(&get("/healthz").bytes()).await;
        assert_eq!(connection.reply().await.status, 200);
    }
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn a_store_that_fails_is_a_500_without_detail() {
    let rig = Rig::new().await;
    rig.second_connection()
        .execute_batch("PRAGMA foreign_keys = OFF; ALTER TABLE audits RENAME TO lost;")
        .unwrap();
    for request in [
        start(&rig.key, &order()),
        get("/v1/audit/status/x").key(&rig.key),
    ] {
        rig.check(request, 500, failure("Internal Server Error"))
            .await;
    }
    assert_eq!(rig.send(&get("/v1/devices")).await.status, 200);
}

#[tokio::test]
async fn an_unreadable_report_is_a_500() {
    let rig = Rig::new().await;
    rig.start().await;
    let lease = rig.lease().await;
    rig.finish(&lease, json!({ "format": "invalid" }), None)
        .await;
    let data = get(&format!("/v1/audit/data/{}", lease.audit_id)).key(&rig.key);
    rig.check(data, 500, failure("Internal Server Error")).await;
}

#[tokio::test]
async fn while_the_store_hangs_the_service_is_alive_but_not_ready_and_starts_are_unavailable() {
    let rig = Rig::with(|app| app.limits.answer = Duration::from_millis(300)).await;
    let blocking = rig.second_connection();
    blocking.execute_batch("BEGIN IMMEDIATE").unwrap();
    rig.check(get("/readyz"), 503, failure("Service Unavailable"))
        .await;
    rig.check(
        start(&rig.key, &order()),
        503,
        failure("Service Unavailable"),
    )
    .await;
    assert_eq!(rig.send(&get("/healthz")).await.status, 200);
    blocking.execute_batch("ROLLBACK").unwrap();
    assert_eq!(rig.send(&get("/readyz")).await.status, 200);
}
