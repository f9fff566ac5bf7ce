//! The protocol of agents on other machines.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use plumbline_model::report::Report;
use plumbline_server::AuditObserver;
use plumbline_store::{AgentStore, AgentToken, Lease, Store};
use serde_json::{Value, json};

use crate::{
    agent::{Agent, report},
    logs,
    rig::{NOW, Rig, failure, get, post},
};

#[tokio::test]
async fn a_remote_agent_performs_an_audit() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    let nothing = agent.request_work(&rig, 0, 0).await;
    assert_eq!(nothing, json!({ "job": null, "drain": false }));

    let tracking_id = rig.start().await;
    let job = agent.lease(&rig, 0).await;
    assert_eq!(
        job,
        json!({
            "trackingId": tracking_id, "attempt": 1, "url": "https://example.com/",
            "device": "mobile", "network": "normal4g", "location": "eu", "runs": 1,
            "exhausted": false, "heartbeatMs": 7500, "leaseMs": 30000, "containers": true,
        })
    );
    assert_eq!(agent.heartbeat(&rig, &job).await, "held");
    let progress = agent.post_step(&rig, "progress", &job, json!({ "phase": "loading" }));
    assert_eq!(progress.await, "held");

    let bundle = b"evidence".repeat(1000);
    let uploaded = rig.send(&agent.upload(&job, 0, &bundle, &bundle)).await;
    let complete = json!({ "hold": "held", "received": bundle.len(), "complete": true });
    assert_eq!(uploaded.json()["data"], complete);
    assert_eq!(agent.finish(&rig, &job).await, "held");

    let status = rig
        .send(&get(&format!("/v1/audit/status/{tracking_id}")).key(&rig.key))
        .await
        .json();
    assert_eq!(status["data"]["status"], "completed");
    let audit_id = status["data"]["auditId"].as_str().unwrap();
    assert_eq!(rig.blob("bundles", audit_id), Some(bundle));
    let data = rig
        .send(&get(&format!("/v1/audit/data/{audit_id}")).key(&rig.key))
        .await;
    assert_eq!(data.json()["data"]["labData"]["performance"], 97);
    assert_eq!(rig.store.unsummarized(1).await.unwrap(), []);
    assert_eq!(rig.credits().await, 99);
}

#[tokio::test]
async fn only_valid_tokens_are_accepted_and_tokens_are_never_logged() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    let message = json!({ "agent": agent.announcement(), "slot": 0, "waitMs": 0 });
    let unauthorized = failure("Unauthorized");
    let wrong = AgentToken::generate().unwrap().reveal();
    for token in [wrong.as_str(), rig.key.as_str(), "", "pla_x_y"] {
        let other = Agent {
            token: token.to_owned(),
            ..agent.clone()
        };
        let reply = other.send(&rig, "lease", &message).await;
        assert_eq!((reply.status, reply.json()), (401, unauthorized.clone()));
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    agent.request_work(&rig, 0, 0).await;
    rig.start().await;
    let job = agent.lease(&rig, 0).await;
    rig.store.revoke_agent("frankfurt", NOW).await.unwrap();
    assert_eq!(agent.send(&rig, "lease", &message).await.status, 401);
    let finish = json!({ "trackingId": job["trackingId"], "attempt": 1, "report": report() });
    assert_eq!(agent.send(&rig, "finish", &finish).await.status, 401);
    let log = logs::text();
    assert!(log.contains("/agent/v1/lease"));
    for secret in [&agent.token, &wrong, &rig.key] {
        assert!(!log.contains(secret.as_str()));
    }
}

#[tokio::test]
async fn an_agent_with_another_protocol_version_is_told_the_servers_version() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    let message = json!({ "agent": agent.announcement(), "slot": 0, "waitMs": 0 }).to_string();
    let bearer = format!("Bearer {}", agent.token);
    for version in [None, Some("2"), Some("one"), Some("")] {
        let mut request = post("/agent/v1/lease", message.clone()).header("Authorization", &bearer);
        if let Some(version) = version {
            request = request.header("X-Plumbline-Protocol", version);
        }
        let reply = rig.send(&request).await;
        assert_eq!(reply.status, 400, "{version:?}");
        let message = reply.json()["message"].to_string();
        assert!(message.contains("agent protocol 1"), "{message}");
        assert_eq!(reply.header("x-plumbline-protocol"), Some("1"));
    }
}

