//! The pages for people, as a browser asks for them.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flate2::read::GzDecoder;
use plumbline_engine::exhibits::{self, Exhibits, Picture, WholePage};
use plumbline_report::html::Phase;
use plumbline_store::Blobs;
use serde_json::{Value, json};

use crate::rig::{Ask, Door, NOW, Reply, Rig, failure, get, post};

/// A form that a page of ours sent.
fn form(path: &str, body: &str) -> Ask {
    post(path, body)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Sec-Fetch-Site", "same-origin")
}

/// The cookie of a fresh session with this key.
pub async fn sign_in(door: &Door, key: &str) -> String {
    let reply = door.browse(&form("/sign-in", &format!("key={key}"))).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    let cookie = reply.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"));
    cookie.split(';').next().unwrap().to_owned()
}

fn report() -> Value {
    json!({
        "format": 1,
        "requestedUrl": "https://example.com/",
        "finalUrl": "https://example.com/",
        "conditions": {
            "device": {"id": "mobile", "name": "A phone", "mode": "mobile"},
            "network": {"id": "normal4g", "name": "A line", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0},
            "location": {"id": "eu", "name": "A place", "mode": "agent", "addedRttMs": 0.0},
            "cpu": {"rate": 1.0, "deviceIndex": null, "hostIndex": null, "hostIndexAfter": null},
        },
        "scores": {"performance": 91, "accessibility": 80, "seo": 70, "bestPractices": 60, "pwa": 50},
        "metrics": {"fcp": {"value": 900.0, "score": 1.0}, "lcp": null, "tbt": null, "cls": null,
                    "si": null, "tti": null},
        "error": null,
        "document": null,
        "browser": null,
    })
}

/// A completed audit of the rig's account: its audit id.
async fn completed(rig: &Rig) -> String {
    rig.start().await;
    let lease = rig.lease().await;
    rig.finish(&lease, report(), None).await;
    lease.audit_id
}

