//! Our own faults: an envelope without detail, and a service that lives on.

use std::time::Duration;

use serde_json::json;

use crate::rig::{Rig, failure, get, order, start};

#[tokio::test]
async fn a_panic_is_a_500_and_the_connection_goes_on() {
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
    assert_eq!(rig.ask(&get("/v1/devices")).await.status, 200);
}

#[tokio::test]
async fn an_unreadable_report_is_a_500() {
    let rig = Rig::new().await;
    rig.start().await;
    let lease = rig.lease().await;
    rig.finish(&lease, json!({ "format": "of another world" }), None)
        .await;
    let data = get(&format!("/v1/audit/data/{}", lease.audit_id)).key(&rig.key);
    rig.check(data, 500, failure("Internal Server Error")).await;
}

#[tokio::test]
async fn a_store_that_hangs_makes_the_service_unready_and_starts_unavailable_but_alive() {
    let rig = Rig::with(|app| app.limits.answer = Duration::from_millis(300)).await;
    let held = rig.second_connection();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    rig.check(get("/readyz"), 503, failure("Service Unavailable"))
        .await;
    rig.check(
        start(&rig.key, &order()),
        503,
        failure("Service Unavailable"),
    )
    .await;
    assert_eq!(rig.ask(&get("/healthz")).await.status, 200);
    held.execute_batch("ROLLBACK").unwrap();
    assert_eq!(rig.ask(&get("/readyz")).await.status, 200);
}
