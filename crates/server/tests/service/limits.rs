//! Limits of agent tokens, and of accounts whose audits fail.

use std::sync::atomic::Ordering;

use plumbline_store::{AgentBounds, AuditError};
use serde_json::json;

use crate::{
    agent::Agent,
    rig::{Rig, failure, order, post, start},
    visitor::{form, sign_in},
};

fn bounds(locations: &[&str], slots: u32) -> AgentBounds {
    AgentBounds {
        locations: Some(locations.iter().map(ToString::to_string).collect()),
        slots: Some(slots),
    }
}

#[tokio::test]
async fn a_token_is_refused_at_a_location_that_it_does_not_allow() {
    let rig = Rig::new().await;
    let allowed = bounds(&["us-tx", "eu"], 2);
    let agent = Agent::register_bounded(&*rig.store, "bound", "eu", &allowed).await;
    rig.start().await;
    let job = agent.lease(&rig, 0).await;
    let moved = Agent {
        location: "fr",
        ..agent.clone()
    };
    let lease = json!({ "agent": moved.announcement(), "slot": 1, "waitMs": 0 });
    let heartbeat = json!({
        "agent": moved.announcement(), "trackingId": job["trackingId"], "attempt": 1,
    });
    for (step, message) in [("lease", &lease), ("heartbeat", &heartbeat)] {
        let refused = moved.send(&rig, step, message).await;
        let reason = failure("This token is for agents at us-tx, eu, not at fr");
        assert_eq!((refused.status, refused.json()), (403, reason), "{step}");
    }
    let mut more = agent.announcement();
    more["slots"] = json!(3);
    let lease = json!({ "agent": more, "slot": 1, "waitMs": 0 });
    let refused = agent.send(&rig, "lease", &lease).await;
    let reason = failure("This token allows 2 slots, but this agent has 3");
    assert_eq!((refused.status, refused.json()), (403, reason));
    assert_eq!(agent.heartbeat(&rig, &job).await, "held");
}

/// No agent is active at the audit's location, so any agent may simulate it whose token allows
/// that.
#[tokio::test]
async fn no_audit_is_leased_for_a_location_that_the_token_does_not_allow() {
    let rig = Rig::new().await;
    rig.start().await;
    let bounded =
        Agent::register_bounded(&*rig.store, "one", "us-tx", &bounds(&["us-tx"], 2)).await;
    assert!(bounded.request_work(&rig, 0, 0).await["job"].is_null());
    let both = bounds(&["us-tx", "eu"], 2);
    let simulates = Agent::register_bounded(&*rig.store, "both", "us-tx", &both).await;
    assert_eq!(simulates.lease(&rig, 0).await["location"], "eu");
    rig.start().await;
    let unbound = Agent::new(&rig, "of-an-earlier-version", "us-tx").await;
    assert_eq!(unbound.lease(&rig, 0).await["location"], "eu");
}

#[tokio::test]
async fn all_processes_of_a_token_together_lease_no_more_audits_than_it_allows_slots() {
    let rig = Rig::new().await;
    for _ in 0..3 {
        rig.start().await;
    }
    let agent = Agent::register_bounded(&*rig.store, "two", "eu", &bounds(&["eu"], 2)).await;
    let first = agent.lease(&rig, 0).await;
    agent.lease(&rig, 1).await;
    let mut other = agent.announcement();
    other["process"] = json!("another");
    let message = json!({ "agent": other, "slot": 0, "waitMs": 0 });
    let refused = agent.send(&rig, "lease", &message).await;
    let reason = failure("All 2 slots of this token are in use");
    assert_eq!((refused.status, refused.json()), (429, reason));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(agent.finish(&rig, &first).await, "held");
    assert!(agent.exchange(&rig, "lease", &message).await["job"].is_object());
}

async fn fail(rig: &Rig) {
    let lease = rig.lease().await;
    let error = AuditError {
        code: "DNS_FAILURE".to_owned(),
        message: "unknown host".to_owned(),
    };
    rig.finish(&lease, json!({}), Some(error)).await;
}

#[tokio::test]
async fn an_account_whose_audits_keep_failing_has_to_wait() {
    let rig = Rig::with_pages_and(|app| app.limits.failed_audits_per_hour = 2).await;
    for _ in 0..2 {
        rig.start().await;
        fail(&rig).await;
    }
    let batch = json!({
        "urls": ["https://example.com/"], "devices": ["mobile"], "networks": ["cable"],
        "locations": ["eu"],
    });
    let batch = post("/v1/batches", batch.to_string()).key(&rig.key).json();
    for request in [start(&rig.key, &order()), batch] {
        let refused = rig
            .check(request, 429, failure("Too Many Failed Audits"))
            .await;
        // The rig finishes audits 7 ms after it starts them.
        assert_eq!(refused.header("retry-after"), Some("3601"));
    }
    let cookie = sign_in(&rig, &rig.key).await;
    let fields = "url=https://example.com/&device=mobile&network=cable&location=eu";
    let page = form("/audits", fields).header("Cookie", &cookie);
    let page = rig.browse(&page).await;
    assert_eq!(page.status, 429);
    assert_eq!(page.header("retry-after"), Some("3601"));
    assert!(page.text().contains("failed within the last hour"));
    assert_eq!(rig.credits().await, 100);

    let other = rig.new_account(1).await;
    let other = rig.new_key(&other, None).await;
    assert_eq!(rig.send(&start(&other, &order())).await.status, 200);
    rig.clock.fetch_add(3_601_000, Ordering::SeqCst);
    rig.start().await;
}

#[tokio::test]
async fn without_a_limit_any_number_of_audits_may_fail() {
    let rig = Rig::with(|app| app.limits.failed_audits_per_hour = 0).await;
    for _ in 0..10 {
        rig.start().await;
        fail(&rig).await;
    }
    rig.start().await;
}
