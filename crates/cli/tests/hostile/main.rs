//! The hostile suite: pages and servers that try to hold, crash, flood or escape a real
//! `plumbline serve`, and the properties that it must keep nevertheless.
//!
//! `cargo test -p plumbline --test hostile` runs the short part, `-- --all` every case, and `--
//! --only a,b` those cases; `-- --list` lists them. A line for each case contains its result, its
//! duration and the peak resident memory of the service and of the largest browser.

mod bombs;
mod cases;
#[path = "../service/client.rs"]
#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "the suite needs less of it than the tests of the service"
)]
mod client;
mod processes;
mod service;
mod site;
mod texts;
mod websocket;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use cases::{CASES, Case, MEASURED};
use client::Client;
use service::Service;

/// The limit of the service's resident memory during any audit.
const SERVICE_PEAK_MB: u64 = 400;
/// The limit of the service's resident memory when no audit is running.
const SERVICE_IDLE_MB: u64 = 120;
/// The time in which the service's memory returns to that limit.
const IDLE_WITHIN: Duration = Duration::from_secs(10);
/// The limit of the resident memory of one browser with all its processes: its own limit of 2 GiB,
/// and a quarter for memory that is counted twice or allocated between two readings.
const BROWSER_PEAK_MB: u64 = 2048 + 512;
/// The time that an audit may take in addition to loading: `AROUND_THE_VISIT` in the agent's
/// auditor, and half a minute in the queue of a busy machine.
const AROUND_THE_VISIT: Duration = Duration::from_secs(150 + 30);
/// The time for loading, which is the network's deadline in the catalog: all of it, and in the
/// short part.
const LOADING_S: u64 = 60;
const LOADING_SHORT_S: u64 = 8;
/// The network of the hostile pages, and one for the well-behaved page, which keeps its deadline.
const NETWORK: &str = "wifiFast";
const WELL_BEHAVED_NETWORK: &str = "wifi";
/// The interval between two readings of the browsers' memory.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

const USAGE: &str = "\
usage: hostile [--all] [--only NAME,NAME] [--list] [--loading-seconds N] [FILTER]

  --all                every case; else the short part
  --only NAME,NAME     these cases
  --list               list the cases
  --loading-seconds N  the time that a page has to load (60; 20 in the short part)
  FILTER               only cases of the chosen part whose names contain it";

fn main() -> ExitCode {
    let plan = match Plan::read(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(message) => {
            eprintln!("{message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if plan.list {
        for case in &plan.cases {
            println!("{}", case.name());
        }
        return ExitCode::SUCCESS;
    }
    let mut suite = Suite::new(plan);
    let failures = suite.run();
    if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The command line options.
struct Plan {
    cases: Vec<&'static Case>,
    list: bool,
    loading_s: u64,
    /// Whether the well-behaved page is audited during every case, or during the first and the
    /// last.
    with_every_case: bool,
}

impl Plan {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut all, mut list, mut only, mut filters) = (false, false, Vec::new(), Vec::new());
        let mut loading_s = None;
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--all" => all = true,
                "--list" => list = true,
                "--only" => {
                    let names = value()?;
                    let names = names.split(',').filter(|name| !name.is_empty());
                    only.extend(names.map(str::to_owned));
                }
                "--loading-seconds" => {
                    let seconds = value()?.parse().map_err(|_| "seconds are a number")?;
                    loading_s = Some(seconds);
                }
                // Options that cargo passes to every test program of the workspace.
                "--nocapture" | "--no-capture" | "--quiet" | "-q" | "--exact" => {}
                flag if flag.starts_with("--test-threads") => {
                    if !flag.contains('=') {
                        value()?;
                    }
                }
                flag if flag.starts_with('-') => return Err(format!("unknown option {flag}")),
                filter => filters.push(filter.to_owned()),
            }
        }
        let names: Vec<String> = CASES.iter().map(Case::name).collect();
        if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
            return Err(format!("unknown case {unknown}; --all --list lists them"));
        }
        let is_chosen = |case: &&Case| {
            let name = case.name();
            let in_part = if only.is_empty() {
                all || case.short
            } else {
                only.contains(&name)
            };
            in_part && (filters.is_empty() || filters.iter().any(|it| name.contains(it.as_str())))
        };
        let is_whole = all || !only.is_empty();
        Ok(Self {
            cases: CASES.iter().filter(is_chosen).collect(),
            list,
            loading_s: loading_s.unwrap_or(if is_whole { LOADING_S } else { LOADING_SHORT_S }),
            with_every_case: is_whole,
        })
    }
}

