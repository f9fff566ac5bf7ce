//! Two servers on one PostgreSQL, as behind a load balancer, which share limits and progress.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use plumbline_server::{App, ServeOptions, WEBHOOK_RETRIES, deliver_webhooks};
use plumbline_store::{
    FinishedAudit, Key, LeaseScope, LeaseState, PostgresOptions, PostgresStore, Store,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
};

use crate::{
    agent::{Agent, report},
    cluster::Database,
    options::assert_nul_is_refused,
    receivers::{PlainTransport, Tarpit, TestReceiver},
    rig::{
        HttpRequest, NOW, Reply, Server, assembled, failure, get, order, post, run_server, start,
    },
    visitor::sign_in,
};

struct TwoServers {
    addresses: [Server; 2],
    stores: [Arc<PostgresStore>; 2],
    key: String,
    clock: Arc<AtomicI64>,
    _running: [oneshot::Sender<()>; 2],
    _database: Database,
    _dir: TempDir,
}

impl TwoServers {
    /// Starts two servers, with an account that has a hundred credits and a key.
    async fn with(change: impl Fn(&mut App)) -> Self {
        let (database, dir) = (Database::fresh(), tempfile::tempdir().unwrap());
        let clock = Arc::new(AtomicI64::new(NOW.0));
        let start_server = async || {
            let store = PostgresStore::open(&database.url, PostgresOptions::default());
            let store = Arc::new(store.await.unwrap());
            let mut app = assembled(&store, dir.path(), &clock, |_| {});
            change(&mut app);
            let (stop, stopped) = oneshot::channel();
            let (server, _) = run_server(app, ServeOptions::default(), stopped).await;
            (server, store, stop)
        };
        let (one, other) = (start_server().await, start_server().await);
        let account = one.1.create_account("tests", 100, NOW).await.unwrap();
        let key = Key::generate().unwrap();
        let adding = one
            .1
            .add_key(&account.id, key.id(), key.digest(), None, NOW);
        adding.await.unwrap();
        Self {
            addresses: [one.0, other.0],
            stores: [one.1, other.1],
            key: key.reveal(),
            clock,
            _running: [one.2, other.2],
            _database: database,
            _dir: dir,
        }
    }

    async fn each(&self, request: &HttpRequest) -> [Reply; 2] {
        [
            self.addresses[0].send(request).await,
            self.addresses[1].send(request).await,
        ]
    }

    /// Sends concurrent requests to both servers, and returns how many get this status.
    async fn count_status(&self, status: u16, requests: usize, request: &HttpRequest) -> usize {
        let mut sending = JoinSet::new();
        for n in 0..requests {
            let (server, request) = (self.addresses[n % 2], request.clone());
            sending.spawn(async move { server.send(&request).await.status });
        }
        let statuses = sending.join_all().await;
        statuses.iter().filter(|other| **other == status).count()
    }
}

