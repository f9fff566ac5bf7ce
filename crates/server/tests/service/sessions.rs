//! Sessions, and forms of other sites.

use std::sync::atomic::Ordering;

use plumbline_store::{PageStore, Store, Timestamp, session_digest};

use crate::{
    rig::{NOW, Rig, failure, get, post},
    visitor::{assert_is_page, completed, form, sign_in},
};

#[tokio::test]
async fn a_key_opens_a_session_and_signing_out_ends_it() {
    let rig = Rig::with_pages().await;
    let signed_out = rig.browse(&get("/")).await;
    assert_is_page(&signed_out);
    assert!(signed_out.text().contains("Access key"));

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
    let (rest, last) = rig.key.split_at(rig.key.len() - 1);
    let almost = format!("{rest}{}", if last == "x" { "y" } else { "x" });
    for key in ["", "nonsense", almost.as_str()] {
        let reply = rig.browse(&form("/sign-in", &format!("key={key}"))).await;
        assert_eq!(reply.status, 401);
        assert_is_page(&reply);
        assert!(reply.text().contains("The key is not valid"));
        assert_eq!(reply.header("set-cookie"), None);
    }
}

#[tokio::test]
async fn wrong_keys_at_sign_in_count_with_those_of_the_api_and_a_key_that_was_valid_before_still_works()
 {
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
    let unused = rig.new_key(&rig.account_id, None).await;
    for key in ["wrong", unused.as_str()] {
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
    sign_in(&rig, &unused).await;
}

#[tokio::test]
async fn forms_of_other_sites_are_refused() {
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
    assert_eq!(rig.credits().await, 99, "no other audit was charged");
}

#[tokio::test]
async fn over_https_cookies_are_restricted_to_https_and_this_host() {
    let proxy = Rig::with_pages_and(|app| app.limits.behind_proxy = true).await;
    assert_cookies_are_for_https(&proxy).await;
    let own_tls = Rig::with_pages_and(|app| app.limits.serves_https = true).await;
    assert_cookies_are_for_https(&own_tls).await;
}

async fn assert_cookies_are_for_https(rig: &Rig) {
    let signed_in = rig
        .browse(&form("/sign-in", &format!("key={}", rig.key)))
        .await;
    let set = signed_in.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-plumbline_session="), "{set}");
    for attribute in ["; Secure", "; Path=/;", "; HttpOnly", "; SameSite=Lax"] {
        assert!(set.contains(attribute), "{set}");
    }
    assert!(!set.contains("Domain"), "{set}");
    let cookie = set.split(';').next().unwrap();
    let start = rig.browse(&get("/").header("Cookie", cookie)).await;
    assert!(start.text().contains("Start the audit"));

    // A cookie without the prefix may have been set by another host.
    let unprefixed = cookie.strip_prefix("__Host-").unwrap();
    let start = rig.browse(&get("/").header("Cookie", unprefixed)).await;
    assert!(start.text().contains("Access key"));
    let fields = "url=https://example.com/&device=mobile&network=cable&location=eu";
    let audit = form("/audits", fields).header("Cookie", cookie);
    let set = rig.browse(&audit).await;
    let set = set.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-plumbline_choice=") && set.contains("; Secure"));
}

#[tokio::test]
async fn a_session_with_an_earlier_cookie_name_ends_with_sign_out_and_sign_in() {
    let rig = Rig::with_pages_and(|app| app.limits.behind_proxy = true).await;
    let is_open = async |secret: &str| {
        let session = rig.store.session(session_digest(secret), NOW).await;
        session.unwrap().is_some()
    };
    let sign_in = format!("key={}", rig.key);
    for (path, body) in [("/sign-out", ""), ("/sign-in", sign_in.as_str())] {
        let key_id = rig.key.split('_').nth(1).unwrap();
        let until = Timestamp(NOW.0 + 1000);
        let opening = rig
            .store
            .open_session(session_digest("old"), key_id, until, 9, NOW);
        opening.await.unwrap();
        let request = form(path, body).header("Cookie", "plumbline_session=old");
        let reply = rig.browse(&request).await;
        assert_eq!(reply.status, 303, "{path}");
        assert!(!is_open("old").await, "{path}");
        let removed = "plumbline_session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0; Secure";
        assert!(reply.headers("set-cookie").any(|set| set == removed));
    }
}

#[tokio::test]
async fn a_key_has_twenty_sessions_and_can_end_all_of_them() {
    let rig = Rig::with_pages().await;
    let other = rig.new_key(&rig.account_id, None).await;
    let others = sign_in(&rig, &other).await;
    let mut cookies = Vec::new();
    for _ in 0..21 {
        cookies.push(sign_in(&rig, &rig.key).await);
        rig.clock.fetch_add(1, Ordering::SeqCst);
    }
    let is_signed_in = async |cookie: &str| {
        let page = rig.browse(&get("/").header("Cookie", cookie)).await;
        page.text().contains("Start the audit")
    };
    assert!(!is_signed_in(&cookies[0]).await, "the oldest has ended");
    assert!(is_signed_in(&cookies[1]).await && is_signed_in(&cookies[20]).await);
    let page = rig.browse(&get("/").header("Cookie", &cookies[7])).await;
    assert!(page.text().contains("Sign out everywhere"));

    let wrong = form("/sign-out", "sessions=some").header("Cookie", &cookies[7]);
    assert_eq!(rig.browse(&wrong).await.status, 400);
    let end = form("/sign-out", "sessions=all").header("Cookie", &cookies[7]);
    let ended = rig.browse(&end).await;
    assert_eq!(ended.status, 303);
    assert!(ended.header("set-cookie").unwrap().contains("Max-Age=0"));
    for cookie in &cookies {
        assert!(!is_signed_in(cookie).await);
    }
    assert!(
        is_signed_in(&others).await,
        "sessions of other keys continue"
    );
}
