//! Attempts at one audit that overlap: which of them the report's evidence is of.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use plumbline_bundle::{Bundle, FORMAT};
use plumbline_store::{Blobs, FileBlobs};
use serde_json::Value;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    agent::Agent,
    rig::{NOW, Rig, get},
};

/// Files, of which the first to be written waits until it may be.
#[derive(Debug)]
struct Late {
    files: FileBlobs,
    is_first: AtomicBool,
    begun: Notify,
    go_on: Notify,
}

impl Late {
    fn over(dir: &Path) -> Self {
        Self {
            files: FileBlobs::open(dir).unwrap(),
            is_first: AtomicBool::new(true),
            begun: Notify::new(),
            go_on: Notify::new(),
        }
    }
}

#[async_trait]
impl Blobs for Late {
    async fn put(&self, name: &str, _: Vec<u8>) -> io::Result<()> {
        panic!("{name} was uploaded, and is held in memory");
    }

    async fn put_file(&self, name: &str, file: &Path) -> io::Result<()> {
        if self.is_first.swap(false, Ordering::SeqCst) {
            self.begun.notify_one();
            self.go_on.notified().await;
        }
        Blobs::put_file(&self.files, name, file).await
    }

    async fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Blobs::get(&self.files, name).await
    }

    async fn remove(&self, name: &str) -> io::Result<()> {
        Blobs::remove(&self.files, name).await
    }

    async fn remove_older(&self, age: Duration, now: SystemTime) -> io::Result<u64> {
        Blobs::remove_older(&self.files, age, now).await
    }
}

fn bundle_of(who: &str) -> Vec<u8> {
    let bundle = Bundle {
        format: FORMAT,
        requested_url: "https://example.com/".to_owned(),
        final_url: "https://example.com/".to_owned(),
        document: Default::default(),
        browser: Default::default(),
        trace: format!(r#"{{"traceEvents":[{{"name":"{who}"}}]}}"#).into_bytes(),
        log: b"[]".to_vec(),
        screenshot: None,
        artifacts: Default::default(),
        warnings: Vec::new(),
        timings: Vec::new(),
    };
    bundle.pack().unwrap()
}

async fn only_one_is_left(dir: &Path) {
    let files = || std::fs::read_dir(dir).unwrap().count();
    let cleared = async {
        while files() != 1 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let cleared = timeout(Duration::from_secs(60), cleared).await;
    assert!(cleared.is_ok(), "{} files are left", files());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evidence_that_is_written_after_its_lease_was_lost_replaces_nothing_and_goes() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = Arc::new(Late::over(dir.path()));
    let rig = Rig::with_bundles(blobs.clone()).await;
    let first = Agent::new(&rig, "first", "eu").await;
    let second = Agent::new(&rig, "second", "eu").await;
    let tracking_id = rig.start().await;

    let job = first.lease(&rig, 0).await;
    let bundle = bundle_of("the first");
    let upload = first.upload(&job, 0, &bundle, &bundle);
    let mut late = rig.connect().await;
    late.write(&upload.bytes()).await;
    // Its lease has been looked at, and its bundle is about to be written.
    blobs.begun.notified().await;
    rig.clock.store(NOW.0 + 31_000, Ordering::SeqCst);
    let job = second.lease(&rig, 0).await;
    assert_eq!(job["attempt"], 2);
    let bundle = bundle_of("the second");
    let kept = rig.ask(&second.upload(&job, 0, &bundle, &bundle)).await;
    assert_eq!(kept.json()["data"]["complete"], true);
    assert_eq!(second.finish(&rig, &job).await, "held");
    blobs.go_on.notify_one();
    let answer = late.reply_to("PUT").await;
    assert_eq!(answer.json()["data"]["hold"], "lost");

    let status = get(&format!("/v1/audit/status/{tracking_id}")).key(&rig.key);
    let status = rig.ask(&status).await.json();
    let audit_id = status["data"]["auditId"].as_str().unwrap();
    let trace = get(&format!("/v1/audit/report/{audit_id}?format=trace")).key(&rig.key);
    let trace: Value = rig.ask(&trace).await.json();
    assert_eq!(trace["traceEvents"][0]["name"], "the second");
    // The loser's goes, in whichever order the two ended.
    only_one_is_left(dir.path()).await;
}

#[tokio::test]
async fn what_an_attempt_left_that_came_to_nothing_goes_when_another_finishes() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::with_bundles(Arc::new(FileBlobs::open(dir.path()).unwrap())).await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    rig.start().await;
    for who in ["the first", "the second"] {
        let job = agent.lease(&rig, 0).await;
        let bundle = bundle_of(who);
        let kept = rig.ask(&agent.upload(&job, 0, &bundle, &bundle)).await;
        assert_eq!(kept.json()["data"]["complete"], true);
        if who == "the second" {
            assert_eq!(agent.finish(&rig, &job).await, "held");
        }
        rig.clock.fetch_add(31_000, Ordering::SeqCst);
    }
    only_one_is_left(dir.path()).await;
}
