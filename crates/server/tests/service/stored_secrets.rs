//! Secrets that clients store, and starts that use them.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::rig::{HttpRequest, Reply, Rig, get, order, post, put, start};

const CANARY: &str = "canary-secret";

async fn store_secret(rig: &Rig, name: &str, value: &Value) -> Reply {
    let body = json!({ "value": value }).to_string();
    let path = format!("/v1/secrets/{name}");
    rig.send(&put(&path, body).key(&rig.key).json()).await
}

async fn delete(rig: &Rig, name: &str) -> Reply {
    let request = HttpRequest::new("DELETE", &format!("/v1/secrets/{name}"));
    rig.send(&request.key(&rig.key)).await
}

async fn names(rig: &Rig) -> Vec<String> {
    let reply = rig.send(&get("/v1/secrets").key(&rig.key)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(!reply.text().contains("canary"), "{}", reply.text());
    let reply = reply.json();
    let entries = reply["data"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the body of a start that uses the secret `token`.
fn with_secret() -> Value {
    let mut body = order();
    body["state"] =
        json!({ "headers": [{ "name": "X-Token", "value": "Bearer {{secret.token}}" }] });
    body["steps"] = json!([{ "type": "fill", "selector": "#a", "value": "{{secret.token}}" }]);
    body
}

/// Requests a job like an agent of this version, which confirms nothing.
async fn lease(rig: &Rig, agent: &Agent, masks_secrets: bool) -> Value {
    let request = json!({
        "agent": agent.announcement(), "slot": 0, "waitMs": 0, "seedsState": true, "runsSteps": true,
        "masksSecrets": masks_secrets,
    });
    agent.exchange(rig, "lease", &request).await["job"].clone()
}

#[track_caller]
fn assert_refused(reply: &Reply, status: u16, code: &str, reason: &str) {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert!(!reply.text().contains("canary"), "{}", reply.text());
    let body = reply.whole_json();
    assert_eq!(body["code"], code, "{body}");
    let text = body["reason"].as_str().unwrap();
    assert!(text.contains(reason), "{body}");
}

#[tokio::test]
async fn a_secret_is_stored_replaced_listed_and_deleted_and_never_returned() {
    let rig = Rig::new().await;
    assert_eq!(names(&rig).await, Vec::<String>::new());
    for name in ["token", "other.1-A_b", "token"] {
        let reply = store_secret(&rig, name, &json!(CANARY)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.json()["data"], json!({ "name": name }));
    }
    assert_eq!(names(&rig).await, ["other.1-A_b", "token"]);
    assert_eq!(delete(&rig, "token").await.status, 200);
    assert_eq!(delete(&rig, "token").await.status, 404);
    assert_eq!(names(&rig).await, ["other.1-A_b"]);
    // There is no operation that reads a value.
    let reply = rig
        .send(&get("/v1/secrets/other.1-A_b").key(&rig.key))
        .await;
    assert_eq!(reply.status, 405);
}

#[tokio::test]
async fn the_database_has_no_value() {
    let rig = Rig::new().await;
    store_secret(&rig, "token", &json!(CANARY)).await;
    rig.start_with(&with_secret()).await;
    let database = rig.second_connection();
    let sealed: Vec<u8> = database
        .query_row("SELECT sealed FROM stored_secrets", [], |row| row.get(0))
        .unwrap();
    assert!(!String::from_utf8_lossy(&sealed).contains("canary"));
    let options: String = database
        .query_row("SELECT options FROM audits", [], |row| row.get(0))
        .unwrap();
    assert!(options.contains("Bearer {{secret.token}}"), "{options}");
    assert!(!options.contains("canary"), "{options}");
}

#[tokio::test]
async fn invalid_names_and_values_are_refused_without_quoting_them() {
    let rig = Rig::new().await;
    for value in [
        json!("canary"),
        json!("canary".repeat(3000)),
        json!(["canary-secret"]),
        json!({ "canary": 1 }),
        json!(null),
        json!(4_815_162_342_u64),
    ] {
        let reply = store_secret(&rig, "token", &value).await;
        assert_refused(&reply, 406, "INVALID_SECRET", "The value");
        assert!(!reply.text().contains("4815"), "{}", reply.text());
    }
    for body in ["{}", "[]", "\"canary\"", "{\"value\":\"canary-secret\""] {
        let request = put("/v1/secrets/token", body).key(&rig.key).json();
        let reply = rig.send(&request).await;
        assert_eq!(reply.status, 400, "{body}");
        assert!(!reply.text().contains("canary"), "{}", reply.text());
    }
    for name in ["a%20b", "%C3%A4", "a%2Fb", &"a".repeat(65)] {
        let reply = store_secret(&rig, name, &json!(CANARY)).await;
        assert_eq!(reply.status, 404, "{name}");
    }
    assert_eq!(names(&rig).await, Vec::<String>::new());
    let reply = rig.send(&get("/v1/secrets")).await;
    assert_eq!(reply.status, 401);
}

#[tokio::test]
async fn an_account_has_at_most_a_hundred_secrets() {
    let rig = Rig::new().await;
    for n in 0..100 {
        let reply = store_secret(&rig, &format!("s{n}"), &json!(CANARY)).await;
        assert_eq!(reply.status, 200);
    }
    let reply = store_secret(&rig, "one-more", &json!(CANARY)).await;
    assert_refused(&reply, 406, "INVALID_SECRET", "at most 100");
    let reply = store_secret(&rig, "s7", &json!(CANARY)).await;
    assert_eq!(reply.status, 200, "replaces one");
}

#[tokio::test]
async fn an_agent_gets_the_values_and_lists_them_to_be_masked() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    store_secret(&rig, "token", &json!(CANARY)).await;
    rig.start_with(&with_secret()).await;
    let job = lease(&rig, &agent, true).await;
    let options = &job["options"];
    let header = &options["state"]["headers"][0]["value"];
    assert_eq!(header, "Bearer canary-secret", "{job}");
    assert_eq!(options["steps"][0]["value"], CANARY);
    assert_eq!(options["secrets"], json!([CANARY]));
    // A value that was replaced meanwhile is the one that counts.
    store_secret(&rig, "token", &json!("canary-newer")).await;
    let job = lease(&rig, &agent, true).await;
    assert_eq!(job["options"]["secrets"], json!(["canary-newer"]));
}

#[tokio::test]
async fn an_agent_that_would_not_mask_the_values_gets_none() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    store_secret(&rig, "token", &json!(CANARY)).await;
    rig.start_with(&with_secret()).await;
    let job = lease(&rig, &agent, false).await;
    assert_eq!(job["exhausted"], true, "{job}");
    assert!(!job.to_string().contains("canary"), "{job}");
}

#[tokio::test]
async fn a_start_with_a_secret_that_cannot_be_used_is_refused() {
    let rig = Rig::new().await;
    let reply = rig.send(&start(&rig.key, &with_secret())).await;
    assert_refused(&reply, 406, "UNKNOWN_SECRET", "`token`");
    let batch = json!({
        "urls": ["https://example.com/a", "https://example.com/b"], "devices": ["mobile"],
        "locations": ["eu"], "networks": ["cable"], "steps": with_secret()["steps"],
    });
    let request = post("/v1/batches", batch.to_string()).key(&rig.key).json();
    assert_refused(&rig.send(&request).await, 406, "UNKNOWN_SECRET", "`token`");

    store_secret(&rig, "token", &json!("canary-\n-line")).await;
    let reply = rig.send(&start(&rig.key, &with_secret())).await;
    assert_refused(&reply, 406, "INVALID_STATE", "The value of a header");
    // Secrets of another account are unknown.
    let other = rig.new_account(5).await;
    let key = rig.new_key(&other, None).await;
    let reply = rig.send(&start(&key, &with_secret())).await;
    assert_refused(&reply, 406, "UNKNOWN_SECRET", "`token`");

    let mut misplaced = order();
    misplaced["expect"] = json!({ "text": "{{secret.token}}" });
    let reply = rig.send(&start(&rig.key, &misplaced)).await;
    assert_refused(
        &reply,
        406,
        "INVALID_EXPECTATION",
        "Secrets can only be used",
    );
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn a_repeated_start_has_its_first_reply_although_its_secret_was_deleted() {
    let rig = Rig::new().await;
    store_secret(&rig, "token", &json!(CANARY)).await;
    let keyed = |body: &Value| start(&rig.key, body).header("Idempotency-Key", "k");
    let first = rig.send(&keyed(&with_secret())).await;
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(delete(&rig, "token").await.status, 200);
    rig.check(keyed(&with_secret()), 200, first.json()).await;
    let mut other = with_secret();
    other["device"] = json!("desktop");
    let reply = rig.send(&keyed(&other)).await;
    assert_eq!(reply.status, 409, "{}", reply.text());
    let new = start(&rig.key, &with_secret()).header("Idempotency-Key", "new");
    let reply = rig.send(&new).await;
    assert_refused(&reply, 406, "UNKNOWN_SECRET", "`token`");
    assert_eq!(rig.credits().await, 99);
}

#[tokio::test]
async fn an_audit_whose_secret_was_deleted_must_be_failed_by_the_agent() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    store_secret(&rig, "token", &json!(CANARY)).await;
    rig.start_with(&with_secret()).await;
    assert_eq!(delete(&rig, "token").await.status, 200);
    let job = lease(&rig, &agent, true).await;
    let reason = job["preconditionFailure"].as_str().unwrap();
    assert!(reason.contains("no secret with the name `token`"), "{job}");
    assert_eq!(job["exhausted"], false);
}

#[tokio::test]
async fn a_server_without_a_key_refuses_secrets_and_names_the_flag() {
    let rig = Rig::with(|app| app.vault = None).await;
    for reply in [
        store_secret(&rig, "token", &json!(CANARY)).await,
        rig.send(&get("/v1/secrets").key(&rig.key)).await,
        rig.send(&start(&rig.key, &with_secret())).await,
    ] {
        assert_refused(&reply, 503, "SECRETS_UNAVAILABLE", "--secrets-key");
    }
    // Starts without secrets are not affected.
    rig.start().await;
}

#[tokio::test]
async fn a_value_that_cannot_be_opened_is_an_error_and_never_another_value() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    store_secret(&rig, "token", &json!(CANARY)).await;
    store_secret(&rig, "other", &json!("canary-other")).await;
    rig.start_with(&with_secret()).await;
    // The sealed value of one secret is not valid as that of another.
    let sql = "UPDATE stored_secrets SET sealed = (SELECT sealed FROM stored_secrets WHERE name = 'other')";
    rig.second_connection().execute(sql, []).unwrap();
    let reply = rig.send(&start(&rig.key, &with_secret())).await;
    assert_refused(
        &reply,
        503,
        "SECRETS_UNAVAILABLE",
        "`token` was stored with another key",
    );
    // Three times a fault, then the audit is given up.
    let job = lease(&rig, &agent, true).await;
    assert_eq!(job["exhausted"], true, "{job}");
    assert!(!job.to_string().contains("canary"), "{job}");
}

#[tokio::test]
async fn a_server_without_the_key_gives_no_agent_a_job_with_placeholders() {
    let rig = Rig::with_dispatcher(|parts| parts.vault = None).await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    store_secret(&rig, "token", &json!(CANARY)).await;
    rig.start_with(&with_secret()).await;
    let job = lease(&rig, &agent, true).await;
    assert_eq!(job["exhausted"], true, "{job}");
}
