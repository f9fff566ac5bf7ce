//! Starts with steps.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::rig::{Rig, order, post, start};

fn steps() -> Value {
    json!([
        { "type": "goto", "url": "/login" },
        { "type": "fill", "selectors": [["#password"]], "value": "secret-1" },
        { "type": "press", "key": "Enter" },
    ])
}

fn with(steps: Value) -> Value {
    let mut body = order();
    body["steps"] = steps;
    body
}

#[tokio::test]
async fn steps_and_recordings_reach_the_agent_and_their_values_are_in_no_answer() {
    let rig = Rig::new().await;
    let recording = json!({ "title": "Sign in", "steps": [
        { "type": "navigate", "url": "/login", "assertedEvents": [] },
        { "type": "change", "selectors": [["#password"]], "value": "secret-1", "target": "main" },
        { "type": "press", "key": "Enter" },
    ] });
    rig.start_with(&with(steps())).await;
    rig.start_with(&with(recording)).await;
    let batch = json!({
        "urls": ["https://example.com/a"], "devices": ["mobile"], "locations": ["eu"],
        "networks": ["cable"], "steps": steps(),
    });
    let request = post("/v1/batches", batch.to_string()).key(&rig.key).json();
    let reply = rig.send(&request).await;
    assert!(!reply.text().contains("secret"), "{}", reply.text());
    for _ in 0..3 {
        let options = rig.lease().await.order.options;
        assert_eq!(serde_json::to_value(&options.steps).unwrap(), steps());
    }
}

#[tokio::test]
async fn a_step_that_cannot_be_performed_is_named_before_anything_starts() {
    let rig = Rig::new().await;
    let press = json!({ "type": "press", "key": "Tab" });
    for (steps, index) in [
        (
            json!([press, { "type": "customStep", "name": "mine", "parameters": {} }]),
            Some(1),
        ),
        (
            json!({ "steps": [press, press, { "type": "upload" }] }),
            Some(2),
        ),
        (
            json!([{ "type": "fill", "selector": "#a", "value": { "secret": 1 } }]),
            Some(0),
        ),
        (
            json!([{ "type": "click", "selector": "#a", "target": "https://secret/" }]),
            Some(0),
        ),
        (json!([{ "type": "click", "selector": null }]), None),
        (json!(null), None),
        (json!("secret"), None),
        (json!(vec![press.clone(); 51]), None),
    ] {
        let reply = rig.send(&start(&rig.key, &with(steps.clone()))).await;
        assert_eq!(reply.status, 406, "{steps}");
        assert!(!reply.text().contains("secret"), "{}", reply.text());
        let reply = reply.whole_json();
        assert_eq!(
            (&reply["code"], &reply["field"]),
            (&json!("INVALID_STEPS"), &json!("steps")),
            "{reply}"
        );
        assert_eq!(reply["index"].as_u64(), index, "{reply}");
    }
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn an_earlier_agent_gets_no_audit_whose_steps_it_would_not_perform() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    let lease = async |slot: u32, runs_steps: bool| {
        let request = json!({
            "agent": agent.announcement(), "slot": slot, "waitMs": 0, "seedsState": true,
            "runsSteps": runs_steps,
        });
        agent.exchange(&rig, "lease", &request).await["job"].clone()
    };
    rig.start_with(&with(steps())).await;
    let job = lease(0, false).await;
    assert_eq!(job["exhausted"], true, "{job}");
    assert!(!job.to_string().contains("secret"), "{job}");
    rig.start_with(&with(steps())).await;
    let job = lease(1, true).await;
    assert_eq!(
        (&job["exhausted"], &job["options"]["steps"]),
        (&json!(false), &steps())
    );
}

#[tokio::test]
async fn an_earlier_agent_gets_no_audit_with_a_profile() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    let lease = async |slot: u32, profiles: bool| {
        let request = json!({
            "agent": agent.announcement(), "slot": slot, "waitMs": 0, "profiles": profiles,
        });
        agent.exchange(&rig, "lease", &request).await["job"].clone()
    };
    let mut body = order();
    body["profile"] = json!(true);
    rig.start_with(&body).await;
    assert_eq!(lease(0, false).await["exhausted"], true);
    rig.start_with(&body).await;
    let job = lease(1, true).await;
    assert_eq!(
        (&job["exhausted"], &job["options"]),
        (&json!(false), &json!({ "profile": true }))
    );
}

#[tokio::test]
async fn consent_reaches_the_agent_and_other_choices_are_refused() {
    let rig = Rig::new().await;
    let with = |consent: Value| {
        let mut body = order();
        body["consent"] = consent;
        body
    };
    rig.start_with(&with(json!("reject"))).await;
    let options = rig.lease().await.order.options;
    assert_eq!(
        serde_json::to_value(&options).unwrap(),
        json!({ "consent": "reject" })
    );
    rig.start_with(&with(json!("none"))).await;
    assert!(rig.lease().await.order.options.is_default());
    let reply = rig.send(&start(&rig.key, &with(json!("all")))).await;
    assert_eq!(reply.status, 406);
    assert_eq!(reply.whole_json()["code"], "INVALID_CONSENT");
}

#[tokio::test]
async fn a_view_reaches_the_agent_and_others_are_refused() {
    let rig = Rig::new().await;
    let with = |view: Value| {
        let mut body = order();
        body["view"] = view;
        body
    };
    for view in [json!("repeat"), json!({ "after": "https://example.com/a" })] {
        rig.start_with(&with(view.clone())).await;
        let options = rig.lease().await.order.options;
        assert_eq!(
            serde_json::to_value(&options).unwrap(),
            json!({ "view": view })
        );
    }
    rig.start_with(&with(json!("first"))).await;
    assert!(rig.lease().await.order.options.is_default());
    for view in [
        json!("second"),
        json!(null),
        json!({}),
        json!({ "after": "file:///etc/passwd" }),
        json!({ "after": 1 }),
    ] {
        let reply = rig.send(&start(&rig.key, &with(view))).await;
        assert_eq!(reply.status, 406);
        assert_eq!(reply.whole_json()["code"], "INVALID_VIEW");
    }
}
