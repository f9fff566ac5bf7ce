//! Sessions that audits sign in with.

use plumbline_store::SecretStore;
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::agent::Agent;
use crate::rig::{HttpRequest, Reply, Rig, get, order, post, put, start};
use crate::visitor::{form, sign_in};

fn definition() -> Value {
    json!({
        "name": "shop",
        "steps": [
            { "type": "goto", "url": "/login" },
            { "type": "fill", "selector": "#name", "value": "literal-canary" },
            { "type": "fill", "selector": "#password", "value": "{{secret.password}}" },
        ],
        "expect": { "selector": "#account" },
    })
}

async fn define(rig: &Rig, body: &Value) -> Reply {
    let request = post("/v1/sessions", body.to_string()).key(&rig.key).json();
    rig.send(&request).await
}

async fn with_session(rig: &Rig) {
    let body = json!({ "value": "password-canary" }).to_string();
    let request = put("/v1/secrets/password", body).key(&rig.key).json();
    assert_eq!(rig.send(&request).await.status, 200);
    let reply = define(rig, &definition()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

async fn listed(rig: &Rig) -> Value {
    let reply = rig.send(&get("/v1/sessions").key(&rig.key)).await;
    assert!(!reply.text().contains("canary"), "{}", reply.text());
    reply.json()["data"].clone()
}

fn with_name(name: &str) -> Value {
    let mut body = order();
    body["session"] = json!(name);
    body
}

async fn lease(rig: &Rig, agent: &Agent, keeps_sessions: bool) -> Value {
    let request = json!({
        "agent": agent.announcement(), "slot": 0, "waitMs": 0, "seedsState": true, "runsSteps": true,
        "masksSecrets": true, "keepsSessions": keeps_sessions,
    });
    agent.exchange(rig, "lease", &request).await["job"].clone()
}

/// Finishes a job with a state that the agent has made.
async fn finish(rig: &Rig, agent: &Agent, job: &Value, version: &Value) {
    let report = json!({
        "format": 1, "requestedUrl": "https://example.com/", "finalUrl": "https://example.com/",
        "conditions": {
            "device": { "id": "mobile", "name": "Mobile", "mode": "mobile" },
            "network": { "id": "cable", "name": "Cable", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0 },
            "location": { "id": "eu", "name": "Frankfurt", "mode": "agent", "addedRttMs": 0.0 },
            "cpu": { "rate": 1.0 },
        },
        "scores": { "performance": 97 }, "metrics": null, "error": null, "document": null, "browser": null,
    });
    let state = json!({
        "cookies": [{ "name": "sid", "value": "cookie-canary", "domain": "example.com", "path": "/" }],
        "storage": [{ "origin": "https://example.com", "localStorage": { "token": "stored-canary" } }],
    });
    let more = json!({ "report": report, "session": { "version": version, "state": state } });
    let hold = agent.post_step(rig, "finish", job, more).await;
    assert_eq!(hold, "held");
}

#[tokio::test]
async fn a_repeated_start_has_its_first_reply_although_its_session_was_deleted() {
    let rig = Rig::new().await;
    with_session(&rig).await;
    let request = start(&rig.key, &with_name("shop")).header("Idempotency-Key", "k");
    let first = rig.send(&request).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let delete = HttpRequest::new("DELETE", "/v1/sessions/shop").key(&rig.key);
    assert_eq!(rig.send(&delete).await.status, 200);
    rig.check(request, 200, first.json()).await;
    assert_eq!(rig.credits().await, 99);
}

#[tokio::test]
async fn a_session_is_defined_made_by_an_audit_and_used_by_the_next() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    with_session(&rig).await;
    let entry = &listed(&rig).await[0];
    assert_eq!(
        (&entry["name"], &entry["madeAt"]),
        (&json!("shop"), &Value::Null)
    );

    rig.start_with(&with_name("shop")).await;
    let job = lease(&rig, &agent, true).await;
    let sign_in = &job["options"]["session"]["signIn"];
    assert_eq!(sign_in["steps"][2]["value"], "password-canary", "{job}");
    assert_eq!(sign_in["expect"], json!({ "selector": "#account" }));
    assert!(sign_in["state"].is_null(), "{job}");
    assert_eq!(job["options"]["secrets"], json!(["password-canary"]));
    finish(&rig, &agent, &job, &sign_in["version"]).await;
    assert!(listed(&rig).await[0]["madeAt"].is_string());

    rig.start_with(&with_name("shop")).await;
    let job = lease(&rig, &agent, true).await;
    let state = &job["options"]["session"]["signIn"]["state"];
    assert_eq!(state["cookies"][0]["value"], "cookie-canary", "{job}");
    assert_eq!(
        state["storage"][0]["localStorage"]["token"],
        "stored-canary"
    );

    // Neither steps nor state are in the database.
    let sealed = rig
        .store
        .saved_session(&rig.account_id, "shop")
        .await
        .unwrap();
    let sealed = sealed.unwrap();
    for blob in [sealed.definition, sealed.state.unwrap()] {
        assert!(!String::from_utf8_lossy(&blob).contains("canary"));
    }
    let database = rig.second_connection();
    let sql = "SELECT group_concat(options) FROM audits";
    let options: String = database.query_row(sql, [], |row| row.get(0)).unwrap();
    assert!(
        options.contains("shop") && !options.contains("canary"),
        "{options}"
    );

    let request = HttpRequest::new("DELETE", "/v1/sessions/shop").key(&rig.key);
    assert_eq!(rig.send(&request).await.status, 200);
    assert_eq!(rig.send(&request).await.status, 404);
    assert_eq!(listed(&rig).await, json!([]));
}

#[tokio::test]
async fn a_state_of_an_earlier_definition_is_discarded() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    with_session(&rig).await;
    rig.start_with(&with_name("shop")).await;
    let job = lease(&rig, &agent, true).await;
    assert_eq!(define(&rig, &definition()).await.status, 200);
    let version = &job["options"]["session"]["signIn"]["version"];
    finish(&rig, &agent, &job, version).await;
    assert!(listed(&rig).await[0]["madeAt"].is_null());
}

