//! Requirements of the PostgreSQL store besides the conformance suite.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plumbline_store::{
    Acceptance, Account, AgentBounds, AgentStore, AuditOptions, AuditState, FinishedAudit,
    IdempotencyRecord, LeaseScope, LedgerReason, NewAudit, Order, PostgresOptions, PostgresStore,
    ProcessSet, ReleaseReason, ReturnReason, Store, StoreError, Submission, Timestamp,
};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::NoTls;

use crate::cluster::{Cluster, Database};

/// A time below the interval of polling.
const SOON: Duration = Duration::from_secs(12);

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(since.as_millis().try_into().unwrap())
}

async fn open(database: &Database) -> Arc<PostgresStore> {
    let store = PostgresStore::open(&database.url, PostgresOptions::default()).await;
    Arc::new(store.unwrap())
}

fn audit(account: &Account, name: &str) -> NewAudit {
    NewAudit {
        account_id: account.id.clone(),
        audit_id: format!("report-of-{name}"),
        tracking_id: name.to_owned(),
        order: Order {
            url: "https://page.example/".to_owned(),
            device: "some-phone".to_owned(),
            network: "some-network".to_owned(),
            location: "some-place".to_owned(),
            options: plumbline_store::VisitOptions::default(),
        },
        options: AuditOptions::default(),
        accepted_at: now(),
    }
}

