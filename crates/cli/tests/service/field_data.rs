//! Tests of field data, with a fake API that responds correctly, wrongly or not at all.

use std::process::Output;

use serde_json::{Value, json};

use crate::client::Client;
use crate::crux::{Crux, KEY, Reply, found, missing};
use crate::pages;
use crate::server::{Server, completed, create_key, plumbline};

fn audit(url: &str, more: &[String]) -> Output {
    plumbline()
        .args(["audit", url, "--network", "wifiFast"])
        .args(["--json", "--quick"])
        .args(more)
        .output()
        .unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Runs an audit and returns its data and its whole report.
fn audited(client: &Client, url: &str) -> (Value, Value) {
    let started = client.start(url);
    let status = completed(client, started.json["trackingId"].as_str().unwrap());
    let id = status["auditId"].as_str().unwrap();
    let mut data = client.get(&format!("/v1/audit/data/{id}")).json;
    let mut whole = client.get(&format!("/v1/audit/report/{id}")).json;
    (data["data"].take(), whole["data"]["report"].take())
}

fn only_origins(path: &str, query: &Value) -> Reply {
    if query["origin"].is_string() {
        found(path, query)
    } else {
        missing()
    }
}

#[test]
fn an_audit_contains_field_data_and_its_source() {
    let crux = Crux::start(only_origins);
    let site = pages::serve_after(crux.after_responses(2));
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 3);
    let flags = crux.flags();
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.extend(["--allow-target", "127.0.0.1"]);
    let server = Server::start(data.path(), &flags);
    let client = Client {
        address: server.address,
        key,
    };
    let url = format!("http://{site}/?token=secret");
    let (data, whole) = audited(&client, &url);
    assert_eq!(
        data["fieldData"],
        json!({ "fcp": 1801, "lcp": 2504, "fid": null, "cls": 0.05, "inp": 190, "ttfb": 812,
                "percentile": 75 }),
        "{data}"
    );
    assert_eq!(data["fieldDataSource"]["record"], "origin");
    assert_eq!(data["fieldDataSource"]["formFactor"], "desktop");
    let period = json!({ "firstDate": "2026-10-11", "lastDate": "2026-11-11" });
    assert_eq!(data["fieldDataSource"]["collectionPeriod"], period);
    assert_eq!(data.get("fieldDataReason"), None);
    assert_eq!(whole["fieldData"]["metrics"]["lcp"]["shares"]["good"], 0.7);
    let path = format!("/v1/records:queryRecord?key={KEY}");
    let request = |subject: &str, value: String| {
        (
            path.clone(),
            json!({ subject: value, "formFactor": "DESKTOP" }),
        )
    };
    let expected = [
        request("url", format!("http://{site}/")),
        request("origin", format!("http://{site}")),
    ];
    assert_eq!(crux.requests(), expected);

    let (again, _) = audited(&client, &url);
    assert_eq!(again["fieldData"], data["fieldData"]);
    assert_eq!(
        crux.requests().len(),
        2,
        "cached records are not requested again"
    );
    let figures = client.get_text("/metrics");
    for line in [
        "plumbline_field_questions_total{outcome=\"cached\"} 2",
        "plumbline_field_questions_total{outcome=\"found\"} 1",
        "plumbline_field_questions_total{outcome=\"not_in_dataset\"} 1",
    ] {
        assert!(figures.lines().any(|other| other == line), "{figures}");
    }
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_redirected_url_has_the_field_data_of_its_target() {
    let crux = Crux::start(found);
    // Nothing is painted before the API has responded twice: for the requested URL and for its
    // target.
    let site = pages::serve_and_paint_after(crux.after_responses(2));
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 1);
    let flags = crux.flags();
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.extend(["--allow-target", "127.0.0.1"]);
    let server = Server::start(data.path(), &flags);
    let client = Client {
        address: server.address,
        key,
    };
    let (data, whole) = audited(&client, &format!("http://{site}/old"));
    assert_eq!(whole["finalUrl"], format!("http://{site}/rich"));
    assert_eq!(whole["fieldData"]["subject"], format!("http://{site}/rich"));
    assert_eq!(data["fieldDataSource"]["record"], "url");
    let requests = crux.requests();
    let mut urls: Vec<_> = requests
        .iter()
        .map(|(_, body)| body["url"].to_string())
        .collect();
    urls.sort();
    let expected = ["old", "rich"].map(|page| format!("\"http://{site}/{page}\""));
    assert_eq!(urls, expected);
}

