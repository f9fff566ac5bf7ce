//! Rate limits of keys and addresses.

use std::sync::atomic::Ordering;

use plumbline_store::Store;
use serde_json::json;

use crate::{
    rig::{NOW, Reply, Rig, failure, get, order, start},
    visitor::{assert_is_page, completed, sign_in},
};

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
async fn with_a_limit_of_two_a_minute_the_third_start_waits_half_a_minute() {
    let rig = Rig::with(|app| app.limits.starts_per_minute = 2).await;
    let request = start(&rig.key, &order());
    let first = rig.send(&request).await;
    assert_eq!(first.status, 200);
    assert_eq!(
        limits(&first),
        [Some("2"), Some("1"), Some("1800000030"), None]
    );
    let second = rig.send(&request).await;
    assert_eq!(
        limits(&second),
        [Some("2"), Some("0"), Some("1800000060"), None]
    );
    let third = rig
        .check(request.clone(), 429, failure("Rate Limit Exceeded"))
        .await;
    assert_eq!(
        limits(&third),
        [Some("2"), Some("0"), Some("1800000060"), Some("30")]
    );
    assert_eq!(rig.credits().await, 98, "a refused start costs nothing");

    rig.clock.store(NOW.0 + 30_000, Ordering::SeqCst);
    assert_eq!(rig.send(&request).await.status, 200);
    assert_eq!(rig.send(&request).await.status, 429);
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
        let untouched = [Some("1"), Some("1"), Some("1800000000"), None];
        assert_eq!(limits(&refused), untouched);
    }
    let tracking_id = rig.start().await;
    for left in ["59999", "59998", "59997"] {
        let poll = rig
            .send(&get(&format!("/v1/audit/status/{tracking_id}")).key(&rig.key))
            .await;
        assert_eq!(poll.status, 200);
        let expected = [Some("60000"), Some(left), Some("1800000001"), None];
        assert_eq!(limits(&poll), expected);
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
async fn the_rate_is_checked_before_the_credits_and_reported_if_they_do_not_suffice() {
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
    assert_eq!(rig.send(&start(&rig.key, &order())).await.status, 200);
    assert_eq!(rig.send(&start(&sibling, &order())).await.status, 200);
    assert_eq!(rig.send(&start(&rig.key, &order())).await.status, 429);
}

#[tokio::test]
async fn zero_turns_the_limit_off() {
    let rig = Rig::with(|app| {
        app.limits.starts_per_minute = 0;
        app.limits.requests_per_minute = 0;
    })
    .await;
    let poll = rig.send(&get("/v1/credits").key(&rig.key)).await;
    assert_eq!((poll.status, limits(&poll)), (200, [None; 4]));
    for _ in 0..20 {
        let reply = rig.send(&start(&rig.key, &order())).await;
        assert_eq!((reply.status, limits(&reply)), (200, [None; 4]));
    }
}

#[tokio::test]
async fn the_default_is_600_a_minute() {
    let rig = Rig::new().await;
    let reply = rig.send(&start(&rig.key, &order())).await;
    assert_eq!(
        limits(&reply),
        [Some("600"), Some("599"), Some("1800000001"), None]
    );
}

#[tokio::test]
async fn responses_report_the_remaining_requests_and_starts_have_a_separate_limit() {
    let rig = Rig::with(|app| app.limits.requests_per_minute = 2).await;
    let credits = rig.send(&get("/v1/credits").key(&rig.key)).await;
    assert_eq!(
        limits(&credits),
        [Some("2"), Some("1"), Some("1800000030"), None]
    );
    let not_found = rig.send(&get("/v1/audit/status/none").key(&rig.key)).await;
    assert_eq!((not_found.status, limits(&not_found)[1]), (404, Some("0")));
    for path in ["/v1/audits", "/v1/audit/status/x", "/v1/batches/x"] {
        let refused = rig
            .check(get(path).key(&rig.key), 429, failure("Rate Limit Exceeded"))
            .await;
        assert_eq!(limits(&refused)[3], Some("30"));
    }
    // Starts are counted separately, and requests that need no key are not counted.
    assert_eq!(rig.send(&start(&rig.key, &order())).await.status, 200);
    let open = rig.send(&get("/v1/devices").key(&rig.key)).await;
    assert_eq!((open.status, limits(&open)), (200, [None; 4]));
    let unknown = rig.send(&get("/v1/credits").key("x")).await;
    assert_eq!((unknown.status, limits(&unknown)), (401, [None; 4]));
}

#[tokio::test]
async fn after_too_many_wrong_keys_an_address_waits_unless_its_key_was_valid_before() {
    let rig = Rig::with(|app| app.limits.failed_keys_per_minute = 3).await;
    let credits = |key: &str| get("/v1/credits").key(key);
    assert_eq!(rig.send(&credits(&rig.key)).await.status, 200);
    for _ in 0..3 {
        rig.check(credits("wrong"), 401, failure("Unauthorized"))
            .await;
    }
    let refused = rig
        .check(credits("wrong"), 429, failure("Too Many Failed Keys"))
        .await;
    assert_eq!(refused.header("retry-after"), Some("60"));
    // A key that was not used before is refused without a check, like a guess.
    let unused = rig.new_key(&rig.account_id, None).await;
    assert_eq!(rig.send(&credits(&unused)).await.status, 429);
    assert_eq!(rig.send(&credits(&rig.key)).await.status, 200);
    rig.clock.store(NOW.0 + 20_000, Ordering::SeqCst);
    assert_eq!(rig.send(&credits(&unused)).await.status, 200);
}

#[tokio::test]
async fn a_revoked_key_counts_as_wrong_even_if_it_was_valid_before() {
    let rig = Rig::with(|app| app.limits.failed_keys_per_minute = 2).await;
    let credits = get("/v1/credits").key(&rig.key);
    assert_eq!(rig.send(&credits).await.status, 200);
    let key_id = rig.key.split('_').nth(1).unwrap();
    rig.store.revoke_key(key_id, NOW).await.unwrap();
    for _ in 0..2 {
        rig.check(credits.clone(), 401, failure("Unauthorized"))
            .await;
    }
    let reads = || rig.store.latency().reads.count;
    let before = reads();
    rig.check(credits, 429, failure("Too Many Failed Keys"))
        .await;
    assert_eq!(reads(), before, "refused without a store access");
}

#[tokio::test]
async fn page_requests_count_by_key_and_without_a_session_by_address() {
    let rig = Rig::with_pages_and(|app| app.limits.requests_per_minute = 3).await;
    let report = format!("/reports/{}", completed(&rig).await);
    let cookie = sign_in(&rig, &rig.key).await;
    let page = |path: &str| get(path).header("Cookie", &cookie);
    for (path, left) in [("/", "2"), (&*report, "1"), ("/history?audit=none", "0")] {
        let reply = rig.browse(&page(path)).await;
        assert_eq!(limits(&reply)[1], Some(left), "{path}");
    }
    for path in [
        "/",
        &report,
        "/compare?before=a&after=b",
        "/audits/x/events",
    ] {
        let refused = rig.browse(&page(path)).await;
        assert_eq!((refused.status, limits(&refused)[3]), (429, Some("20")));
        assert_is_page(&refused);
        assert!(refused.text().contains("Too many requests"), "{path}");
    }
    let api = get("/v1/credits").key(&rig.key);
    rig.check(api, 429, failure("Rate Limit Exceeded")).await;

    // The sign-in was the first request without a session.
    for path in ["/shared/none", "/"] {
        assert_ne!(rig.browse(&get(path)).await.status, 429, "{path}");
    }
    for path in ["/shared/none", "/shared/none/final.jpg", "/", &report] {
        let refused = rig.browse(&get(path)).await;
        assert_eq!((refused.status, limits(&refused)[3]), (429, Some("20")));
        assert_is_page(&refused);
    }
    let guess = get("/").header("Cookie", "plumbline_session=x");
    assert_eq!(rig.browse(&guess).await.status, 429);
    rig.clock.store(NOW.0 + 20_000, Ordering::SeqCst);
    assert_eq!(rig.browse(&page("/")).await.status, 200);
    assert_eq!(rig.browse(&get("/")).await.status, 200);
}

#[tokio::test]
async fn behind_a_proxy_the_address_is_the_one_that_the_proxy_appended() {
    let rig = Rig::with(|app| {
        app.limits.failed_keys_per_minute = 1;
        app.limits.behind_proxy = true;
    })
    .await;
    let from = |forwarded: &str| {
        get("/v1/credits")
            .key("wrong")
            .header("X-Forwarded-For", forwarded)
    };
    assert_eq!(rig.send(&from("192.0.2.1")).await.status, 401);
    assert_eq!(rig.send(&from("192.0.2.1")).await.status, 429);
    assert_eq!(rig.send(&from("192.0.2.1, 192.0.2.2")).await.status, 401);
    assert_eq!(rig.send(&from("192.0.2.9, 192.0.2.1")).await.status, 429);
}

#[tokio::test]
async fn the_unfinished_audits_of_an_account_are_limited() {
    let rig = Rig::with(|app| app.limits.unfinished_per_account = 2).await;
    rig.start().await;
    rig.start().await;
    let refused = rig
        .check(
            start(&rig.key, &order()),
            429,
            failure("Too Many Unfinished Audits"),
        )
        .await;
    assert!(refused.header("retry-after").is_some());
    assert_eq!(rig.credits().await, 98);
    // A running audit counts like a waiting one.
    let lease = rig.lease().await;
    assert_eq!(rig.send(&start(&rig.key, &order())).await.status, 429);
    rig.finish(&lease, json!({}), None).await;
    rig.start().await;
}
