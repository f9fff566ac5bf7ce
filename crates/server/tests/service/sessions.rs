//! Who is signed in at the pages, and whose word counts there.

use std::sync::atomic::Ordering;

use plumbline_store::Store;

use crate::{
    rig::{NOW, Rig, failure, get, post},
    visitor::{assert_is_page, completed, form, sign_in},
};

#[tokio::test]
async fn a_key_opens_a_session_and_signing_out_ends_it() {
    let rig = Rig::with_pages().await;
    let nobody = rig.browse(&get("/")).await;
    assert_is_page(&nobody);
    assert!(nobody.text().contains("Access key"));

    let cookie = sign_in(&rig, &rig.key).await;
    let start = rig.browse(&get("/").header("Cookie", &cookie)).await;
    assert_is_page(&start);
    assert!(start.text().contains("Start the audit"));
    assert!(start.text().contains("100 credits left"));

    let out = rig
        .browse(&form("/sign-out", "").header("Cookie", &cookie))
        .await;
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    let after = rig.browse(&get("/").header("Cookie", &cookie)).await;
    assert!(
        after.text().contains("Access key"),
        "the session is over, not only the cookie"
    );
}

#[tokio::test]
async fn a_session_ends_with_its_key_and_with_time() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let other = rig.new_key(&rig.account_id, None).await;
    let revoked = sign_in(&rig, &other).await;
    let key_id = other.split('_').nth(1).unwrap();
    rig.store.revoke_key(key_id, NOW).await.unwrap();
    let reply = rig.browse(&get("/").header("Cookie", &revoked)).await;
    assert!(reply.text().contains("Access key"));

    rig.clock.fetch_add(15 * 24 * 3600 * 1000, Ordering::SeqCst);
    let reply = rig.browse(&get("/").header("Cookie", &cookie)).await;
    assert!(reply.text().contains("Access key"));
}

#[tokio::test]
async fn a_wrong_key_is_refused_with_a_page() {
    let rig = Rig::with_pages().await;
    let almost = format!("{}x", &rig.key[..rig.key.len() - 1]);
    for key in ["", "nonsense", almost.as_str()] {
        let reply = rig.browse(&form("/sign-in", &format!("key={key}"))).await;
        assert_eq!(reply.status, 401);
        assert_is_page(&reply);
        assert!(reply.text().contains("No such key"));
        assert_eq!(reply.header("set-cookie"), None);
    }
}

#[tokio::test]
async fn wrong_keys_at_the_sign_in_count_with_those_at_the_api_and_a_proven_key_still_opens() {
    let rig = Rig::with_pages_and(|app| app.limits.failed_keys_per_minute = 3).await;
    let attempt = |key: &str| form("/sign-in", &format!("to=/history&key={key}"));
    sign_in(&rig, &rig.key).await;
    rig.check(
        get("/v1/credits").key("wrong"),
        401,
        failure("Unauthorized"),
    )
    .await;
    for _ in 0..2 {
        assert_eq!(rig.browse(&attempt("wrong")).await.status, 401);
    }
    let unproven = rig.new_key(&rig.account_id, None).await;
    for key in ["wrong", unproven.as_str()] {
        let refused = rig.browse(&attempt(key)).await;
        assert_eq!(refused.status, 429);
        assert_is_page(&refused);
        assert_eq!(refused.header("retry-after"), Some("60"));
        assert_eq!(refused.header("set-cookie"), None);
        assert!(refused.text().contains("Try again in 60 seconds"));
        assert!(refused.text().contains("Access key"), "the form is there");
    }
    rig.check(
        get("/v1/credits").key("wrong"),
        429,
        failure("Too Many Failed Keys"),
    )
    .await;
    sign_in(&rig, &rig.key).await;
    rig.clock.fetch_add(20_000, Ordering::SeqCst);
    sign_in(&rig, &unproven).await;
}

#[tokio::test]
async fn what_another_site_sends_is_not_obeyed() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let id = completed(&rig).await;
    for path in [
        "/sign-in",
        "/sign-out",
        "/audits",
        &format!("/reports/{id}/share"),
    ] {
        for (name, value) in [
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
            ("Origin", "https://evil.example"),
            ("Origin", "null"),
        ] {
            let sent = post(
                path,
                "share=on&url=https://example.com/&device=mobile&network=wifi&location=eu",
            )
            .header("Cookie", &cookie)
            .header(name, value);
            let reply = rig.browse(&sent).await;
            assert_eq!(reply.status, 403, "{path} {name}: {value}");
            assert_is_page(&reply);
        }
    }
    assert_eq!(rig.credits().await, 99, "only our own audit was paid for");
}
