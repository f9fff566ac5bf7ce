//! Authentication with keys.

use std::sync::atomic::Ordering;

use plumbline_store::{Key, Store, Timestamp};

use crate::rig::{HttpRequest, NOW, Rig, failure, get, order, post, start};

fn keyed_operations() -> [HttpRequest; 10] {
    [
        post("/v1/audit/start", order().to_string()).json(),
        get("/v1/audit/status/trk_x"),
        get("/v1/audit/data/aud_x"),
        HttpRequest::new("DELETE", "/v1/audit/data/aud_x"),
        get("/v1/audit/report/aud_x"),
        get("/v1/audits"),
        post("/v1/batches", "{}").json(),
        get("/v1/batches/bat_x"),
        get("/v1/credits"),
        get("/v1/webhook-secret"),
    ]
}

#[tokio::test]
async fn without_a_valid_key_the_audit_operations_are_unauthorized() {
    let rig = Rig::with(|app| app.limits.failed_keys_per_minute = 0).await;
    let real = Key::parse(&rig.key).unwrap();
    let other = Key::generate().unwrap();
    let (id, secret) = rig
        .key
        .strip_prefix("plk_")
        .unwrap()
        .split_once('_')
        .unwrap();
    let mixed = format!("plk_{}_{secret}", other.id());
    let wrong_secret = format!("plk_{id}_{}", "A".repeat(secret.len()));
    let swapped_case = format!("PLK_{id}_{secret}");
    for operation in keyed_operations() {
        for key in [
            "",
            " ",
            "x",
            real.id(),
            secret,
            &other.reveal(),
            &mixed,
            &wrong_secret,
            &swapped_case,
            &format!("{}x", rig.key),
            &format!("\"{}\"", rig.key),
            &format!("Bearer {}", rig.key),
            "plk_\u{e9}_x",
            &"k".repeat(5000),
            "' OR 1=1 --",
        ] {
            let reply = rig
                .check(operation.clone().key(key), 401, failure("Unauthorized"))
                .await;
            assert!(reply.header("www-authenticate").is_some());
        }
        rig.check(operation.clone(), 401, failure("Unauthorized"))
            .await;
        let twice = operation.clone().key(&rig.key).key(&rig.key);
        rig.check(twice, 401, failure("Unauthorized")).await;
        let other_header = operation.clone().header("Authorization", &rig.key);
        rig.check(other_header, 401, failure("Unauthorized")).await;
    }
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn the_header_is_found_in_any_case_and_with_space_around_its_value() {
    let rig = Rig::new().await;
    for name in ["X-SVC-KEY", "x-svc-key", "X-Svc-Key"] {
        let request = get("/v1/audit/status/none").header(name, &format!(" {} ", rig.key));
        rig.check(request, 404, failure("Resource Not Found")).await;
    }
}

#[tokio::test]
async fn the_key_is_checked_before_anything_else() {
    let rig = Rig::new().await;
    let unauthorized = || failure("Unauthorized");
    rig.check(post("/v1/audit/start", "not json"), 401, unauthorized())
        .await;
    rig.check(
        post("/v1/audit/start", vec![b'x'; 200_000]).json(),
        401,
        unauthorized(),
    )
    .await;
    rig.check(
        get(&format!("/v1/audit/status/{}", "x".repeat(51))),
        401,
        unauthorized(),
    )
    .await;
    rig.check(get("/v1/audit/data/%ff"), 401, unauthorized())
        .await;
}

#[tokio::test]
async fn a_revoked_key_stops_working_at_once() {
    let rig = Rig::new().await;
    let tracking_id = rig.start().await;
    let key = Key::parse(&rig.key).unwrap();
    rig.store.revoke_key(key.id(), NOW).await.unwrap();
    rig.check(start(&rig.key, &order()), 401, failure("Unauthorized"))
        .await;
    let status = get(&format!("/v1/audit/status/{tracking_id}")).key(&rig.key);
    rig.check(status, 401, failure("Unauthorized")).await;
}

#[tokio::test]
async fn a_key_works_until_it_expires() {
    let rig = Rig::new().await;
    let key = rig
        .new_key(&rig.account_id, Some(Timestamp(NOW.0 + 1000)))
        .await;
    let status = get("/v1/audit/status/none").key(&key);
    rig.clock.store(NOW.0 + 999, Ordering::SeqCst);
    rig.check(status.clone(), 404, failure("Resource Not Found"))
        .await;
    rig.clock.store(NOW.0 + 1000, Ordering::SeqCst);
    rig.check(status, 401, failure("Unauthorized")).await;
}

#[tokio::test]
async fn keys_of_one_account_share_its_audits_and_other_accounts_cannot_read_them() {
    let rig = Rig::new().await;
    let path = format!("/v1/audit/status/{}", rig.start().await);
    let sibling = rig.new_key(&rig.account_id, None).await;
    assert_eq!(rig.send(&get(&path).key(&sibling)).await.status, 200);
    let stranger = rig.new_key(&rig.new_account(5).await, None).await;
    rig.check(
        get(&path).key(&stranger),
        404,
        failure("Resource Not Found"),
    )
    .await;

    let lease = rig.lease().await;
    rig.finish(&lease, serde_json::json!({}), None).await;
    let data = get(&format!("/v1/audit/data/{}", lease.audit_id)).key(&stranger);
    rig.check(data, 404, failure("Resource Not Found")).await;
}
