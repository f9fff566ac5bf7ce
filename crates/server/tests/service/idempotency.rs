//! Starts that are sent twice.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::rig::{Ask, NOW, Rig, failure, order, post, start};

fn keyed(rig: &Rig, key: &str, body: &Value) -> Ask {
    start(&rig.key, body).header("Idempotency-Key", key)
}

#[tokio::test]
async fn the_same_key_and_body_bring_the_first_answer_for_a_day() {
    let rig = Rig::new().await;
    let ask = keyed(&rig, "order-1", &order());
    let first = rig.ask(&ask).await;
    assert_eq!(first.status, 200);
    rig.clock.store(NOW.0 + 86_399_999, Ordering::SeqCst);
    rig.check(ask.clone(), 200, first.json()).await;
    // The form of the body does not matter, what it says does.
    let spaced = format!("{:#}", order());
    let again = post("/v1/audit/start", spaced)
        .key(&rig.key)
        .json()
        .header("idempotency-key", "order-1");
    rig.check(again, 200, first.json()).await;
    assert_eq!(rig.credits().await, 99);

    rig.clock.store(NOW.0 + 86_400_000, Ordering::SeqCst);
    let after = rig.ask(&ask).await;
    assert_ne!(after.json(), first.json());
    assert_eq!(rig.credits().await, 98);
}

#[tokio::test]
async fn the_same_key_with_another_body_is_a_conflict() {
    let rig = Rig::new().await;
    rig.ask(&keyed(&rig, "k", &order())).await;
    for (member, value) in [
        ("device", json!("desktop")),
        ("runs", json!(2)),
        ("webhook", json!("https://example.com/hook")),
    ] {
        let mut other = order();
        other[member] = value;
        rig.check(
            keyed(&rig, "k", &other),
            409,
            failure("Idempotency Key Reused"),
        )
        .await;
    }
    let mut bad = order();
    bad["device"] = json!("none");
    rig.check(keyed(&rig, "k", &bad), 406, failure("Invalid Device"))
        .await;
    let sibling = rig.new_key(&rig.account_id, None).await;
    let same = start(&sibling, &order()).header("Idempotency-Key", "k");
    assert_eq!(rig.ask(&same).await.status, 200);
    assert_eq!(rig.credits().await, 99, "one account, one memory");
    let stranger = rig.new_key(&rig.new_account(1).await, None).await;
    let theirs = start(&stranger, &order()).header("Idempotency-Key", "k");
    assert_eq!(rig.ask(&theirs).await.status, 200);
}

#[tokio::test]
async fn a_key_that_cannot_be_one_is_refused_after_the_account_was_proven() {
    let rig = Rig::new().await;
    let long = "k".repeat(256);
    for key in ["", "a b", "\u{e9}", &long] {
        rig.check(
            keyed(&rig, key, &order()),
            400,
            failure("Invalid Idempotency Key"),
        )
        .await;
    }
    let twice = keyed(&rig, "a", &order()).header("Idempotency-Key", "a");
    rig.check(twice, 400, failure("Invalid Idempotency Key"))
        .await;
    let nobody = post("/v1/audit/start", order().to_string())
        .json()
        .header("Idempotency-Key", "");
    rig.check(nobody, 401, failure("Unauthorized")).await;
    let longest = "k".repeat(255);
    assert_eq!(rig.ask(&keyed(&rig, &longest, &order())).await.status, 200);
}

#[tokio::test]
async fn a_refused_start_can_be_repeated() {
    let rig = Rig::new().await;
    let account = rig.new_account(0).await;
    let key = rig.new_key(&account, None).await;
    let ask = start(&key, &order()).header("Idempotency-Key", "k");
    rig.check(ask.clone(), 402, failure("Insufficient Credits"))
        .await;
    plumbline_store::Store::add_credits(&*rig.store, &account, 1, NOW)
        .await
        .unwrap();
    let accepted = rig.ask(&ask).await;
    assert_eq!(accepted.status, 200);
    rig.check(ask, 200, accepted.json()).await;
}
