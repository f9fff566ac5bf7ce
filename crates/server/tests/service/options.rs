//! Optional members of a start.

use serde_json::{Value, json};

use crate::rig::{Rig, Server, failure, get, order, post, start};

fn with(member: &str, value: Value) -> Value {
    let mut body = order();
    body[member] = value;
    body
}

#[tokio::test]
async fn runs_cost_as_many_credits_and_reach_the_agent() {
    let rig = Rig::new().await;
    rig.start_with(&with("runs", json!(9))).await;
    assert_eq!(rig.credits().await, 91);
    assert_eq!(rig.lease().await.runs, 9);
    rig.start_with(&with("runs", json!(3.0))).await;
    assert_eq!(rig.lease().await.runs, 3);
    rig.start().await;
    assert_eq!(rig.lease().await.runs, 1);
    assert_eq!(rig.credits().await, 87);
    let listed = rig.send(&get("/v1/audits").key(&rig.key)).await.json();
    assert_eq!(listed["data"][2]["runs"], 9);
    let poor = rig.new_key(&rig.new_account(4).await, None).await;
    rig.check(
        start(&poor, &with("runs", json!(5))),
        402,
        failure("Insufficient Credits"),
    )
    .await;
}

#[tokio::test]
async fn an_allowed_error_status_reaches_the_agent() {
    let rig = Rig::new().await;
    rig.start_with(&with("allowErrorStatus", json!(true))).await;
    assert!(rig.lease().await.order.options.allow_error_status);
    rig.start_with(&with("allowErrorStatus", json!(false)))
        .await;
    assert!(!rig.lease().await.order.options.allow_error_status);
    rig.start().await;
    assert!(!rig.lease().await.order.options.allow_error_status);
    let invalid = "Invalid Request body or missing required parameters";
    for value in [json!("true"), json!(null), json!(1)] {
        let request = start(&rig.key, &with("allowErrorStatus", value));
        rig.check(request, 400, failure(invalid)).await;
    }
}

#[tokio::test]
async fn a_quick_audit_is_one_for_the_agent() {
    let rig = Rig::new().await;
    rig.start_with(&with("quick", json!(true))).await;
    assert!(rig.lease().await.order.options.quick);
    rig.start().await;
    assert!(!rig.lease().await.order.options.quick);
    let request = start(&rig.key, &with("quick", json!("yes")));
    let invalid = "Invalid Request body or missing required parameters";
    rig.check(request, 400, failure(invalid)).await;
    let body = json!({
        "urls": ["https://example.com/"], "devices": ["mobile"], "locations": ["eu"],
        "networks": ["cable"], "quick": true,
    });
    rig.send(&post("/v1/batches", body.to_string()).key(&rig.key).json())
        .await;
    assert!(rig.lease().await.order.options.quick);
}

#[tokio::test]
async fn interactions_reach_the_agent_as_a_number_and_other_values_are_refused() {
    let rig = Rig::new().await;
    for (value, options) in [
        (json!(true), json!({ "interactions": 8 })),
        (json!(3), json!({ "interactions": 3 })),
        (json!(false), json!({})),
    ] {
        rig.start_with(&with("interactions", value)).await;
        let leased = rig.lease().await.order.options;
        assert_eq!(serde_json::to_value(&leased).unwrap(), options);
    }
    for value in [json!(9), json!(-1), json!("all"), json!(null)] {
        let request = start(&rig.key, &with("interactions", value));
        let reply = rig.send(&request).await;
        assert_eq!(reply.status, 406);
        assert_eq!(reply.whole_json()["code"], "INVALID_INTERACTIONS");
    }
    let body = json!({
        "urls": ["https://example.com/"], "devices": ["mobile"], "locations": ["eu"],
        "networks": ["cable"], "interactions": true,
    });
    rig.send(&post("/v1/batches", body.to_string()).key(&rig.key).json())
        .await;
    assert_eq!(rig.lease().await.order.options.interactions.number(), 8);
}