struct Suite {
    plan: Plan,
    site: SocketAddr,
    dir: tempfile::TempDir,
    /// The number of services that were started: one, and another after each failure.
    services: u32,
}

/// The result of one case.
struct CaseResult {
    end: String,
    seconds: f64,
    service_mb: u64,
    idle_mb: u64,
    browser_mb: u64,
    failures: Vec<String>,
}

impl Suite {
    fn new(plan: Plan) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be created");
        write_catalog(&dir.path().join("catalog"), plan.loading_s);
        Self {
            plan,
            site: site::serve(),
            dir,
            services: 0,
        }
    }

    /// Runs the cases of the plan, and returns the number of failures.
    fn run(&mut self) -> usize {
        let (mut failures, mut service) = (0, None);
        let cases = std::mem::take(&mut self.plan.cases);
        println!(
            "{} hostile cases, {} s to load; limits: service {SERVICE_PEAK_MB} MB, idle \
             {SERVICE_IDLE_MB} MB, browser {BROWSER_PEAK_MB} MB",
            cases.len(),
            self.plan.loading_s
        );
        for (number, case) in cases.iter().enumerate() {
            let is_end = number == 0 || number + 1 == cases.len();
            let running = service.take().unwrap_or_else(|| self.start());
            let result = self.attack(&running, case, self.plan.with_every_case || is_end);
            print(case, &result);
            if result.failures.is_empty() {
                service = Some(running);
            } else {
                // The next case gets a new service.
                failures += 1;
            }
        }
        for failure in service.map(Service::stop).into_iter().flatten() {
            println!("FAILED at the end: {failure}");
            failures += 1;
        }
        println!("{} of {} cases failed", failures, cases.len());
        failures
    }

    fn start(&mut self) -> Service {
        self.services += 1;
        let dir = self.dir.path().join(self.services.to_string());
        fs::create_dir(&dir).expect("the directory is writable");
        Service::start(&dir, &self.dir.path().join("catalog"))
    }

    fn attack(&self, service: &Service, case: &Case, with_well_behaved: bool) -> CaseResult {
        let (client, id, mark) = (&service.client, service.process_id(), service.log_length());
        let within = Duration::from_secs(self.plan.loading_s) + AROUND_THE_VISIT;
        let url = format!(
            "http://127.0.0.{}:{}/{}",
            case.host,
            self.site.port(),
            case.path
        );
        let well_behaved = format!("http://{}{}", self.site, site::WELL_BEHAVED);
        processes::reset_peak(id);
        let (done, browser_mb) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut failures, began) = (Vec::new(), Instant::now());
        let (end, seconds) = thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let largest = processes::largest_group_mb(&processes::descendants(id));
                    browser_mb.fetch_max(largest, Ordering::Relaxed);
                    thread::sleep(SAMPLE_INTERVAL);
                }
            });
            let hostile = start(client, &url, NETWORK);
            let other =
                with_well_behaved.then(|| start(client, &well_behaved, WELL_BEHAVED_NETWORK));
            let end = completed(client, &hostile, began + within);
            let seconds = began.elapsed().as_secs_f64();
            let end = end.and_then(|status| outcome(client, &status));
            if let Some(other) = other {
                let other = completed(client, &other, Instant::now() + within);
                let other = other.and_then(|status| outcome(client, &status));
                let failure = match other {
                    Ok(end) if end.code == MEASURED => None,
                    Ok(end) => Some(format!("{} {}", end.code, end.message)),
                    Err(error) => Some(error),
                };
                failures.extend(failure.map(|it| format!("the well-behaved page: {it}")));
            }
            if let Err(leftovers) = service.settle() {
                failures.push(leftovers);
            }
            done.store(true, Ordering::Relaxed);
            (end, seconds)
        });
        let end = match end {
            Ok(end) => {
                if !case.allows(&end.code) {
                    let expected = case.ends.join(" or ");
                    failures.push(format!("not {expected}: {}", end.message));
                }
                end.code
            }
            Err(error) => {
                failures.push(error);
                "none".to_owned()
            }
        };
        failures.extend(service.errors_since(mark));
        let result = CaseResult {
            end,
            seconds,
            service_mb: processes::peak_mb(id),
            idle_mb: idle_mb(id),
            browser_mb: browser_mb.into_inner(),
            failures,
        };
        result.with_limits_checked()
    }
}

/// Returns the service's resident memory once it is within its limit, or when the time for that has
/// passed: an allocator returns memory some time after it was freed.
fn idle_mb(id: u32) -> u64 {
    let deadline = Instant::now() + IDLE_WITHIN;
    loop {
        let resident_mb = processes::resident_mb(id);
        if resident_mb <= SERVICE_IDLE_MB || Instant::now() > deadline {
            return resident_mb;
        }
        thread::sleep(SAMPLE_INTERVAL);
    }
}

