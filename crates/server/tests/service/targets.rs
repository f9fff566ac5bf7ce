//! URLs of a start; `target.rs` has tests of many more forms.

use serde_json::json;

use crate::rig::{Rig, failure, get, order, start};

#[tokio::test]
async fn urls_that_cannot_be_audited_are_invalid() {
    let rig = Rig::new().await;
    let too_long = format!("https://example.com/{}", "x".repeat(2029));
    for url in [
        "",
        "example.com",
        "ftp://example.com/",
        "http://",
        "http:example.com",
        " https://example.com/",
        "https://example.com/\u{0}",
        "https://user:pw@example.com/",
        "https://exa mple.com/",
        "https://private.example/",
        "https://PRIVATE.example:8443/x",
        &too_long,
    ] {
        let mut body = order();
        body["url"] = json!(url);
        rig.check(start(&rig.key, &body), 406, failure("Invalid Url"))
            .await;
    }
}

#[tokio::test]
async fn the_url_is_stored_and_shown_as_it_was_sent() {
    let rig = Rig::new().await;
    let longest = format!("https://example.com/{}", "x".repeat(2028));
    for url in [
        "HTTPS://Example.com",
        "https://bücher.example/a/../b?q=ü#top",
        "http://1.1.1.1:8080",
        &longest,
    ] {
        let mut body = order();
        body["url"] = json!(url);
        let started = rig.send(&start(&rig.key, &body)).await.json();
        let tracking_id = started["trackingId"].as_str().unwrap();
        let status = rig
            .send(&get(&format!("/v1/audit/status/{tracking_id}")).key(&rig.key))
            .await;
        assert_eq!(status.json()["data"]["url"], url);
    }
}