#[tokio::test]
async fn invalid_definitions_and_unknown_sessions_are_refused_without_quoting_values() {
    let rig = Rig::new().await;
    let with = |member: &str, value: Value| {
        let mut body = definition();
        body[member] = value;
        body
    };
    let fill = json!([{ "type": "fill", "selector": "#a", "value": ["canary"] }]);
    for (body, code, field) in [
        (with("name", json!("a b")), "INVALID_SESSION", "name"),
        (
            with("url", json!("http://private.example/")),
            "INVALID_URL",
            "url",
        ),
        (with("steps", json!([])), "INVALID_STEPS", "steps"),
        (with("steps", fill), "INVALID_STEPS", "steps"),
        (with("expect", json!({})), "INVALID_EXPECTATION", "expect"),
        (
            with("expect", json!({ "text": ["canary"] })),
            "INVALID_EXPECTATION",
            "expect",
        ),
    ] {
        let reply = define(&rig, &body).await;
        assert_eq!(reply.status, 406, "{}", reply.text());
        assert!(!reply.text().contains("canary"), "{}", reply.text());
        let reply = reply.whole_json();
        assert_eq!(
            (&reply["code"], &reply["field"]),
            (&json!(code), &json!(field))
        );
    }
    for name in ["shop", "not a name"] {
        let reply = rig.send(&start(&rig.key, &with_name(name))).await;
        assert_eq!(
            (reply.status, &reply.whole_json()["code"]),
            (406, &json!("UNKNOWN_SESSION"))
        );
    }
    // The secret of its steps does not exist.
    assert_eq!(define(&rig, &definition()).await.status, 200);
    let reply = rig.send(&start(&rig.key, &with_name("shop"))).await;
    assert_eq!(reply.whole_json()["code"], "UNKNOWN_SECRET");
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn an_earlier_agent_gets_no_audit_with_a_session() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    with_session(&rig).await;
    rig.start_with(&with_name("shop")).await;
    let job = lease(&rig, &agent, false).await;
    assert_eq!(job["exhausted"], true, "{job}");
    assert!(!job.to_string().contains("canary"), "{job}");
}

