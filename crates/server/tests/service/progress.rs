//! The progress of audits in their status.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::{
    agent::{Agent, report},
    rig::{NOW, Rig, get, order, start},
    visitor::sign_in,
};

async fn progress(rig: &Rig, id: &str) -> Value {
    let request = get(&format!("/v1/audit/status/{id}")).key(&rig.key);
    rig.send(&request).await.json()["data"]["progress"].clone()
}

#[tokio::test]
async fn a_waiting_audit_has_a_place_in_the_queue() {
    let rig = Rig::new().await;
    let stranger = rig.new_key(&rig.new_account(9).await, None).await;
    for _ in 0..3 {
        rig.send(&start(&stranger, &order())).await;
    }
    rig.start().await;
    let second = rig.start().await;
    rig.clock.store(NOW.0 + 12_345, Ordering::SeqCst);
    let waiting = progress(&rig, &second).await;
    let expected = json!({
        "phase": "waiting", "text": "Number 4 in the queue", "queuePosition": 4,
        "elapsedSeconds": 12, "remainingSeconds": 120,
    });
    assert_eq!(waiting, expected, "accounts take turns");
}

#[tokio::test]
async fn a_running_audit_has_the_visit_that_its_agent_reported() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "one", "eu").await;
    let id = rig.start().await;
    let job = agent.lease(&rig, 0).await;
    let starting = json!({ "phase": "waiting", "text": "Starting", "elapsedSeconds": 0 });
    assert_eq!(progress(&rig, &id).await, starting);
    let visit = json!({ "run": 1, "number": 2, "max": 3, "reason": "uncertain" });
    let message = json!({ "phase": "gathering", "visit": visit });
    agent.post_step(&rig, "progress", &job, message).await;
    rig.clock.store(NOW.0 + 10_000, Ordering::SeqCst);
    let expected = json!({
        "phase": "gathering", "text": "Visit 2 of at most 3: confirming the score", "visit": visit,
        "elapsedSeconds": 10, "remainingSeconds": 20,
    });
    assert_eq!(progress(&rig, &id).await, expected);
    // An agent of an earlier version reports only the phase.
    let message = json!({ "phase": "judging" });
    agent.post_step(&rig, "progress", &job, message).await;
    assert_eq!(progress(&rig, &id).await["text"], "Running");
    agent.finish(&rig, &job).await;
    assert_eq!(progress(&rig, &id).await, Value::Null);
}

#[tokio::test]
async fn the_estimate_is_the_duration_of_earlier_runs() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "one", "eu").await;
    rig.start().await;
    let job = agent.lease(&rig, 0).await;
    let phase = json!({ "phase": "preparing" });
    agent.post_step(&rig, "progress", &job, phase).await;
    rig.clock.store(NOW.0 + 8_000, Ordering::SeqCst);
    let finish = json!({ "report": report() });
    agent.post_step(&rig, "finish", &job, finish).await;
    let mut body = order();
    body["runs"] = json!(5);
    let id = rig.start_with(&body).await;
    assert_eq!(progress(&rig, &id).await["remainingSeconds"], 40);
    let metrics = rig.fetch(&get("/metrics")).await;
    let line = "plumbline_audit_run_seconds_sum 8";
    assert!(metrics.text().contains(line), "{}", metrics.text());
}

#[tokio::test]
async fn the_progress_page_is_sent_the_visit() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let agent = Agent::new(&rig, "one", "eu").await;
    let id = rig.start().await;
    let events = get(&format!("/audits/{id}/events")).header("Cookie", &cookie);
    let mut stream = rig.connect().await;
    stream.write(&events.bytes()).await;
    stream.wait_for("data: Number 1 in the queue").await;
    let job = agent.lease(&rig, 0).await;
    let visit = json!({ "run": 1, "number": 2, "max": 3, "reason": "uncertain" });
    let message = json!({ "phase": "gathering", "visit": visit });
    agent.post_step(&rig, "progress", &job, message).await;
    stream.wait_for("event: phase\ndata: gathering").await;
    let details = "event: details\ndata: Visit 2 of at most 3: confirming the score";
    stream.wait_for(details).await;
    agent.finish(&rig, &job).await;
    stream.wait_for("event: done").await;
}
