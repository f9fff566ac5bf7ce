//! Requirements of the SQLite file besides the conformance suite.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plumbline_store::{
    Account, AgentBounds, AgentStore, AuditFilter, AuditOptions, AuditState, Key, LeaseScope,
    NewAudit, Order, PageStore, SqliteStore, Store, StoreError, Submission, Timestamp,
};
use rusqlite::Connection;
use tempfile::TempDir;

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn database_path() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("some/where/plumbline.db");
    (directory, path)
}

fn audit(account: &Account, name: String) -> NewAudit {
    NewAudit {
        account_id: account.id.clone(),
        audit_id: format!("report-of-{name}"),
        tracking_id: name,
        order: Order {
            url: "https://page.example/".to_owned(),
            device: "some-phone".to_owned(),
            network: "some-network".to_owned(),
            location: "some-place".to_owned(),
            options: plumbline_store::VisitOptions::default(),
        },
        options: AuditOptions::default(),
        accepted_at: NOW,
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn the_files_contain_the_digest_of_a_secret_and_not_the_secret() {
    let (_directory, path) = database_path();
    let store = SqliteStore::open(&path).unwrap();
    let account = store.create_account("someone", 0, NOW).await.unwrap();
    let key = Key::generate().unwrap();
    let add = store.add_key(&account.id, key.id(), key.digest(), None, NOW);
    add.await.unwrap();

    let kept: Vec<u8> = files(path.parent().unwrap())
        .iter()
        .flat_map(|file| fs::read(file).unwrap())
        .collect();
    let contains = |part: &[u8]| kept.windows(part.len()).any(|window| window == part);
    let revealed = key.reveal();
    let secret = revealed.rsplit('_').next().unwrap();
    assert!(contains(&key.digest().0));
    assert!(contains(key.id().as_bytes()));
    assert!(!contains(secret.as_bytes()));
}

#[tokio::test]
async fn the_files_are_private_to_their_owner() {
    let (_directory, path) = database_path();
    let store = SqliteStore::open(&path).unwrap();
    store.create_account("someone", 0, NOW).await.unwrap();
    let directory = path.parent().unwrap();
    assert_eq!(mode(directory), 0o700);
    assert_eq!(mode(directory.parent().unwrap()), 0o700);
    assert_eq!(
        files(directory).len(),
        3,
        "the file, its log, the log's index"
    );
    for file in files(directory) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    drop(store);

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let _store = SqliteStore::open(&path).unwrap();
    for file in files(directory) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_file_of_a_newer_version_is_refused() {
    let (_directory, path) = database_path();
    drop(SqliteStore::open(&path).unwrap());
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let refused = SqliteStore::open(&path).err().unwrap();
    assert!(matches!(refused, StoreError::NewerSchema { found: 99, .. }));
}

#[test]
fn a_file_that_is_not_a_database_is_refused_and_not_changed() {
    let (_directory, path) = database_path();
    let directory = path.parent().unwrap();
    fs::create_dir_all(directory).unwrap();
    let text = "a letter to a friend, long enough to be looked at as a file's head\n".repeat(99);
    fs::write(&path, &text).unwrap();
    assert!(SqliteStore::open(&path).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert!(SqliteStore::open(directory).is_err());
    assert!(SqliteStore::open(Path::new("")).is_err());
    assert!(SqliteStore::open(&path.join("below-a-file")).is_err());
}

#[test]
fn several_processes_can_create_the_same_file_at_once() {
    for _ in 0..20 {
        let (_directory, path) = database_path();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| SqliteStore::open(&path).unwrap());
            }
        });
    }
}

#[tokio::test]
async fn pending_writes_are_completed_when_the_store_is_dropped() {
    let (_directory, path) = database_path();
    let store = SqliteStore::open(&path).unwrap();
    let account = store.create_account("someone", 100, NOW).await.unwrap();
    for n in 0..100 {
        let mut accept = pin!(store.submit(Submission::single(audit(&account, n.to_string()))));
        tokio::select! {
            biased;
            answer = &mut accept => { answer.unwrap(); }
            () = std::future::ready(()) => {}
        }
    }
    drop(store);
    let directory = path.parent().unwrap();
    assert_eq!(
        files(directory),
        std::slice::from_ref(&path),
        "the log was emptied"
    );
    let store = SqliteStore::open(&path).unwrap();
    for n in 0..100 {
        let status = store.status(&account.id, &n.to_string()).await.unwrap();
        assert!(status.is_some(), "{n}");
    }
}

