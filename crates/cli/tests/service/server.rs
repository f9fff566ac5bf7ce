//! `plumbline serve` as a child process.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;

pub fn plumbline() -> Command {
    Command::new(env!("CARGO_BIN_EXE_plumbline"))
}

pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    pub fn start(data: &Path, args: &[&str]) -> Self {
        Self::start_with(data, args, &[])
    }

    pub fn start_with(data: &Path, args: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::spawn(serve(data, "warn", args).envs(environment.iter().copied()))
    }

    /// Starts a server that writes everything to a log.
    pub fn start_logged(data: &Path, args: &[&str], log: File) -> Self {
        Self::spawn(serve(data, "trace", args).stderr(log))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first_line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut first_line)
            .unwrap();
        let address = first_line
            .trim()
            .strip_prefix("listening on http://")
            .unwrap_or_else(|| panic!("unexpected first line {first_line:?}"))
            .parse()
            .unwrap();
        Self { child, address }
    }

    /// Sends SIGKILL and waits.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and returns the exit code.
    pub fn stop(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

fn serve(data: &Path, level: &str, args: &[&str]) -> Command {
    let mut command = plumbline();
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--log", level, "--data"])
        .arg(data)
        // Tests run beside each other: one slot each, unless the arguments say otherwise.
        .env("PLUMBLINE_SLOTS", "1")
        .args(args);
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        // Has no effect after `kill` and `stop`; a failed test must not leave a server running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates a key with `keys create`, which prints it on the last line.
pub fn create_key(data: &Path, credits: u32) -> String {
    let output = plumbline()
        .args([
            "keys",
            "create",
            "--credits",
            &credits.to_string(),
            "--data",
        ])
        .arg(data)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().last().unwrap().to_owned()
}

/// Returns the credits of a key as `keys list` prints them.
pub fn credits(data: &Path, key: &str) -> i64 {
    let id = key.split('_').nth(1).unwrap();
    let output = plumbline()
        .args(["keys", "list", "--data"])
        .arg(data)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with(id)).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap()
}

/// Waits until the audit is completed, and returns its status.
pub fn completed(client: &Client, tracking_id: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(180);
    loop {
        let response = client.get(&format!("/v1/audit/status/{tracking_id}?wait=20"));
        assert_eq!(response.status, 200, "{response:?}");
        if response.json["data"]["status"] == "completed" {
            return response.json["data"].clone();
        }
        assert!(Instant::now() < deadline, "not completed: {response:?}");
    }
}
