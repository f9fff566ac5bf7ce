//! Audits that are started again from their report page.

use plumbline_store::{Lease, Store};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::rig::{NOW, Reply, Rig, order, post};
use crate::visitor::{form, report, sign_in};

/// Finishes the next audit, and returns its lease.
async fn finished(rig: &Rig) -> Lease {
    let lease = rig.lease().await;
    rig.finish(&lease, report(), None).await;
    lease
}

/// Sends the form of a report page.
async fn again(rig: &Rig, audit_id: &str, fields: &[(&str, &str)]) -> Reply {
    let cookie = sign_in(rig, &rig.key).await;
    let fields = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let request = form(&format!("/reports/{audit_id}/again"), &fields);
    rig.browse(&request.header("Cookie", &cookie)).await
}

#[tokio::test]
async fn an_audit_is_started_again_with_all_its_options() {
    let rig = Rig::with_pages().await;
    let mut body = order();
    let options = json!({
        "allowErrorStatus": true, "quick": true, "consent": "accept", "interactions": 3,
        "profile": true, "view": { "after": "https://example.com/before" },
        "state": { "blockedHosts": ["ads.example"] }, "expect": { "text": "Hello" },
        "steps": [{ "type": "goto", "url": "/login" }],
        "flow": [{ "type": "click", "selector": "#menu" }],
        "runs": 3, "labels": ["one", "two"], "webhook": "https://example.com/hook",
    });
    for (name, value) in options.as_object().unwrap() {
        body[name] = value.clone();
    }
    rig.start_with(&body).await;
    let first = finished(&rig).await;
    let reply = again(&rig, &first.audit_id, &[]).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    let second = rig.lease().await;
    assert_eq!(
        reply.header("location"),
        Some(&*format!("/audits/{}", second.tracking_id))
    );
    assert_eq!((&second.order, second.runs), (&first.order, 3));
    let status = rig.store.status(&rig.account_id, &second.tracking_id).await;
    assert_eq!(status.unwrap().unwrap().labels, ["one", "two"]);

    rig.finish(&second, report(), None).await;
    again(&rig, &second.audit_id, &[("record", "true")]).await;
    let mut recorded = first.order.clone();
    recorded.options.record = true;
    assert_eq!(rig.lease().await.order, recorded);
}

#[tokio::test]
async fn a_comparison_is_started_again_as_a_comparison() {
    let rig = Rig::with_pages().await;
    let comparison = json!({
        "urls": ["https://a.example/", "https://b.example/"], "device": "mobile",
        "location": "eu", "network": "cable", "maxPairs": 5,
    });
    let request = post("/v1/comparisons", comparison.to_string()).key(&rig.key);
    assert_eq!(rig.send(&request.json()).await.status, 200);
    let first = finished(&rig).await;
    assert_eq!(again(&rig, &first.audit_id, &[]).await.status, 303);
    let second = rig.lease().await;
    assert_eq!((&second.order, second.runs), (&first.order, 5));
}

#[tokio::test]
async fn values_that_were_not_kept_are_asked_for() {
    let rig = Rig::with_pages().await;
    let mut body = order();
    body["quick"] = json!(true);
    body["state"] = json!({ "cookies": [{ "name": "sid", "value": "canary-1" }] });
    body["steps"] = json!([{ "type": "fill", "selector": "#name", "value": "canary-2" }]);
    rig.start_with(&body).await;
    let first = finished(&rig).await;
    let page = again(&rig, &first.audit_id, &[("record", "true")]).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(!page.text().contains("canary"), "{}", page.text());
    for text in ["are not kept", "sid", "#name", "name=\"record\""] {
        assert!(page.text().contains(text), "{text}: {}", page.text());
    }
    let credits = rig.credits().await;
    let fields = [
        ("preparing", "{\"steps\": 5, \"typed\""),
        ("record", "true"),
    ];
    let page = again(&rig, &first.audit_id, &fields).await;
    assert_eq!(page.status, 406);
    assert!(page.text().contains("not valid JSON") && page.text().contains("typed"));
    let unfilled = json!({
        "state": { "cookies": [{ "name": "sid", "value": "" }] },
        "steps": [{ "type": "fill", "selector": "#name", "value": "" }],
    });
    let page = again(
        &rig,
        &first.audit_id,
        &[("preparing", &unfilled.to_string())],
    )
    .await;
    assert_eq!(page.status, 406);
    assert!(
        page.text().contains("no value was filled in"),
        "{}",
        page.text()
    );
    assert_eq!(rig.credits().await, credits);

    let preparing: Value = json!({ "state": body["state"], "steps": body["steps"] });
    let preparing = preparing.to_string();
    let fields = [("preparing", preparing.as_str()), ("record", "true")];
    let reply = again(&rig, &first.audit_id, &fields).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    let mut expected = first.order.clone();
    expected.options.record = true;
    assert_eq!(rig.lease().await.order, expected);
}

#[tokio::test]
async fn an_audit_that_cannot_be_started_again_says_why() {
    let rig = Rig::with_pages().await;
    rig.start().await;
    let first = finished(&rig).await;
    let taking = rig.store.add_credits(&rig.account_id, -100, NOW);
    assert_eq!(taking.await.unwrap(), 0);
    let page = again(&rig, &first.audit_id, &[]).await;
    assert_eq!(page.status, 402);
    assert!(
        page.text().contains("This costs 1 credit"),
        "{}",
        page.text()
    );
    assert_eq!(again(&rig, "aud_unknown", &[]).await.status, 404);
}
