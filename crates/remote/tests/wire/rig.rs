//! A server with its router, its store and an agent's token.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plumbline_catalog::{BUILT_IN, Catalog};
use plumbline_remote::{RemoteWork, Server, Trust};
use plumbline_seam::{Announcement, AuditOutput};
use plumbline_server::{
    Agents, App, AuditPhases, Dispatcher, DispatcherParts, Metrics, Uploads, router, serve,
};
use plumbline_store::{
    Account, AgentBounds, AgentStore, AgentToken, AttemptBlob, AuditOptions, AuditState, FileBlobs,
    LeaseScope, NewAudit, Order, ReleaseReason, ReturnReason, SqliteStore, Store, Submission,
    Timestamp,
};
use tempfile::TempDir;
use tokio::net::TcpListener;

pub const NOW: Timestamp = Timestamp(1_800_000_000_000);

pub struct Rig {
    pub store: Arc<SqliteStore>,
    pub address: SocketAddr,
    pub token: String,
    account: Account,
    dir: TempDir,
}

impl Rig {
    pub async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&dir.path().join("store.db")).unwrap());
        let catalog = Arc::new(Catalog::load(BUILT_IN).unwrap());
        let blobs = |kind| Arc::new(FileBlobs::open(&dir.path().join(kind)).unwrap());
        let dispatcher = Dispatcher::new(DispatcherParts {
            store: store.clone(),
            agents: store.clone(),
            bundles: blobs("bundles"),
            media: blobs("exhibits"),
            phases: AuditPhases::default(),
            metrics: Arc::new(Metrics::default()),
            clock: Arc::new(|| NOW),
            lease: Duration::from_secs(30),
            locations: catalog.locations().iter().map(|l| l.id.clone()).collect(),
            simulate: true,
            vault: None,
            observers: Vec::new(),
        });
        let app = App {
            agents: Some(Agents {
                dispatcher: Arc::new(dispatcher),
                store: store.clone(),
                uploads: Uploads::open(&dir.path().join("uploads"), 100_000_000).unwrap(),
            }),
            ..App::new(store.clone(), catalog, Arc::new(|_, _| true))
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, router(app), std::future::pending()));
        let token = AgentToken::generate().unwrap();
        let key = token.key();
        let bounds = AgentBounds {
            locations: Some(vec!["eu".to_owned()]),
            slots: Some(2),
        };
        let added = store.add_agent("tests", key.id(), key.digest(), &bounds, NOW);
        added.await.unwrap();
        Self {
            account: store.create_account("tests", 10, NOW).await.unwrap(),
            store,
            address,
            token: token.reveal(),
            dir,
        }
    }

    pub fn work(&self, through: SocketAddr) -> RemoteWork {
        let url = format!("http://{through}");
        self.work_at(Server::new(&url, &self.token, &Trust::default()).unwrap())
    }

    pub fn work_at(&self, server: Server) -> RemoteWork {
        let agent = Announcement {
            process: RemoteWork::process_name().unwrap(),
            location: "eu".to_owned(),
            chromium: "Chrome/1.2.3.4".to_owned(),
            host_index: None,
            slots: 1,
            version: "0.1.0".to_owned(),
        };
        RemoteWork::new(server, agent)
    }

    pub async fn start(&self, name: &str) {
        let audit = NewAudit {
            account_id: self.account.id.clone(),
            tracking_id: name.to_owned(),
            audit_id: format!("report-of-{name}"),
            order: Order {
                url: "https://example.com/".to_owned(),
                device: "mobile".to_owned(),
                network: "normal4g".to_owned(),
                location: "eu".to_owned(),
                options: plumbline_store::VisitOptions::default(),
            },
            options: AuditOptions::default(),
            accepted_at: NOW,
        };
        self.store.submit(Submission::single(audit)).await.unwrap();
    }

    /// Lets another agent take over a running audit.
    pub async fn take_over(&self, name: &str) {
        let running = self.store.running(None).await.unwrap();
        let held = running.iter().find(|lease| lease.tracking_id == name);
        let back = self
            .store
            .release(held.unwrap(), ReleaseReason::Returned(ReturnReason::Fault));
        back.await.unwrap();
        let seat = LeaseScope::any_location("another");
        let lease = self.store.lease(&seat, NOW, Duration::from_secs(30));
        assert_eq!(lease.await.unwrap().unwrap().tracking_id, name);
    }

    pub async fn is_completed(&self, name: &str) -> bool {
        let status = self.store.status(&self.account.id, name).await.unwrap();
        status.unwrap().state == AuditState::Completed
    }

    /// Makes every write to the file of this upload fail, as on a full disk.
    pub fn fill_disk(&self, upload: &str) {
        let file = self.uploads().join(upload).with_extension("part");
        std::os::unix::fs::symlink("/dev/full", file).unwrap();
    }

    pub fn uploads(&self) -> PathBuf {
        self.dir.path().join("uploads")
    }

    /// Returns the bundle of the first attempt.
    pub async fn bundle(&self, audit_id: &str) -> Option<Vec<u8>> {
        let blobs = FileBlobs::open(&self.dir.path().join("bundles")).unwrap();
        let first = AttemptBlob {
            audit_id,
            attempt: 1,
        };
        first.get(&blobs).await.unwrap()
    }
}

pub fn output(bundle: Option<Vec<u8>>) -> AuditOutput {
    let report = serde_json::json!({
        "format": 1,
        "requestedUrl": "https://example.com/",
        "finalUrl": "https://example.com/",
        "conditions": {
            "device": { "id": "mobile", "name": "Mobile", "mode": "mobile" },
            "network": { "id": "normal4g", "name": "4G", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0 },
            "location": { "id": "eu", "name": "Frankfurt", "mode": "agent", "addedRttMs": 0.0 },
            "cpu": { "rate": 1.0, "deviceIndex": null, "hostIndex": null, "hostIndexAfter": null },
        },
        "scores": { "performance": 97 },
        "metrics": null, "error": null, "document": null, "browser": null,
    });
    AuditOutput {
        report: serde_json::from_value(report).unwrap(),
        bundle,
        media: None,
        session: None,
    }
}