#[test]
fn an_audit_does_not_wait_for_the_api_after_its_visit() {
    let crux = Crux::start(|_, _| Reply::Silence);
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 1);
    let flags = crux.flags();
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.extend(["--allow-target", "127.0.0.1"]);
    let server = Server::start(data.path(), &flags);
    let client = Client {
        address: server.address,
        key,
    };
    // The page responds after the API was requested, and the API only after the audit.
    let site = pages::serve_after(crux.after_requests(1));
    let (data, whole) = audited(&client, &format!("http://{site}/"));
    assert_eq!(crux.responses(), 0, "there is no response yet");
    assert!(data["labData"]["fcp"].is_number(), "{data}");
    assert_eq!(data["fieldData"], Value::Null);
    assert_eq!(data["fieldDataReason"], "TIMED_OUT");
    assert_eq!(whole["fieldDataReason"], "TIMED_OUT");
    crux.release();
}

#[test]
fn an_audit_succeeds_if_the_api_fails() {
    let huge = || format!("{{\"record\":\"{}\"}}", "x".repeat(3_000_000));
    let reply = |status, headers, body| Reply::Response {
        status,
        headers,
        body,
    };
    type Behaviour = Box<dyn Fn(&str, &Value) -> Reply + Send + Sync>;
    // The client's own tests have the other failures.
    let failures: [(Behaviour, &str); 3] = [
        (
            Box::new(move |_, _| reply(429, "Retry-After: 3600\r\n", String::new())),
            "QUOTA",
        ),
        (Box::new(move |_, _| reply(200, "", huge())), "BAD_ANSWER"),
        (Box::new(|_, _| missing()), "NOT_IN_DATASET"),
    ];
    for (behaviour, reason) in failures {
        let crux = Crux::start(behaviour);
        let responses = if reason == "NOT_IN_DATASET" { 2 } else { 1 };
        let site = pages::serve_after(crux.after_responses(responses));
        let output = audit(&format!("http://{site}/"), &crux.flags());
        assert_eq!(output.status.code(), Some(0), "{reason}: {output:?}");
        let report = report(&output);
        assert!(report["metrics"]["fcp"]["value"].is_number(), "{reason}");
        assert_eq!(report["fieldDataReason"], reason);
        assert_eq!(report.get("fieldData"), None);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains(KEY), "{stderr}");
    }
}

#[test]
fn judge_requests_no_field_data_and_adds_none() {
    let crux = Crux::start(found);
    let site = pages::serve_after(crux.after_responses(1));
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bundle.gz").display().to_string();
    let mut flags = crux.flags();
    flags.extend(["--bundle".to_owned(), bundle.clone()]);
    let audited = report(&audit(&format!("http://{site}/"), &flags));
    assert_eq!(audited["fieldData"]["record"], "url", "{audited}");
    assert_eq!(audited["fieldData"]["formFactor"], "phone");
    let judge = || {
        let output = plumbline().args(["judge", &bundle]).output().unwrap();
        output.stdout
    };
    let judged: Value = serde_json::from_slice(&judge()).unwrap();
    assert_eq!(judge(), judge());
    assert_eq!(judged.get("fieldData"), None);
    assert_eq!(judged.get("fieldDataReason"), None);
    assert_eq!(judged["scores"], audited["scores"]);
    assert_eq!(crux.requests().len(), 1);
}

#[test]
fn nothing_is_sent_without_a_key_or_for_private_targets() {
    let crux = Crux::start(found);
    let url = format!("http://{}/", pages::unused_address());
    let base = format!("http://{}", crux.address);
    for (flags, reason) in [
        (vec!["--crux-target", "127.0.0.1"], "NO_KEY"),
        (vec!["--crux-key", KEY], "NOT_PUBLIC"),
        (
            vec!["--crux-key", KEY, "--allow-target", "127.0.0.1"],
            "NOT_PUBLIC",
        ),
    ] {
        let flags = ["--crux-url", &base].into_iter().chain(flags);
        let flags: Vec<String> = flags.map(str::to_owned).collect();
        let report = report(&audit(&url, &flags));
        assert_eq!(report["error"]["code"], "CONNECTION_FAILED");
        assert_eq!(report["fieldDataReason"], reason);
    }
    assert_eq!(crux.requests(), []);
}

#[test]
fn an_invalid_setting_is_named_and_a_key_is_not_shown() {
    for (flags, expected) in [
        (
            ["--crux-key", "two words"],
            "--crux-key: an API key is one word",
        ),
        (["--crux-url", "nowhere"], "--crux-url: `nowhere`"),
        (["--crux-url", "ftp://a/"], "--crux-url: `ftp://a/`"),
        (["--crux-target", "a b"], "--crux-target:"),
    ] {
        let flags: Vec<String> = flags.map(str::to_owned).to_vec();
        let output = audit("http://example.com/", &flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(expected), "{stderr}");
        assert!(!stderr.contains("two words"), "{stderr}");
    }
}
