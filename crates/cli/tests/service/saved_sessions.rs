//! Saved sessions in real audits of a site with a login: made once, used by many audits, made again
//! when they have ended, and found in nothing that the service writes and returns.

use std::fs::File;
use std::path::Path;

use plumbline_bundle::Bundle;
use serde_json::{Value, json};

use crate::client::Client;
use crate::login_site::{CANARY, LoginSite};
use crate::secrets::{assert_no_canary, search_answers, search_evidence, search_files};
use crate::server::{Server, completed, create_key, credits};

fn definition(site: &LoginSite) -> Value {
    json!({
        "name": "site", "url": site.url("/login"),
        "steps": [
            { "type": "fill", "selector": "#name", "value": "ada" },
            { "type": "fill", "selector": "#password", "value": "{{secret.password}}" },
            { "type": "click", "selector": "#submit" },
        ],
        "expect": { "selector": "#account" },
    })
}

/// Audits the account page with the session, and returns the status.
fn audit(client: &Client, site: &LoginSite) -> Value {
    let start = json!({
        "url": site.url("/account"), "device": "desktop", "network": "wifiFast", "location": "us-tx",
        "quick": true, "session": "site",
    });
    let started = client.post("/v1/audit/start", &start).json;
    completed(client, started["trackingId"].as_str().unwrap())
}

fn made_at(client: &Client) -> Value {
    client.get("/v1/sessions").json["data"][0]["madeAt"].clone()
}

/// Returns the bytes that the requests of a visit transferred.
fn transferred_bytes(data: &Path, audit_id: &str) -> f64 {
    let packed = std::fs::read(data.join(format!("bundles/{audit_id}-1.gz"))).unwrap();
    let bundle = Bundle::unpack(&packed).unwrap();
    let events: Vec<Value> = serde_json::from_slice(&bundle.log).unwrap();
    let ends = events
        .iter()
        .filter(|event| event["method"] == "Network.loadingFinished");
    ends.map(|event| event["params"]["encodedDataLength"].as_f64().unwrap())
        .sum()
}

#[test]
fn a_session_is_made_once_and_again_when_it_has_ended_and_is_nowhere() {
    let (data, site) = (tempfile::tempdir().unwrap(), LoginSite::start());
    let key = create_key(data.path(), 9);
    let logs = tempfile::tempdir().unwrap();
    let log = File::create(logs.path().join("log")).unwrap();
    let server = Server::start_logged(data.path(), &["--allow-target", "127.0.0.1"], log);
    let client = Client {
        address: server.address,
        key: key.clone(),
    };
    let password = json!({ "value": LoginSite::password() });
    assert_eq!(client.put("/v1/secrets/password", &password).status, 200);
    let defined = client.post("/v1/sessions", &definition(&site));
    assert_eq!(defined.status, 200, "{defined:?}");

    // The first audit signs in, the second uses the state, the third signs in again.
    let mut audit_ids = Vec::new();
    let mut times = Vec::new();
    for (logins, expires) in [(1, false), (1, false), (2, true)] {
        if expires {
            site.expire_sessions();
        }
        let status = audit(&client, &site);
        assert!(status["error"].is_null(), "{status}");
        assert_eq!(site.count("POST /login"), logins);
        let tracking_id = status["trackingId"].as_str().unwrap();
        let audit_id = status["auditId"].as_str().unwrap().to_owned();
        search_answers(&client, tracking_id, &audit_id);
        audit_ids.push(audit_id);
        times.push(made_at(&client));
    }
    assert_eq!(times[0], times[1], "the state was used");
    assert_ne!(times[1], times[2], "the state was made again");
    // The visit after a login is as cold as one without: both load all files.
    assert_eq!(site.count("GET /style.css"), 3 + site.count("GET /login"));
    let bytes: Vec<f64> = audit_ids
        .iter()
        .map(|id| transferred_bytes(data.path(), id))
        .collect();
    assert!(bytes[0] > 20_000.0, "{bytes:?}");
    assert!(
        bytes.iter().all(|it| (it - bytes[0]).abs() < 200.0),
        "{bytes:?}"
    );

    // A wrong password after the session has ended: one attempt, and the credit comes back.
    let left = credits(data.path(), &key);
    let wrong = json!({ "value": format!("wrong {CANARY}") });
    client.put("/v1/secrets/password", &wrong);
    site.expire_sessions();
    let status = audit(&client, &site);
    assert_eq!(status["error"]["code"], "PRECONDITION_FAILED", "{status}");
    assert_no_canary("status", status.to_string().as_bytes());
    assert_eq!(site.count("POST /login"), 3);
    assert_eq!(credits(data.path(), &key), left);

    let listed = client.get("/v1/sessions").json;
    assert_no_canary("list", listed.to_string().as_bytes());
    assert_eq!(server.stop(), Some(0));
    for audit_id in audit_ids {
        search_evidence(data.path(), &audit_id);
    }
    search_files(data.path());
    search_files(logs.path());
}

#[test]
fn a_step_of_a_session_that_fails_ends_the_audit_and_names_the_session() {
    let (data, site) = (tempfile::tempdir().unwrap(), LoginSite::start());
    let key = create_key(data.path(), 1);
    let server = Server::start(data.path(), &["--allow-target", "127.0.0.1"]);
    let client = Client {
        address: server.address,
        key: key.clone(),
    };
    let mut definition = definition(&site);
    definition["steps"] = json!([{ "type": "click", "selector": "#none", "timeout": 500 }]);
    client.post("/v1/sessions", &definition);
    let status = audit(&client, &site);
    assert_eq!(status["error"]["code"], "PRECONDITION_FAILED", "{status}");
    let message = status["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("session `site`") && message.contains("Step 1 of 1"),
        "{message}"
    );
    assert_eq!(credits(data.path(), &key), 1);
    assert!(made_at(&client).is_null());
}
