//! A service of its own for each test, and a client that hides nothing of the wire.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use plumbline_catalog::{BUILT_IN, Catalog};
use plumbline_server::{
    Agents, App, Desk, DeskParts, Pages, Patience, Phases, Uploads, router, serve_with,
};
use plumbline_store::{
    AuditError, FileBlobs, Finished, Hold, Key, Lease, Seat, SqliteStore, Store, Timestamp,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

pub const NOW: Timestamp = Timestamp(1_800_000_000_000);
pub const EVIDENCE_BYTES: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Rig {
    pub store: Arc<SqliteStore>,
    pub address: SocketAddr,
    pub account_id: String,
    pub key: String,
    pub clock: Arc<AtomicI64>,
    pub phases: Phases,
    pub serving: JoinHandle<std::io::Result<()>>,
    stop: Option<oneshot::Sender<()>>,
    dir: TempDir,
}

impl Rig {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut App)) -> Self {
        Self::with_patience(Patience::default(), change).await
    }

    /// An account with 100 credits and one key. `private.example` may not be visited, and who asks
    /// for `panic.example` finds a defect.
    pub async fn with_patience(patience: Patience, change: impl FnOnce(&mut App)) -> Self {
        Self::build(patience, false, change, |_| {}).await
    }

    /// With the pages for people beside the API.
    pub async fn with_pages() -> Self {
        Self::with_pages_and(|_| {}).await
    }

    pub async fn with_pages_and(change: impl FnOnce(&mut App)) -> Self {
        Self::build(Patience::default(), true, change, |_| {}).await
    }

    /// With another desk for agents than the usual one.
    pub async fn with_desk(change: impl FnOnce(&mut DeskParts)) -> Self {
        Self::build(Patience::default(), false, |_| {}, change).await
    }

    async fn build(
        patience: Patience,
        pages: bool,
        change: impl FnOnce(&mut App),
        change_desk: impl FnOnce(&mut DeskParts),
    ) -> Self {
        crate::logs::keep();
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&dir.path().join("store.db")).unwrap());
        let may_visit = |host: &str, _port: u16| {
            assert_ne!(host, "panic.example", "a defect, on purpose");
            host != "private.example"
        };
        let catalog = Arc::new(Catalog::load(BUILT_IN).unwrap());
        let mut app = App::new(store.clone(), catalog, Arc::new(may_visit));
        let clock = Arc::new(AtomicI64::new(NOW.0));
        let read = clock.clone();
        app.clock = Arc::new(move || Timestamp(read.load(Ordering::SeqCst)));
        let phases = Phases::default();
        if pages {
            app.pages = Some(Pages {
                store: store.clone(),
                exhibits: Arc::new(FileBlobs::open(&dir.path().join("exhibits")).unwrap()),
                phases: phases.clone(),
            });
        }
        let mut desk = DeskParts {
            store: store.clone(),
            agents: store.clone(),
            bundles: Arc::new(FileBlobs::open(&dir.path().join("bundles")).unwrap()),
            exhibits: Arc::new(FileBlobs::open(&dir.path().join("exhibits")).unwrap()),
            phases: phases.clone(),
            metrics: app.metrics.clone(),
            clock: app.clock.clone(),
            lease: Duration::from_secs(30),
            locations: app
                .catalog
                .locations()
                .iter()
                .map(|l| l.id.clone())
                .collect(),
            simulate: true,
            beside: Vec::new(),
        };
        change_desk(&mut desk);
        app.agents = Some(Agents {
            desk: Arc::new(Desk::new(desk)),
            store: store.clone(),
            uploads: Uploads::open(&dir.path().join("uploads"), EVIDENCE_BYTES).unwrap(),
        });
        change(&mut app);

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(serve_with(listener, router(app), patience, async {
            let _ = stopped.await;
        }));
        let account = store.create_account("tests", 100, NOW).await.unwrap();
        let rig = Self {
            store,
            address,
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

    /// What is kept of an audit: `bundles` or `exhibits`.
    pub fn blob(&self, kind: &str, audit_id: &str) -> Option<Vec<u8>> {
        let blobs = FileBlobs::open(&self.dir.path().join(kind)).unwrap();
        blobs.get(audit_id).unwrap()
    }

    /// Keeps it as an agent's upload would.
    pub fn keep_blob(&self, kind: &str, audit_id: &str, bytes: &[u8]) {
        let blobs = FileBlobs::open(&self.dir.path().join(kind)).unwrap();
        blobs.put(audit_id, bytes).unwrap();
    }

    /// The store's file, opened behind the service's back.
    pub fn second_connection(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.dir.path().join("store.db")).unwrap()
    }

    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub async fn connect(&self) -> Connection {
        Connection {
            stream: TcpStream::connect(self.address).await.unwrap(),
            read: Vec::new(),
        }
    }

    pub async fn ask(&self, request: &Ask) -> Reply {
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        connection.reply_to(&request.method).await
    }

    /// As a browser asks: for a page, in whatever form it comes.
    pub async fn browse(&self, request: &Ask) -> Reply {
        let request = request.clone().header("Accept", "text/html,*/*");
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        connection.raw_reply(&request.method).await
    }

    /// Everything up to the end of the connection, as it came.
    pub async fn stream(&self, request: &Ask) -> String {
        let request = request.clone().header("Connection", "close");
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        while connection.more().await {}
        String::from_utf8(connection.read).unwrap()
    }

    /// Of what is not in an envelope.
    pub async fn ask_for_text(&self, request: &Ask) -> Reply {
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        let reply = connection.raw_reply(&request.method).await;
        reply.check_headers();
        reply
    }

    /// Asks with the rig's key and compares status and body.
    #[track_caller]
    pub fn check(
        &self,
        request: Ask,
        status: u16,
        body: Value,
    ) -> impl Future<Output = Reply> + '_ {
        let caller = std::panic::Location::caller();
        async move {
            let reply = self.ask(&request).await;
            let sent = request.bytes();
            assert_eq!(
                (reply.status, &reply.json()),
                (status, &body),
                "\nasked at {caller}: {}",
                sent[..sent.len().min(600)].escape_ascii(),
            );
            reply
        }
    }

    pub async fn start(&self) -> String {
        self.start_with(&order()).await
    }

    pub async fn start_with(&self, body: &Value) -> String {
        let reply = self.ask(&start(&self.key, body)).await;
        assert_eq!(reply.status, 200);
        reply.json()["trackingId"].as_str().unwrap().to_owned()
    }

    pub async fn lease(&self) -> Lease {
        self.store
            .lease(&Seat::anywhere("tests"), NOW, Duration::from_secs(60))
            .await
            .unwrap()
            .unwrap()
    }

    pub async fn finish(&self, lease: &Lease, report: Value, error: Option<AuditError>) {
        let finished = Finished {
            report: report.to_string(),
            error,
            finished_at: Timestamp(NOW.0 + 7),
        };
        assert_eq!(
            self.store.finish(lease, finished).await.unwrap(),
            Hold::Held
        );
    }

    pub async fn credits(&self) -> i64 {
        let keys = self.store.keys().await.unwrap();
        keys.iter()
            .find(|key| key.account_id == self.account_id)
            .unwrap()
            .credits
    }
}

