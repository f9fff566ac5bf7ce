//! Browsers come, go, and leave nothing behind.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plumbline_browser::{
    Benchmark, BrowserError, Gauge, LaunchOptions, Launcher, Phase, Pool, Step, Throttle,
    VisitError, renderers, sweep, visit,
};
use plumbline_bundle::FailureCode;

use crate::site::Site;
use crate::{Bench, plan};

/// Every process of a group, also those that are dead and not reaped. (State, parent, group are the
/// fields after the name in parentheses.)
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
    let (bench, site) = (Bench::new(), Site::start().await);
    for page in [
        "plain-text.html",
        "frames.html",
        "words.txt",
        "hang",
        "missing-page",
    ]
    .repeat(2)
    {
        let browser = bench.browser().await;
        let group = browser.process_id();
        assert!(processes_of(group).len() > 2);
        let mut plan = plan(site.url(page));
        plan.deadline = Duration::from_secs(2);
        let _ = visit(browser, &plan, &|_| {}).await;
        assert_eq!(processes_of(group), Vec::<String>::new());
        assert_eq!(bench.leftover_files(), 0);
    }
    // A crash handler ends a moment after its browser and is reaped with the next one, so the last
    // few of the tests that run beside this one may still be there; unreaped, there would be twenty.
    assert!(zombies_of_ours() < 10, "{} zombies", zombies_of_ours());
}

/// Dead children that nobody waited for, whatever group they were in.
fn zombies_of_ours() -> usize {
    let ours = format!(" Z {} ", std::process::id());
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| {
            stat.rsplit(')')
                .next()
                .unwrap_or_default()
                .starts_with(&ours)
        })
        .count()
}

#[tokio::test]
async fn a_visit_that_is_given_up_leaves_nothing() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let browser = bench.browser().await;
    let group = browser.process_id();
    let plan = plan(site.url("hang"));
    let given_up =
        tokio::time::timeout(Duration::from_secs(1), visit(browser, &plan, &|_| {})).await;
    assert!(given_up.is_err());
    assert_eq!(processes_of(group), Vec::<String>::new());
    assert_eq!(bench.leftover_files(), 0);
}

#[tokio::test]
async fn a_browser_runs_sandboxed_as_an_ordinary_user() {
    let bench = Bench::new();
    let browser = bench.browser().await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", browser.process_id())).unwrap();
    let uid = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .unwrap();
    assert!(uid.split_whitespace().all(|uid| uid != "0"), "{uid}");
    let command_line =
        std::fs::read_to_string(format!("/proc/{}/cmdline", browser.process_id())).unwrap();
    assert!(!command_line.contains("no-sandbox"));
    assert!(bench.launcher.is_sandboxed());
    browser.close().await;
}

#[tokio::test]
async fn a_crash_of_the_page_is_a_result() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let browser = bench.browser().await;
    let group = browser.process_id();
    let plan = plan(site.url("never-rests.html"));
    let killer = tokio::task::spawn_blocking(move || kill_renderers_when_seen(group, &site));
    let outcome = visit(browser, &plan, &|_| {}).await;
    killer.await.unwrap();
    match outcome {
        Err(VisitError::Page(failure)) => assert_eq!(failure.code, FailureCode::PageCrashed),
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.leftover_files(), 0);
}

/// As a page that runs out of memory: its process is killed while it loads.
fn kill_renderers_when_seen(group: u32, site: &Site) {
    let given_up = Instant::now() + Duration::from_secs(20);
    while !site.paths().iter().any(|path| path == "never-rests.html") && Instant::now() < given_up {
        std::thread::yield_now();
    }
    for pid in renderers(group) {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[tokio::test]
async fn a_browser_that_dies_under_a_visit_is_a_fault() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let browser = bench.browser().await;
    let group = rustix::process::Pid::from_raw(browser.process_id().cast_signed()).unwrap();
    let plan = plan(site.url("hang"));
    let when_loading = |step: Step<'_>| {
        if step == Step::Entered(Phase::Loading) {
            rustix::process::kill_process(group, rustix::process::Signal::KILL).unwrap();
        }
    };
    let outcome = visit(browser, &plan, &when_loading).await;
    assert!(matches!(outcome, Err(VisitError::Fault(_))), "{outcome:?}");
    assert_eq!(bench.leftover_files(), 0);
}