#[tokio::test]
async fn a_flow_reaches_agents_that_measure_it_and_an_invalid_one_is_refused() {
    let rig = Rig::new().await;
    let flow = json!([{ "type": "click", "selector": "#menu" }]);
    rig.start_with(&with("flow", flow)).await;
    let leased = rig.lease().await.order.options;
    assert_eq!(leased.flow.titles(), ["click `#menu`"]);
    for (value, index) in [
        (json!([{ "type": "waitFor", "idle": true }]), json!(null)),
        (
            json!([{ "type": "click", "selector": "a" }, { "type": "jump" }]),
            json!(1),
        ),
        (json!(null), json!(null)),
        (json!("click"), json!(null)),
    ] {
        let reply = rig.send(&start(&rig.key, &with("flow", value))).await;
        assert_eq!(reply.status, 406);
        let failure = reply.whole_json();
        assert_eq!(failure["code"], "INVALID_STEPS");
        assert_eq!(
            (&failure["field"], &failure["index"]),
            (&json!("flow"), &index)
        );
    }
}

#[tokio::test]
async fn a_profile_reaches_agents_from_starts_and_batches_and_is_refused_in_comparisons() {
    let rig = Rig::new().await;
    rig.start_with(&with("profile", json!(true))).await;
    let leased = rig.lease().await.order.options;
    let expected = json!({ "profile": true });
    assert_eq!(serde_json::to_value(&leased).unwrap(), expected);
    rig.start_with(&with("profile", json!(false))).await;
    assert!(rig.lease().await.order.options.is_default());
    let batch = json!({
        "urls": ["https://example.com/"], "devices": ["mobile"], "locations": ["eu"],
        "networks": ["cable"], "profile": true,
    });
    rig.send(&post("/v1/batches", batch.to_string()).key(&rig.key).json())
        .await;
    assert!(rig.lease().await.order.options.profile);
    let comparison = json!({
        "urls": ["https://a.example/", "https://b.example/"], "device": "mobile",
        "location": "eu", "network": "cable", "profile": true,
    });
    let request = post("/v1/comparisons", comparison.to_string()).key(&rig.key);
    let reply = rig.send(&request.json()).await;
    assert_eq!(
        (reply.status, &reply.whole_json()["code"]),
        (406, &json!("INVALID_PROFILE"))
    );
    assert_eq!(reply.whole_json()["field"], "profile");
    let request = start(&rig.key, &with("profile", json!("yes")));
    assert_eq!(rig.send(&request).await.status, 400);
}

#[tokio::test]
async fn a_failure_names_the_invalid_value() {
    let rig = Rig::new().await;
    let request = start(&rig.key, &with("device", json!("toaster")));
    assert_eq!(
        rig.send(&request).await.whole_json(),
        json!({
            "status": "FAILURE", "message": "Invalid Device", "code": "INVALID_DEVICE",
            "field": "device", "reason": "Unknown device. GET /v1/devices lists the ids.",
        })
    );
    for (member, id, suggested) in [
        ("device", "desktp", "Did you mean `desktop`?"),
        ("network", "slow4g", "Did you mean `mobileSlow4g`?"),
        ("location", "Frankfurt", "Did you mean `"),
    ] {
        let request = start(&rig.key, &with(member, json!(id)));
        let reply = rig.send(&request).await.whole_json();
        let reason = reply["reason"].as_str().unwrap();
        let start = format!("Unknown {member}. {suggested}");
        assert!(reason.starts_with(&start), "{reason}");
    }
    let batch = json!({
        "urls": ["https://example.com/", "ftp://example.com/"], "devices": ["mobile"],
        "locations": ["eu"], "networks": ["cable"],
    });
    let request = crate::rig::post("/v1/batches", batch.to_string());
    let reply = rig.send(&request.key(&rig.key).json()).await.whole_json();
    assert_eq!(reply["code"], "INVALID_URL");
    assert_eq!(
        (&reply["field"], &reply["index"]),
        (&json!("urls"), &json!(1))
    );
    let mut body = order();
    body.as_object_mut().unwrap().remove("network");
    let reply = rig.send(&start(&rig.key, &body)).await.whole_json();
    assert_eq!(reply["code"], "INVALID_BODY");
    assert_eq!(reply["reason"], "`network` is missing.");
    assert_eq!(reply["field"], "network");
    for (member, value, field, index) in [
        ("url", json!(5), "url", Value::Null),
        ("labels", json!(["a", 5]), "labels", json!(1)),
        ("device", Value::Null, "device", Value::Null),
    ] {
        let mut body = order();
        body[member] = value;
        let reply = rig.send(&start(&rig.key, &body)).await.whole_json();
        assert_eq!(reply["code"], "INVALID_BODY", "{reply}");
        assert_eq!((&reply["field"], &reply["index"]), (&json!(field), &index));
    }
}

