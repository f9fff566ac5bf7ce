//! Tests of operation: administration, retention, webhooks, several runs.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use plumbline_store::{
    FileBlobs, FinishedAudit, LeaseScope, SqliteStore, Store, Submission, Timestamp,
};
use serde_json::{Value, json};

use crate::client::Client;
use crate::pages;
use crate::server::{Server, completed, create_key, credits, plumbline};

fn run(data: &Path, args: &[&str]) -> String {
    let output = plumbline()
        .args(args)
        .arg("--data")
        .arg(data)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn operator_commands_work_while_a_server_is_running() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 5);
    let server = Server::start(data.path(), &["--slots", "0"]);
    let client = Client {
        address: server.address,
        key: key.clone(),
    };
    let started = client.start("https://example.com/");
    let tracking_id = started.json["trackingId"].as_str().unwrap();
    let accounts = run(data.path(), &["admin", "accounts"]);
    let line = accounts.lines().nth(1).unwrap();
    let columns: Vec<_> = line.split_whitespace().collect();
    assert_eq!(columns[1..6], ["default", "4", "1", "1", "1"], "{accounts}");
    let queue = run(data.path(), &["admin", "queue"]);
    assert!(queue.starts_with("1 waiting, 0 running\n"), "{queue}");
    assert!(queue.contains(tracking_id), "{queue}");
    let account = columns[0];
    let added = run(data.path(), &["admin", "credits", "add", account, "6"]);
    assert!(added.contains("has 10 credits"), "{added}");
    let listed = run(data.path(), &["admin", "keys", "list"]);
    assert!(listed.contains(key.split('_').nth(1).unwrap()), "{listed}");

    let secret = client.get("/v1/webhook-secret").json["data"]["secret"].clone();
    let shown = run(data.path(), &["admin", "webhook-secret", account]);
    assert_eq!(shown.trim(), secret);
    let rotated = run(
        data.path(),
        &["admin", "webhook-secret", account, "--rotate"],
    );
    assert_ne!(rotated, shown);
    let now = client.get("/v1/webhook-secret").json["data"]["secret"].clone();
    assert_eq!(rotated.trim(), now);
    assert_eq!(server.stop(), Some(0));
}

/// Stores finished audits with evidence of these ages and returns their ids.
#[test]
fn a_server_prints_how_it_is_set_up_and_logs_no_refusals_of_its_self_check() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 5);
    let log = data.path().join("log");
    let mut child = plumbline()
        .args(["serve", "--listen", "127.0.0.1:0", "--slots", "1", "--data"])
        .arg(data.path())
        .args(["--allow-target", "127.0.0.1"])
        .stdout(Stdio::piped())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let lines: Vec<String> = lines.take(4).map(Result::unwrap).collect();
    let path = data.path().display();
    let create = format!("create a key: plumbline keys create --credits 100 --data {path}");
    assert_eq!(lines[1], create);
    assert_eq!(lines[2], format!("data directory {path}, slots: 1"));
    assert!(
        lines[3].starts_with("sandbox of Chromium: on; network: "),
        "{lines:?}"
    );
    let address = lines[0].strip_prefix("listening on http://").unwrap();
    let client = Client {
        address: address.parse().unwrap(),
        key,
    };
    // An audit begins after the self-check.
    let started = client.start(&format!("http://{}/", pages::unused_address()));
    completed(&client, started.json["trackingId"].as_str().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("audit started"), "{log}");
    assert!(!log.contains("refused by the guard"), "{log}");
}

fn fill(data: &Path, ages: &[Duration]) -> Vec<String> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bundles = FileBlobs::open(&data.join("bundles")).unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let mut ids = Vec::new();
    runtime.block_on(async {
        let store = SqliteStore::open(&data.join("plumbline.db")).unwrap();
        let account = store.accounts().await.unwrap().remove(0).account;
        for (n, age) in ages.iter().enumerate() {
            let at = Timestamp(0).plus(now - *age);
            let audit = plumbline_store::NewAudit {
                account_id: account.id.clone(),
                tracking_id: format!("trk_{n}"),
                audit_id: format!("aud_{n}"),
                order: plumbline_store::Order {
                    url: "https://example.com/".to_owned(),
                    device: "mobile".to_owned(),
                    network: "cable".to_owned(),
                    location: "eu".to_owned(),
                    options: plumbline_store::VisitOptions::default(),
                },
                options: plumbline_store::AuditOptions::default(),
                accepted_at: at,
            };
            store.submit(Submission::single(audit)).await.unwrap();
            let lease = store
                .lease(
                    &LeaseScope::any_location("test"),
                    at,
                    Duration::from_secs(9),
                )
                .await;
            let lease = lease.unwrap().unwrap();
            let finished = FinishedAudit {
                report: "{}".to_owned(),
                error: None,
                finished_at: at,
                summary: None,
            };
            store.finish(&lease, finished).await.unwrap();
            // The current and the former name of the file.
            for name in [format!("{}-1", lease.audit_id), lease.audit_id.clone()] {
                bundles.put(&name, b"evidence").unwrap();
            }
            ids.push(lease.audit_id);
        }
    });
    ids
}