#[tokio::test]
async fn a_pool_hands_out_each_browser_once() {
    let bench = Bench::new();
    let pool = Pool::start(bench.launcher.clone(), 1);
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
async fn a_spare_that_died_is_replaced() {
    let bench = Bench::new();
    let pool = Pool::start(bench.launcher.clone(), 1);
    let given_up = Instant::now() + Duration::from_secs(20);
    let spare = loop {
        match browsers_in(bench.run_dir.path()).first() {
            Some(pid) => break *pid,
            None => assert!(Instant::now() < given_up),
        }
    };
    let pid = rustix::process::Pid::from_raw(spare.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let taken = pool.take().await.unwrap();
    assert_ne!(taken.process_id(), spare);
    drop((taken, pool));
}

/// Main processes, told by the profile on their command line.
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
async fn a_program_that_is_no_browser_is_an_error_that_says_why() {
    let bench = Bench::new();
    let launcher = Launcher::find(LaunchOptions {
        chromium: Some("/bin/ls".into()),
        run_dir: Some(bench.run_dir.path().to_owned()),
        ..LaunchOptions::default()
    })
    .unwrap();
    let error = launcher.launch().await.unwrap_err();
    assert!(matches!(error, BrowserError::Start { .. }));
    assert!(error.to_string().contains("unrecognized option"), "{error}");
    assert_eq!(bench.leftover_files(), 0);
}

#[tokio::test]
async fn the_version_is_told() {
    let bench = Bench::new();
    let version = bench.launcher.version().await.unwrap();
    assert!(version.product.starts_with("Chrome/"));
    assert!(version.major().parse::<u32>().unwrap() > 100);
    assert_eq!(version.number().split('.').count(), 4);
}

#[tokio::test]
async fn a_slowed_processor_has_a_lower_index() {
    let bench = Bench::new();
    let gauge = Gauge::open(&bench.launcher).await.unwrap();
    let plain = gauge.read(Throttle::NONE, Benchmark::Quick).await.unwrap();
    let paced = Throttle::Paced {
        rate: 8.0,
        nominal: plain.pace,
    };
    for throttle in [paced, Throttle::ByChromium { rate: 8.0 }] {
        let slowed = gauge.read(throttle, Benchmark::Quick).await.unwrap();
        assert!(
            slowed.index < plain.index / 2.0,
            "{throttle:?} {slowed:?} {plain:?}"
        );
    }
    gauge.close().await;
}

/// Not a test of its own: the process that the next one kills.
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
async fn when_its_owner_is_killed_a_browser_ends_and_a_sweep_removes_its_files() {
    let bench = Bench::new();
    let mut owner = start_owner(bench.run_dir.path());
    let group = told_browser(&mut owner);
    assert_eq!(sweep(bench.run_dir.path()).unwrap(), 0);
    owner.kill().unwrap();
    owner.wait().unwrap();

    let given_up = Instant::now() + Duration::from_secs(20);
    let alive = || {
        processes_of(group)
            .iter()
            .any(|stat| !stat.contains(") Z "))
    };
    while alive() && Instant::now() < given_up {
        std::thread::yield_now();
    }
    assert!(!alive());
    assert_eq!(bench.leftover_files(), 1);
    assert_eq!(sweep(bench.run_dir.path()).unwrap(), 1);
    assert_eq!(bench.leftover_files(), 0);
}

fn start_owner(run_dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "life::owner_that_is_killed", "--nocapture"])
        .env("OWNER_THAT_IS_KILLED", run_dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn told_browser(owner: &mut Child) -> u32 {
    BufReader::new(owner.stdout.take().unwrap())
        .lines()
        .find_map(|line| line.unwrap().strip_prefix("browser ")?.parse().ok())
        .unwrap()
}

#[test]
fn a_sweep_kills_what_still_runs_in_a_dead_owners_profile() {
    let bench = Bench::new();
    let directory = bench.run_dir.path().join("4000000-1");
    std::fs::create_dir_all(directory.join("home")).unwrap();
    let argument = format!("--user-data-dir={}", directory.join("home").display());
    let mut left = Command::new("sh")
        .args(["-c", "sleep 60; :", &argument])
        .process_group(0)
        .spawn()
        .unwrap();
    // A program's arguments can be seen a moment after it was started.
    let command_line = format!("/proc/{}/cmdline", left.id());
    let given_up = Instant::now() + Duration::from_secs(20);
    while !std::fs::read_to_string(&command_line)
        .unwrap()
        .contains(&argument)
    {
        assert!(Instant::now() < given_up);
        std::thread::yield_now();
    }
    assert_eq!(sweep(bench.run_dir.path()).unwrap(), 1);
    while left.try_wait().unwrap().is_none() {
        assert!(Instant::now() < given_up);
        std::thread::yield_now();
    }
    assert_eq!(bench.leftover_files(), 0);
}
