//! Two servers on one PostgreSQL, as behind a balancer: what one of them counts or hears, the other knows.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use plumbline_server::{App, ServeOptions, WEBHOOK_RETRIES, deliver_webhooks};
use plumbline_store::{
    FinishedAudit, Hold, Key, LeaseScope, PostgresOptions, PostgresStore, Store,
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
    receivers::{Dialling, Receiving, Tarpit},
    rig::{Ask, Door, NOW, Reply, assembled, failure, get, order, post, serving, start},
    visitor::sign_in,
};

struct Several {
    doors: [Door; 2],
    stores: [Arc<PostgresStore>; 2],
    key: String,
    clock: Arc<AtomicI64>,
    _running: [oneshot::Sender<()>; 2],
    _database: Database,
    _dir: TempDir,
}

impl Several {
    /// Two servers, and an account with a hundred credits and a key.
    async fn with(change: impl Fn(&mut App)) -> Self {
        let (database, dir) = (Database::fresh(), tempfile::tempdir().unwrap());
        let clock = Arc::new(AtomicI64::new(NOW.0));
        let server = async || {
            let store = PostgresStore::open(&database.url, PostgresOptions::default());
            let store = Arc::new(store.await.unwrap());
            let mut app = assembled(&store, dir.path(), &clock, |_| {});
            change(&mut app);
            let (stop, stopped) = oneshot::channel();
            let (door, _) = serving(app, ServeOptions::default(), stopped).await;
            (door, store, stop)
        };
        let (one, other) = (server().await, server().await);
        let account = one.1.create_account("tests", 100, NOW).await.unwrap();
        let key = Key::generate().unwrap();
        let added = one
            .1
            .add_key(&account.id, key.id(), key.digest(), None, NOW);
        added.await.unwrap();
        Self {
            doors: [one.0, other.0],
            stores: [one.1, other.1],
            key: key.reveal(),
            clock,
            _running: [one.2, other.2],
            _database: database,
            _dir: dir,
        }
    }

    async fn each(&self, ask: &Ask) -> [Reply; 2] {
        [self.doors[0].ask(ask).await, self.doors[1].ask(ask).await]
    }

    /// How many of so many that come at once, at both servers, get this answer.
    async fn answered(&self, status: u16, of: usize, ask: &Ask) -> usize {
        let mut asked = JoinSet::new();
        for n in 0..of {
            let (door, ask) = (self.doors[n % 2], ask.clone());
            asked.spawn(async move { door.ask(&ask).await.status });
        }
        let answers = asked.join_all().await;
        answers.iter().filter(|found| **found == status).count()
    }
}

