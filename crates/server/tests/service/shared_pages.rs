//! Shared comparisons and histories.

use std::sync::atomic::Ordering;

use crate::{
    rig::{Reply, Rig, get},
    visitor::{assert_is_page, completed, form, sign_in},
};

/// Returns the path of the shared link on a page.
fn link(page: &Reply) -> String {
    let text = page.text();
    let (_, rest) = text.split_once("href=\"/shared-pages/").unwrap();
    let token = rest.split('"').next().unwrap();
    format!("/shared-pages/{token}")
}

#[tokio::test]
async fn a_comparison_and_a_history_are_private_until_they_are_shared() {
    let rig = Rig::with_pages().await;
    let (before, after) = (completed(&rig).await, completed(&rig).await);
    let cookie = sign_in(&rig, &rig.key).await;
    let stranger = rig.new_account(1).await;
    let stranger = sign_in(&rig, &rig.new_key(&stranger, None).await).await;
    let compare = format!("/compare?before={before}&after={after}");
    let history = format!("/history?audit={before}");
    let history_page = rig.browse(&get(&history).header("Cookie", &cookie)).await;
    let url = history_page.text();
    let (_, url) = url.split_once("name=\"url\" value=\"").unwrap();
    let url = url.split('"').next().unwrap().to_owned();
    for (page, action, fields, secret) in [
        (
            &compare,
            "/compare/share",
            format!("before={before}&after={after}"),
            "Two audits compared",
        ),
        (&history, "/history/share", format!("url={url}"), "Audits"),
    ] {
        let share = |more: &str, cookie: &str| {
            form(action, &format!("{fields}&{more}")).header("Cookie", cookie)
        };
        assert_eq!(rig.browse(&share("share=on", &stranger)).await.status, 404);
        let reply = rig.browse(&share("share=on&days=1", &cookie)).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        let owners = rig.browse(&get(page).header("Cookie", &cookie)).await;
        assert!(owners.text().contains("Stop sharing"), "{}", owners.text());
        let path = link(&owners);

        let guests = rig.browse(&get(&path)).await;
        assert_is_page(&guests);
        assert!(guests.text().contains(secret));
        assert_eq!(guests.header("x-robots-tag"), Some("noindex"));
        assert!(guests.text().contains(r#"content="noindex""#));
        for private in ["/reports/", "/shared-pages/", "action=\"/compare\""] {
            assert!(!guests.text().contains(private), "{private}");
        }
        rig.browse(&share("share=off", &cookie)).await;
        assert_eq!(rig.browse(&get(&path)).await.status, 404);
    }
}

#[tokio::test]
async fn the_link_of_a_comparison_expires() {
    let rig = Rig::with_pages().await;
    let id = completed(&rig).await;
    let cookie = sign_in(&rig, &rig.key).await;
    let fields = format!("before={id}&after={id}&share=on&days=1");
    rig.browse(&form("/compare/share", &fields).header("Cookie", &cookie))
        .await;
    let page = get(&format!("/compare?before={id}&after={id}")).header("Cookie", &cookie);
    let path = link(&rig.browse(&page).await);
    assert_eq!(rig.browse(&get(&path)).await.status, 200);
    let day_ms = 24 * 60 * 60 * 1000;
    rig.clock.fetch_add(day_ms, Ordering::SeqCst);
    assert_eq!(rig.browse(&get(&path)).await.status, 404);
}
