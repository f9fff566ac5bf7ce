//! Sets up a service for each test.

use std::{
    ops::Deref,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use plumbline_catalog::{BUILT_IN, Catalog};
use plumbline_server::{
    Agents, App, AuditPhases, Dispatcher, DispatcherParts, Pages, ServeOptions, Uploads, Vault,
    VaultKey, router, serve_with, summaries,
};
use plumbline_store::{
    AgentStore, AuditError, Blobs, FileBlobs, FinishedAudit, Key, Lease, LeaseScope, LeaseState,
    PageStore, SecretStore, SqliteStore, Store, Timestamp,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

pub use crate::client::{Connection, HttpRequest, Reply, Server, get, post, put};

pub const NOW: Timestamp = Timestamp(1_800_000_000_000);
pub const EVIDENCE_BYTES: u64 = 1_000_000;

/// A running service with one account and one key.
pub struct Rig {
    pub store: Arc<SqliteStore>,
    server: Server,
    pub account_id: String,
    pub key: String,
    pub clock: Arc<AtomicI64>,
    pub phases: AuditPhases,
    pub serving: JoinHandle<std::io::Result<()>>,
    stop: Option<oneshot::Sender<()>>,
    dir: TempDir,
}

impl Deref for Rig {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Rig {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut App)) -> Self {
        Self::with_options(ServeOptions::default(), change).await
    }

    /// Starts a service with these options, and an account with 100 credits and one key.
    pub async fn with_options(options: ServeOptions, change: impl FnOnce(&mut App)) -> Self {
        Self::build(options, false, change, |_| {}).await
    }

    /// Starts a service with web pages.
    pub async fn with_pages() -> Self {
        Self::with_pages_and(|_| {}).await
    }

    pub async fn with_pages_and(change: impl FnOnce(&mut App)) -> Self {
        Self::build(ServeOptions::default(), true, change, |_| {}).await
    }

    /// Starts a service with web pages and these options.
    pub async fn with_pages_and_options(options: ServeOptions) -> Self {
        Self::build(options, true, |_| {}, |_| {}).await
    }

    /// Starts a service with a changed dispatcher.
    pub async fn with_dispatcher(change: impl FnOnce(&mut DispatcherParts)) -> Self {
        Self::build(ServeOptions::default(), false, |_| {}, change).await
    }

    /// Starts a service that stores evidence there.
    pub async fn with_bundles(bundles: Arc<dyn Blobs>) -> Self {
        let app_bundles = Arc::clone(&bundles);
        let change = |app: &mut App| app.bundles = Some(app_bundles);
        Self::build(ServeOptions::default(), false, change, |dispatcher| {
            dispatcher.bundles = bundles
        })
        .await
    }

    async fn build(
        options: ServeOptions,
        pages: bool,
        change: impl FnOnce(&mut App),
        change_dispatcher: impl FnOnce(&mut DispatcherParts),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&dir.path().join("store.db")).unwrap());
        let clock = Arc::new(AtomicI64::new(NOW.0));
        let mut app = assembled(&store, dir.path(), &clock, change_dispatcher);
        app.limits.connections = options.connections;
        let phases = AuditPhases::of_store(&*store);
        if !pages {
            app.pages = None;
        }
        change(&mut app);
        let (stop, stopped) = oneshot::channel();
        let (server, serving) = run_server(app, options, stopped).await;
        let account = store.create_account("tests", 100, NOW).await.unwrap();
        let rig = Self {
            store,
            server,
            account_id: account.id,
            key: String::new(),
            clock,
            phases,
            serving,
            stop: Some(stop),
            dir,
        };
        let key = rig.new_key(&rig.account_id, None).await;
        Self { key, ..rig }
    }

    pub async fn new_account(&self, credits: u32) -> String {
        self.store
            .create_account("another", credits, NOW)
            .await
            .unwrap()
            .id
    }

    pub async fn new_key(&self, account_id: &str, expires_at: Option<Timestamp>) -> String {
        let key = Key::generate().unwrap();
        self.store
            .add_key(account_id, key.id(), key.digest(), expires_at, NOW)
            .await
            .unwrap();
        key.reveal()
    }

    /// Returns a blob of an audit's first attempt; the kind is `bundles` or `exhibits`.
    pub fn blob(&self, kind: &str, audit_id: &str) -> Option<Vec<u8>> {
        let blobs = FileBlobs::open(&self.dir.path().join(kind)).unwrap();
        blobs.get(&format!("{audit_id}-1")).unwrap()
    }

    /// Stores a blob like an agent's upload.
    pub fn put_blob(&self, kind: &str, audit_id: &str, bytes: &[u8]) {
        let blobs = FileBlobs::open(&self.dir.path().join(kind)).unwrap();
        blobs.put(audit_id, bytes).unwrap();
    }

    /// Opens the store's file a second time.
    pub fn second_connection(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.dir.path().join("store.db")).unwrap()
    }

    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub async fn start(&self) -> String {
        self.start_with(&order()).await
    }

    pub async fn start_with(&self, body: &Value) -> String {
        let reply = self.send(&start(&self.key, body)).await;
        assert_eq!(reply.status, 200);
        reply.json()["trackingId"].as_str().unwrap().to_owned()
    }

    pub async fn lease(&self) -> Lease {
        self.store
            .lease(
                &LeaseScope::any_location("tests"),
                NOW,
                Duration::from_secs(60),
            )
            .await
            .unwrap()
            .unwrap()
    }

    pub async fn finish(&self, lease: &Lease, report: Value, error: Option<AuditError>) {
        let finished = FinishedAudit {
            report: report.to_string(),
            error,
            finished_at: Timestamp(NOW.0 + 7),
            summary: None,
        };
        assert_eq!(
            self.store.finish(lease, finished).await.unwrap(),
            LeaseState::Held
        );
        summaries::add_missing(&*self.store).await.unwrap();
    }

    pub async fn credits(&self) -> i64 {
        let keys = self.store.keys().await.unwrap();
        keys.iter()
            .find(|key| key.account_id == self.account_id)
            .unwrap()
            .credits
    }
}