#[tokio::test]
async fn a_late_result_is_refused_at_every_step() {
    let rig = Rig::new().await;
    let late = Agent::new(&rig, "late", "eu").await;
    let other = Agent::new(&rig, "other", "eu").await;
    rig.start().await;
    let first = late.lease(&rig, 0).await;
    let bundle = b"evidence".repeat(10);
    let begun = rig
        .send(&late.upload(&first, 0, &bundle[..8], &bundle))
        .await;
    assert_eq!(begun.json()["data"]["received"], 8);

    rig.clock.fetch_add(30_001, Ordering::SeqCst);
    let second = other.lease(&rig, 0).await;
    assert_eq!(second["attempt"], 2);
    assert_eq!(late.heartbeat(&rig, &first).await, "lost");
    let phase = json!({ "phase": "judging" });
    assert_eq!(
        late.post_step(&rig, "progress", &first, phase).await,
        "lost"
    );
    let rest = rig
        .send(&late.upload(&first, 8, &bundle[8..], &bundle))
        .await;
    assert_eq!(rest.json()["data"]["hold"], "lost");
    assert_eq!(late.finish(&rig, &first).await, "lost");
    for reason in ["fault", "drained"] {
        let returned = late.post_step(&rig, "return", &first, json!({ "why": reason }));
        assert_eq!(returned.await, "lost");
    }

    assert_eq!(other.heartbeat(&rig, &second).await, "held");
    assert_eq!(other.finish(&rig, &second).await, "held");
    assert_eq!(late.finish(&rig, &first).await, "lost");
    assert_eq!(rig.credits().await, 99);
}

#[tokio::test]
async fn a_lease_belongs_to_one_agent() {
    let rig = Rig::new().await;
    let owner = Agent::new(&rig, "owner", "eu").await;
    let thief = Agent::new(&rig, "thief", "eu").await;
    rig.start().await;
    let job = owner.lease(&rig, 0).await;
    assert_eq!(thief.heartbeat(&rig, &job).await, "lost");
    assert_eq!(thief.finish(&rig, &job).await, "lost");
    let returned = thief.post_step(&rig, "return", &job, json!({ "why": "fault" }));
    assert_eq!(returned.await, "lost");
    assert_eq!(owner.finish(&rig, &job).await, "held");
}

#[tokio::test]
async fn an_agent_that_missed_the_response_may_finish_again() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    rig.start().await;
    let job = agent.lease(&rig, 0).await;
    assert_eq!(agent.finish(&rig, &job).await, "held");
    assert_eq!(agent.finish(&rig, &job).await, "held");
    let metrics = rig.fetch(&get("/metrics")).await;
    let once = "plumbline_audits_finished_total{outcome=\"measured\"} 1\n";
    assert!(metrics.text().contains(once));
    assert_eq!(rig.credits().await, 99);
}

#[tokio::test]
async fn an_audit_that_its_slot_never_received_goes_back_when_the_slot_polls_again() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    let tracking_id = rig.start().await;
    agent.lease(&rig, 0).await;
    let nothing = agent.request_work(&rig, 1, 0).await;
    assert_eq!(nothing["job"], Value::Null, "another slot holds it");
    let again = agent.lease(&rig, 0).await;
    assert_eq!(again["trackingId"], tracking_id.as_str());
    assert_eq!(again["attempt"], 2);
    let queue = rig.store.queue(1).await.unwrap();
    assert_eq!(queue[0].faults, 0);

    let leaving = json!({ "agent": agent.announcement(), "slot": 0, "waitMs": 0, "leaving": true });
    agent.exchange(&rig, "lease", &leaving).await;
    assert_eq!(rig.store.queue_depth().await.unwrap().waiting, 1);
}

#[tokio::test]
async fn a_poll_of_an_agent_that_has_stopped_takes_no_work_from_others() {
    let rig = Rig::new().await;
    let leaves = Agent::new(&rig, "leaves", "eu").await;
    let stays = Agent::new(&rig, "stays", "eu").await;
    let message = json!({ "agent": leaves.announcement(), "slot": 0, "waitMs": 30_000 });
    let request = leaves.authorize(post("/agent/v1/lease", message.to_string()));
    let mut waiting = rig.connect().await;
    waiting.write(&request.bytes()).await;
    while rig.store.presences(NOW).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let leaving =
        json!({ "agent": leaves.announcement(), "slot": 0, "waitMs": 0, "leaving": true });
    assert_eq!(
        leaves.exchange(&rig, "lease", &leaving).await["drain"],
        true
    );
    rig.start().await;
    let job = stays.lease(&rig, 0).await;
    assert_eq!(job["attempt"], 1);
    assert_eq!(
        waiting.reply_to("POST").await.json()["data"]["job"],
        Value::Null
    );
}

#[tokio::test]
async fn a_drained_agent_finishes_its_audit_and_gets_no_new_one() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    rig.start().await;
    rig.start().await;
    let job = agent.lease(&rig, 0).await;
    rig.store.drain_agent("frankfurt", true, NOW).await.unwrap();
    let response = agent.request_work(&rig, 1, 5_000).await;
    assert_eq!(response, json!({ "job": null, "drain": true }));
    assert_eq!(agent.heartbeat(&rig, &job).await, "held");
    assert_eq!(agent.finish(&rig, &job).await, "held");
    let resume = rig.store.drain_agent("frankfurt", false, NOW);
    resume.await.unwrap();
    agent.lease(&rig, 0).await;
}