#[test]
fn old_audits_are_deleted_by_the_server_and_by_command() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 9);
    let ids = fill(data.path(), &[DAY * 40, DAY * 5, DAY * 4, DAY]);
    let bundles = FileBlobs::open(&data.path().join("bundles")).unwrap();
    let has_any = |names: &[String]| names.iter().any(|n| bundles.get(n).unwrap().is_some());
    let has = |n: usize| has_any(&[ids[n].clone(), format!("{}-1", ids[n])]);
    assert_eq!(
        run(
            data.path(),
            &["admin", "retention", "--keep-audits-per-account", "3"]
        ),
        "1 audits deleted\n"
    );
    assert_eq!([has(0), has(1), has(2), has(3)], [false, true, true, true]);

    let server = Server::start(data.path(), &["--slots", "0", "--keep-audits-days", "2"]);
    let client = Client {
        address: server.address,
        key,
    };
    // The server deletes old audits after its start, while it is serving.
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        let listed = client.get("/v1/audits").json;
        if listed["data"].as_array().unwrap().len() == 1 {
            assert_eq!(listed["data"][0]["auditId"], ids[3]);
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{listed}");
        thread::yield_now();
    }
    while has(1) || has(2) {
        assert!(std::time::Instant::now() < deadline);
        thread::yield_now();
    }
    assert!(has(3));
    let nothing = plumbline()
        .args(["admin", "retention", "--data"])
        .arg(data.path())
        .output()
        .unwrap();
    assert_eq!(nothing.status.code(), Some(2), "no limit was given");
    // For `serve`, 0 means that all audits are kept.
    for limit in ["--keep-audits-days", "--keep-audits-per-account"] {
        let none = plumbline()
            .args(["admin", "retention", limit, "0", "--data"])
            .arg(data.path())
            .output()
            .unwrap();
        assert_eq!(none.status.code(), Some(2), "{limit}");
    }
}

/// Starts a webhook receiver that responds 200 and returns the head and body of each request.
fn receiver() -> (SocketAddr, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, requests) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut line) = (String::new(), String::new());
            while reader.read_line(&mut line).unwrap() > 2 {
                head.push_str(&line.to_ascii_lowercase());
                line.clear();
            }
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.trim().parse().unwrap());
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(response.as_bytes()).unwrap();
            let _ = sender.send((head, String::from_utf8(body).unwrap()));
        }
    });
    (address, requests)
}

#[test]
fn several_runs_give_the_median_with_its_spread_and_a_webhook_is_sent() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 5);
    let server = Server::start(data.path(), &["--allow-target", "127.0.0.1"]);
    let client = Client {
        address: server.address,
        key: key.clone(),
    };
    let (webhook, requests) = receiver();
    let started = client.post(
        "/v1/audit/start",
        &json!({
            "url": format!("http://{}/", pages::serve()), "device": "desktop",
            "network": "wifiFast", "location": "us-tx", "runs": 2,
            "webhook": format!("http://{webhook}/hook?a=1"),
        }),
    );
    assert_eq!(started.status, 200, "{started:?}");
    let tracking_id = started.json["trackingId"].as_str().unwrap();
    let status = completed(&client, tracking_id);
    let audit_id = status["auditId"].as_str().unwrap();
    let response = client.get(&format!("/v1/audit/report/{audit_id}"));
    let runs = &response.json["data"]["report"]["runs"];
    assert_eq!(runs["count"], 2, "{runs}");
    let chosen = runs["chosen"].as_u64().unwrap() as usize;
    let fcp = &runs["metrics"]["fcp"];
    let values: Vec<f64> = fcp["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect();
    assert_eq!(values.len(), 2);
    assert!(fcp["min"].as_f64() <= fcp["max"].as_f64());
    assert!(fcp["standardDeviation"].is_number());
    let report = &response.json["data"]["report"];
    assert_eq!(report["metrics"]["fcp"]["value"], values[chosen - 1]);
    assert_eq!(
        runs["scores"]["performance"]["values"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(credits(data.path(), &key), 3);

    let (head, body) = requests.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(head.starts_with("post /hook?a=1 http/1.1\r\n"), "{head}");
    assert!(head.contains("x-plumbline-signature: v1="), "{head}");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["event"], "audit.completed");
    let mut data = body["data"].clone();
    let figures = data.as_object_mut().unwrap().remove("labData").unwrap();
    assert!(figures["performance"].is_number(), "{figures}");
    assert_eq!(data, status);
    let metrics = client.get_text("/metrics");
    assert!(metrics.contains("plumbline_audits_finished_total{outcome=\"measured\"} 1"));
    assert!(metrics.contains("plumbline_webhook_attempts_total{outcome=\"delivered\"} 1"));
    assert!(metrics.contains("plumbline_audit_phase_seconds_count{phase=\"loading\"} 1"));
    assert_eq!(server.stop(), Some(0));
}
