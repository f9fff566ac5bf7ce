//! Audits that were given to who no longer listens. The rig's clock stands still, so that no lease ever ends by its time: what
//! comes back has been taken back.

use std::time::Duration;

use plumbline_store::Store;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    agent::Agent,
    client::Connection,
    rig::{NOW, Rig, get, post},
};

/// A sixth of it is what who confirms has time for.
const LEASE: Duration = Duration::from_secs(3);

async fn rig() -> Rig {
    Rig::with_dispatcher(|dispatcher| dispatcher.lease = LEASE).await
}

fn request(agent: &Agent, slot: u32) -> Value {
    json!({ "agent": agent.announcement(), "slot": slot, "waitMs": 30_000, "confirms": true })
}

/// Asks for work, and never reads what comes. The line stays open for as long as the caller keeps it.
async fn asks_and_dies(rig: &Rig, agent: &Agent, slot: u32) -> Connection {
    let ask = agent.dress(post("/agent/v1/lease", request(agent, slot).to_string()));
    let mut line = rig.connect().await;
    line.write(&ask.bytes()).await;
    line
}

/// Until somebody has been given it, and perhaps has lost it already.
async fn given(rig: &Rig, tracking_id: &str) {
    let was_given = async || {
        let queue = rig.store.queue(100).await.unwrap();
        let audit = queue.iter().find(|audit| audit.tracking_id == tracking_id);
        audit.unwrap().attempt > 0
    };
    while !was_given().await {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_audit_given_to_who_no_longer_listens_is_soon_anothers() {
    let rig = rig().await;
    let dead = Agent::new(&rig, "dead", "eu").await;
    let lives = Agent::new(&rig, "lives", "eu").await;
    let _open = asks_and_dies(&rig, &dead, 0).await;
    let tracking_id = rig.start().await;
    given(&rig, &tracking_id).await;
    let unheard = json!({ "trackingId": tracking_id, "attempt": 1 });

    let job = lives.ask_for_work(&rig, 0, 30_000).await["job"].clone();
    assert_eq!(job["trackingId"], tracking_id.as_str());
    assert_eq!(job["attempt"], 2);
    let queue = rig.store.queue(1).await.unwrap();
    assert_eq!(queue[0].faults, 0, "as if it had never been given");

    assert_eq!(dead.heartbeat(&rig, &unheard).await, "lost");
    assert_eq!(lives.heartbeat(&rig, &job).await, "held");
    assert_eq!(lives.finish(&rig, &job).await, "held");
    assert_eq!(dead.finish(&rig, &unheard).await, "lost");
    assert_eq!(rig.credits().await, 99);
}

#[tokio::test]
async fn who_confirms_keeps_its_audit_and_so_does_who_never_said_that_it_would() {
    let rig = rig().await;
    let confirms = Agent::new(&rig, "confirms", "eu").await;
    let earlier = Agent::new(&rig, "of-an-earlier-version", "eu").await;
    let dead = Agent::new(&rig, "dead", "eu").await;
    rig.start().await;
    rig.start().await;
    // On a machine that does much besides, the first may come too late.
    let confirmed = loop {
        let job = confirms.said(&rig, "lease", &request(&confirms, 0)).await["job"].clone();
        assert_eq!(job["confirmWithinMs"], 500);
        if confirms.heartbeat(&rig, &job).await == "held" {
            break job;
        }
    };
    let not_expected = earlier.lease(&rig, 0).await;
    assert_eq!(not_expected["confirmWithinMs"], Value::Null);

    // What was given last comes back, so there has been time for the others.
    let _open = asks_and_dies(&rig, &dead, 0).await;
    let last = rig.start().await;
    given(&rig, &last).await;
    let other = Agent::new(&rig, "other", "eu").await;
    let back = other.ask_for_work(&rig, 0, 30_000).await["job"].clone();
    assert_eq!(back["trackingId"], last.as_str());
    for (agent, job) in [(&confirms, &confirmed), (&earlier, &not_expected)] {
        assert_eq!(agent.heartbeat(&rig, job).await, "held");
        assert_eq!(agent.finish(&rig, job).await, "held");
    }
}

#[tokio::test]
async fn an_audit_that_is_being_given_when_the_server_is_stopped_is_given_or_waits() {
    let (stop, stopping) = watch::channel(false);
    let rig = Rig::with(|app| app.stopping = stopping).await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    // Seen now, so that its next request writes nothing but a lease.
    agent.ask_for_work(&rig, 0, 0).await;
    rig.start().await;
    let disk = rig.second_connection();
    disk.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut asking = asks_and_dies(&rig, &agent, 0).await;
    // These only read: when they are answered, the other has come as far as it can.
    let others = async || {
        for _ in 0..20 {
            let reply = rig.ask(&get("/v1/credits").key(&rig.key)).await;
            assert_eq!(reply.status, 200);
        }
    };
    others().await;
    stop.send_replace(true);
    others().await;
    disk.execute_batch("COMMIT").unwrap();
    let answer = asking.reply_to("POST").await.json();
    let is_given = answer["data"]["job"].is_object();
    // Written after whatever was being written.
    rig.store.create_account("later", 0, NOW).await.unwrap();
    let depth = rig.store.queue_depth().await.unwrap();
    assert_eq!(
        (depth.running, depth.waiting),
        match is_given {
            true => (1, 0),
            false => (0, 1),
        }
    );
}