#[tokio::test]
async fn an_audit_is_performed_by_an_agent_at_its_location_or_simulated_if_there_is_none() {
    let rig = Rig::new().await;
    let europe = Agent::new(&rig, "frankfurt", "eu").await;
    let texas = Agent::new(&rig, "dallas", "us-tx").await;
    // A single agent leases audits of all locations.
    rig.start().await;
    let simulated = texas.lease(&rig, 0).await;
    assert_eq!(simulated["location"], "eu");
    texas.finish(&rig, &simulated).await;

    europe.request_work(&rig, 0, 0).await;
    rig.start().await;
    let nothing = texas.request_work(&rig, 0, 0).await;
    assert_eq!(nothing["job"], Value::Null, "an agent is active there now");
    let real = europe.lease(&rig, 0).await;
    europe.finish(&rig, &real).await;
    let presences = rig.store.presences(NOW).await.unwrap();
    let locations: Vec<_> = presences
        .iter()
        .map(|presence| presence.location.as_str())
        .collect();
    assert_eq!(locations.len(), 2);
    assert!(locations.contains(&"eu") && locations.contains(&"us-tx"));
}

#[tokio::test]
async fn nothing_is_simulated_where_the_operator_does_not_allow_it() {
    let rig = Rig::with_dispatcher(|dispatcher| dispatcher.simulate = false).await;
    let texas = Agent::new(&rig, "dallas", "us-tx").await;
    rig.start().await;
    let nothing = texas.request_work(&rig, 0, 0).await;
    assert_eq!(nothing["job"], Value::Null);
    let europe = Agent::new(&rig, "frankfurt", "eu").await;
    europe.lease(&rig, 0).await;
}

#[tokio::test]
async fn a_waiting_poll_gets_work_when_it_arrives() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    let message = json!({ "agent": agent.announcement(), "slot": 0, "waitMs": 30_000 });
    let request = agent.authorize(post("/agent/v1/lease", message.to_string()));
    let mut waiting = rig.connect().await;
    waiting.write(&request.bytes()).await;
    let tracking_id = rig.start().await;
    let reply = tokio::time::timeout(Duration::from_secs(20), waiting.reply_to("POST"));
    let reply = reply.await.unwrap().json();
    assert_eq!(reply["data"]["job"]["trackingId"], tracking_id.as_str());
}

#[tokio::test]
async fn invalid_messages_are_refused() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    let with = |name: &str, value: Value| {
        let mut announcement = agent.announcement();
        announcement[name] = value;
        json!({ "agent": announcement, "slot": 0, "waitMs": 0 })
    };
    for (message, status) in [
        (with("process", json!("")), 400),
        (with("process", json!("../x")), 400),
        (with("process", json!("x".repeat(101))), 400),
        (with("chromium", json!("a\u{7}")), 400),
        (with("slots", json!(-1)), 400),
        (with("location", json!("the-moon")), 406),
        (json!([]), 400),
        (json!({}), 400),
    ] {
        let reply = agent.send(&rig, "lease", &message).await;
        assert_eq!(reply.status, status, "{message}");
    }
    rig.start().await;
    let job = agent.lease(&rig, 0).await;
    let mut newer = report();
    newer["format"] = json!(99);
    for wrong in [json!({}), json!("report"), newer] {
        let finish = json!({ "trackingId": job["trackingId"], "attempt": 1, "report": wrong });
        assert_eq!(agent.send(&rig, "finish", &finish).await.status, 400);
    }
    assert_eq!(agent.heartbeat(&rig, &job).await, "held");
}

#[tokio::test]
async fn an_observer_can_add_to_the_report_of_any_agent() {
    #[derive(Default)]
    struct CountingObserver(AtomicU32);
    impl AuditObserver for CountingObserver {
        fn on_lease(&self, lease: &Lease) {
            tracing::info!(audit = lease.tracking_id, "observing");
        }
        fn before_finish(&self, lease: &Lease, report: &mut Report) {
            report
                .warnings
                .push(format!("observed {}", lease.tracking_id));
        }
        fn on_finish(&self, _: &Lease) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let observer = Arc::new(CountingObserver::default());
    let registered = Arc::clone(&observer);
    let rig = Rig::with_dispatcher(|dispatcher| dispatcher.observers.push(registered)).await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    let tracking_id = rig.start().await;
    let job = agent.lease(&rig, 0).await;
    assert!(logs::text().contains("observing"));
    let disk = rig.second_connection();
    disk.execute_batch(
        "CREATE TRIGGER full BEFORE INSERT ON reports BEGIN SELECT RAISE(ABORT, 'disk full'); END",
    )
    .unwrap();
    let finish = json!({ "trackingId": tracking_id, "attempt": 1, "report": report() });
    assert_eq!(agent.send(&rig, "finish", &finish).await.status, 500);
    assert_eq!(
        observer.0.load(Ordering::Relaxed),
        0,
        "the attempt is not over"
    );
    disk.execute_batch("DROP TRIGGER full").unwrap();
    agent.finish(&rig, &job).await;
    assert_eq!(observer.0.load(Ordering::Relaxed), 1);
    let queried = rig.store.status(&rig.account_id, &tracking_id).await;
    let audit_id = queried.unwrap().unwrap().audit_id;
    let stored = rig.store.report(&rig.account_id, &audit_id).await.unwrap();
    let report: Value = serde_json::from_str(&stored.unwrap().report).unwrap();
    assert_eq!(
        report["warnings"],
        json!([format!("observed {tracking_id}")])
    );
}