/// Assembles a server on a store that others may have opened as well. `private.example` may not be
/// visited, and a request for `panic.example` panics.
pub fn assembled<S: Store + AgentStore + PageStore + SecretStore>(
    store: &Arc<S>,
    dir: &Path,
    clock: &Arc<AtomicI64>,
    change_dispatcher: impl FnOnce(&mut DispatcherParts),
) -> App {
    crate::logs::capture();
    let may_visit = |host: &str, _port: u16| {
        assert_ne!(host, "panic.example", "deliberate panic");
        host != "private.example"
    };
    let catalog = Arc::new(Catalog::load(BUILT_IN).unwrap());
    let mut app = App::new(store.clone(), catalog, Arc::new(may_visit));
    let clock = clock.clone();
    app.clock = Arc::new(move || Timestamp(clock.load(Ordering::SeqCst)));
    let phases = AuditPhases::of_store(&**store);
    let media = Arc::new(FileBlobs::open(&dir.join("exhibits")).unwrap());
    app.pages = Some(Pages {
        store: store.clone(),
        media: media.clone(),
        phases: phases.clone(),
        logo: None,
    });
    let key = VaultKey::created_on_first_use(dir.join("secrets.key"));
    app.vault = Some(Arc::new(Vault::new(store.clone(), key)));
    let locations = app.catalog.locations().iter().map(|l| l.id.clone());
    let mut dispatcher = DispatcherParts {
        store: store.clone(),
        agents: store.clone(),
        bundles: Arc::new(FileBlobs::open(&dir.join("bundles")).unwrap()),
        media,
        phases,
        metrics: app.metrics.clone(),
        clock: app.clock.clone(),
        lease: Duration::from_secs(30),
        locations: locations.collect(),
        simulate: true,
        vault: app.vault.clone(),
        observers: Vec::new(),
    };
    change_dispatcher(&mut dispatcher);
    app.agents = Some(Agents {
        dispatcher: Arc::new(Dispatcher::new(dispatcher)),
        store: store.clone(),
        uploads: Uploads::open(&dir.join("uploads"), EVIDENCE_BYTES).unwrap(),
    });
    app
}

/// Runs the server until `stopped`.
pub async fn run_server(
    app: App,
    options: ServeOptions,
    stopped: oneshot::Receiver<()>,
) -> (Server, JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(serve_with(listener, None, router(app), options, async {
        let _ = stopped.await;
    }));
    (Server { address }, serving)
}

/// The body of a valid start.
pub fn order() -> Value {
    json!({
        "url": "https://example.com/",
        "device": "mobile",
        "location": "eu",
        "network": "normal4g",
    })
}

/// The envelope of a failure.
pub fn failure(message: &str) -> Value {
    json!({ "status": "FAILURE", "message": message })
}

/// A request that starts an audit.
pub fn start(key: &str, body: &Value) -> HttpRequest {
    post("/v1/audit/start", body.to_string()).key(key).json()
}
