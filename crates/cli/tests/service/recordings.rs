//! Tests of recordings: made, replayed, changed, and audited on several networks.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::client::Client;
use crate::pages;
use crate::server::{Server, completed, create_key, plumbline};

fn run(args: &[&str]) -> Output {
    plumbline().args(args).output().unwrap()
}

/// Serves the pages and counts the requests.
fn counted_site() -> (String, Arc<AtomicUsize>) {
    let requests = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&requests);
    let address = pages::serve_after(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    (format!("http://{address}"), requests)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns the answer for a figure of a comparison in JSON.
fn answer(output: &Output, name: &str) -> String {
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figures = result["figures"].as_array().unwrap();
    let figure = figures.iter().find(|figure| figure["name"] == name);
    figure.unwrap()["answer"].as_str().unwrap().to_owned()
}

#[test]
fn a_recording_is_replayed_changed_and_converted_without_its_server() {
    let (site, requests) = counted_site();
    let dir = tempfile::tempdir().unwrap();
    let [recording, har] = ["page.recording", "page.har"].map(|name| dir.path().join(name));
    let url = format!("{site}/stylesheets");
    let args = ["--device", "desktop", "--network", "normal3gSlow"];
    let record = [&["record", &url, "-o", text(&recording)], &args[..]].concat();
    let output = run(&record);
    assert!(output.status.success(), "{output:?}");
    let recorded = requests.load(Ordering::Relaxed);

    let convert = [
        "convert-recording",
        text(&recording),
        text(&har),
        "--redact",
    ];
    let output = run(&convert);
    assert!(output.status.success(), "{output:?}");
    let converted: Value = serde_json::from_slice(&std::fs::read(&har).unwrap()).unwrap();
    let entries = converted["log"]["entries"].as_array().unwrap();
    assert!(entries.len() >= 5, "{converted}");

    // The style sheets of the page block its first paint, which the report advises against.
    let check = ["--check", "render-blocking-insight", "--quick"];
    let experiment = ["experiment", text(&har), "--max-pairs", "4"];
    let options = ["--output", "json", "--fail-if-slower"];
    let output = run(&[&experiment[..], &check, &options, &args].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(answer(&output, "fcp"), "faster");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    for replay in result["replays"].as_array().unwrap() {
        assert!(replay["recordedAt"].is_string(), "{replay}");
        assert_eq!(replay["missingRequests"], 0, "{replay}");
    }

    let nothing = json!({ "type": "block", "pattern": "nowhere.example" }).to_string();
    let output = run(&["experiment", text(&recording), "--change", &nothing]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(requests.load(Ordering::Relaxed), recorded);
}

#[test]
fn a_server_audits_a_recording_on_several_networks() {
    let (site, requests) = counted_site();
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 3);
    let server = Server::start(data.path(), &["--allow-target", "127.0.0.1"]);
    let client = Client {
        address: server.address,
        key,
    };
    let start = json!({
        "url": format!("{site}/rich"), "device": "desktop", "network": "wifiFast",
        "location": "us-tx", "record": true, "quick": true,
    });
    let started = client.post("/v1/audit/start", &start);
    let recorded = completed(&client, started.json["trackingId"].as_str().unwrap());
    let audit_id = recorded["auditId"].as_str().unwrap();
    let requested = requests.load(Ordering::Relaxed);

    let body = json!({ "devices": ["desktop"], "networks": ["cable", "normal4g"] });
    let matrix = client.post(&format!("/v1/audits/{audit_id}/matrix"), &body);
    assert_eq!(matrix.status, 200, "{matrix:?}");
    let batch = format!(
        "/v1/batches/{}",
        matrix.json["data"]["batchId"].as_str().unwrap()
    );
    for audit in client.get(&batch).json["data"]["audits"]
        .as_array()
        .unwrap()
    {
        completed(&client, audit["trackingId"].as_str().unwrap());
    }
    let batch = client.get(&batch).json;
    for audit in batch["data"]["audits"].as_array().unwrap() {
        assert!(audit["labData"]["performance"].is_number(), "{batch}");
    }
    assert_eq!(requests.load(Ordering::Relaxed), requested);
    assert_eq!(server.stop(), Some(0));
}
