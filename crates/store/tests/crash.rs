//! A process that submits, leases and finishes audits is killed repeatedly. All its successful
//! operations must be durable.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::{HashMap, HashSet};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use plumbline_store::{
    AuditError, AuditOptions, AuditState, FinishedAudit, LeaseScope, LeaseState, LedgerReason,
    NewAudit, Order, ProcessSet, ReleaseReason, ReturnReason, SqliteStore, Store, Submission,
    Timestamp, random_text,
};

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const LEASE: Duration = Duration::from_secs(60);
const CREDITS: u32 = 1_000_000;
const ROUNDS: u32 = 8;
/// Environment variables of the child process: the file, and the account that pays.
const PATH: &str = "PLUMBLINE_CRASH_TEST_PATH";
const ACCOUNT: &str = "PLUMBLINE_CRASH_TEST_ACCOUNT";

#[tokio::test]
async fn a_kill_at_any_moment_loses_no_audit_and_charges_nobody_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plumbline.db");
    let account = {
        let store = SqliteStore::open(&path).unwrap();
        let account = store.create_account("someone", CREDITS, NOW).await.unwrap();
        account.id
    };
    let mut report = ChildReport::default();
    for round in 1..=ROUNDS {
        let mut child = Killed::start(&path, &account);
        let mut random = [0_u8; 1];
        getrandom::fill(&mut random).unwrap();
        child.read_lines(&mut report, 1);
        // As the command line does while a server runs.
        let second = SqliteStore::open(&path).unwrap();
        second.add_credits(&account, 1, NOW).await.unwrap();
        // In every other round, another connection stays open when the process is killed.
        let second = (round % 2 == 0).then_some(second);
        child.read_lines(&mut report, usize::from(random[0]));
        child.kill(&mut report);
        drop(second);

        let store = SqliteStore::open(&path).unwrap();
        check(&store, &account, &report, round).await;
        store
            .recover(&ProcessSet::Single("child".into()))
            .await
            .unwrap();
        let depth = store.queue_depth().await.unwrap();
        assert_eq!(depth.running, 0);
    }

    let store = SqliteStore::open(&path).unwrap();
    while let Some(lease) = store
        .lease(&LeaseScope::any_location("end"), NOW, LEASE)
        .await
        .unwrap()
    {
        let held = store.finish(&lease, finished(false)).await.unwrap();
        assert_eq!(held, LeaseState::Held);
    }
    report.finished.clone_from(&report.accepted);
    check(&store, &account, &report, ROUNDS).await;
}

/// The operations that the child reported after they had succeeded.
#[derive(Default)]
struct ChildReport {
    accepted: HashSet<String>,
    finished: HashSet<String>,
}

async fn check(store: &SqliteStore, account: &str, report: &ChildReport, rounds: u32) {
    let ledger = store.ledger(account).await.unwrap();
    let mut charged: HashMap<&str, i64> = HashMap::new();
    let mut refunded: HashMap<&str, i64> = HashMap::new();
    for entry in &ledger {
        let id = entry.tracking_id.as_deref();
        match entry.reason {
            LedgerReason::Audit => *charged.entry(id.unwrap()).or_default() -= entry.amount,
            LedgerReason::Refund => *refunded.entry(id.unwrap()).or_default() += entry.amount,
            LedgerReason::Opening | LedgerReason::Adjustment => {}
        }
    }
    for id in &report.accepted {
        assert!(
            charged.contains_key(id.as_str()),
            "{id} was accepted, and lost"
        );
    }
    for (id, charge) in &charged {
        assert_eq!(*charge, 1, "{id}");
        let status = store.status(account, id).await.unwrap();
        let status = status.expect("what was charged is there");
        let refund = i64::from(status.error.is_some());
        assert_eq!(refunded.get(id).copied().unwrap_or(0), refund, "{id}");
        let completed = status.state == AuditState::Completed;
        let stored = store.report(account, &status.audit_id).await.unwrap();
        assert_eq!(stored.is_some(), completed, "{id}");
        assert!(
            completed || !report.finished.contains(*id),
            "{id} was finished, and lost"
        );
    }
    let balance = store.add_credits(account, 0, NOW).await.unwrap();
    assert_eq!(
        balance,
        ledger.iter().map(|entry| entry.amount).sum::<i64>()
    );
    let given = i64::from(CREDITS) + i64::from(rounds);
    let paid = i64::try_from(charged.len()).unwrap() - i64::try_from(refunded.len()).unwrap();
    assert_eq!(balance, given - paid);
}

