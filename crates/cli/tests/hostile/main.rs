//! The hostile suite: pages and servers that try to hold, crash, flood or escape a real
//! `plumbline serve`, and what must hold of it nevertheless.
//!
//! `cargo test -p plumbline --test hostile` runs the short part, `-- --all` every case, and `--
//! --only a,b` those cases; `-- --list` names them. A line for each says how it ended, how long
//! that took and the most memory that the service and the largest browser had resident.

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

/// The bound on the service's resident memory during any audit.
const SERVICE_PEAK_MB: u64 = 400;
/// The bound on the service's resident memory when nothing runs any more.
const SERVICE_IDLE_MB: u64 = 120;
/// The bound on the resident memory of one browser with all its processes: the limit of 2 GiB on a
/// browser, and a quarter for what is counted twice and for what is taken between two readings.
const BROWSER_PEAK_MB: u64 = 2048 + 512;
/// What an audit may take beyond the time for loading: `AROUND_THE_VISIT` in the agent's auditor,
/// and half a minute in the queue of a busy machine.
const AROUND_THE_VISIT: Duration = Duration::from_secs(150 + 30);
/// The time for loading, which is the network's deadline in the catalog: all of it, and in the
/// short part.
const LOADING_S: u64 = 60;
const LOADING_SHORT_S: u64 = 20;
/// The network of the hostile pages, and one for the well-behaved page, which keeps its deadline.
const NETWORK: &str = "wifiFast";
const WELL_BEHAVED_NETWORK: &str = "wifi";
/// Between two readings of the browsers' memory.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);

const USAGE: &str = "\
usage: hostile [--all] [--only NAME,NAME] [--list] [--loading-seconds N] [FILTER]

  --all                every case; else the short part
  --only NAME,NAME     these cases
  --list               name the cases and end
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
    let broken = suite.run();
    if broken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What the command line asks for.
struct Plan {
    cases: Vec<&'static Case>,
    list: bool,
    loading_s: u64,
    /// Whether the well-behaved page is audited beside every case, or beside the first and the
    /// last.
    beside_every: bool,
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
                // What cargo passes on to every test program of the workspace.
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
            return Err(format!(
                "there is no case {unknown}; --all --list names them"
            ));
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
            beside_every: is_whole,
        })
    }
}

struct Suite {
    plan: Plan,
    site: SocketAddr,
    dir: tempfile::TempDir,
    /// Counts the services that were started: one, and another after each broken promise.
    services: u32,
}

/// What was seen of one case.
struct Seen {
    end: String,
    seconds: f64,
    service_mb: u64,
    idle_mb: u64,
    browser_mb: u64,
    broken: Vec<String>,
}

impl Suite {
    fn new(plan: Plan) -> Self {
        let dir = tempfile::tempdir().expect("there is room for temporary files");
        write_catalog(&dir.path().join("catalog"), plan.loading_s);
        Self {
            plan,
            site: site::serve(),
            dir,
            services: 0,
        }
    }

    /// Runs the cases of the plan, and counts those with a broken promise.
    fn run(&mut self) -> usize {
        let (mut broken, mut service) = (0, None);
        let cases = std::mem::take(&mut self.plan.cases);
        println!(
            "{} hostile cases, {} s to load; bounds: service {SERVICE_PEAK_MB} MB, idle \
             {SERVICE_IDLE_MB} MB, browser {BROWSER_PEAK_MB} MB",
            cases.len(),
            self.plan.loading_s
        );
        for (number, case) in cases.iter().enumerate() {
            let is_end = number == 0 || number + 1 == cases.len();
            let running = service.take().unwrap_or_else(|| self.start());
            let seen = self.attack(&running, case, self.plan.beside_every || is_end);
            print(case, &seen);
            if seen.broken.is_empty() {
                service = Some(running);
            } else {
                // The next case does not pay for this one.
                broken += 1;
            }
        }
        for left in service.map(Service::stop).into_iter().flatten() {
            println!("BROKEN at the end: {left}");
            broken += 1;
        }
        println!("{} of {} cases broke a promise", broken, cases.len());
        broken
    }

    fn start(&mut self) -> Service {
        self.services += 1;
        let dir = self.dir.path().join(self.services.to_string());
        fs::create_dir(&dir).expect("the directory is ours");
        Service::start(&dir, &self.dir.path().join("catalog"))
    }

