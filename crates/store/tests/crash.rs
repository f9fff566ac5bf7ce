//! A process that accepts, leases and finishes is killed again and again; what it was told is kept.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::{HashMap, HashSet};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use plumbline_store::{
    AuditError, AuditOptions, AuditOrder, AuditState, FinishedAudit, Hold, LeaseScope,
    LedgerReason, NewAudit, ReleaseReason, SqliteStore, Store, Submission, Timestamp, random_text,
};

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const LEASE: Duration = Duration::from_secs(60);
const CREDITS: u32 = 1_000_000;
const ROUNDS: u32 = 8;
/// Set for the child only: the file, and the account that pays.
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
    let mut told = Told::default();
    for round in 1..=ROUNDS {
        let mut child = Killed::start(&path, &account);
        let mut random = [0_u8; 1];
        getrandom::fill(&mut random).unwrap();
        child.listen(&mut told, 1);
        // As the command line does beside a running server.
        let beside = SqliteStore::open(&path).unwrap();
        beside.add_credits(&account, 1, NOW).await.unwrap();
        // Either the killed process was the last that had the file open, or not.
        let beside = (round % 2 == 0).then_some(beside);
        child.listen(&mut told, usize::from(random[0]));
        child.kill(&mut told);
        drop(beside);

        let store = SqliteStore::open(&path).unwrap();
        check(&store, &account, &told, round).await;
        store.recover("child/").await.unwrap();
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
        assert_eq!(held, Hold::Held);
    }
    told.finished.clone_from(&told.accepted);
    check(&store, &account, &told, ROUNDS).await;
}

/// What the child said after the store had answered it.
#[derive(Default)]
struct Told {
    accepted: HashSet<String>,
    finished: HashSet<String>,
}

async fn check(store: &SqliteStore, account: &str, told: &Told, rounds: u32) {
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
    for id in &told.accepted {
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
        let report = store.report(account, &status.audit_id).await.unwrap();
        assert_eq!(report.is_some(), completed, "{id}");
        assert!(
            completed || !told.finished.contains(*id),
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
    /// This very program, told to run only the test that is the child's life.
    fn start(path: &Path, account: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "the_life_that_is_cut_short", "--nocapture"])
            .env(PATH, path)
            .env(ACCOUNT, account)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let lines = BufReader::new(stdout).lines();
        Self { child, lines }
    }

    fn listen(&mut self, told: &mut Told, lines: usize) {
        let mut heard = 0;
        while heard < lines {
            let line = self.lines.next().expect("the child lives").unwrap();
            heard += usize::from(note(told, &line));
        }
    }

    fn kill(&mut self, told: &mut Told) {
        self.child.kill().unwrap();
        for line in self.lines.by_ref() {
            note(told, &line.unwrap());
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
        // Gone already unless an assertion failed meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// False for what the test harness itself prints.
fn note(told: &mut Told, line: &str) -> bool {
    match line.split_once(' ') {
        Some(("accepted", id)) => told.accepted.insert(id.to_owned()),
        Some(("finished", id)) => told.finished.insert(id.to_owned()),
        _ => false,
    }
}

/// Does nothing unless started by the test above; then it never ends by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_life_that_is_cut_short() {
    let (Ok(path), Ok(account)) = (env::var(PATH), env::var(ACCOUNT)) else {
        return;
    };
    say("\n");
    let store = Arc::new(SqliteStore::open(Path::new(&path)).unwrap());
    let mut lives = tokio::task::JoinSet::new();
    for n in 0..4 {
        lives.spawn(accept_for_ever(Arc::clone(&store), account.clone()));
        lives.spawn(work_for_ever(Arc::clone(&store), format!("child/{n}")));
    }
    lives.join_all().await;
}

async fn accept_for_ever(store: Arc<SqliteStore>, account: String) {
    loop {
        let id = random_text(20).unwrap();
        let audit = NewAudit {
            account_id: account.clone(),
            tracking_id: id.clone(),
            audit_id: format!("report-of-{id}"),
            order: AuditOrder {
                url: "https://page.example/".to_owned(),
                device: "some-phone".to_owned(),
                network: "some-network".to_owned(),
                location: "some-place".to_owned(),
            },
            options: AuditOptions::default(),
            accepted_at: NOW,
        };
        store.submit(Submission::single(audit)).await.unwrap();
        say(&format!("accepted {id}\n"));
    }
}

async fn work_for_ever(store: Arc<SqliteStore>, owner: String) {
    let seat = LeaseScope::any_location(owner);
    for n in 0_u64.. {
        let Some(lease) = store.lease(&seat, NOW, LEASE).await.unwrap() else {
            store.wait_for_work(&seat, LEASE).await;
            continue;
        };
        if n % 5 == 0 {
            store.release(&lease, ReleaseReason::Drained).await.unwrap();
            continue;
        }
        let held = store.finish(&lease, finished(n % 3 == 0)).await.unwrap();
        assert_eq!(held, Hold::Held);
        say(&format!("finished {}\n", lease.tracking_id));
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

/// One write call per line, so that lines of several threads do not mix.
fn say(line: &str) {
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}