struct Killed {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Killed {
    /// Starts this program again with only the test of the child process.
    fn start(path: &Path, account: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child_process_that_is_killed", "--nocapture"])
            .env(PATH, path)
            .env(ACCOUNT, account)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let lines = BufReader::new(stdout).lines();
        Self { child, lines }
    }

    fn read_lines(&mut self, report: &mut ChildReport, lines: usize) {
        let mut count = 0;
        while count < lines {
            let line = self.lines.next().expect("the child runs").unwrap();
            count += usize::from(record(report, &line));
        }
    }

    fn kill(&mut self, report: &mut ChildReport) {
        self.child.kill().unwrap();
        for line in self.lines.by_ref() {
            record(report, &line.unwrap());
        }
        assert_eq!(
            self.child.wait().unwrap().code(),
            None,
            "ended by the signal"
        );
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It has already ended, unless an assertion failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records a line of the child. Returns false for lines of the test harness.
fn record(report: &mut ChildReport, line: &str) -> bool {
    match line.split_once(' ') {
        Some(("accepted", id)) => report.accepted.insert(id.to_owned()),
        Some(("finished", id)) => report.finished.insert(id.to_owned()),
        _ => false,
    }
}

/// Does nothing unless it is started by the test above; then it runs until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_process_that_is_killed() {
    let (Ok(path), Ok(account)) = (env::var(PATH), env::var(ACCOUNT)) else {
        return;
    };
    print("\n");
    let store = Arc::new(SqliteStore::open(Path::new(&path)).unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..4 {
        tasks.spawn(submit_forever(Arc::clone(&store), account.clone()));
        tasks.spawn(work_forever(Arc::clone(&store), format!("child/{n}")));
    }
    tasks.join_all().await;
}

async fn submit_forever(store: Arc<SqliteStore>, account: String) {
    loop {
        let id = random_text(20).unwrap();
        let audit = NewAudit {
            account_id: account.clone(),
            tracking_id: id.clone(),
            audit_id: format!("report-of-{id}"),
            order: Order {
                url: "https://page.example/".to_owned(),
                device: "some-phone".to_owned(),
                network: "some-network".to_owned(),
                location: "some-place".to_owned(),
                options: plumbline_store::VisitOptions::default(),
            },
            options: AuditOptions::default(),
            accepted_at: NOW,
        };
        store.submit(Submission::single(audit)).await.unwrap();
        print(&format!("accepted {id}\n"));
    }
}

async fn work_forever(store: Arc<SqliteStore>, owner: String) {
    let scope = LeaseScope::any_location(owner.as_str());
    for n in 0_u64.. {
        let Some(lease) = store.lease(&scope, NOW, LEASE).await.unwrap() else {
            store.wait_for_work(&scope, LEASE).await;
            continue;
        };
        if n % 5 == 0 {
            store
                .release(&lease, ReleaseReason::Returned(ReturnReason::Drained))
                .await
                .unwrap();
            continue;
        }
        let held = store.finish(&lease, finished(n % 3 == 0)).await.unwrap();
        assert_eq!(held, LeaseState::Held);
        print(&format!("finished {}\n", lease.tracking_id));
    }
}

fn finished(fails: bool) -> FinishedAudit {
    FinishedAudit {
        report: format!("\"{}\"", "x".repeat(10_000)),
        error: fails.then(|| AuditError {
            code: "INTERNAL".to_owned(),
            message: "it broke".to_owned(),
        }),
        finished_at: NOW,
        summary: None,
    }
}

/// Prints a line with one write call, so that lines of several threads do not mix.
fn print(line: &str) {
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}