fn told(reply: &Reply) -> [Option<&str>; 4] {
    let names = ["limit", "remaining", "reset"].map(|name| format!("x-ratelimit-{name}"));
    let [limit, remaining, reset] = names.each_ref().map(|name| reply.header(name));
    [limit, remaining, reset, reply.header("retry-after")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_grant_a_key_the_limit_between_them_and_tell_what_is_left() {
    let servers = Several::with(|app| app.limits.requests_per_minute = 6).await;
    let ask = get("/v1/credits").key(&servers.key);
    for (n, left) in (0..6).zip(["5", "4", "3", "2", "1", "0"]) {
        let reply = servers.doors[n % 2].ask(&ask).await;
        assert_eq!((reply.status, told(&reply)[1]), (200, Some(left)), "{n}");
    }
    for refused in servers.each(&ask).await {
        assert_eq!(refused.status, 429);
        let expected = [Some("6"), Some("0"), Some("1800000060"), Some("10")];
        assert_eq!(told(&refused), expected);
    }
    // Who waits as told is served, once.
    servers.clock.store(NOW.0 + 10_000, Ordering::SeqCst);
    assert_eq!(servers.doors[1].ask(&ask).await.status, 200);
    assert_eq!(servers.doors[0].ask(&ask).await.status, 429);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_at_once_at_two_servers_as_many_pass_as_the_limit_says() {
    let servers = Several::with(|app| app.limits.requests_per_minute = 40).await;
    let ask = get("/v1/credits").key(&servers.key);
    assert_eq!(servers.answered(200, 100, &ask).await, 40);
    for refused in servers.each(&ask).await {
        assert_eq!(refused.status, 429);
    }
}

/// Far below it nobody asks; at the limit all do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_limit_is_not_overstepped_either_where_both_have_been_asked_lately() {
    let servers = Several::with(|app| app.limits.requests_per_minute = 320).await;
    let ask = get("/v1/credits").key(&servers.key);
    let passed = servers.answered(200, 400, &ask).await;
    // A bucket's 64th part at each, which is owed then.
    assert!((320..=330).contains(&passed), "{passed}");
    for refused in servers.each(&ask).await {
        assert_eq!((refused.status, told(&refused)[1]), (429, Some("0")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_are_counted_together_and_a_batch_passes_whole_or_not_at_all() {
    let servers = Several::with(|app| app.limits.starts_per_minute = 5).await;
    let urls = |count: usize| {
        let urls: Vec<_> = (0..count)
            .map(|n| format!("https://example.com/{n}"))
            .collect();
        let batch = json!({
            "urls": urls, "devices": ["mobile"], "networks": ["normal4g"], "locations": ["eu"],
        });
        post("/v1/batches", batch.to_string())
            .key(&servers.key)
            .json()
    };
    let single = start(&servers.key, &order());
    assert_eq!(servers.doors[0].ask(&urls(3)).await.status, 200);
    let refused = servers.doors[1].ask(&urls(3)).await;
    let expected = [Some("5"), Some("2"), Some("1800000036"), Some("12")];
    assert_eq!((refused.status, told(&refused)), (429, expected));
    for door in servers.doors {
        assert_eq!(door.ask(&single).await.status, 200);
    }
    for refused in servers.each(&single).await {
        assert_eq!(refused.status, 429);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_keys_from_one_address_count_at_whichever_server_they_are_tried() {
    let servers = Several::with(|app| app.limits.failed_keys_per_minute = 4).await;
    let good = get("/v1/credits").key(&servers.key);
    let wrong = get("/v1/credits").key("wrong");
    assert_eq!(servers.doors[0].ask(&good).await.status, 200);
    assert_eq!(servers.answered(401, 20, &wrong).await, 4);
    for refused in servers.each(&wrong).await {
        assert_eq!(refused.status, 429);
        assert_eq!(refused.json(), failure("Too Many Failed Keys"));
        assert_eq!(refused.header("retry-after"), Some("60"));
    }
    // Proven at one server; at the other it is as good as a guess.
    let [proven, unproven] = servers.each(&good).await;
    assert_eq!((proven.status, unproven.status), (200, 429));
    servers.clock.store(NOW.0 + 15_000, Ordering::SeqCst);
    assert_eq!(servers.doors[1].ask(&good).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_far_an_audit_is_is_seen_at_a_server_that_its_agent_does_not_talk_to() {
    let servers = Several::with(|_| {}).await;
    let [here, there] = servers.doors;
    let cookie = sign_in(&here, &servers.key).await;
    let agent = Agent::of(&*servers.stores[1], "frankfurt", "eu").await;
    let started = here.ask(&start(&servers.key, &order())).await.json();
    let tracking_id = started["trackingId"].as_str().unwrap();
    let job = agent.lease(&there, 0).await;
    let progress = async |phase: &str| {
        let said = agent.hold(&there, "progress", &job, json!({ "phase": phase }));
        assert_eq!(said.await, "held");
    };

    let events = get(&format!("/audits/{tracking_id}/events")).header("Cookie", &cookie);
    let mut stream = here.connect().await;
    stream.write(&events.bytes()).await;
    stream.hears("data: waiting").await;
    for phase in ["loading", "judging"] {
        progress(phase).await;
        stream.hears(&format!("data: {phase}")).await;
    }
    let page = get(&format!("/audits/{tracking_id}")).header("Cookie", &cookie);
    let page = here.browse(&page).await;
    assert!(page.text().contains(r#"data-phase="judging" class="now""#));
    assert_eq!(agent.finish(&there, &job).await, "held");
    stream.hears("event: done").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_hold_two_connections_to_a_receiver_that_never_answers_and_tell_others() {
    let apps = Mutex::new(Vec::new());
    let servers = Several::with(|app| apps.lock().unwrap().push(app.clone())).await;
    let (tarpit, mut receiver) = (Tarpit::open().await, Receiving::open().await);
    let (_stop, stopped) = watch::channel(false);
    for app in apps.into_inner().unwrap() {
        let retries = WEBHOOK_RETRIES.to_vec();
        tokio::spawn(deliver_webhooks(
            app,
            Arc::new(Dialling),
            retries,
            stopped.clone(),
        ));
    }
    let store = &servers.stores[0];
    let told = async |webhook: String, key: &str, server: usize| {
        let mut body = order();
        body["webhook"] = json!(webhook);
        let started = servers.doors[server].ask(&start(key, &body)).await;
        assert_eq!(started.status, 200);
        let seat = LeaseScope::any_location("tests");
        let lease = servers.stores[server].lease(&seat, NOW, Duration::from_secs(60));
        let lease = lease.await.unwrap().unwrap();
        let finished = FinishedAudit {
            report: "{}".to_owned(),
            error: None,
            finished_at: NOW,
            summary: None,
        };
        let kept = servers.stores[server].finish(&lease, finished).await;
        assert_eq!(kept.unwrap(), Hold::Held);
        lease.audit_id
    };
    for n in 0..12 {
        told(tarpit.url(), &servers.key, n % 2).await;
    }
    tarpit.holds(2).await;
    let other = store.create_account("another", 10, NOW).await.unwrap();
    let key = Key::generate().unwrap();
    let added = store.add_key(&other.id, key.id(), key.digest(), None, NOW);
    added.await.unwrap();
    for server in [0, 1] {
        let audit_id = told(receiver.url(), &key.reveal(), server).await;
        assert!(receiver.told().await.contains(&audit_id));
    }
    assert_eq!(tarpit.counts(), (2, 0), "accepted, and given up by us");
}

/// PostgreSQL takes no text with a NUL: such a request must not get as far.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nul_in_a_path_or_query_is_the_clients_mistake() {
    let servers = Several::with(|_| {}).await;
    let door = servers.doors[0];
    let cookie = sign_in(&door, &servers.key).await;
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
        let reply = door.ask(&get(path).key(&servers.key)).await;
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
        let reply = door.browse(&get(path).header("Cookie", &cookie)).await;
        assert_eq!(reply.status, status, "{path}");
    }
    let agent = Agent::of(&*servers.stores[0], "frankfurt", "eu").await;
    let evidence = agent.dress(get("/agent/v1/evidence/a%00/1/bundle"));
    assert_eq!(door.ask(&evidence).await.json()["data"]["hold"], "lost");
    let nul = json!({ "trackingId": "a\0", "attempt": 1 });
    assert_eq!(agent.heartbeat(&door, &nul).await, "lost");
    assert_eq!(agent.finish(&door, &nul).await, "lost");
    // What a page made an error say is kept all the same.
    door.ask(&start(&servers.key, &order())).await;
    let job = agent.lease(&door, 0).await;
    let mut failed = report();
    failed["error"] = json!({ "code": "DNS_FAILURE", "message": "no\0name" });
    let finish = agent.hold(&door, "finish", &job, json!({ "report": failed }));
    assert_eq!(finish.await, "held");
}
