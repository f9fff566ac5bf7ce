//! Audits that were leased to an agent that no longer reads the response. The rig's clock does not
//! move, so no lease expires: an audit that returns to the queue was not confirmed.

use std::time::Duration;

use plumbline_store::Store;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    agent::Agent,
    client::Connection,
    rig::{NOW, Rig, get, post},
};

/// The duration of a lease; a confirmation must arrive within a sixth of it.
const LEASE: Duration = Duration::from_secs(3);

async fn rig() -> Rig {
    Rig::with_dispatcher(|dispatcher| dispatcher.lease = LEASE).await
}

fn request(agent: &Agent, slot: u32) -> Value {
    json!({ "agent": agent.announcement(), "slot": slot, "waitMs": 30_000, "confirms": true })
}

/// Requests work and never reads the response. The connection stays open until the caller drops it.
async fn poll_without_reading(rig: &Rig, agent: &Agent, slot: u32) -> Connection {
    let request = agent.authorize(post("/agent/v1/lease", request(agent, slot).to_string()));
    let mut connection = rig.connect().await;
    connection.write(&request.bytes()).await;
    connection
}

/// Waits until an audit has been leased, and perhaps has been returned already.
async fn wait_for_lease(rig: &Rig, tracking_id: &str) {
    let was_leased = async || {
        let queue = rig.store.queue(100).await.unwrap();
        let audit = queue.iter().find(|audit| audit.tracking_id == tracking_id);
        audit.unwrap().attempt > 0
    };
    while !was_leased().await {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_unconfirmed_audit_soon_goes_to_another_agent() {
    let rig = rig().await;
    let dead = Agent::new(&rig, "dead", "eu").await;
    let other = Agent::new(&rig, "other", "eu").await;
    let _open = poll_without_reading(&rig, &dead, 0).await;
    let tracking_id = rig.start().await;
    wait_for_lease(&rig, &tracking_id).await;
    let unconfirmed = json!({ "trackingId": tracking_id, "attempt": 1 });

    let job = other.request_work(&rig, 0, 30_000).await["job"].clone();
    assert_eq!(job["trackingId"], tracking_id.as_str());
    assert_eq!(job["attempt"], 2);
    let queue = rig.store.queue(1).await.unwrap();
    assert_eq!(queue[0].faults, 0, "as if it had never been leased");

    assert_eq!(dead.heartbeat(&rig, &unconfirmed).await, "lost");
    assert_eq!(other.heartbeat(&rig, &job).await, "held");
    assert_eq!(other.finish(&rig, &job).await, "held");
    assert_eq!(dead.finish(&rig, &unconfirmed).await, "lost");
    assert_eq!(rig.credits().await, 99);
}

#[tokio::test]
async fn a_confirmed_audit_stays_and_so_does_one_of_an_agent_that_does_not_confirm() {
    let rig = rig().await;
    let confirms = Agent::new(&rig, "confirms", "eu").await;
    let earlier = Agent::new(&rig, "of-an-earlier-version", "eu").await;
    let dead = Agent::new(&rig, "dead", "eu").await;
    rig.start().await;
    rig.start().await;
    // On a busy machine the first confirmation may arrive too late.
    let confirmed = loop {
        let job = confirms
            .exchange(&rig, "lease", &request(&confirms, 0))
            .await["job"]
            .clone();
        assert_eq!(job["confirmWithinMs"], 500);
        if confirms.heartbeat(&rig, &job).await == "held" {
            break job;
        }
    };
    let not_expected = earlier.lease(&rig, 0).await;
    assert_eq!(not_expected["confirmWithinMs"], Value::Null);

    // The last audit returns to the queue, so the others have had enough time.
    let _open = poll_without_reading(&rig, &dead, 0).await;
    let last = rig.start().await;
    wait_for_lease(&rig, &last).await;
    let other = Agent::new(&rig, "other", "eu").await;
    let returned = other.request_work(&rig, 0, 30_000).await["job"].clone();
    assert_eq!(returned["trackingId"], last.as_str());
    for (agent, job) in [(&confirms, &confirmed), (&earlier, &not_expected)] {
        assert_eq!(agent.heartbeat(&rig, job).await, "held");
        assert_eq!(agent.finish(&rig, job).await, "held");
    }
}

#[tokio::test]
async fn an_audit_that_is_being_leased_during_shutdown_is_either_leased_or_waits() {
    let (stop, stopping) = watch::channel(false);
    let rig = Rig::with(|app| app.stopping = stopping).await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    // Its presence is recorded now, so that its next request writes only a lease.
    agent.request_work(&rig, 0, 0).await;
    rig.start().await;
    let disk = rig.second_connection();
    disk.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut polling = poll_without_reading(&rig, &agent, 0).await;
    // These only read: when they have responses, the poll has come as far as it can.
    let send_others = async || {
        for _ in 0..20 {
            let reply = rig.send(&get("/v1/credits").key(&rig.key)).await;
            assert_eq!(reply.status, 200);
        }
    };
    send_others().await;
    stop.send_replace(true);
    send_others().await;
    disk.execute_batch("COMMIT").unwrap();
    let reply = polling.reply_to("POST").await.json();
    let is_leased = reply["data"]["job"].is_object();
    // Waits for the writes before it.
    rig.store.create_account("later", 0, NOW).await.unwrap();
    let depth = rig.store.queue_depth().await.unwrap();
    assert_eq!(
        (depth.running, depth.waiting),
        if is_leased { (1, 0) } else { (0, 1) }
    );
}
