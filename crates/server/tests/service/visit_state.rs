//! Starts with a state and with expectations.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::rig::{Rig, get, order, post, start};

fn state() -> Value {
    json!({
        "cookies": [{ "name": "session", "value": "secret-1", "httpOnly": true }],
        "headers": [{ "name": "X-Token", "value": "secret-2" }],
        "basicAuth": { "username": "ada", "password": "secret-3" },
        "localStorage": { "token": "secret-4" }, "script": "'secret-5'",
    })
}

fn with(state: Value, expect: Value) -> Value {
    let mut body = order();
    body["state"] = state;
    body["expect"] = expect;
    body
}

#[tokio::test]
async fn a_state_reaches_the_agent_and_its_values_are_in_no_answer() {
    let rig = Rig::new().await;
    rig.start_with(&with(state(), json!({ "text": "Sign out" })))
        .await;
    let batch = json!({
        "urls": ["https://example.com/a", "https://example.com/b"], "devices": ["mobile"],
        "locations": ["eu"], "networks": ["cable"], "state": state(),
    });
    let request = post("/v1/batches", batch.to_string()).key(&rig.key).json();
    let reply = rig.send(&request).await;
    assert!(!reply.text().contains("secret"), "{}", reply.text());
    for _ in 0..3 {
        let options = rig.lease().await.order.options;
        assert_eq!(serde_json::to_value(&options.state).unwrap(), state());
    }
    for path in ["/v1/audits", "/v1/account"] {
        let reply = rig.send(&get(path).key(&rig.key)).await;
        assert!(!reply.text().contains("secret"), "{}", reply.text());
    }
}

#[tokio::test]
async fn an_invalid_state_or_expectation_is_named_and_not_quoted() {
    let rig = Rig::new().await;
    for (body, code, field, index) in [
        (
            with(
                json!({ "cookies": [{ "name": "a", "value": "secret;" }] }),
                json!({}),
            ),
            "INVALID_STATE",
            "state.cookies",
            Some(0),
        ),
        (
            with(
                json!({ "headers": [{ "name": "Content-Length", "value": "secret" }] }),
                json!({}),
            ),
            "INVALID_STATE",
            "state.headers",
            Some(0),
        ),
        (
            with(json!({ "script": { "secret": 1 } }), json!({})),
            "INVALID_STATE",
            "state",
            None,
        ),
        (with(json!(null), json!({})), "INVALID_STATE", "state", None),
        (
            with(json!({ "userAgentSuffix": null }), json!({})),
            "INVALID_STATE",
            "state",
            None,
        ),
        (
            with(json!({}), json!({ "url": "" })),
            "INVALID_EXPECTATION",
            "expect.url",
            None,
        ),
        (
            with(json!({}), json!("secret")),
            "INVALID_EXPECTATION",
            "expect",
            None,
        ),
    ] {
        let reply = rig.send(&start(&rig.key, &body)).await;
        assert_eq!(reply.status, 406, "{body}");
        assert!(!reply.text().contains("secret"), "{}", reply.text());
        let reply = reply.whole_json();
        assert_eq!(
            (&reply["code"], &reply["field"]),
            (&json!(code), &json!(field)),
            "{reply}"
        );
        assert_eq!(reply["index"].as_u64(), index, "{reply}");
        assert!(
            reply["reason"]
                .as_str()
                .is_some_and(|reason| reason.ends_with('.')),
            "{reply}"
        );
    }
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn another_state_under_the_same_idempotency_key_is_another_request() {
    let rig = Rig::new().await;
    let send = async |state: Value| {
        let request = start(&rig.key, &with(state, json!({}))).header("Idempotency-Key", "key-1");
        rig.send(&request).await.status
    };
    assert_eq!(send(state()).await, send(state()).await);
    let other = json!({ "cookies": [{ "name": "session", "value": "secret-9" }] });
    assert_eq!(send(other).await, 409);
}

#[tokio::test]
async fn an_earlier_agent_gets_no_audit_that_it_would_perform_without_its_state() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    rig.start_with(&with(state(), json!({}))).await;
    rig.start().await;
    let mut jobs = [agent.lease(&rig, 0).await, agent.lease(&rig, 1).await];
    jobs.sort_by_key(|job| job["exhausted"].as_bool());
    assert_eq!(
        (&jobs[0]["exhausted"], &jobs[0]["options"]),
        (&json!(false), &Value::Null)
    );
    // The audit is returned until it has no attempts left, and then fails without a visit.
    assert_eq!(jobs[1]["exhausted"], true, "{jobs:?}");
    assert!(!jobs[1].to_string().contains("secret"), "{jobs:?}");

    rig.start_with(&with(state(), json!({}))).await;
    let request =
        json!({ "agent": agent.announcement(), "slot": 2, "waitMs": 0, "seedsState": true });
    let job = agent.exchange(&rig, "lease", &request).await["job"].clone();
    assert_eq!(
        (&job["exhausted"], &job["options"]["state"]),
        (&json!(false), &state())
    );
}