fn assert_is_page(reply: &Reply) {
    assert_eq!(
        reply.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = reply.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(reply.header("x-request-id").is_some());
    assert_eq!(reply.header("cache-control"), Some("no-store"));
}

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
    plumbline_store::Store::revoke_key(&*rig.store, key_id, NOW)
        .await
        .unwrap();
    let reply = rig.browse(&get("/").header("Cookie", &revoked)).await;
    assert!(reply.text().contains("Access key"));

    rig.clock
        .fetch_add(15 * 24 * 3600 * 1000, std::sync::atomic::Ordering::SeqCst);
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
    rig.clock
        .fetch_add(20_000, std::sync::atomic::Ordering::SeqCst);
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

#[tokio::test]
async fn an_audit_is_started_followed_and_read() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let order = "url=example.com&device=iphone7&network=wifi&location=eu";
    let started = rig
        .browse(&form("/audits", order).header("Cookie", &cookie))
        .await;
    assert_eq!(started.status, 303, "{}", started.text());
    assert!(
        started
            .header("set-cookie")
            .unwrap()
            .contains("iphone7.wifi.eu")
    );
    let progress = started.header("location").unwrap().to_owned();
    let tracking_id = progress.strip_prefix("/audits/").unwrap();

    let ask = |path: &str| get(path).header("Cookie", &cookie);
    let page = rig.browse(&ask(&progress)).await;
    assert_is_page(&page);
    assert!(page.text().contains("https://example.com"));
    assert!(page.text().contains(r#"data-phase="waiting" class="now""#));
    let lease = rig.lease().await;
    rig.phases.reached(tracking_id, Phase::Loading);
    let page = rig.browse(&ask(&progress)).await;
    assert!(page.text().contains(r#"data-phase="loading" class="now""#));

    let events = ask(&format!("{progress}/events"));
    let (stream, ()) = tokio::join!(rig.stream(&events), async {
        rig.phases.reached(tracking_id, Phase::Judging);
        rig.finish(&lease, report(), None).await;
        rig.phases.ended(tracking_id);
    });
    assert!(stream.contains("text/event-stream"), "{stream}");
    let done = format!("event: done\ndata: /reports/{}", lease.audit_id);
    assert!(stream.contains(&done), "{stream}");

    let to = rig.browse(&ask(&progress)).await;
    let report_path = format!("/reports/{}", lease.audit_id);
    assert_eq!(
        (to.status, to.header("location")),
        (303, Some(&*report_path))
    );
    let report = rig.browse(&ask(&report_path)).await;
    assert_is_page(&report);
    assert!(report.text().contains("Performance: 91 of 100, good"));
    assert!(
        report.text().contains("is no longer kept"),
        "there are no exhibits"
    );
    let remembered = format!("{cookie}; plumbline_choice=iphone7.wifi.eu");
    let start = rig.browse(&get("/").header("Cookie", &remembered)).await;
    assert!(
        start
            .text()
            .contains(r#"<option value="iphone7" selected>"#)
    );
    assert!(
        start.text().contains(&report_path),
        "recent audits are listed"
    );
}

#[tokio::test]
async fn what_cannot_be_audited_is_said_on_the_start_page() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    for (order, status) in [
        (
            "url=http://private.example/&device=mobile&network=wifi&location=eu",
            406,
        ),
        (
            "url=ftp://example.com/&device=mobile&network=wifi&location=eu",
            406,
        ),
        (
            "url=https://example.com/&device=teapot&network=wifi&location=eu",
            406,
        ),
        ("", 406),
    ] {
        let reply = rig
            .browse(&form("/audits", order).header("Cookie", &cookie))
            .await;
        assert_eq!(reply.status, status, "{order}");
        assert_is_page(&reply);
        assert!(reply.text().contains("role=\"alert\""));
    }
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn a_report_is_its_owners_until_it_is_shared() {
    let rig = Rig::with_pages().await;
    let id = completed(&rig).await;
    let path = format!("/reports/{id}");
    let nobody = rig.browse(&get(&path)).await;
    assert_eq!(nobody.status, 303);
    let to = nobody.header("location").unwrap();
    assert_eq!(to, format!("/?to=%2Freports%2F{id}"));

    let stranger = rig.new_account(1).await;
    let stranger = sign_in(&rig, &rig.new_key(&stranger, None).await).await;
    let share = |on: &str, cookie: &str| {
        form(&format!("{path}/share"), &format!("share={on}")).header("Cookie", cookie)
    };
    for ask in [
        get(&path).header("Cookie", &stranger),
        share("on", &stranger),
    ] {
        let reply = rig.browse(&ask).await;
        assert_eq!(reply.status, 404);
        assert_is_page(&reply);
    }

    let owner = sign_in(&rig, &rig.key).await;
    assert_eq!(rig.browse(&share("on", &owner)).await.status, 303);
    let page = rig.browse(&get(&path).header("Cookie", &owner)).await;
    let link = page.text().split("href=\"/shared/").nth(1).unwrap();
    let link = format!("/shared/{}", link.split('"').next().unwrap());
    let shared = rig.browse(&get(&link)).await;
    assert_eq!(shared.status, 200);
    assert!(shared.text().contains("Performance: 91 of 100"));
    assert!(!shared.text().contains("Switch the link off"));

    assert_eq!(rig.browse(&share("off", &owner)).await.status, 303);
    assert_eq!(rig.browse(&get(&link)).await.status, 404);
    assert_eq!(rig.browse(&share("nonsense", &owner)).await.status, 400);
}

#[tokio::test]
async fn a_reports_pictures_are_seen_by_who_may_see_the_report() {
    let picture = |data: &str| Picture {
        mime_type: "image/webp".to_owned(),
        width_px: 4,
        height_px: 4,
        data: data.to_owned(),
    };
    let exhibits = Exhibits {
        format: exhibits::FORMAT,
        screenshot: Some(picture("Zmlyc3Q=")),
        whole_page: Some(WholePage {
            picture: picture("d2hvbGU="),
            ..WholePage::default()
        }),
        ..Exhibits::default()
    };
    let rig = Rig::with_pages().await;
    let id = completed(&rig).await;
    rig.keep_blob("exhibits", &id, &exhibits.pack().unwrap());
    let owner = sign_in(&rig, &rig.key).await;
    let see = |file: &str| get(&format!("/reports/{id}/{file}"));
    for (file, bytes) in [("final", "first"), ("whole", "whole")] {
        let seen = rig.browse(&see(file).header("Cookie", &owner)).await;
        assert_eq!((seen.status, seen.text()), (200, bytes));
        assert_eq!(seen.header("content-type"), Some("image/webp"));
        let kept = seen.header("cache-control").unwrap();
        assert!(kept.starts_with("private"), "{kept}");
        assert_eq!(rig.browse(&see(file)).await.status, 303, "nobody sees it");
    }
    let missing = rig.browse(&see("frame-0").header("Cookie", &owner)).await;
    assert_eq!(missing.status, 404);
}

#[tokio::test]
async fn an_address_has_a_history_and_two_audits_compare() {
    let rig = Rig::with_pages().await;
    let (first, second) = (completed(&rig).await, completed(&rig).await);
    let cookie = sign_in(&rig, &rig.key).await;
    let history = rig
        .browse(&get(&format!("/history?audit={first}")).header("Cookie", &cookie))
        .await;
    assert_is_page(&history);
    assert!(
        history
            .text()
            .contains("Performance over 2 audits: newest 91, median 91")
    );
    let compare = get(&format!("/compare?before={first}&after={second}"));
    let compare = rig.browse(&compare.header("Cookie", &cookie)).await;
    assert_is_page(&compare);
    assert!(compare.text().contains("the same checks fail in both"));
    for path in [
        "/history",
        "/history?url=x",
        "/history?audit=x",
        "/compare",
        "/compare?before=x&after=y",
    ] {
        let reply = rig.browse(&get(path).header("Cookie", &cookie)).await;
        assert_eq!(reply.status, 404, "{path}");
    }
}

#[tokio::test]
async fn errors_are_pages_for_people_and_json_for_programs() {
    let rig = Rig::with_pages().await;
    for path in [
        "/nothing",
        "/reports",
        "/shared/unknown",
        "/assets/nothing.css",
    ] {
        let page = rig.browse(&get(path)).await;
        assert_eq!(page.status, 404, "{path}");
        assert_is_page(&page);
        let id = page.header("x-request-id").unwrap();
        assert!(page.text().contains(id), "it can be told to who helps");
        rig.check(get(path), 404, failure("Resource Not Found"))
            .await;
    }
    let wrong = rig.browse(&Ask::new("DELETE", "/sign-in")).await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST")));
    for path in ["/v1/nothing", "/v1", "/v1/audit/status/x"] {
        let reply = rig.browse(&get(path).key(&rig.key)).await;
        assert_eq!(
            reply.header("content-type"),
            Some("application/json"),
            "{path}"
        );
        assert_eq!(reply.json(), failure("Resource Not Found"));
    }
}

#[tokio::test]
async fn pages_and_assets_are_packed_for_who_can_unpack_them() {
    let rig = Rig::with_pages().await;
    let plain = rig.browse(&get("/")).await;
    assert_eq!(plain.header("content-encoding"), None);
    let style = plain.text().split("href=\"/assets/").nth(1).unwrap();
    let style = format!("/assets/{}", style.split('"').next().unwrap());
    for path in ["/", &style] {
        let plain = rig.browse(&get(path)).await;
        let packed = rig
            .browse(&get(path).header("Accept-Encoding", "gzip, br"))
            .await;
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        let mut text = String::new();
        GzDecoder::new(&packed.body[..])
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, plain.text());
    }
    let style = rig.browse(&get(&style)).await;
    assert_eq!(
        style.header("content-type"),
        Some("text/css; charset=utf-8")
    );
    let kept = style.header("cache-control").unwrap();
    assert!(kept.contains("immutable"));
    let json = rig
        .ask(&get("/v1/devices").header("Accept-Encoding", "gzip"))
        .await;
    assert_eq!(
        json.header("content-encoding"),
        None,
        "the API stays as it is"
    );
}

/// A place for blobs that does not answer.
#[derive(Debug)]
struct Unreachable;

#[async_trait::async_trait]
impl Blobs for Unreachable {
    async fn put(&self, _: &str, _: Vec<u8>) -> io::Result<()> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }

    async fn get(&self, _: &str) -> io::Result<Option<Vec<u8>>> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }

    async fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }

    async fn remove_older(&self, _: Duration, _: SystemTime) -> io::Result<u64> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }
}

