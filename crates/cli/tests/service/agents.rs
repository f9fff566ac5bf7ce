//! Tests of `plumbline agent` with `plumbline serve`, and of killed and frozen agents.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::client::Client;
use crate::pages;
use crate::server::{Server, completed, create_key, credits, plumbline};

/// Short enough to wait for, long enough that a busy machine does not miss heartbeats.
const LEASE_SECONDS: &str = "10";

struct Agent {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Agent {
    /// Starts an agent at the location of [`Client::start`].
    fn start(server: &Server, token: &str) -> Self {
        let mut child = Self::command(server, token)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child, log }
    }

    fn command(server: &Server, token: &str) -> Command {
        let mut command = plumbline();
        command
            .args(["agent", "--location", "us-tx", "--slots", "1"])
            .args(["--allow-target", "127.0.0.1", "--server"])
            .arg(format!("http://{}", server.address))
            .env("PLUMBLINE_AGENT_TOKEN", token);
        command
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads the log up to a line that contains this text.
    fn wait_for_log(&mut self, text: &str) -> String {
        let mut log = String::new();
        loop {
            let read = self.log.read_line(&mut log).unwrap();
            assert!(read > 0, "it ended without logging `{text}`: {log}");
            if log.lines().last().unwrap().contains(text) {
                return log;
            }
        }
    }

    fn exit_code(mut self) -> Option<i32> {
        // The pipe of its log must not fill up.
        std::io::copy(&mut self.log, &mut std::io::sink()).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // A failed test must not leave an agent running, not even a frozen one.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn admin(data: &Path, args: &[&str]) -> String {
    let output = plumbline()
        .args(["admin", "agents"])
        .args(args)
        .arg("--data")
        .arg(data)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn add_agent(data: &Path, name: &str) -> String {
    let bounds = ["--location", "us-tx", "--slots", "1"];
    admin(data, &[&["add", name], &bounds[..]].concat())
        .lines()
        .last()
        .unwrap()
        .to_owned()
}

fn client(server: &Server, key: &str) -> Client {
    Client {
        address: server.address,
        key: key.to_owned(),
    }
}

/// Waits until an audit is in progress.
fn until_in_progress(client: &Client, tracking_id: &str) {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let response = client.get(&format!("/v1/audit/status/{tracking_id}"));
        if response.json["data"]["status"] == "in-progress" {
            return;
        }
        assert!(Instant::now() < deadline, "{response:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_remote_agent_runs_the_audits_of_a_server_without_an_agent() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 3);
    let server = Server::start(
        data.path(),
        &["--slots", "0", "--allow-target", "127.0.0.1"],
    );
    let client = client(&server, &key);
    let token = add_agent(data.path(), "dallas-1");
    let agent = Agent::start(&server, &token);
    let started = client.start(&format!("http://{}/", pages::serve()));
    let tracking_id = started.json["trackingId"].as_str().unwrap();
    let status = completed(&client, tracking_id);
    assert!(status["error"].is_null(), "{status}");
    let audit_id = status["auditId"].as_str().unwrap();
    let response = client.get(&format!("/v1/audit/report/{audit_id}"));
    let location = &response.json["data"]["report"]["conditions"]["location"];
    assert_eq!(location["mode"], "agent");
    for kind in ["bundles", "exhibits"] {
        let file = data.path().join(kind).join(format!("{audit_id}-1.gz"));
        assert!(file.exists(), "{file:?}");
    }
    let left = std::fs::read_dir(data.path().join("uploads")).unwrap();
    assert_eq!(left.count(), 0, "what arrived is no longer on its way");
    assert_eq!(credits(data.path(), &key), 2);

    let listed = admin(data.path(), &[]);
    let line = listed.lines().nth(1).unwrap();
    for word in [
        "dallas-1",
        "online",
        "us-tx",
        "Chrome/",
        "us-tx x 1",
        "idle",
    ] {
        assert!(line.contains(word), "{word}: {listed}");
    }
    assert!(!listed.contains(&token));
    for (location, slots, expected) in [
        ("eu", "1", "for agents at us-tx, not at eu"),
        ("us-tx", "2", "allows 1 slots, but this agent has 2"),
    ] {
        let refused = plumbline()
            .args(["agent", "--location", location, "--slots", slots])
            .args(["--server", &format!("http://{}", server.address)])
            .env("PLUMBLINE_AGENT_TOKEN", &token)
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert!(stderr.contains(expected), "{stderr}");
    }
    admin(data.path(), &["drain", "dallas-1"]);
    assert_eq!(agent.exit_code(), Some(0), "a drained agent exits");
    let listed = admin(data.path(), &[]);
    assert!(listed.contains("draining"), "{listed}");

    admin(data.path(), &["revoke", "dallas-1"]);
    let refused = Agent::command(&server, &token).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("unknown or revoked"), "{stderr}");
    assert!(!stderr.contains(&token), "{stderr}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_audit_of_a_killed_agent_is_run_once_by_another() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 5);
    let server = Server::start(
        data.path(),
        &[
            "--slots",
            "0",
            "--lease-seconds",
            LEASE_SECONDS,
            "--allow-target",
            "127.0.0.1",
        ],
    );
    let client = client(&server, &key);
    let agents = ["first", "second"].map(|name| add_agent(data.path(), name));
    let first = Agent::start(&server, &agents[0]);
    let started = client.start(&format!("http://{}/", pages::serve()));
    let tracking_id = started.json["trackingId"].as_str().unwrap();
    until_in_progress(&client, tracking_id);
    first.signal(Signal::KILL);
    let second = Agent::start(&server, &agents[1]);
    let status = completed(&client, tracking_id);
    assert!(status["error"].is_null(), "{status}");
    assert_eq!(credits(data.path(), &key), 4);
    let figures = client.get_text("/metrics");
    let once = "plumbline_audits_finished_total{outcome=\"measured\"} 1\n";
    assert!(figures.contains(once), "{figures}");
    second.signal(Signal::TERM);
    assert_eq!(second.exit_code(), Some(0));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_result_of_an_agent_with_an_expired_lease_is_discarded() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 5);
    let server = Server::start(
        data.path(),
        &[
            "--slots",
            "0",
            "--lease-seconds",
            LEASE_SECONDS,
            "--allow-target",
            "127.0.0.1",
        ],
    );
    let client = client(&server, &key);
    let agents = ["first", "second"].map(|name| add_agent(data.path(), name));
    let mut first = Agent::start(&server, &agents[0]);
    let url = format!("http://{}/rich", pages::serve());
    let started = client.start(&url);
    let tracking_id = started.json["trackingId"].as_str().unwrap();
    let log = first.wait_for_log("audit started");
    assert!(log.contains("http://127.0.0.1"), "{log}");
    assert!(!log.contains("/rich"), "{log}");
    first.signal(Signal::STOP);
    let second = Agent::start(&server, &agents[1]);
    let status = completed(&client, tracking_id);
    assert!(status["error"].is_null(), "{status}");
    let audit_id = status["auditId"].as_str().unwrap();
    let report = client.get(&format!("/v1/audit/report/{audit_id}")).json;
    second.signal(Signal::TERM);
    assert_eq!(second.exit_code(), Some(0));

    first.signal(Signal::CONT);
    first.wait_for_log("audit lease was lost");
    let after = client.get(&format!("/v1/audit/report/{audit_id}")).json;
    assert_eq!(after, report);
    assert_eq!(credits(data.path(), &key), 4);
    let figures = client.get_text("/metrics");
    let once = "plumbline_audits_finished_total{outcome=\"measured\"} 1\n";
    assert!(figures.contains(once), "{figures}");
    first.signal(Signal::TERM);
    assert_eq!(first.exit_code(), Some(0));
    assert_eq!(server.stop(), Some(0));
}
