//! Stored secrets in real audits of a site with a login: they work, and they are found in nothing
//! that the service writes and returns.

use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;
use crate::login_site::{CANARY, LoginSite};
use crate::secrets::{assert_no_canary, search_answers, search_evidence, search_files};
use crate::server::{Server, completed, create_key, credits, plumbline};

fn order(site: &LoginSite, path: &str) -> Value {
    json!({
        "url": site.url(path), "device": "desktop", "network": "wifiFast", "location": "us-tx",
        "quick": true, "expect": { "selector": "#account" }, "webhook": site.url("/hook"),
    })
}

/// Returns steps that sign in with a form.
fn steps() -> Value {
    json!([
        { "type": "goto", "url": "/login" },
        { "type": "fill", "selector": "#name", "value": "ada" },
        { "type": "fill", "selector": "#password", "value": "{{secret.password}}" },
        { "type": "click", "selector": "#submit" },
        { "type": "waitFor", "selector": "#account", "timeout": 5000 },
    ])
}

fn webhook(site: &LoginSite, tracking_id: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(body) = site.body_with(tracking_id) {
            return body;
        }
        assert!(Instant::now() < deadline, "no webhook");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn stored_secrets_sign_in_by_form_basic_authentication_and_token_and_are_nowhere() {
    let (data, site) = (tempfile::tempdir().unwrap(), LoginSite::start());
    let key = create_key(data.path(), 9);
    let logs = tempfile::tempdir().unwrap();
    let log = File::create(logs.path().join("log")).unwrap();
    let server = Server::start_logged(data.path(), &["--allow-target", "127.0.0.1"], log);
    let client = Client {
        address: server.address,
        key: key.clone(),
    };
    for (name, value) in [
        ("password", LoginSite::password()),
        ("basic", format!("basic-{CANARY}")),
        ("token", LoginSite::token()),
    ] {
        let stored = client.put(&format!("/v1/secrets/{name}"), &json!({ "value": value }));
        assert_eq!(stored.status, 200, "{stored:?}");
        assert_no_canary(name, stored.json.to_string().as_bytes());
    }
    let listed = client.get("/v1/secrets").json;
    assert_eq!(listed["data"].as_array().unwrap().len(), 3, "{listed}");
    assert_no_canary("list", listed.to_string().as_bytes());

    let mut form = order(&site, "/account");
    form["steps"] = steps();
    let mut basic = order(&site, "/basic");
    basic["state"] = json!({ "basicAuth": { "username": "ada", "password": "{{secret.basic}}" } });
    let mut token = order(&site, "/token");
    token["state"] =
        json!({ "headers": [{ "name": "Authorization", "value": "Bearer {{secret.token}}" }] });
    let mut audit_ids = Vec::new();
    for start in [form, basic, token] {
        let started = client.post("/v1/audit/start", &start).json;
        let tracking_id = started["trackingId"].as_str().unwrap();
        let status = completed(&client, tracking_id);
        assert!(status["error"].is_null(), "{status}");
        assert_no_canary("webhook", webhook(&site, tracking_id).as_bytes());
        let audit_id = status["auditId"].as_str().unwrap().to_owned();
        search_answers(&client, tracking_id, &audit_id);
        audit_ids.push(audit_id);
    }

    // A wrong password: the step that waits for the account fails, and the credit comes back.
    let left = credits(data.path(), &key);
    let wrong = json!({ "value": format!("wrong {CANARY}") });
    client.put("/v1/secrets/password", &wrong);
    let mut start = order(&site, "/account");
    start["steps"] = steps();
    let started = client.post("/v1/audit/start", &start).json;
    let status = completed(&client, started["trackingId"].as_str().unwrap());
    assert_eq!(status["error"]["code"], "PRECONDITION_FAILED", "{status}");
    let message = status["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("Step 5 of 5"), "{message}");
    assert_no_canary("message", message.as_bytes());
    assert_eq!(credits(data.path(), &key), left);

    // Stopping writes the write-ahead log into the file.
    assert_eq!(server.stop(), Some(0));
    for audit_id in audit_ids {
        let bundle = search_evidence(data.path(), &audit_id);
        let log = String::from_utf8(bundle.log).unwrap();
        assert!(log.contains("[redacted]"), "the page repeats its secrets");
    }
    search_files(data.path());
    search_files(logs.path());
}

#[test]
fn an_audit_whose_secret_is_deleted_before_it_begins_fails_and_is_refunded() {
    let (data, site) = (tempfile::tempdir().unwrap(), LoginSite::start());
    let key = create_key(data.path(), 1);
    let client = |server: &Server| Client {
        address: server.address,
        key: key.clone(),
    };
    // Without an agent, the audit waits.
    let server = Server::start(
        data.path(),
        &["--allow-target", "127.0.0.1", "--slots", "0"],
    );
    let value = json!({ "value": LoginSite::password() });
    client(&server).put("/v1/secrets/password", &value);
    let mut start = order(&site, "/account");
    start["steps"] = steps();
    let started = client(&server).post("/v1/audit/start", &start).json;
    assert_eq!(credits(data.path(), &key), 0);
    assert_eq!(client(&server).delete("/v1/secrets/password").status, 200);
    assert_eq!(server.stop(), Some(0));

    let server = Server::start(data.path(), &["--allow-target", "127.0.0.1"]);
    let status = completed(&client(&server), started["trackingId"].as_str().unwrap());
    assert_eq!(status["error"]["code"], "PRECONDITION_FAILED", "{status}");
    let message = status["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("no secret with the name `password`"),
        "{message}"
    );
    assert_eq!(credits(data.path(), &key), 1);
    assert_eq!(site.count("GET /login"), 0);
}

#[test]
fn the_command_reads_secrets_from_the_environment_and_writes_none() {
    let (directory, site) = (tempfile::tempdir().unwrap(), LoginSite::start());
    let file = directory.path().join("steps.json");
    std::fs::write(&file, steps().to_string()).unwrap();
    let url = site.url("/account");
    let audit = |secret: Option<&str>| {
        let mut command = plumbline();
        command.args([
            "audit",
            &url,
            "--network",
            "wifiFast",
            "--device",
            "desktop",
        ]);
        command.args([
            "--quick",
            "--json",
            "--expect-selector",
            "#account",
            "--steps",
        ]);
        command.arg(&file).env_remove("PLUMBLINE_SECRET_PASSWORD");
        command.envs(secret.map(|value| ("PLUMBLINE_SECRET_PASSWORD", value)));
        command.output().unwrap()
    };
    let output = audit(None);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("PLUMBLINE_SECRET_PASSWORD"), "{text}");
    let output = audit(Some(&LoginSite::password()));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_no_canary("output", &output.stdout);
    assert_eq!(site.count("POST /login"), 1);
}