pub fn order() -> Value {
    json!({
        "url": "https://example.com/",
        "device": "mobile",
        "location": "eu",
        "network": "normal4g",
    })
}

pub fn failure(message: &str) -> Value {
    json!({ "status": "FAILURE", "message": message })
}

pub fn start(key: &str, body: &Value) -> Ask {
    post("/v1/audit/start", body.to_string()).key(key).json()
}

pub fn get(path: &str) -> Ask {
    Ask::new("GET", path)
}

pub fn post(path: &str, body: impl Into<Vec<u8>>) -> Ask {
    Ask {
        body: body.into(),
        ..Ask::new("POST", path)
    }
}

pub fn put(path: &str, body: impl Into<Vec<u8>>) -> Ask {
    Ask {
        body: body.into(),
        ..Ask::new("PUT", path)
    }
}

#[derive(Clone)]
pub struct Ask {
    pub method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn key(self, key: &str) -> Self {
        self.header("X-SVC-KEY", key)
    }

    pub fn json(self) -> Self {
        self.header("Content-Type", "application/json")
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: plumbline.test\r\n",
            self.method, self.path
        );
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !self.body.is_empty() || self.method == "POST" {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

pub struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// What was sent is all there will be.
    pub async fn end(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    pub async fn reply(&mut self) -> Reply {
        self.reply_to("GET").await
    }

    pub async fn reply_to(&mut self, method: &str) -> Reply {
        let reply = self.raw_reply(method).await;
        reply.check_manners(method);
        reply
    }

    /// Reads up to the end of an interim answer (`100 Continue`).
    pub async fn interim(&mut self) -> u16 {
        self.raw_reply("HEAD").await.status
    }

    async fn raw_reply(&mut self, method: &str) -> Reply {
        let head_end = loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(
                self.more().await,
                "closed in a head: {}",
                self.read.escape_ascii()
            );
        };
        let head = String::from_utf8(self.read.drain(..head_end).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers: Vec<_> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut reply = Reply {
            status,
            headers,
            body: Vec::new(),
        };
        let length = reply
            .header("content-length")
            .map_or(0, |text| text.parse().unwrap());
        if method != "HEAD" {
            while self.read.len() < length {
                assert!(self.more().await, "closed in a body");
            }
            reply.body = self.read.drain(..length).collect();
        }
        reply
    }

    /// Whether anything has arrived by now.
    pub fn has_answer(&mut self) -> bool {
        self.stream.try_read(&mut [0; 1]).is_ok()
    }

    /// True when the other side closed and sent nothing more.
    pub async fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.more().await
    }

    async fn more(&mut self) -> bool {
        let reading = self.stream.read_buf(&mut self.read);
        // A reset is an end too, only a rude one.
        tokio::time::timeout(PATIENCE, reading)
            .await
            .expect("no answer")
            .unwrap_or(0)
            > 0
    }
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(found, _)| found == name);
        let value = values.next()?.1.as_str();
        assert!(values.next().is_none(), "{name} twice");
        Some(value)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.body.escape_ascii()))
    }

    /// What holds for every answer, whatever was asked.
    #[track_caller]
    fn check_headers(&self) {
        assert!(
            self.header("x-request-id").is_some_and(|id| !id.is_empty()),
            "{self:?}"
        );
        assert_eq!(self.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(self.header("cache-control"), Some("no-store"));
        assert_eq!(self.header("x-frame-options"), Some("DENY"));
        assert_eq!(self.header("referrer-policy"), Some("no-referrer"));
        let policy = self.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
    }

    /// The same, and the envelope.
    #[track_caller]
    fn check_manners(&self, method: &str) {
        let is_file = self.header("content-disposition").is_some();
        assert!(
            is_file || self.header("content-type") == Some("application/json"),
            "{self:?}"
        );
        self.check_headers();
        if method == "HEAD" || is_file {
            return;
        }
        let json = self.json();
        if self.status == 200 {
            assert_eq!(json["status"], "SUCCESS");
            assert_eq!(json.get("message"), None);
        } else {
            assert_eq!(json["status"], "FAILURE");
            assert!(json["message"].is_string());
            assert_eq!(json.as_object().unwrap().len(), 2, "{json}");
        }
    }
}
