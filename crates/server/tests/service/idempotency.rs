//! Idempotency keys.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::rig::{HttpRequest, NOW, Rig, failure, order, post, start};

fn keyed(rig: &Rig, key: &str, body: &Value) -> HttpRequest {
    start(&rig.key, body).header("Idempotency-Key", key)
}

#[tokio::test]
async fn the_same_key_and_body_return_the_first_response_for_a_day() {
    let rig = Rig::new().await;
    let request = keyed(&rig, "order-1", &order());
    let first = rig.send(&request).await;
    assert_eq!(first.status, 200);
    rig.clock.store(NOW.0 + 86_399_999, Ordering::SeqCst);
    rig.check(request.clone(), 200, first.json()).await;
    // Only the content of the body matters, not its formatting.
    let spaced = format!("{:#}", order());
    let again = post("/v1/audit/start", spaced)
        .key(&rig.key)
        .json()
        .header("idempotency-key", "order-1");
    rig.check(again, 200, first.json()).await;
    assert_eq!(rig.credits().await, 99);

    rig.clock.store(NOW.0 + 86_400_000, Ordering::SeqCst);
    let after = rig.send(&request).await;
    assert_ne!(after.json(), first.json());
    assert_eq!(rig.credits().await, 98);
}

#[tokio::test]
async fn the_same_key_with_another_body_is_a_conflict() {
    let rig = Rig::new().await;
    rig.send(&keyed(&rig, "k", &order())).await;
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
    assert_eq!(rig.send(&same).await.status, 200);
    assert_eq!(rig.credits().await, 99, "keys of one account share them");
    let stranger = rig.new_key(&rig.new_account(1).await, None).await;
    let theirs = start(&stranger, &order()).header("Idempotency-Key", "k");
    assert_eq!(rig.send(&theirs).await.status, 200);
}

#[tokio::test]
async fn an_invalid_idempotency_key_is_refused_after_authentication() {
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
    let without_key = post("/v1/audit/start", order().to_string())
        .json()
        .header("Idempotency-Key", "");
    rig.check(without_key, 401, failure("Unauthorized")).await;
    let longest = "k".repeat(255);
    assert_eq!(rig.send(&keyed(&rig, &longest, &order())).await.status, 200);
}

#[tokio::test]
async fn a_refused_start_can_be_repeated() {
    let rig = Rig::new().await;
    let account = rig.new_account(0).await;
    let key = rig.new_key(&account, None).await;
    let request = start(&key, &order()).header("Idempotency-Key", "k");
    rig.check(request.clone(), 402, failure("Insufficient Credits"))
        .await;
    plumbline_store::Store::add_credits(&*rig.store, &account, 1, NOW)
        .await
        .unwrap();
    let accepted = rig.send(&request).await;
    assert_eq!(accepted.status, 200);
    rig.check(request, 200, accepted.json()).await;
}
