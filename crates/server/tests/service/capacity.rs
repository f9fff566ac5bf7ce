//! Limits on concurrent requests and connections.

use std::{sync::Arc, time::Duration};

use plumbline_server::ServeOptions;
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    agent::Agent,
    rig::{Connection, HttpRequest, Rig, failure, get, order, start},
    visitor::sign_in,
};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn heads_that_never_end_do_not_delay_complete_requests() {
    let options = ServeOptions {
        connections: 40,
        head: LONG,
        ..ServeOptions::default()
    };
    let rig = Rig::with_options(options, |_| {}).await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    let mut halves = Vec::new();
    for n in 0..400 {
        let mut half = rig.connect().await;
        half.write(b"GET /v1/devices HTTP/1.1\r\nX-Slow: ").await;
        halves.push(half);
        if n % 100 == 99 {
            assert_eq!(rig.send(&get("/healthz")).await.status, 200);
            assert_eq!(rig.send(&get("/readyz")).await.status, 200);
            assert_eq!(agent.request_work(&rig, 0, 0).await["job"], json!(null));
            let client = rig.send(&get("/v1/credits").key(&rig.key)).await;
            assert_eq!(client.status, 200);
        }
    }
    assert!(halves[0].is_closed().await, "the oldest was closed");
    assert!(!halves[399].has_data(), "the newest is still open");
    let last = halves.last_mut().unwrap();
    last.write(b"over\r\n\r\n").await;
    assert_eq!(last.reply().await.status, 200);
}

#[tokio::test]
async fn an_idle_connection_stays_open_longer_than_a_head_may_take() {
    let options = ServeOptions {
        head: Duration::from_millis(300),
        ..ServeOptions::default()
    };
    let rig = Rig::with_options(options, |_| {}).await;
    let mut idle = rig.connect().await;
    idle.write(&get("/healthz").bytes()).await;
    assert_eq!(idle.reply().await.status, 200);
    // Wait as long as a head may take.
    let mut half = rig.connect().await;
    half.write(b"GET /healthz HTTP/1.1\r\n").await;
    assert!(half.is_closed().await);
    idle.write(&get("/healthz").bytes()).await;
    assert_eq!(idle.reply().await.status, 200);
    // The next head has no more time than the first.
    idle.write(b"GET /healthz HTTP/1.1\r\n").await;
    assert!(idle.is_closed().await);
}

/// Begins a start whose body is missing, which holds a permit.
async fn slow_start(rig: &Rig, from: &str) -> Connection {
    let body = order().to_string();
    let head = format!(
        "POST /v1/audit/start HTTP/1.1\r\nHost: x\r\nX-SVC-KEY: {}\r\nX-Forwarded-For: {from}\r\n\
         Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        rig.key,
        body.len()
    );
    let mut connection = rig.connect().await;
    connection.write(head.as_bytes()).await;
    assert_eq!(connection.interim().await, 100);
    connection
}

async fn crowded() -> Rig {
    let options = ServeOptions {
        connections: 8,
        ..ServeOptions::default()
    };
    Rig::with_options(options, |app| {
        app.limits.behind_proxy = true;
        app.limits.body_read = LONG;
        app.limits.answer = LONG;
    })
    .await
}

fn credits(rig: &Rig, from: &str) -> HttpRequest {
    get("/v1/credits")
        .key(&rig.key)
        .header("X-Forwarded-For", from)
}

#[tokio::test]
async fn at_full_capacity_probes_and_agents_are_served_and_others_get_a_503() {
    let rig = crowded().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    let mut slow = Vec::new();
    for n in 0..8 {
        slow.push(slow_start(&rig, &format!("192.0.2.{n}")).await);
    }
    let request = credits(&rig, "192.0.2.9");
    let refused = rig
        .check(request.clone(), 503, failure("Service Unavailable"))
        .await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(rig.send(&get("/healthz")).await.status, 200);
    assert_eq!(rig.send(&get("/readyz")).await.status, 200);
    assert_eq!(agent.request_work(&rig, 0, 0).await["job"], json!(null));
    let first = &mut slow[0];
    first.write(order().to_string().as_bytes()).await;
    assert_eq!(first.reply().await.status, 200);
    assert_eq!(rig.send(&request).await.status, 200);
}

#[tokio::test]
async fn one_address_gets_no_more_than_half_of_the_capacity() {
    let rig = crowded().await;
    let mut slow = Vec::new();
    for _ in 0..4 {
        slow.push(slow_start(&rig, "192.0.2.1").await);
    }
    let refused = failure("Too Many Requests At Once");
    let refused = rig.check(credits(&rig, "192.0.2.1"), 429, refused).await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(rig.send(&credits(&rig, "192.0.2.2")).await.status, 200);
}

#[tokio::test]
async fn the_waits_of_one_key_or_one_address_get_no_more_than_a_quarter_of_the_capacity() {
    for (keys, addresses) in [([0, 0, 0], [1, 2, 3]), ([0, 1, 2], [1, 1, 1])] {
        let rig = Arc::new(crowded().await);
        let mut all = vec![rig.key.clone()];
        for _ in 0..2 {
            all.push(rig.new_key(&rig.account_id, None).await);
        }
        let id = rig.start().await;
        let lease = rig.lease().await;
        let mut waits = JoinSet::new();
        for (key, address) in keys.into_iter().zip(addresses) {
            let request = get(&format!("/v1/audit/status/{id}?wait=30"))
                .key(&all[key])
                .header("X-Forwarded-For", &format!("192.0.2.{address}"));
            let rig = Arc::clone(&rig);
            waits.spawn(async move { rig.send(&request).await });
        }
        let refused = waits.join_next().await.unwrap().unwrap();
        assert_eq!(refused.status, 429);
        assert_eq!(refused.json(), failure("Too Many Waiting Requests"));
        assert_eq!(refused.header("retry-after"), Some("1"));
        rig.finish(&lease, json!({}), None).await;
        for reply in waits.join_all().await {
            assert_eq!(reply.json()["data"]["status"], "completed");
        }
    }
}

#[tokio::test]
async fn event_streams_count_as_waits() {
    let options = ServeOptions {
        connections: 8,
        ..ServeOptions::default()
    };
    let rig = Rig::with_pages_and_options(options).await;
    let cookie = sign_in(&rig, &rig.key).await;
    let started = rig.send(&start(&rig.key, &order())).await.json();
    let id = started["trackingId"].as_str().unwrap();
    let events = get(&format!("/audits/{id}/events")).header("Cookie", &cookie);
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = rig.connect().await;
        stream.write(&events.bytes()).await;
        stream.wait_for("data: waiting").await;
        streams.push(stream);
    }
    let refused = failure("Too Many Waiting Requests");
    rig.check(events, 429, refused.clone()).await;
    let wait = get(&format!("/v1/audit/status/{id}?wait=30")).key(&rig.key);
    rig.check(wait, 429, refused).await;
    let now = get(&format!("/v1/audit/status/{id}")).key(&rig.key);
    assert_eq!(rig.send(&now).await.status, 200, "without a wait");
}
