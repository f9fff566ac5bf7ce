//! Tests of starting and ending browsers without leaving processes or files behind.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plumbline_browser::{
    BrowserError, LaunchOptions, Launcher, Phase, Pool, VisitError, VisitEvent, renderers, sweep,
    visit,
};
use plumbline_bundle::FailureCode;

use crate::site::Site;
use crate::{TestBed, plan};

/// Returns all processes of a group, including zombies. (State, parent and group are the fields
/// after the name in parentheses.)
fn processes_of(group: u32) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| {
            let fields = stat.rsplit(')').next().unwrap_or_default();
            fields.split_whitespace().nth(2) == Some(&group.to_string())
        })
        .collect()
}

#[tokio::test]
async fn ten_visits_leave_no_process_no_zombie_and_no_file() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    for page in [
        "plain-text.html",
        "frames.html",
        "words.txt",
        "hang",
        "missing-page",
    ]
    .repeat(2)
    {
        let browser = bed.browser().await;
        let group = browser.process_id();
        assert!(processes_of(group).len() > 2);
        let mut plan = plan(site.url(page));
        plan.deadline = Duration::from_secs(2);
        let _ = visit(browser, &plan, &|_| {}).await;
        assert_eq!(processes_of(group), Vec::<String>::new());
        assert_eq!(bed.leftover_files(), 0);
    }
    // A crash handler ends shortly after its browser and is reaped with the next one, so a few of
    // tests that run in parallel may still exist; without reaping there would be twenty.
    assert!(own_zombies() < 10, "{} zombies", own_zombies());
}

/// Returns the number of children of this process that have ended and were not reaped.
fn own_zombies() -> usize {
    let own_zombie = format!(" Z {} ", std::process::id());
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| {
            stat.rsplit(')')
                .next()
                .unwrap_or_default()
                .starts_with(&own_zombie)
        })
        .count()
}

#[tokio::test]
async fn a_cancelled_visit_leaves_no_process_and_no_file() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let browser = bed.browser().await;
    let group = browser.process_id();
    let plan = plan(site.url("hang"));
    let result = tokio::time::timeout(Duration::from_secs(1), visit(browser, &plan, &|_| {})).await;
    assert!(result.is_err());
    assert_eq!(processes_of(group), Vec::<String>::new());
    assert_eq!(bed.leftover_files(), 0);
}

#[tokio::test]
async fn a_browser_runs_sandboxed_as_an_unprivileged_user() {
    let bed = TestBed::new();
    let browser = bed.browser().await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", browser.process_id())).unwrap();
    let uid = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .unwrap();
    assert!(uid.split_whitespace().all(|uid| uid != "0"), "{uid}");
    let command_line =
        std::fs::read_to_string(format!("/proc/{}/cmdline", browser.process_id())).unwrap();
    assert!(!command_line.contains("no-sandbox"));
    browser.close().await;
}

#[tokio::test]
async fn a_crash_of_the_page_is_a_failure_of_the_page() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let browser = bed.browser().await;
    let group = browser.process_id();
    let plan = plan(site.url("never-rests.html"));
    let killer = tokio::task::spawn_blocking(move || kill_renderers_after_request(group, &site));
    let result = visit(browser, &plan, &|_| {}).await;
    killer.await.unwrap();
    match result {
        Err(VisitError::Page(failure)) => assert_eq!(failure.code, FailureCode::PageCrashed),
        other => panic!("{other:?}"),
    }
    assert_eq!(bed.leftover_files(), 0);
}

/// Kills the renderers after the page was requested, as if it ran out of memory while it loads.
fn kill_renderers_after_request(group: u32, site: &Site) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !site.paths().iter().any(|path| path == "never-rests.html") && Instant::now() < deadline {
        std::thread::yield_now();
    }
    for pid in renderers(group) {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[tokio::test]
async fn a_browser_that_ends_during_a_visit_is_a_fault() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let browser = bed.browser().await;
    let group = rustix::process::Pid::from_raw(browser.process_id().cast_signed()).unwrap();
    let plan = plan(site.url("hang"));
    let kill_while_loading = |event: VisitEvent<'_>| {
        if event == VisitEvent::PhaseStarted(Phase::Loading) {
            rustix::process::kill_process(group, rustix::process::Signal::KILL).unwrap();
        }
    };
    let result = visit(browser, &plan, &kill_while_loading).await;
    assert!(matches!(result, Err(VisitError::Fault(_))), "{result:?}");
    assert_eq!(bed.leftover_files(), 0);
}

