//! Tests of several servers on one PostgreSQL, and of the migration to it.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use plumbline_store::{Lease, LeaseScope, PostgresOptions, PostgresStore, Store, Timestamp};

use crate::client::Client;
use crate::cluster::Database;
use crate::server::{Server, create_key, plumbline};

const NOW: Timestamp = Timestamp(1_700_000_000_000);
/// Much longer than this test.
const LEASE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

fn run(args: &[&str], data: &Path, store: &str) -> Output {
    let mut command = plumbline();
    command.args(args).arg("--data").arg(data);
    command.args(["--store", store]).output().unwrap()
}

/// Returns the standard output of a command that succeeded.
fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn serve(data: &Path, store: &str) -> Server {
    Server::start(data, &["--slots", "0", "--store", store])
}

async fn lease(store: &PostgresStore, owner: &str) -> Lease {
    let scope = LeaseScope::any_location(owner);
    store.lease(&scope, NOW, LEASE).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_on_one_database_share_audits_and_keep_each_others_leases() {
    let database = Database::fresh();
    let data = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let created = run(
        &["keys", "create", "--credits", "5"],
        data[0].path(),
        &database.url,
    );
    let key = stdout(&created).lines().last().unwrap().to_owned();
    let servers = [
        serve(data[0].path(), &database.url),
        serve(data[1].path(), &database.url),
    ];
    let clients = servers.each_ref().map(|server| Client {
        address: server.address,
        key: key.clone(),
    });
    let mut tracking_ids = Vec::new();
    for n in 0..4 {
        let started = clients[n % 2].start(&format!("https://example.com/{n}"));
        assert_eq!(started.status, 200, "{started:?}");
        let tracking_id = started.json["trackingId"].as_str().unwrap().to_owned();
        let status = clients[(n + 1) % 2].get(&format!("/v1/audit/status/{tracking_id}"));
        assert_eq!(status.status, 200, "{status:?}");
        tracking_ids.push(tracking_id);
    }
    let store = PostgresStore::open(&database.url, PostgresOptions::default());
    let store = store.await.unwrap();
    let id = |n: usize| std::fs::read_to_string(data[n].path().join("server-id")).unwrap();
    lease(&store, &format!("embedded-{}-a", id(0))).await;
    lease(&store, &format!("embedded-{}-b", id(1))).await;
    let [first, second] = servers;
    first.kill();
    let first = serve(data[0].path(), &database.url);
    let depth = store.queue_depth().await.unwrap();
    assert_eq!(
        (depth.waiting, depth.running),
        (3, 1),
        "only its own audit is requeued"
    );
    drop((first, second));
    let queue = stdout(&run(&["admin", "queue"], data[0].path(), &database.url));
    assert!(queue.starts_with("3 waiting, 1 running\n"), "{queue}");
    for tracking_id in tracking_ids {
        assert!(queue.contains(&tracking_id), "{queue}");
    }
}

#[test]
fn the_limit_on_starts_is_shared_by_all_servers() {
    let database = Database::fresh();
    let data = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let created = run(
        &["keys", "create", "--credits", "9"],
        data[0].path(),
        &database.url,
    );
    let key = stdout(&created).lines().last().unwrap().to_owned();
    let servers = data.each_ref().map(|data| {
        let args = [
            "--slots",
            "0",
            "--starts-per-minute",
            "3",
            "--store",
            &database.url,
        ];
        Server::start(data.path(), &args)
    });
    let statuses: Vec<_> = (0..4)
        .map(|n| {
            let client = Client {
                address: servers[n % 2].address,
                key: key.clone(),
            };
            client.start("https://example.com/").status
        })
        .collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
}

#[test]
fn an_installation_is_migrated_to_postgresql_with_one_command() {
    let database = Database::fresh();
    let data = tempfile::tempdir().unwrap();
    let from = format!("sqlite:{}", data.path().join("plumbline.db").display());
    let key = create_key(data.path(), 5);
    let server = Server::start(data.path(), &["--slots", "0"]);
    let client = |server: &Server| Client {
        address: server.address,
        key: key.clone(),
    };
    let started = client(&server).start("https://example.com/");
    let tracking_id = started.json["trackingId"].as_str().unwrap();
    let migrate = || {
        let mut command = plumbline();
        command.args(["migrate-store", "--from", &from, "--to", &database.url]);
        command.output().unwrap()
    };
    let refused = migrate();
    assert!(!refused.status.success(), "{refused:?}");
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("another server is using"), "{stderr}");
    assert_eq!(server.stop(), Some(0));

    let migrated = stdout(&migrate());
    assert!(migrated.contains("4 credits in total"), "{migrated}");
    assert_eq!(stdout(&migrate()), migrated, "it can be repeated");
    let server = serve(data.path(), &database.url);
    let status = client(&server).get(&format!("/v1/audit/status/{tracking_id}"));
    assert_eq!(status.status, 200, "{status:?}");
    assert_eq!(client(&server).start("https://example.com/").status, 200);
    let listed = stdout(&run(&["keys", "list"], data.path(), &database.url));
    assert!(listed.contains(" 3 "), "{listed}");
}

#[test]
fn an_unavailable_store_is_an_error_without_the_password() {
    let data = tempfile::tempdir().unwrap();
    for (store, exit) in [
        ("mysql://host/db", 2),
        ("postgres://user:hunter2@127.0.0.1:1/db", 1),
    ] {
        let output = run(&["keys", "list"], data.path(), store);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(exit), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