/// SQLite's locks have no queue: other processes must get the lock between two transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn another_process_can_write_beside_a_continuous_writer() {
    let (_directory, path) = database_path();
    let busy = Arc::new(SqliteStore::open(&path).unwrap());
    let account = busy.create_account("busy", u32::MAX, NOW).await.unwrap();
    let enough = Arc::new(AtomicBool::new(false));
    let flood: Vec<_> = (0..32)
        .map(|task| {
            let (busy, account) = (Arc::clone(&busy), account.clone());
            let enough = Arc::clone(&enough);
            tokio::spawn(async move {
                for n in 0.. {
                    if enough.load(Ordering::Relaxed) {
                        return;
                    }
                    let audit = audit(&account, format!("{task}-{n}"));
                    busy.submit(Submission::single(audit)).await.unwrap();
                }
            })
        })
        .collect();
    for _ in 0..5 {
        let other = SqliteStore::open(&path).unwrap();
        let account = other.create_account("other", 0, NOW).await.unwrap();
        assert_eq!(other.add_credits(&account.id, 5, NOW).await.unwrap(), 5);
    }
    enough.store(true, Ordering::Relaxed);
    for task in flood {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_failed_write_is_reported_and_later_writes_succeed() {
    let (_directory, path) = database_path();
    let store = SqliteStore::open(&path).unwrap();
    let account = store.create_account("someone", 1, NOW).await.unwrap();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("ALTER TABLE ledger RENAME TO gone")
        .unwrap();
    let refused = store
        .submit(Submission::single(audit(&account, "a".to_owned())))
        .await;
    assert!(
        matches!(refused, Err(StoreError::Backend(_))),
        "{refused:?}"
    );
    connection
        .execute_batch("ALTER TABLE gone RENAME TO ledger")
        .unwrap();
    tokio::time::timeout(Duration::from_secs(60), async {
        assert_eq!(store.add_credits(&account.id, 0, NOW).await.unwrap(), 1);
        store
            .submit(Submission::single(audit(&account, "a".to_owned())))
            .await
            .unwrap();
    })
    .await
    .unwrap();
}

/// Creates a file of the first version, with an audit in every state.
fn file_of_the_first_version(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let connection = Connection::open(path).unwrap();
    let first = include_str!("../../src/sqlite/migrations/0001_accounts_and_audits.sql");
    connection.execute_batch(first).unwrap();
    connection
        .execute_batch(
            "INSERT INTO accounts VALUES ('a', 'one', 7, 1), ('b', 'two', 9, 1);
             INSERT INTO audits (tracking_id, audit_id, account_id, url, device, network, location,
                                 state, attempt, lease_owner, lease_expires_at, accepted_at, finished_at)
             VALUES ('t1', 'a1', 'a', 'u', 'd', 'n', 'l', 'completed', 1, NULL, NULL, 5, 6),
                    ('t2', 'a2', 'b', 'u', 'd', 'n', 'l', 'waiting', 0, NULL, NULL, 5, NULL),
                    ('t3', 'a3', 'a', 'u', 'd', 'n', 'l', 'running', 1, 'agent/1', 99, 7, NULL);
             INSERT INTO reports VALUES (1, '{}');
             INSERT INTO ledger (account_id, amount, reason, position, at)
             VALUES ('a', 9, 'opening', NULL, 1), ('a', -1, 'audit', 1, 5), ('a', -1, 'audit', 3, 7),
                    ('b', 10, 'opening', NULL, 1), ('b', -1, 'audit', 2, 5);
             PRAGMA user_version = 1;",
        )
        .unwrap();
}

#[tokio::test]
async fn a_file_of_the_first_version_is_migrated_with_all_its_data() {
    let (_directory, path) = database_path();
    file_of_the_first_version(&path);
    let store = SqliteStore::open(&path).unwrap();
    let page = store
        .audits("a", AuditFilter::default(), None, 10)
        .await
        .unwrap();
    let seen: Vec<_> = page
        .audits
        .iter()
        .map(|audit| (audit.tracking_id.as_str(), audit.number, audit.state))
        .collect();
    assert_eq!(
        seen,
        [
            ("t3", 2, AuditState::InProgress),
            ("t1", 1, AuditState::Completed)
        ]
    );
    assert_eq!(store.report("a", "a1").await.unwrap().unwrap().report, "{}");
    let ledger = store.ledger("a").await.unwrap();
    assert_eq!(ledger.iter().map(|entry| entry.amount).sum::<i64>(), 7);
    // First the audit whose lease has expired, then the waiting one.
    for expected in ["t3", "t2"] {
        let scope = LeaseScope::any_location("agent/1");
        let lease = store.lease(&scope, NOW, Duration::from_secs(1)).await;
        assert_eq!(lease.unwrap().unwrap().tracking_id, expected);
    }
    let account = store.accounts().await.unwrap().remove(0).account;
    store
        .submit(Submission::single(audit(&account, "t4".to_owned())))
        .await
        .unwrap();
    let page = store
        .audits("a", AuditFilter::default(), None, 1)
        .await
        .unwrap();
    assert_eq!(
        (page.audits[0].tracking_id.as_str(), page.audits[0].number),
        ("t4", 3)
    );
    let connection = Connection::open(&path).unwrap();
    let broken: i64 = connection
        .query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(broken, 0);
}

/// Creates a file of the version before tokens had bounds, with a token and a shared link.
fn file_of_the_fifth_version(path: &Path) {
    file_of_the_first_version(path);
    let connection = Connection::open(path).unwrap();
    for migration in [
        include_str!("../../src/sqlite/migrations/0002_lists_and_options.sql"),
        include_str!("../../src/sqlite/migrations/0003_sessions_and_shares.sql"),
        include_str!("../../src/sqlite/migrations/0004_fair_queue.sql"),
        include_str!("../../src/sqlite/migrations/0005_agents.sql"),
        "INSERT INTO agents (id, name, digest, created_at) VALUES ('t', 'old', zeroblob(32), 1);
         INSERT INTO shares (position, token, shared_at) VALUES (1, 'link', 1);
         PRAGMA user_version = 5;",
    ] {
        connection.execute_batch(migration).unwrap();
    }
}

#[tokio::test]
async fn tokens_and_links_of_an_earlier_version_have_no_bounds() {
    let (_directory, path) = database_path();
    file_of_the_fifth_version(&path);
    let store = SqliteStore::open(&path).unwrap();
    let agent = store.agent("t").await.unwrap().unwrap();
    assert_eq!(agent.bounds, AgentBounds::default());
    let shared = store.shared_report("link", Timestamp(i64::MAX)).await;
    assert_eq!(shared.unwrap().unwrap().audit_id, "a1");
}

#[tokio::test]
async fn deleted_data_is_overwritten_in_the_file() {
    let (_directory, path) = database_path();
    let store = SqliteStore::open(&path).unwrap();
    let account = store.create_account("someone", 1, NOW).await.unwrap();
    let audit = audit(&account, "first".to_owned());
    store.submit(Submission::single(audit)).await.unwrap();
    let scope = LeaseScope::any_location("agent/1");
    let lease = store.lease(&scope, NOW, Duration::from_secs(1)).await;
    let lease = lease.unwrap().unwrap();
    let secret = b"only-in-this-report";
    let text = String::from_utf8(secret.repeat(1000)).unwrap();
    let finished = plumbline_store::FinishedAudit {
        report: format!("{{\"text\":\"{text}\"}}"),
        error: None,
        finished_at: NOW,
        summary: None,
    };
    store.finish(&lease, finished).await.unwrap();
    // Closing the store writes the write-ahead log into the file.
    drop(store);
    let contains = |part: &[u8]| {
        let kept = fs::read(&path).unwrap();
        kept.windows(part.len()).any(|window| window == part)
    };
    assert!(contains(secret));
    let store = SqliteStore::open(&path).unwrap();
    let deleted = store.delete_audit(&account.id, &lease.audit_id).await;
    assert!(deleted.unwrap());
    drop(store);
    assert!(!contains(secret));
}

#[tokio::test]
async fn the_position_of_a_deleted_audit_is_not_used_again() {
    let (_directory, path) = database_path();
    let store = SqliteStore::open(&path).unwrap();
    let account = store.create_account("someone", 5, NOW).await.unwrap();
    store
        .submit(Submission::single(audit(&account, "first".to_owned())))
        .await
        .unwrap();
    let lease = store
        .lease(
            &LeaseScope::any_location("agent/1"),
            NOW,
            Duration::from_secs(1),
        )
        .await
        .unwrap()
        .unwrap();
    let finished = plumbline_store::FinishedAudit {
        report: "{}".to_owned(),
        error: None,
        finished_at: NOW,
        summary: None,
    };
    store.finish(&lease, finished).await.unwrap();
    assert!(
        store
            .delete_audit(&account.id, &lease.audit_id)
            .await
            .unwrap()
    );
    store
        .submit(Submission::single(audit(&account, "second".to_owned())))
        .await
        .unwrap();
    let named: Vec<_> = store
        .ledger(&account.id)
        .await
        .unwrap()
        .into_iter()
        .map(|entry| entry.tracking_id)
        .collect();
    assert_eq!(named, [None, None, Some("second".to_owned())]);
}
