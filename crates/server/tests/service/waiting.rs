//! Status requests that wait for completion.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::watch;

use crate::rig::{Rig, failure, get};

#[tokio::test]
async fn a_waiting_status_is_answered_when_the_audit_is_completed() {
    let rig = Arc::new(Rig::new().await);
    let tracking_id = rig.start().await;
    let lease = rig.lease().await;
    let waiting = {
        let rig = Arc::clone(&rig);
        let path = format!("/v1/audit/status/{tracking_id}?wait=30");
        tokio::spawn(async move { rig.send(&get(&path).key(&rig.key)).await })
    };
    rig.finish(&lease, json!({}), None).await;
    let reply = waiting.await.unwrap();
    assert_eq!(reply.json()["data"]["status"], "completed");
    assert_eq!(reply.json()["data"]["auditId"], lease.audit_id);
    // The same for an audit that is completed already.
    let path = format!("/v1/audit/status/{tracking_id}?wait=30");
    let reply = rig.send(&get(&path).key(&rig.key)).await;
    assert_eq!(reply.json()["data"]["status"], "completed");
}

#[tokio::test]
async fn an_unknown_audit_and_a_bad_wait_are_not_waited_for() {
    let rig = Rig::new().await;
    let id = rig.start().await;
    let unknown = get("/v1/audit/status/none?wait=30").key(&rig.key);
    rig.check(unknown, 404, failure("Resource Not Found")).await;
    for wait in ["31", "-1", "x", "", "1.5", "1&wait=1"] {
        let bad = get(&format!("/v1/audit/status/{id}?wait={wait}")).key(&rig.key);
        rig.check(bad, 400, failure("Invalid Wait")).await;
    }
    let now = get(&format!("/v1/audit/status/{id}?wait=0")).key(&rig.key);
    let reply = rig.send(&now).await.json();
    assert_eq!(reply["data"]["status"], "not-started");
}

#[tokio::test]
async fn a_wait_ends_with_the_status_as_it_is() {
    let rig = Rig::new().await;
    let id = rig.start().await;
    let request = get(&format!("/v1/audit/status/{id}?wait=1")).key(&rig.key);
    let reply = rig.send(&request).await.json();
    assert_eq!(reply["data"]["status"], "not-started");
}

#[tokio::test]
async fn waiting_requests_are_answered_when_the_service_stops() {
    let (stop, stopping) = watch::channel(false);
    let rig = Arc::new(Rig::with(|app| app.stopping = stopping).await);
    let id = rig.start().await;
    let waiting = {
        let rig = Arc::clone(&rig);
        let path = format!("/v1/audit/status/{id}?wait=30");
        tokio::spawn(async move { rig.send(&get(&path).key(&rig.key)).await })
    };
    stop.send_replace(true);
    let reply = waiting.await.unwrap();
    assert_eq!(reply.json()["data"]["status"], "not-started");
}

#[tokio::test]
async fn many_requests_can_wait_for_the_same_audit() {
    let rig = Arc::new(Rig::new().await);
    let id = rig.start().await;
    let lease = rig.lease().await;
    let mut connections = Vec::new();
    for _ in 0..200 {
        let mut connection = rig.connect().await;
        let request = get(&format!("/v1/audit/status/{id}?wait=30")).key(&rig.key);
        connection.write(&request.bytes()).await;
        connections.push(connection);
    }
    rig.finish(&lease, json!({}), None).await;
    for mut connection in connections {
        let reply = connection.reply().await;
        assert_eq!(reply.json()["data"]["status"], "completed");
    }
}