#[tokio::test]
async fn an_audit_whose_session_was_deleted_must_be_failed_by_the_agent() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    with_session(&rig).await;
    let batch = json!({
        "urls": ["https://example.com/a"], "devices": ["mobile"], "locations": ["eu"],
        "networks": ["cable"], "session": "shop",
    });
    let request = post("/v1/batches", batch.to_string()).key(&rig.key).json();
    assert_eq!(rig.send(&request).await.status, 200);
    let request = HttpRequest::new("DELETE", "/v1/sessions/shop").key(&rig.key);
    assert_eq!(rig.send(&request).await.status, 200);
    let job = lease(&rig, &agent, true).await;
    let reason = job["preconditionFailure"].as_str().unwrap();
    assert!(reason.contains("no session with the name `shop`"), "{job}");
}

const ORDER: &str = "url=https://example.com/&device=mobile&network=cable&location=eu";

/// Returns the fields of the form with a text about what to do before the visit.
fn fields(session: &str, preparing: &str) -> String {
    let preparing: String = form_urlencoded::byte_serialize(preparing.as_bytes()).collect();
    format!("{ORDER}&session={session}&preparing={preparing}")
}

#[tokio::test]
async fn the_form_signs_in_performs_steps_and_expects_something() {
    let rig = Rig::with_pages().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    let cookie = sign_in(&rig, &rig.key).await;
    let page = rig.browse(&get("/").header("Cookie", &cookie)).await;
    assert!(!page.text().contains("name=\"session\""));
    with_session(&rig).await;
    let page = rig.browse(&get("/").header("Cookie", &cookie)).await;
    assert!(
        page.text().contains("<option>shop</option>"),
        "{}",
        page.text()
    );

    let preparing = json!({
        "steps": [{ "type": "click", "selector": "#menu" }], "expect": { "text": "Hello" },
        "state": { "blockedHosts": ["ads.example"] },
    });
    let fields = fields("shop", &preparing.to_string());
    let started = form("/audits", &fields).header("Cookie", &cookie);
    assert_eq!(rig.browse(&started).await.status, 303);
    let job = lease(&rig, &agent, true).await;
    let options = &job["options"];
    assert_eq!(options["session"]["name"], "shop", "{job}");
    assert_eq!(options["steps"][0]["selectors"], json!([["#menu"]]));
    assert_eq!(options["expect"], preparing["expect"]);
    assert_eq!(options["state"], preparing["state"]);
}

#[tokio::test]
async fn a_recording_is_accepted_by_the_form_and_a_wrong_text_is_explained_and_kept() {
    let rig = Rig::with_pages().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    let cookie = sign_in(&rig, &rig.key).await;
    let send = async |preparing: &str| {
        let fields = fields("", preparing);
        rig.browse(&form("/audits", &fields).header("Cookie", &cookie))
            .await
    };
    for steps in [
        r##"{ "title": "t", "steps": [{ "type": "click", "selectors": [["#menu"]] }] }"##,
        r##"[{ "type": "click", "selector": "#menu" }]"##,
    ] {
        assert_eq!(send(steps).await.status, 303, "{steps}");
        let job = lease(&rig, &agent, true).await;
        assert_eq!(job["options"]["steps"][0]["type"], "click", "{job}");
    }
    for (preparing, reason) in [
        ("{ \"steps\": [", "not valid JSON: see line 1, column 12."),
        ("3", "neither an object nor a list"),
        (
            "{ \"cookies\": [] }",
            "Its members are state, expect, steps, flow.",
        ),
        ("{ \"steps\": [{ \"type\": \"fly\" }] }", "`steps[0]`"),
        ("{ \"state\": { \"cookies\": 3 } }", "`state`"),
        ("{ \"expect\": null }", "`expect`"),
    ] {
        let page = send(preparing).await;
        assert_eq!(page.status, 406, "{preparing}");
        let text = page.text().replace("&#96;", "`").replace("&#34;", "\"");
        assert!(text.contains(reason), "{preparing}: {text}");
        assert!(text.contains(preparing), "{preparing}: {text}");
    }
    assert_eq!(rig.credits().await, 98);
    let unknown = form("/audits", &fields("none", "")).header("Cookie", &cookie);
    let page = rig.browse(&unknown).await;
    assert!(page.text().contains("There is no session with this name."));
}
