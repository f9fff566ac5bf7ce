//! Moves an installation from SQLite to PostgreSQL; the move is killed and resumed.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plumbline_store::{
    AgentBounds, AgentStore, AgentToken, AuditError, AuditFilter, AuditOptions, FinishedAudit,
    IdempotencyRecord, Key, LeaseScope, NewAudit, Order, PageStore, PostgresOptions, PostgresStore,
    ReleaseReason, ReturnReason, SecretStore, Share, SqliteStore, Store, StoreError, Submission,
    Timestamp, move_to_postgres, session_digest,
};
use rusqlite::Connection;

use crate::cluster::Database;

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const LEASE: Duration = Duration::from_secs(60);
/// Environment variables of the child process.
const FROM: &str = "PLUMBLINE_MOVE_TEST_FROM";
const TO: &str = "PLUMBLINE_MOVE_TEST_TO";

/// Creates accounts in various states, with 1,500 audits of which half are completed. Returns their
/// ids and a key.
async fn installation(path: &Path) -> (Vec<String>, Key) {
    let store = SqliteStore::open(path).unwrap();
    let mut accounts = Vec::new();
    let key = Key::generate().unwrap();
    for (name, credits) in [("one", 2_000), ("two — ü", 5), ("poor", 0)] {
        let account = store.create_account(name, credits, NOW).await.unwrap();
        accounts.push(account.id);
    }
    let add = store.add_key(
        &accounts[0],
        key.id(),
        key.digest(),
        Some(NOW.plus(LEASE)),
        NOW,
    );
    add.await.unwrap();
    store.webhook_secret(&accounts[1], false).await.unwrap();
    store.add_credits(&accounts[1], -2, NOW).await.unwrap();
    let opened = store.open_session(session_digest("s"), key.id(), NOW.plus(LEASE), 9, NOW);
    opened.await.unwrap();
    let audit = |n: u32| NewAudit {
        account_id: accounts[0].clone(),
        tracking_id: format!("trk_{n}"),
        audit_id: format!("aud_{n}"),
        order: Order {
            url: format!("https://page.example/{n}/ö"),
            device: "some-phone".to_owned(),
            network: "some-network".to_owned(),
            location: ["here", "there"][n as usize % 2].to_owned(),
            options: plumbline_store::VisitOptions::default(),
        },
        options: AuditOptions {
            runs: 1,
            webhook: n
                .is_multiple_of(10)
                .then(|| "https://hook.example/".to_owned()),
            labels: vec![format!("label {}", n % 3)],
        },
        accepted_at: NOW,
    };
    let batch = Submission {
        audits: (0..1_000).map(audit).collect(),
        batch_id: Some("bat_1".to_owned()),
        idempotency: Some(IdempotencyRecord {
            key: "k".to_owned(),
            digest: [7; 32],
            reply: "reply".to_owned(),
            until: NOW.plus(LEASE),
        }),
        ..Submission::single(audit(0))
    };
    store.submit(batch).await.unwrap();
    let starts = Submission {
        audits: (1_000..1_500).map(audit).collect(),
        ..Submission::single(audit(1_000))
    };
    store.submit(starts).await.unwrap();
    let scope = LeaseScope::any_location("agent/1");
    for n in 0..760 {
        let lease = store.lease(&scope, NOW, LEASE).await.unwrap().unwrap();
        match n % 50 {
            0 => store
                .release(&lease, ReleaseReason::Returned(ReturnReason::Fault))
                .await
                .unwrap(),
            1 => continue,
            _ => {
                let error = (n % 7 == 0).then(|| AuditError {
                    code: "INTERNAL".to_owned(),
                    message: "it broke".to_owned(),
                });
                let finished = FinishedAudit {
                    report: format!("{{\"n\":{n},\"text\":\"{}\"}}", "ä".repeat(2_000)),
                    error,
                    finished_at: NOW,
                    summary: None,
                };
                store.finish(&lease, finished).await.unwrap()
            }
        };
    }
    let completed = store.audits(
        &accounts[0],
        AuditFilter {
            state: Some(plumbline_store::AuditState::Completed),
            ..AuditFilter::default()
        },
        None,
        3,
    );
    let completed = completed.await.unwrap().audits;
    let share = Share {
        token: "token".to_owned(),
        expires_at: Some(NOW.plus(LEASE)),
    };
    let share = store.share(&accounts[0], &completed[0].audit_id, Some(share), NOW);
    share.await.unwrap();
    let bounds = AgentBounds {
        locations: Some(vec!["here".to_owned(), "there".to_owned()]),
        slots: Some(4),
    };
    let stored = store.put_secret(&accounts[1], "password", &[0, 255, 7], 9, NOW);
    assert!(stored.await.unwrap());
    let stored = store.put_saved_session(&accounts[1], "shop", &[1, 0, 254], 9, NOW);
    assert!(stored.await.unwrap());
    let token = AgentToken::generate().unwrap();
    let (id, digest) = (token.key().id(), token.key().digest());
    let added = store.add_agent("frankfurt", id, digest, &bounds, NOW);
    added.await.unwrap();
    store
        .delete_audit(&accounts[0], &completed[1].audit_id)
        .await
        .unwrap();
    (accounts, key)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_killed_and_run_again_moves_everything_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plumbline.db");
    let (accounts, key) = installation(&path).await;
    let database = Database::fresh();

    let first = run_and_kill(&path, &database.url, 3);
    assert!(
        first.iter().all(|line| !line.starts_with("ledger")),
        "{first:?}"
    );
    let half = PostgresStore::open(&database.url, PostgresOptions::default()).await;
    assert!(matches!(half.err(), Some(StoreError::Refused(_))));
    run_and_kill(&path, &database.url, 4);

    let mut batches = Vec::new();
    let moved = move_to_postgres(&path, &database.url, |table, rows| {
        batches.push(format!("{table} {rows}"));
    });
    let moved = moved.await.unwrap();
    assert!(!batches.contains(&first[0]), "the move must be resumed");
    let rows = |name: &str| {
        moved
            .rows
            .iter()
            .find(|(table, _)| *table == name)
            .unwrap()
            .1
    };
    assert_eq!((rows("accounts"), rows("audits")), (3, 1_499));

    let before = SqliteStore::open(&path).unwrap();
    let after = PostgresStore::open(&database.url, PostgresOptions::default())
        .await
        .unwrap();
    compare(&before, &after, &accounts).await;
    assert_eq!(
        after.key(key.id()).await.unwrap(),
        before.key(key.id()).await.unwrap()
    );
    assert_eq!(
        after.session(session_digest("s"), NOW).await.unwrap(),
        before.session(session_digest("s"), NOW).await.unwrap()
    );
    let shared = before.shared_report("token", NOW).await.unwrap();
    assert!(shared.is_some());
    assert_eq!(after.shared_report("token", NOW).await.unwrap(), shared);
    let over = after.shared_report("token", NOW.plus(LEASE)).await;
    assert_eq!(over.unwrap(), None);
    let secret = before
        .sealed_secret(&accounts[1], "password")
        .await
        .unwrap();
    assert_eq!(secret.as_deref(), Some(&[0, 255, 7][..]));
    assert_eq!(
        after.sealed_secret(&accounts[1], "password").await.unwrap(),
        secret
    );
    let session = before.saved_session(&accounts[1], "shop").await.unwrap();
    assert!(session.is_some());
    assert_eq!(
        after.saved_session(&accounts[1], "shop").await.unwrap(),
        session
    );
    let agents = before.agents().await.unwrap();
    assert_eq!(agents[0].bounds.slots, Some(4));
    assert_eq!(after.agents().await.unwrap(), agents);
    // Both stores lease the same audits next.
    let scope = LeaseScope::any_location("agent/2");
    for _ in 0..20 {
        let here = before.lease(&scope, NOW, LEASE).await.unwrap();
        assert!(here.is_some());
        assert_eq!(after.lease(&scope, NOW, LEASE).await.unwrap(), here);
    }
    drop(before);

    // Another move is refused: the file has changed since, and the other file is a different one.
    let again = move_to_postgres(&path, &database.url, |_, _| {}).await;
    assert!(
        matches!(again, Err(StoreError::Refused(_))),
        "the file has changed since"
    );
    let other = directory.path().join("other.db");
    drop(SqliteStore::open(&other).unwrap());
    let refused = move_to_postgres(&other, &database.url, |_, _| {}).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))));
}