#[tokio::test]
async fn a_report_reads_while_what_is_kept_beside_it_cannot_be_reached_and_says_so() {
    let rig = Rig::with_pages_and(|app| {
        app.bundles = Some(Arc::new(Unreachable));
        app.pages.as_mut().unwrap().exhibits = Arc::new(Unreachable);
    })
    .await;
    let cookie = sign_in(&rig, &rig.key).await;
    let id = completed(&rig).await;
    let ask = |path: &str| get(path).header("Cookie", &cookie);
    let report = rig.browse(&ask(&format!("/reports/{id}"))).await;
    assert_eq!(report.status, 200);
    assert!(report.text().contains("Performance: 91 of 100, good"));
    assert!(report.text().contains("cannot be reached at the moment"));
    assert!(!report.text().contains("hidden.internal"));

    let keyed = |path: &str| get(path).key(&rig.key);
    let whole = format!("/v1/audit/report/{id}");
    assert_eq!(rig.ask(&keyed(&whole)).await.status, 200);
    let unavailable = failure("Service Unavailable");
    rig.check(
        keyed(&format!("{whole}?format=har")),
        503,
        unavailable.clone(),
    )
    .await;
    // Nothing is half deleted: it is refused until all of it can go.
    let delete = Ask::new("DELETE", &format!("/v1/audit/data/{id}")).key(&rig.key);
    rig.check(delete, 503, unavailable).await;
    assert_eq!(rig.ask(&keyed(&whole)).await.status, 200);
}
