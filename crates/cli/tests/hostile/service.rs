//! The attacked `plumbline serve`: its processes, files and log.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::client::Client;
use crate::processes::{self, Process};
use crate::site;

/// One slot for the hostile page and one for the well-behaved page.
const SLOTS: usize = 2;
/// The number of spare browsers of a service.
const SPARES: usize = 1;
/// The time limit for a browser to end, for a spare to start, and for a stop, each of which takes
/// seconds on an idle machine.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(45);
/// The time limit for a service to become idle after its start: it calibrates the processor first,
/// which takes longest on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(180);
/// The time without changes after which a service is idle.
const IDLE_TIME: Duration = Duration::from_secs(2);

pub struct Service {
    child: Child,
    pub client: Client,
    /// The `TMPDIR` of the service, which no other process uses.
    temporary: PathBuf,
    log: PathBuf,
    /// The resources while no audit is running.
    idle: Resources,
}

/// The resources of a service, except memory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Resources {
    /// Each browser and each crash handler is a process group.
    process_groups: usize,
    zombies: usize,
    temporary_entries: usize,
    /// One profile for each browser.
    profiles: usize,
}

impl Resources {
    fn are_within(&self, bounds: &Self) -> bool {
        self.process_groups <= bounds.process_groups
            && self.zombies <= bounds.zombies
            && self.temporary_entries <= bounds.temporary_entries
            && self.profiles <= bounds.profiles
    }
}

impl Service {
    /// Starts a service whose data, temporary files and log are below `dir`.
    pub fn start(dir: &Path, catalog: &Path) -> Self {
        // If the service runs as root, browsers run as another user, who needs access to their
        // profiles.
        fs::set_permissions(dir, Permissions::from_mode(0o755)).expect("the directory is writable");
        let (data, temporary) = (dir.join("data"), dir.join("tmp"));
        fs::create_dir_all(&temporary).expect("the directory is writable");
        let log = dir.join("log");
        let mut child = plumbline()
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "warn"])
            .args(["--slots", &SLOTS.to_string(), "--visits", "1"])
            .args(["--allow-target", site::NETWORK, "--catalog"])
            .arg(catalog)
            .arg("--data")
            .arg(&data)
            .env("TMPDIR", &temporary)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("the directory is writable"))
            .spawn()
            .expect("the program starts");
        let mut first_line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut first_line)
            .expect("the service says where it listens");
        let address = first_line.trim().strip_prefix("listening on http://");
        let address = address.and_then(|address| address.parse().ok());
        let address = address.unwrap_or_else(|| {
            panic!("unexpected first line {first_line:?}: {}", read(&log));
        });
        let key = create_key(&data);
        let none = Resources {
            process_groups: 0,
            zombies: 0,
            temporary_entries: 0,
            profiles: 0,
        };
        let mut service = Self {
            child,
            client: Client { address, key },
            temporary,
            log,
            idle: none,
        };
        service.idle = service.idle_resources();
        service
    }

    /// Waits until only the spare browser is running and nothing has changed for a while.
    fn idle_resources(&self) -> Resources {
        let deadline = Instant::now() + START_TIMEOUT;
        let (mut resources, mut since) = (self.resources(), Instant::now());
        while resources.profiles != SPARES || since.elapsed() < IDLE_TIME {
            assert!(
                Instant::now() < deadline,
                "the service does not become idle: {resources:?}; {}",
                read(&self.log)
            );
            thread::sleep(Duration::from_millis(100));
            let now = self.resources();
            if now != resources {
                (resources, since) = (now, Instant::now());
            }
        }
        resources
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until there are no more resources than at the start, or returns what is left. A spare
    /// browser that was not started in time is not an error: the next audit starts one.
    pub fn settle(&self) -> Result<(), String> {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        loop {
            let now = self.resources();
            if now.are_within(&self.idle) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let processes = processes::descendants(self.process_id());
                let (idle, all) = (&self.idle, names(&processes));
                return Err(format!(
                    "left: {now:?} instead of {idle:?}; processes: {all}"
                ));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn resources(&self) -> Resources {
        let mut processes = processes::descendants(self.process_id());
        // A crash handler ends a moment after its browser, and is reaped with the next one.
        processes.retain(|it| !(it.state == 'Z' && it.name.starts_with("chrome_crashpad")));
        let entries = entries(&self.temporary);
        Resources {
            process_groups: processes::groups(&processes).len(),
            zombies: processes.iter().filter(|it| it.state == 'Z').count(),
            temporary_entries: entries.len(),
            profiles: profiles(&self.temporary),
        }
    }

    /// Returns the length of the log, as a position for [`Service::errors_since`].
    pub fn log_length(&self) -> usize {
        read(&self.log).len()
    }

    /// Returns the errors that were logged since a position.
    pub fn errors_since(&self, position: usize) -> Vec<String> {
        let log = read(&self.log);
        let since = log.get(position..).unwrap_or_default();
        // A line begins with its time and its level. Lines of Chromium contain levels as well.
        let is_error = |line: &&str| {
            line.split_whitespace().nth(1) == Some("ERROR") || line.contains("panicked")
        };
        since.lines().filter(is_error).map(str::to_owned).collect()
    }

    /// Stops the service, and returns what did not end with it.
    pub fn stop(mut self) -> Vec<String> {
        let before = processes::descendants(self.process_id());
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("the service runs");
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        let mut failures = Vec::new();
        let status = loop {
            match self.child.try_wait().expect("it is our child") {
                Some(status) => break Some(status),
                None if Instant::now() > deadline => break None,
                None => thread::sleep(Duration::from_millis(50)),
            }
        };
        match status.map(|status| status.code()) {
            Some(Some(0)) => {}
            Some(code) => failures.push(format!("the service ended with {code:?}")),
            None => failures.push("the service did not stop".to_owned()),
        }
        let alive = |process: &&Process| Path::new(&format!("/proc/{}", process.id)).exists();
        while before.iter().any(|process| alive(&process)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(50));
        }
        let alive: Vec<Process> = before.iter().filter(alive).cloned().collect();
        if !alive.is_empty() {
            failures.push(format!("after the stop: {}", names(&alive)));
        }
        let profiles = profiles(&self.temporary);
        if profiles > 0 {
            failures.push(format!("after the stop: {profiles} profiles left"));
        }
        failures
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Has no effect after `stop`. Browsers end when their pipe is closed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn plumbline() -> Command {
    Command::new(env!("CARGO_BIN_EXE_plumbline"))
}

fn create_key(data: &Path) -> String {
    let output = plumbline()
        .args(["keys", "create", "--credits", "100000", "--data"])
        .arg(data)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().last().unwrap_or_default().to_owned()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Counts the profiles of browsers, which are in a directory below the temporary one.
fn profiles(temporary: &Path) -> usize {
    let top = entries(temporary);
    top.iter().map(|dir| entries(dir).len()).sum()
}

fn names(processes: &[Process]) -> String {
    let names = processes
        .iter()
        .map(|process| format!("{} {} {}", process.id, process.name, process.state));
    names.collect::<Vec<_>>().join(", ")
}

fn read(path: &Path) -> String {
    fs::read(path).map_or_else(
        |_| String::new(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}