impl CaseResult {
    /// Adds a failure for each limit that was exceeded.
    fn with_limits_checked(mut self) -> Self {
        let limits = [
            ("the service", self.service_mb, SERVICE_PEAK_MB),
            ("the idle service", self.idle_mb, SERVICE_IDLE_MB),
            ("the browser", self.browser_mb, BROWSER_PEAK_MB),
        ];
        for (name, mb, limit) in limits {
            if mb > limit {
                self.failures
                    .push(format!("{name} had {mb} MB resident, limit {limit} MB"));
            }
        }
        self
    }
}

fn print(case: &Case, result: &CaseResult) {
    let verdict = if result.failures.is_empty() {
        "ok"
    } else {
        "FAILED"
    };
    println!(
        "{verdict:6} {:28} {:18} {:6.1} s  service {:5} MB, idle {:4} MB  browser {:5} MB",
        case.name(),
        result.end,
        result.seconds,
        result.service_mb,
        result.idle_mb,
        result.browser_mb
    );
    for line in &result.failures {
        println!("       {line}");
    }
}

/// Writes the built-in catalog with another deadline for the network of the hostile pages.
fn write_catalog(dir: &Path, loading_s: u64) {
    let built_in = plumbline_catalog::BUILT_IN;
    let mut networks: toml::Table = toml::from_str(built_in.networks).expect("it is TOML");
    let all = networks
        .get_mut("network")
        .and_then(toml::Value::as_array_mut);
    let network = all
        .into_iter()
        .flatten()
        .find(|network| network.get("id").and_then(toml::Value::as_str) == Some(NETWORK))
        .and_then(toml::Value::as_table_mut)
        .expect("the network is in the catalog");
    let seconds = i64::try_from(loading_s).expect("the deadline is short");
    network.insert("deadline_s".to_owned(), seconds.into());
    fs::create_dir(dir).expect("the directory is writable");
    for (name, text) in [
        ("devices.toml", built_in.devices),
        ("networks.toml", &networks.to_string()),
        ("locations.toml", built_in.locations),
    ] {
        fs::write(dir.join(name), text).expect("the directory is writable");
    }
}

/// Starts an audit, and returns its tracking id.
fn start(client: &Client, url: &str, network: &str) -> String {
    let order = json!({"url": url, "device": "desktop", "network": network, "location": "us-tx"});
    let response = client.post("/v1/audit/start", &order);
    assert_eq!(response.status, 200, "{response:?}");
    let id = response.json["trackingId"].as_str();
    id.expect("a start has a tracking id").to_owned()
}

/// Waits until an audit is completed and returns its status.
fn completed(client: &Client, tracking_id: &str, deadline: Instant) -> Result<Value, String> {
    let began = Instant::now();
    loop {
        let path = format!("/v1/audit/status/{tracking_id}?wait=10");
        let response = client
            .try_get(&path)
            .ok_or("the service does not respond")?;
        let status = &response.json["data"];
        if status["status"] == "completed" {
            return Ok(status.clone());
        }
        if Instant::now() > deadline {
            let seconds = began.elapsed().as_secs();
            return Err(format!(
                "not completed after {seconds} s: {}",
                status["status"]
            ));
        }
    }
}

/// The end of a completed audit.
struct End {
    /// An error's code, or [`MEASURED`].
    code: String,
    message: String,
}

/// Reads the report of a completed audit in several formats, and returns how the audit ended.
fn outcome(client: &Client, status: &Value) -> Result<End, String> {
    let audit_id = status["auditId"].as_str().ok_or("it has no report")?;
    let read = |path: &str| {
        let response = client
            .try_get(path)
            .ok_or(format!("no response to {path}"))?;
        match response.status {
            200 => Ok(response.json),
            other => Err(format!("status {other} for {path}")),
        }
    };
    let data = &read(&format!("/v1/audit/data/{audit_id}"))?["data"];
    read(&format!("/v1/audit/report/{audit_id}"))?;
    if let Some(code) = data["error"]["code"].as_str() {
        return Ok(End {
            code: code.to_owned(),
            message: data["error"]["message"].to_string(),
        });
    }
    read(&format!("/v1/audit/report/{audit_id}?format=har"))?;
    if !data["labData"]["fcp"].is_number() {
        return Err("it has neither a measurement nor a code".to_owned());
    }
    Ok(End {
        code: MEASURED.to_owned(),
        message: "the page was measured".to_owned(),
    })
}
