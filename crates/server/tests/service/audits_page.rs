//! The page with all audits, and the frame of error pages.

use serde_json::json;

use crate::{
    agent::report,
    rig::{Rig, get, order},
    visitor::{assert_is_page, completed, sign_in},
};

async fn page(rig: &Rig, cookie: &str, path: &str) -> String {
    let reply = rig.browse(&get(path).header("Cookie", cookie)).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    assert_is_page(&reply);
    reply.text().to_owned()
}

#[tokio::test]
async fn audits_are_listed_and_found() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let empty = page(&rig, &cookie, "/audits").await;
    assert!(empty.contains("There are no audits yet."));
    let measured = completed(&rig).await;
    let mut body = order();
    body["url"] = json!("https://other.example/Path");
    body["device"] = json!("desktop");
    body["labels"] = json!(["release 2"]);
    let waiting = rig.start_with(&body).await;

    let all = page(&rig, &cookie, "/audits").await;
    let report = format!("/reports/{measured}");
    let progress = format!("/audits/{waiting}");
    assert!(all.contains(&report) && all.contains(&progress));
    assert!(all.contains(">91</span>") && all.contains("waiting"));
    assert!(all.contains("release 2"));
    for (query, has_measured, has_waiting) in [
        ("url=OTHER.example%2Fpath", false, true),
        ("url=example", true, true),
        ("status=completed", true, false),
        ("status=not-started&device=&label=&url=", false, true),
        ("device=desktop", false, true),
        ("label=release+2", false, true),
        ("label=release", false, false),
        ("device=desktop&status=completed", false, false),
    ] {
        let found = page(&rig, &cookie, &format!("/audits?{query}")).await;
        assert_eq!(found.contains(&report), has_measured, "{query}");
        assert_eq!(found.contains(&progress), has_waiting, "{query}");
        let is_empty = found.contains("No audit matches these filters.");
        assert_eq!(is_empty, !has_measured && !has_waiting, "{query}");
    }
    for query in ["status=late", "cursor=x"] {
        let request = get(&format!("/audits?{query}")).header("Cookie", &cookie);
        assert_eq!(rig.browse(&request).await.status, 400, "{query}");
    }
    let stranger = rig.new_key(&rig.new_account(1).await, None).await;
    let cookie = sign_in(&rig, &stranger).await;
    let theirs = page(&rig, &cookie, "/audits").await;
    assert!(theirs.contains("There are no audits yet."));
    let reply = rig.browse(&get("/audits")).await;
    assert_eq!(
        (reply.status, reply.header("location")),
        (303, Some("/?to=%2Faudits"))
    );
}

#[tokio::test]
async fn both_lists_tell_waiting_from_running_and_name_only_stated_locations() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    rig.start().await;
    let lease = rig.lease().await;
    let mut report = report();
    report["conditions"]["location"]["isStated"] = json!(false);
    rig.finish(&lease, report, None).await;
    for path in ["/", "/audits"] {
        let list = page(&rig, &cookie, path).await;
        let (_, list) = list.split_once("<table class=\"past\">").unwrap();
        assert!(list.contains("this machine, place not stated"), "{path}");
    }

    rig.start().await;
    for state in ["waiting", "running"] {
        for path in ["/", "/audits"] {
            let list = page(&rig, &cookie, path).await;
            let cells = list.split(" colspan=\"5\">").skip(1);
            let states: Vec<_> = cells.filter_map(|cell| cell.split('<').next()).collect();
            assert_eq!(states, [state, "not measured"], "{path}");
        }
        if state == "waiting" {
            rig.lease().await;
        }
    }
}

#[tokio::test]
async fn long_lists_have_pages_with_the_same_filters() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let mut ids = Vec::new();
    for _ in 0..51 {
        ids.push(rig.start().await);
    }
    let first = page(&rig, &cookie, "/audits?device=mobile").await;
    assert!(first.contains(&ids[50]) && first.contains(&ids[1]) && !first.contains(&ids[0]));
    let next = first.split("rel=\"next\" href=\"").nth(1).unwrap();
    let next = next.split('"').next().unwrap().replace("&#38;", "&");
    assert!(next.starts_with("/audits?device=mobile&cursor="), "{next}");
    let second = page(&rig, &cookie, &next).await;
    assert!(second.contains(&ids[0]) && !second.contains(&ids[1]));
    assert!(second.contains("href=\"/audits?device=mobile\""));
    assert!(!second.contains("rel=\"next\""));
}

#[tokio::test]
async fn error_pages_show_the_account_of_the_reader() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    for path in ["/reports/unknown", "/nothing", "/audits?status=late"] {
        let reply = rig.browse(&get(path).header("Cookie", &cookie)).await;
        assert_is_page(&reply);
        let text = reply.text();
        assert!(text.contains("class=\"account\">tests<"), "{path}: {text}");
        assert!(text.contains("action=\"/sign-out\""), "{path}");
    }
    let guest = rig.browse(&get("/nothing")).await;
    assert!(!guest.text().contains("action=\"/sign-out\""));
}