fn finished() -> FinishedAudit {
    FinishedAudit {
        report: "{}".to_owned(),
        error: None,
        finished_at: now(),
        summary: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_servers_may_start_on_an_empty_database_at_once() {
    let database = Database::fresh();
    let mut starts = JoinSet::new();
    for _ in 0..8 {
        let url = database.url.clone();
        starts.spawn(async move {
            let store = PostgresStore::open(&url, PostgresOptions::default()).await;
            store.unwrap().ping().await
        });
    }
    for started in starts.join_all().await {
        started.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_of_a_newer_version_is_refused() {
    let database = Database::fresh();
    drop(open(&database).await);
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "UPDATE plumbline_schema SET version = 99";
    client.batch_execute(sql).await.unwrap();
    let refused = PostgresStore::open(&database.url, PostgresOptions::default()).await;
    assert!(matches!(
        refused.err(),
        Some(StoreError::NewerSchema { found: 99, .. })
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tokens_of_an_earlier_version_have_no_bounds() {
    let database = Database::fresh();
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    for sql in [
        include_str!("../../src/postgres/migrations/0001_everything.sql"),
        include_str!("../../src/postgres/migrations/0002_agents.sql"),
        include_str!("../../src/postgres/migrations/0003_limits_for_many.sql"),
        "CREATE TABLE plumbline_schema (version BIGINT NOT NULL);
         INSERT INTO plumbline_schema VALUES (3);
         INSERT INTO agents (id, name, digest, created_at)
         VALUES ('t', 'old', decode(repeat('00', 32), 'hex'), 1)",
    ] {
        client.batch_execute(sql).await.unwrap();
    }
    let store = open(&database).await;
    let agent = store.agent("t").await.unwrap().unwrap();
    assert_eq!(agent.bounds, AgentBounds::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn waiters_on_another_server_are_woken() {
    let database = Database::fresh();
    let (here, there) = (open(&database).await, open(&database).await);
    let account = here.create_account("someone", 5, now()).await.unwrap();
    let waiter = tokio::spawn({
        let there = Arc::clone(&there);
        async move {
            let scope = LeaseScope::any_location("there/1");
            loop {
                let lease = there.lease(&scope, now(), Duration::from_secs(60)).await;
                match lease.unwrap() {
                    Some(lease) => return lease,
                    None => there.wait_for_work(&scope, SOON * 10).await,
                }
            }
        }
    });
    here.submit(Submission::single(audit(&account, "a")))
        .await
        .unwrap();
    let lease = timeout(SOON, waiter)
        .await
        .expect("woken by a notification")
        .unwrap();
    let watcher = tokio::spawn({
        let (here, account) = (Arc::clone(&here), account.clone());
        async move { here.wait_for_completion(&account.id, "a", SOON * 10).await }
    });
    there.finish(&lease, finished()).await.unwrap();
    let status = timeout(SOON, watcher)
        .await
        .expect("woken by a notification");
    let status = status.unwrap().unwrap().unwrap();
    assert_eq!(status.state, AuditState::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn progress_is_known_on_all_servers_including_one_that_starts_later() {
    async fn wait_for_phase(store: &PostgresStore, tracking_id: &str, phase: Option<&str>) {
        let wait = async {
            while store.progress().phase(tracking_id).as_deref() != phase {
                store
                    .progress()
                    .wait_for_change(Duration::from_millis(100))
                    .await;
            }
        };
        let result = timeout(SOON * 5, wait).await;
        result.unwrap_or_else(|_| panic!("{tracking_id} does not reach {phase:?}"));
    }
    let database = Database::fresh();
    let (here, there) = (open(&database).await, open(&database).await);
    let account = here.create_account("someone", 5, now()).await.unwrap();
    for name in ["a", "b"] {
        here.submit(Submission::single(audit(&account, name)))
            .await
            .unwrap();
    }
    here.progress().record_phase("a", "loading");
    here.progress().record_phase("b", "loading");
    wait_for_phase(&there, "a", Some("loading")).await;
    let later = open(&database).await;
    wait_for_phase(&later, "a", Some("loading")).await;
    there.progress().record_phase("a", "judging");
    wait_for_phase(&here, "a", Some("judging")).await;
    wait_for_phase(&later, "a", Some("judging")).await;
    here.progress().remove("b");
    wait_for_phase(&later, "b", None).await;
    let scope = LeaseScope::any_location("there/1");
    let lease = there.lease(&scope, now(), Duration::from_secs(60)).await;
    there
        .finish(&lease.unwrap().unwrap(), finished())
        .await
        .unwrap();
    wait_for_phase(&later, "a", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_limit_of_running_audits_per_account_holds_across_servers() {
    let database = Database::fresh();
    let options = PostgresOptions {
        running_per_account: Some(3),
        ..PostgresOptions::default()
    };
    let mut servers = Vec::new();
    for _ in 0..2 {
        servers.push(Arc::new(
            PostgresStore::open(&database.url, options).await.unwrap(),
        ));
    }
    let account = servers[0].create_account("busy", 40, now()).await.unwrap();
    for n in 0..40 {
        let audit = audit(&account, &n.to_string());
        servers[0].submit(Submission::single(audit)).await.unwrap();
    }
    let mut leasers = JoinSet::new();
    for n in 0..16 {
        let server = Arc::clone(&servers[n % 2]);
        leasers.spawn(async move {
            let scope = LeaseScope::any_location("agent");
            let lease = server.lease(&scope, now(), Duration::from_secs(60)).await;
            usize::from(lease.unwrap().is_some())
        });
    }
    let leased: usize = leasers.join_all().await.into_iter().sum();
    assert_eq!(leased, 3);
}

/// A cancellation locks an audit before its account. What ends a lease at the same time waits for
/// the audit and must not have locked the account yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_end_of_a_lease_locks_the_audit_before_its_account() {
    let database = Database::fresh();
    let store = open(&database).await;
    let account = store.create_account("someone", 5, now()).await.unwrap();
    let (mut client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let (observer, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let processes = ProcessSet::Single("here".into());
    for name in ["released", "recovered"] {
        let submission = Submission::single(audit(&account, name));
        store.submit(submission).await.unwrap();
        let scope = LeaseScope::any_location("here/1");
        let lease = store.lease(&scope, now(), Duration::from_secs(60)).await;
        let lease = lease.unwrap().unwrap();

        let transaction = client.transaction().await.unwrap();
        let sql = "SELECT FROM audits WHERE state = 'running' FOR UPDATE";
        assert_eq!(transaction.query(sql, &[]).await.unwrap().len(), 1);
        let ending = tokio::spawn({
            let (store, processes) = (Arc::clone(&store), processes.clone());
            async move {
                if name == "released" {
                    let drained = ReleaseReason::Returned(ReturnReason::Drained);
                    store.release(&lease, drained).await.unwrap();
                } else {
                    store.recover(&processes).await.unwrap();
                }
            }
        });
        let sql = "SELECT FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while observer.query(sql, &[]).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let sql = "SELECT FROM accounts FOR NO KEY UPDATE NOWAIT";
        let locked = transaction.query(sql, &[]).await;
        assert_eq!(locked.unwrap().len(), 1, "{name}: the account is free");
        transaction.commit().await.unwrap();
        ending.await.unwrap();
        let ended = store.lease(&scope, now(), Duration::from_secs(60)).await;
        store
            .finish(&ended.unwrap().unwrap(), finished())
            .await
            .unwrap();
    }
}

/// Submissions are repeated with their idempotency key and finishes with their lease, as clients
/// and agents do.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_that_stops_and_starts_under_load_loses_nothing_and_charges_nobody_twice() {
    const STARTS: u32 = 240;
    const LEASE: Duration = Duration::from_secs(2);
    let mut cluster = Cluster::start();
    let database = cluster.database();
    let servers = [open(&database).await, open(&database).await];
    let account = servers[0]
        .create_account("someone", STARTS * 2, now())
        .await
        .unwrap();

    let mut starters = JoinSet::new();
    for part in 0..4 {
        let (server, account) = (Arc::clone(&servers[part % 2]), account.clone());
        starters.spawn(async move {
            for n in (part..STARTS as usize).step_by(4) {
                start_until_accepted(&*server, &account, &n.to_string()).await;
            }
        });
    }
    let mut workers = JoinSet::new();
    for n in 0..4 {
        let server = Arc::clone(&servers[n % 2]);
        workers.spawn(async move {
            let scope = LeaseScope::any_location(&*format!("worker/{n}"));
            loop {
                match server.lease(&scope, now(), LEASE).await {
                    Ok(Some(lease)) => {
                        // A lost lease is no error: another attempt finishes the audit.
                        while server.finish(&lease, finished()).await.is_err() {
                            tokio::task::yield_now().await;
                        }
                    }
                    Ok(None) => server.wait_for_work(&scope, LEASE).await,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        });
    }
    for _ in 0..3 {
        // Restarted when some more audits have been completed.
        let so_far = completed(&*servers[0], &account).await;
        while completed(&*servers[0], &account).await < so_far + 20 {
            tokio::task::yield_now().await;
        }
        cluster.stop(true);
    }
    timeout(Duration::from_secs(120), starters.join_all())
        .await
        .expect("every start is answered");
    timeout(Duration::from_secs(120), async {
        while completed(&*servers[1], &account).await < STARTS as usize {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("every audit is completed");
    workers.abort_all();

    let ledger = servers[0].ledger(&account.id).await.unwrap();
    let charged: Vec<_> = ledger
        .iter()
        .filter(|entry| entry.reason == LedgerReason::Audit)
        .filter_map(|entry| entry.tracking_id.clone())
        .collect();
    let once: HashSet<_> = charged.iter().collect();
    assert_eq!(
        (charged.len(), once.len()),
        (STARTS as usize, STARTS as usize)
    );
    let balance = servers[0].add_credits(&account.id, 0, now()).await.unwrap();
    assert_eq!(balance, i64::from(STARTS));
}

async fn start_until_accepted(store: &dyn Store, account: &Account, name: &str) {
    loop {
        let submission = Submission {
            idempotency: Some(IdempotencyRecord {
                key: name.to_owned(),
                digest: [0; 32],
                reply: name.to_owned(),
                until: now().plus(Duration::from_secs(600)),
            }),
            ..Submission::single(audit(account, name))
        };
        match store.submit(submission).await {
            Ok(Acceptance::Accepted | Acceptance::Replayed(_)) => return,
            Ok(other) => panic!("{other:?}"),
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Returns the number of completed audits, repeating the query while the database is unavailable.
async fn completed(store: &dyn Store, account: &Account) -> usize {
    loop {
        let (summary, depth) = (store.accounts().await, store.queue_depth().await);
        if let (Ok(summaries), Ok(_)) = (summary, depth) {
            let summary = summaries
                .iter()
                .find(|summary| summary.account.id == account.id);
            let summary = summary.expect("the account stays");
            return usize::try_from(summary.audits - summary.unfinished).unwrap();
        }
        tokio::task::yield_now().await;
    }
}