#[tokio::test]
async fn a_pool_returns_each_browser_once() {
    let bed = TestBed::new();
    let pool = Pool::start(bed.launcher.clone(), 1);
    let first = pool.take().await.unwrap();
    let second = pool.take().await.unwrap();
    assert_ne!(first.process_id(), second.process_id());
    let used = [first.process_id(), second.process_id()];
    drop((first, second));
    let third = pool.take().await.unwrap();
    assert!(!used.contains(&third.process_id()));
    third.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spare_that_has_ended_is_replaced() {
    let bed = TestBed::new();
    let pool = Pool::start(bed.launcher.clone(), 1);
    let deadline = Instant::now() + Duration::from_secs(20);
    let spare = loop {
        match browsers_in(bed.run_dir.path()).first() {
            Some(pid) => break *pid,
            None => assert!(Instant::now() < deadline),
        }
    };
    let pid = rustix::process::Pid::from_raw(spare.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let browser = pool.take().await.unwrap();
    assert_ne!(browser.process_id(), spare);
    drop((browser, pool));
}

/// Returns the main processes of browsers with a profile in the run directory.
fn browsers_in(run_dir: &Path) -> Vec<u32> {
    let is_browser = |pid: &u32| {
        let command_line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        command_line
            .is_ok_and(|line| line.contains(run_dir.to_str().unwrap()) && !line.contains("--type="))
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(is_browser)
        .collect()
}

#[tokio::test]
async fn a_program_that_is_not_a_browser_is_an_error_with_its_output() {
    let bed = TestBed::new();
    let launcher = Launcher::find(LaunchOptions {
        chromium: Some("/bin/ls".into()),
        run_dir: Some(bed.run_dir.path().to_owned()),
        ..LaunchOptions::default()
    })
    .unwrap();
    let error = launcher.launch().await.unwrap_err();
    assert!(matches!(error, BrowserError::Start { .. }));
    assert!(error.to_string().contains("unrecognized option"), "{error}");
    assert_eq!(bed.leftover_files(), 0);
}

#[tokio::test]
async fn the_version_can_be_read() {
    let bed = TestBed::new();
    let version = bed.launcher.version().await.unwrap();
    assert!(version.product.starts_with("Chrome/"));
    assert!(version.major().parse::<u32>().unwrap() > 100);
    assert_eq!(version.number().split('.').count(), 4);
}

/// Starts a browser and waits; runs in the process that the next test kills, and is not a test.
#[tokio::test]
async fn owner_that_is_killed() {
    let Some(run_dir) = std::env::var_os("OWNER_THAT_IS_KILLED") else {
        return;
    };
    let launcher = Launcher::find(LaunchOptions {
        run_dir: Some(run_dir.into()),
        ..LaunchOptions::default()
    })
    .unwrap();
    let browser = launcher.launch().await.unwrap();
    println!("\nbrowser {}", browser.process_id());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn after_its_owner_is_killed_a_browser_ends_and_a_sweep_removes_its_files() {
    let bed = TestBed::new();
    let mut owner = start_owner(bed.run_dir.path());
    let group = read_browser_id(&mut owner);
    assert_eq!(sweep(bed.run_dir.path()).unwrap(), 0);
    owner.kill().unwrap();
    owner.wait().unwrap();

    let deadline = Instant::now() + Duration::from_secs(20);
    let is_running = || {
        processes_of(group)
            .iter()
            .any(|stat| !stat.contains(") Z "))
    };
    while is_running() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert!(!is_running());
    assert_eq!(bed.leftover_files(), 1);
    assert_eq!(sweep(bed.run_dir.path()).unwrap(), 1);
    assert_eq!(bed.leftover_files(), 0);
}

fn start_owner(run_dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "life::owner_that_is_killed", "--nocapture"])
        .env("OWNER_THAT_IS_KILLED", run_dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn read_browser_id(owner: &mut Child) -> u32 {
    BufReader::new(owner.stdout.take().unwrap())
        .lines()
        .find_map(|line| line.unwrap().strip_prefix("browser ")?.parse().ok())
        .unwrap()
}

#[test]
fn a_sweep_kills_processes_that_use_a_profile_without_owner() {
    let bed = TestBed::new();
    let directory = bed.run_dir.path().join("4000000-1");
    std::fs::create_dir_all(directory.join("home")).unwrap();
    let argument = format!("--user-data-dir={}", directory.join("home").display());
    let mut orphan = Command::new("sh")
        .args(["-c", "sleep 60; :", &argument])
        .process_group(0)
        .spawn()
        .unwrap();
    // The arguments of a program are visible shortly after it was started.
    let command_line = format!("/proc/{}/cmdline", orphan.id());
    let deadline = Instant::now() + Duration::from_secs(20);
    while !std::fs::read_to_string(&command_line)
        .unwrap()
        .contains(&argument)
    {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    assert_eq!(sweep(bed.run_dir.path()).unwrap(), 1);
    while orphan.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    assert_eq!(bed.leftover_files(), 0);
}
