//! How often a key may start an audit.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::rig::{NOW, Reply, Rig, failure, get, order, start};

fn limits(reply: &Reply) -> [Option<&str>; 4] {
    [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "retry-after",
    ]
    .map(|name| reply.header(name))
}

#[tokio::test]
async fn the_third_of_two_a_minute_waits_half_a_minute() {
    let rig = Rig::with(|app| app.limits.starts_per_minute = 2).await;
    let ask = start(&rig.key, &order());
    let first = rig.ask(&ask).await;
    assert_eq!(first.status, 200);
    assert_eq!(
        limits(&first),
        [Some("2"), Some("1"), Some("1800000030"), None]
    );
    let second = rig.ask(&ask).await;
    assert_eq!(
        limits(&second),
        [Some("2"), Some("0"), Some("1800000060"), None]
    );
    let third = rig
        .check(ask.clone(), 429, failure("Rate Limit Exceeded"))
        .await;
    assert_eq!(
        limits(&third),
        [Some("2"), Some("0"), Some("1800000060"), Some("30")]
    );
    assert_eq!(rig.credits().await, 98, "a refused start costs nothing");

    rig.clock.store(NOW.0 + 30_000, Ordering::SeqCst);
    assert_eq!(rig.ask(&ask).await.status, 200);
    assert_eq!(rig.ask(&ask).await.status, 429);
}

#[tokio::test]
async fn only_valid_starts_count_and_polls_never_do() {
    let rig = Rig::with(|app| app.limits.starts_per_minute = 1).await;
    let mut bad = order();
    bad["network"] = json!("pigeon");
    for _ in 0..3 {
        let refused = rig
            .check(start(&rig.key, &bad), 406, failure("Invalid Network"))
            .await;
        assert_eq!(limits(&refused), [None; 4]);
    }
    let tracking_id = rig.start().await;
    for _ in 0..5 {
        let poll = rig
            .ask(&get(&format!("/v1/audit/status/{tracking_id}")).key(&rig.key))
            .await;
        assert_eq!((poll.status, limits(&poll)), (200, [None; 4]));
    }
    rig.check(start(&rig.key, &bad), 406, failure("Invalid Network"))
        .await;
    rig.check(
        start(&rig.key, &order()),
        429,
        failure("Rate Limit Exceeded"),
    )
    .await;
}

#[tokio::test]
async fn the_rate_is_checked_before_the_credits_and_told_with_their_refusal() {
    let rig = Rig::with(|app| app.limits.starts_per_minute = 1).await;
    let key = rig.new_key(&rig.new_account(0).await, None).await;
    let poor = rig
        .check(start(&key, &order()), 402, failure("Insufficient Credits"))
        .await;
    assert_eq!(
        limits(&poor),
        [Some("1"), Some("0"), Some("1800000060"), None]
    );
    rig.check(start(&key, &order()), 429, failure("Rate Limit Exceeded"))
        .await;
}

#[tokio::test]
async fn each_key_has_a_rate_of_its_own() {
    let rig = Rig::with(|app| app.limits.starts_per_minute = 1).await;
    let sibling = rig.new_key(&rig.account_id, None).await;
    assert_eq!(rig.ask(&start(&rig.key, &order())).await.status, 200);
    assert_eq!(rig.ask(&start(&sibling, &order())).await.status, 200);
    assert_eq!(rig.ask(&start(&rig.key, &order())).await.status, 429);
}

#[tokio::test]
async fn zero_turns_the_limit_off() {
    let rig = Rig::with(|app| app.limits.starts_per_minute = 0).await;
    for _ in 0..20 {
        let reply = rig.ask(&start(&rig.key, &order())).await;
        assert_eq!((reply.status, limits(&reply)), (200, [None; 4]));
    }
}

#[tokio::test]
async fn the_default_is_600_a_minute() {
    let rig = Rig::new().await;
    let reply = rig.ask(&start(&rig.key, &order())).await;
    assert_eq!(
        limits(&reply),
        [Some("600"), Some("599"), Some("1800000001"), None]
    );
}