    fn attack(&self, service: &Service, case: &Case, beside: bool) -> Seen {
        let (client, id, mark) = (&service.client, service.process_id(), service.log_length());
        let within = Duration::from_secs(self.plan.loading_s) + AROUND_THE_VISIT;
        let url = format!(
            "http://127.0.0.{}:{}/{}",
            case.host,
            self.site.port(),
            case.path
        );
        let well_behaved = format!("http://{}{}", self.site, site::WELL_BEHAVED);
        processes::forget_peak(id);
        let (done, browser_mb) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut broken, began) = (Vec::new(), Instant::now());
        let (end, seconds) = thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let largest = processes::largest_group_mb(&processes::below(id));
                    browser_mb.fetch_max(largest, Ordering::Relaxed);
                    thread::sleep(SAMPLE_EVERY);
                }
            });
            let hostile = start(client, &url, NETWORK);
            let other = beside.then(|| start(client, &well_behaved, WELL_BEHAVED_NETWORK));
            let end = completed(client, &hostile, began + within);
            let seconds = began.elapsed().as_secs_f64();
            let end = end.and_then(|status| outcome(client, &status));
            if let Some(other) = other {
                let beside = completed(client, &other, Instant::now() + within);
                let beside = beside.and_then(|status| outcome(client, &status));
                let fault = match beside {
                    Ok(end) if end.code == MEASURED => None,
                    Ok(end) => Some(format!("{} {}", end.code, end.message)),
                    Err(error) => Some(error),
                };
                broken.extend(fault.map(|it| format!("the well-behaved page beside it: {it}")));
            }
            if let Err(left) = service.settle() {
                broken.push(left);
            }
            done.store(true, Ordering::Relaxed);
            (end, seconds)
        });
        let end = match end {
            Ok(end) => {
                if !case.allows(&end.code) {
                    let expected = case.ends.join(" or ");
                    broken.push(format!("not {expected}: {}", end.message));
                }
                end.code
            }
            Err(error) => {
                broken.push(error);
                "none".to_owned()
            }
        };
        broken.extend(service.faults_since(mark));
        let seen = Seen {
            end,
            seconds,
            service_mb: processes::peak_mb(id),
            idle_mb: processes::resident_mb(id),
            browser_mb: browser_mb.into_inner(),
            broken,
        };
        seen.within_bounds()
    }
}

impl Seen {
    fn within_bounds(mut self) -> Self {
        let bounds = [
            ("the service", self.service_mb, SERVICE_PEAK_MB),
            ("the idle service", self.idle_mb, SERVICE_IDLE_MB),
            ("the browser", self.browser_mb, BROWSER_PEAK_MB),
        ];
        for (name, mb, bound) in bounds {
            if mb > bound {
                self.broken
                    .push(format!("{name} had {mb} MB resident, bound {bound} MB"));
            }
        }
        self
    }
}

fn print(case: &Case, seen: &Seen) {
    let verdict = if seen.broken.is_empty() {
        "ok"
    } else {
        "BROKEN"
    };
    println!(
        "{verdict:6} {:28} {:18} {:6.1} s  service {:5} MB, idle {:4} MB  browser {:5} MB",
        case.name(),
        seen.end,
        seen.seconds,
        seen.service_mb,
        seen.idle_mb,
        seen.browser_mb
    );
    for line in &seen.broken {
        println!("       {line}");
    }
}

/// The built-in catalog, with another deadline for the network of the hostile pages.
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
    fs::create_dir(dir).expect("the directory is ours");
    for (name, text) in [
        ("devices.toml", built_in.devices),
        ("networks.toml", &networks.to_string()),
        ("locations.toml", built_in.locations),
    ] {
        fs::write(dir.join(name), text).expect("the directory is ours");
    }
}

/// Starts an audit, and returns its tracking id.
fn start(client: &Client, url: &str, network: &str) -> String {
    let order = json!({"url": url, "device": "desktop", "network": network, "location": "us-tx"});
    let answer = client.post("/v1/audit/start", &order);
    assert_eq!(answer.status, 200, "{answer:?}");
    let id = answer.json["trackingId"].as_str();
    id.expect("a start has a tracking id").to_owned()
}

/// The status of an audit once it is completed, or that it was not in time.
fn completed(client: &Client, tracking_id: &str, deadline: Instant) -> Result<Value, String> {
    let began = Instant::now();
    loop {
        let path = format!("/v1/audit/status/{tracking_id}?wait=10");
        let answer = client.try_get(&path).ok_or("the service does not answer")?;
        let status = &answer.json["data"];
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

/// How a completed audit ended.
struct End {
    /// An error's code, or [`MEASURED`].
    code: String,
    message: String,
}

/// How a completed audit ended, once its report could be read in the forms that people ask for.
fn outcome(client: &Client, status: &Value) -> Result<End, String> {
    let audit_id = status["auditId"].as_str().ok_or("it has no report")?;
    let read = |path: &str| {
        let answer = client.try_get(path).ok_or(format!("no answer to {path}"))?;
        match answer.status {
            200 => Ok(answer.json),
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