fn limit_headers(reply: &Reply) -> [Option<&str>; 4] {
    let names = ["limit", "remaining", "reset"].map(|name| format!("x-ratelimit-{name}"));
    let [limit, remaining, reset] = names.each_ref().map(|name| reply.header(name));
    [limit, remaining, reset, reply.header("retry-after")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_the_limit_of_a_key_and_report_what_is_left() {
    let servers = TwoServers::with(|app| app.limits.requests_per_minute = 6).await;
    let request = get("/v1/credits").key(&servers.key);
    for (n, left) in (0..6).zip(["5", "4", "3", "2", "1", "0"]) {
        let reply = servers.addresses[n % 2].send(&request).await;
        assert_eq!(
            (reply.status, limit_headers(&reply)[1]),
            (200, Some(left)),
            "{n}"
        );
    }
    for refused in servers.each(&request).await {
        assert_eq!(refused.status, 429);
        let expected = [Some("6"), Some("0"), Some("1800000060"), Some("10")];
        assert_eq!(limit_headers(&refused), expected);
    }
    // After the announced wait, one request succeeds.
    servers.clock.store(NOW.0 + 10_000, Ordering::SeqCst);
    assert_eq!(servers.addresses[1].send(&request).await.status, 200);
    assert_eq!(servers.addresses[0].send(&request).await.status, 429);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_concurrent_requests_at_two_servers_exactly_the_limit_passes() {
    let servers = TwoServers::with(|app| app.limits.requests_per_minute = 40).await;
    let request = get("/v1/credits").key(&servers.key);
    assert_eq!(servers.count_status(200, 100, &request).await, 40);
    for refused in servers.each(&request).await {
        assert_eq!(refused.status, 429);
    }
}

/// Far below the limit no request queries the store; near it all do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_limit_is_hardly_exceeded_if_both_servers_have_queried_it_lately() {
    let servers = TwoServers::with(|app| app.limits.requests_per_minute = 320).await;
    let request = get("/v1/credits").key(&servers.key);
    let passed = servers.count_status(200, 400, &request).await;
    // Each server may let a 64th of the bucket pass, which becomes a debt.
    assert!((320..=330).contains(&passed), "{passed}");
    for refused in servers.each(&request).await {
        assert_eq!(
            (refused.status, limit_headers(&refused)[1]),
            (429, Some("0"))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_are_counted_together_and_a_batch_is_accepted_whole_or_not_at_all() {
    let servers = TwoServers::with(|app| app.limits.starts_per_minute = 5).await;
    let batch = |count: usize| {
        let urls: Vec<_> = (0..count)
            .map(|n| format!("https://example.com/{n}"))
            .collect();
        let body = json!({
            "urls": urls, "devices": ["mobile"], "networks": ["normal4g"], "locations": ["eu"],
        });
        post("/v1/batches", body.to_string())
            .key(&servers.key)
            .json()
    };
    let single = start(&servers.key, &order());
    assert_eq!(servers.addresses[0].send(&batch(3)).await.status, 200);
    let refused = servers.addresses[1].send(&batch(3)).await;
    let expected = [Some("5"), Some("2"), Some("1800000036"), Some("12")];
    assert_eq!((refused.status, limit_headers(&refused)), (429, expected));
    for server in servers.addresses {
        assert_eq!(server.send(&single).await.status, 200);
    }
    for refused in servers.each(&single).await {
        assert_eq!(refused.status, 429);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_keys_from_one_address_count_at_both_servers() {
    let servers = TwoServers::with(|app| app.limits.failed_keys_per_minute = 4).await;
    let good = get("/v1/credits").key(&servers.key);
    let wrong = get("/v1/credits").key("wrong");
    assert_eq!(servers.addresses[0].send(&good).await.status, 200);
    assert_eq!(servers.count_status(401, 20, &wrong).await, 4);
    for refused in servers.each(&wrong).await {
        assert_eq!(refused.status, 429);
        assert_eq!(refused.json(), failure("Too Many Failed Keys"));
        assert_eq!(refused.header("retry-after"), Some("60"));
    }
    // Used at one server before; at the other it counts like a guess.
    let [used, unused] = servers.each(&good).await;
    assert_eq!((used.status, unused.status), (200, 429));
    servers.clock.store(NOW.0 + 15_000, Ordering::SeqCst);
    assert_eq!(servers.addresses[1].send(&good).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_progress_of_an_audit_is_visible_at_a_server_that_its_agent_does_not_use() {
    let servers = TwoServers::with(|_| {}).await;
    let [here, there] = servers.addresses;
    let cookie = sign_in(&here, &servers.key).await;
    let agent = Agent::register(&*servers.stores[1], "frankfurt", "eu").await;
    let started = here.send(&start(&servers.key, &order())).await.json();
    let tracking_id = started["trackingId"].as_str().unwrap();
    let job = agent.lease(&there, 0).await;
    let progress = async |phase: &str| {
        let response = agent.post_step(&there, "progress", &job, json!({ "phase": phase }));
        assert_eq!(response.await, "held");
    };

    let events = get(&format!("/audits/{tracking_id}/events")).header("Cookie", &cookie);
    let mut stream = here.connect().await;
    stream.write(&events.bytes()).await;
    stream.wait_for("data: waiting").await;
    for phase in ["loading", "judging"] {
        progress(phase).await;
        stream.wait_for(&format!("data: {phase}")).await;
    }
    let page = get(&format!("/audits/{tracking_id}")).header("Cookie", &cookie);
    let page = here.browse(&page).await;
    assert!(page.text().contains(r#"data-phase="judging" class="now""#));
    assert_eq!(agent.finish(&there, &job).await, "held");
    stream.wait_for("event: done").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_open_two_connections_to_a_receiver_that_never_responds_and_deliver_to_others()
{
    let apps = Mutex::new(Vec::new());
    let servers = TwoServers::with(|app| apps.lock().unwrap().push(app.clone())).await;
    let (tarpit, mut receiver) = (Tarpit::open().await, TestReceiver::open().await);
    let (_stop, stopped) = watch::channel(false);
    for app in apps.into_inner().unwrap() {
        let retries = WEBHOOK_RETRIES.to_vec();
        tokio::spawn(deliver_webhooks(
            app,
            Arc::new(PlainTransport),
            retries,
            stopped.clone(),
        ));
    }
    let store = &servers.stores[0];
    let complete_audit = async |webhook: String, key: &str, server: usize| {
        let mut body = order();
        body["webhook"] = json!(webhook);
        let started = servers.addresses[server].send(&start(key, &body)).await;
        assert_eq!(started.status, 200);
        let scope = LeaseScope::any_location("tests");
        let lease = servers.stores[server].lease(&scope, NOW, Duration::from_secs(60));
        let lease = lease.await.unwrap().unwrap();
        let finished = FinishedAudit {
            report: "{}".to_owned(),
            error: None,
            finished_at: NOW,
            summary: None,
        };
        let hold = servers.stores[server].finish(&lease, finished).await;
        assert_eq!(hold.unwrap(), LeaseState::Held);
        lease.audit_id
    };
    for n in 0..12 {
        complete_audit(tarpit.url(), &servers.key, n % 2).await;
    }
    tarpit.wait_for_connections(2).await;
    let other = store.create_account("another", 10, NOW).await.unwrap();
    let key = Key::generate().unwrap();
    let adding = store.add_key(&other.id, key.id(), key.digest(), None, NOW);
    adding.await.unwrap();
    for server in [0, 1] {
        let audit_id = complete_audit(receiver.url(), &key.reveal(), server).await;
        assert!(receiver.next().await.contains(&audit_id));
    }
    assert_eq!(
        tarpit.counts(),
        (2, 0),
        "accepted, and closed by the servers"
    );
}

/// PostgreSQL accepts no text with a NUL, so such a request must be refused before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nul_in_a_path_a_query_or_a_body_is_a_client_error() {
    let servers = TwoServers::with(|_| {}).await;
    let server = servers.addresses[0];
    let cookie = sign_in(&server, &servers.key).await;
    for (path, status) in [
        ("/v1/audit/status/a%00b", 404),
        ("/v1/audit/status/a%00b?wait=1", 404),
        ("/v1/audit/data/%00", 404),
        ("/v1/audit/report/%00", 404),
        ("/v1/batches/%00", 404),
        ("/v1/devices/%00", 404),
        ("/v1/audits?url=%00", 400),
        ("/v1/audits?device=a%00", 400),
        ("/v1/audits?network=%00a", 400),
        ("/v1/audits?location=%00", 400),
        ("/v1/audits?cursor=%00", 400),
    ] {
        let reply = server.send(&get(path).key(&servers.key)).await;
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
    }
    for (path, status) in [
        ("/audits/%00", 404),
        ("/audits/%00/events", 404),
        ("/reports/%00", 404),
        ("/reports/%00/final", 404),
        ("/reports/a/%00", 404),
        ("/shared/%00", 404),
        ("/shared/%00/final", 404),
        ("/history?url=%00", 400),
        ("/history?audit=%00", 400),
        ("/compare?before=%00&after=%00", 400),
        ("/?url=%00", 400),
    ] {
        let reply = server.browse(&get(path).header("Cookie", &cookie)).await;
        assert_eq!(reply.status, status, "{path}");
    }
    assert_nul_is_refused(&server, &servers.key).await;
    let agent = Agent::register(&*servers.stores[0], "frankfurt", "eu").await;
    let evidence = agent.authorize(get("/agent/v1/evidence/a%00/1/bundle"));
    assert_eq!(server.send(&evidence).await.json()["data"]["hold"], "lost");
    let nul = json!({ "trackingId": "a\0", "attempt": 1 });
    assert_eq!(agent.heartbeat(&server, &nul).await, "lost");
    assert_eq!(agent.finish(&server, &nul).await, "lost");
    // An error message with a NUL, which may quote a page, is stored nevertheless.
    server.send(&start(&servers.key, &order())).await;
    let job = agent.lease(&server, 0).await;
    let mut failed = report();
    failed["error"] = json!({ "code": "DNS_FAILURE", "message": "no\0name" });
    let finish = agent.post_step(&server, "finish", &job, json!({ "report": failed }));
    assert_eq!(finish.await, "held");
}