/// Sends starts with the character U+0000 in all texts that are stored, which PostgreSQL refuses.
pub async fn assert_nul_is_refused(server: &Server, key: &str) {
    for (member, value, index) in [
        ("state", json!({ "localStorage": { "a": "b\0" } }), None),
        ("state", json!({ "sessionStorage": { "a\0": "b" } }), None),
        ("expect", json!({ "text": "a\0" }), None),
        ("view", json!({ "after": "https://example.com/\0" }), None),
        (
            "steps",
            json!([{ "type": "waitFor", "expression": "'\0'" }]),
            Some(0),
        ),
        (
            "flow",
            json!([{ "type": "waitFor", "idle": true }, { "type": "click", "selector": "a\0" }]),
            Some(1),
        ),
        ("labels", json!(["a", "\0"]), Some(1)),
        ("webhook", json!("https://example.com/\0"), None),
        ("url", json!("https://example.com/\0"), None),
    ] {
        let reply = server.send(&start(key, &with(member, value))).await;
        assert_eq!(reply.status, 406, "{member}: {}", reply.text());
        let reply = reply.whole_json();
        assert_eq!(reply["field"], member, "{reply}");
        assert_eq!(reply["index"], json!(index), "{reply}");
    }
}

#[tokio::test]
async fn the_character_nul_is_refused() {
    let rig = Rig::new().await;
    assert_nul_is_refused(&rig, &rig.key).await;
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn runs_are_a_whole_number_from_one_to_nine() {
    let rig = Rig::new().await;
    for runs in [json!(0), json!(10), json!(-1), json!(1e18), json!(u64::MAX)] {
        rig.check(
            start(&rig.key, &with("runs", runs)),
            406,
            failure("Invalid Runs"),
        )
        .await;
    }
    let invalid = "Invalid Request body or missing required parameters";
    for runs in [json!("3"), json!(null), json!(1.5), json!([1]), json!(true)] {
        rig.check(start(&rig.key, &with("runs", runs)), 400, failure(invalid))
            .await;
    }
    let twice = order().to_string().replace("}", ",\"runs\":1,\"runs\":2}");
    let request = crate::rig::post("/v1/audit/start", twice)
        .key(&rig.key)
        .json();
    rig.check(request, 400, failure(invalid)).await;
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn a_webhook_is_a_url_that_may_be_visited() {
    let rig = Rig::new().await;
    for webhook in [
        "",
        "example.com",
        "ftp://example.com/",
        "https://user:pw@example.com/",
        "https://private.example/hook",
    ] {
        rig.check(
            start(&rig.key, &with("webhook", json!(webhook))),
            406,
            failure("Invalid Webhook"),
        )
        .await;
    }
    for webhook in [json!(null), json!(1), json!({})] {
        let invalid = "Invalid Request body or missing required parameters";
        rig.check(
            start(&rig.key, &with("webhook", webhook)),
            400,
            failure(invalid),
        )
        .await;
    }
    rig.start_with(&with("webhook", json!("https://example.com/hook")))
        .await;
}