async fn compare(before: &SqliteStore, after: &PostgresStore, accounts: &[String]) {
    assert_eq!(
        after.accounts().await.unwrap(),
        before.accounts().await.unwrap()
    );
    assert_eq!(
        after.queue_depth().await.unwrap(),
        before.queue_depth().await.unwrap()
    );
    assert_eq!(
        after.delivery_depth().await.unwrap(),
        before.delivery_depth().await.unwrap()
    );
    for account in accounts {
        assert_eq!(
            after.ledger(account).await.unwrap(),
            before.ledger(account).await.unwrap()
        );
        let mut place = None;
        loop {
            let page = async |store: &dyn Store| {
                let filter = AuditFilter::default();
                store.audits(account, filter, place, 100).await.unwrap()
            };
            let (here, there) = (page(before).await, page(after).await);
            assert_eq!(there, here);
            for audit in &here.audits {
                let id = audit.audit_id.as_str();
                let report = before.report(account, id).await.unwrap();
                assert_eq!(after.report(account, id).await.unwrap(), report);
            }
            place = here.next;
            if place.is_none() {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_restarts_if_the_file_has_changed_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plumbline.db");
    let (accounts, _) = installation(&path).await;
    let database = Database::fresh();
    run_and_kill(&path, &database.url, 3);
    let store = SqliteStore::open(&path).unwrap();
    store.add_credits(&accounts[0], 17, NOW).await.unwrap();
    move_to_postgres(&path, &database.url, |_, _| {})
        .await
        .unwrap();
    let after = PostgresStore::open(&database.url, PostgresOptions::default())
        .await
        .unwrap();
    compare(&store, &after, &accounts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_with_other_data_is_refused_and_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plumbline.db");
    drop(SqliteStore::open(&path).unwrap());
    let database = Database::fresh();
    let store = PostgresStore::open(&database.url, PostgresOptions::default())
        .await
        .unwrap();
    store.create_account("someone", 3, NOW).await.unwrap();
    let refused = move_to_postgres(&path, &database.url, |_, _| {}).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))));
    assert_eq!(store.accounts().await.unwrap().len(), 1);
    let missing = move_to_postgres(&directory.path().join("none"), &database.url, |_, _| {}).await;
    assert!(matches!(missing, Err(StoreError::Refused(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_is_locked_for_writing_while_it_is_moved() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plumbline.db");
    installation(&path).await;
    let database = Database::fresh();
    let other = Connection::open(&path).unwrap();
    other.busy_timeout(Duration::ZERO).unwrap();
    let mut refused = 0;
    let moved = move_to_postgres(&path, &database.url, |_, _| {
        refused += usize::from(other.execute_batch("DELETE FROM ledger").is_err());
    });
    moved.await.unwrap();
    assert!(refused > 0);
}

/// Starts this program again as the move, kills it after a number of batches, and returns them.
fn run_and_kill(from: &Path, to: &str, batches: usize) -> Vec<String> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "moving::child_process_that_is_killed",
            "--nocapture",
        ])
        .env(FROM, from)
        .env(TO, to)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let copied: Vec<_> = lines
        .map_while(Result::ok)
        .filter_map(|line| Some(line.strip_prefix("moved ")?.to_owned()))
        .take(batches)
        .collect();
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "ended by the signal");
    assert_eq!(copied.len(), batches);
    copied
}

/// Does nothing unless it is started by the tests above.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_process_that_is_killed() {
    let (Ok(from), Ok(to)) = (env::var(FROM), env::var(TO)) else {
        return;
    };
    let _ = std::io::stdout().write_all(b"\n");
    let moved = move_to_postgres(Path::new(&from), &to, |table, rows| {
        let line = format!("moved {table} {rows}\n");
        let _ = std::io::stdout().write_all(line.as_bytes());
        let _ = std::io::stdout().flush();
    });
    moved.await.unwrap();
}
