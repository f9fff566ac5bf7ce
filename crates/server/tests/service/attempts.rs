//! Overlapping attempts of one audit, and whose evidence is stored.

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
use plumbline_store::{BlobPart, Blobs, FileBlobs};
use serde_json::Value;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    agent::Agent,
    rig::{NOW, Rig, get},
};

/// Blobs in files, of which the first write is delayed.
#[derive(Debug)]
struct DelayedBlobs {
    files: FileBlobs,
    is_first: AtomicBool,
    has_begun: Notify,
    may_continue: Notify,
}

impl DelayedBlobs {
    fn open(dir: &Path) -> Self {
        Self {
            files: FileBlobs::open(dir).unwrap(),
            is_first: AtomicBool::new(true),
            has_begun: Notify::new(),
            may_continue: Notify::new(),
        }
    }
}

#[async_trait]
impl Blobs for DelayedBlobs {
    async fn put(&self, name: &str, _: Vec<u8>) -> io::Result<()> {
        panic!("{name} was uploaded from memory");
    }

    async fn put_file(&self, name: &str, file: &Path) -> io::Result<()> {
        if self.is_first.swap(false, Ordering::SeqCst) {
            self.has_begun.notify_one();
            self.may_continue.notified().await;
        }
        Blobs::put_file(&self.files, name, file).await
    }

    async fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Blobs::get(&self.files, name).await
    }

    async fn get_part(&self, name: &str, part: BlobPart) -> io::Result<Option<Vec<u8>>> {
        Blobs::get_part(&self.files, name, part).await
    }

    async fn remove(&self, name: &str) -> io::Result<()> {
        Blobs::remove(&self.files, name).await
    }

    async fn remove_older(&self, age: Duration, now: SystemTime) -> io::Result<u64> {
        Blobs::remove_older(&self.files, age, now).await
    }
}

fn bundle_of(name: &str) -> Vec<u8> {
    let bundle = Bundle {
        recording: None,
        profile_trace: None,
        format: FORMAT,
        requested_url: "https://example.com/".to_owned(),
        final_url: "https://example.com/".to_owned(),
        document: Default::default(),
        browser: Default::default(),
        trace: format!(r#"{{"traceEvents":[{{"name":"{name}"}}]}}"#).into_bytes(),
        log: b"[]".to_vec(),
        screenshot: None,
        artifacts: Default::default(),
        warnings: Vec::new(),
        timings: Vec::new(),
    };
    bundle.pack().unwrap()
}

async fn wait_for_one_file(dir: &Path) {
    let files = || std::fs::read_dir(dir).unwrap().count();
    let waiting = async {
        while files() != 1 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let result = timeout(Duration::from_secs(60), waiting).await;
    assert!(result.is_ok(), "{} files are left", files());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evidence_that_is_written_after_its_lease_was_lost_replaces_nothing_and_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = Arc::new(DelayedBlobs::open(dir.path()));
    let rig = Rig::with_bundles(blobs.clone()).await;
    let first = Agent::new(&rig, "first", "eu").await;
    let second = Agent::new(&rig, "second", "eu").await;
    let tracking_id = rig.start().await;

    let job = first.lease(&rig, 0).await;
    let bundle = bundle_of("the first");
    let upload = first.upload(&job, 0, &bundle, &bundle);
    let mut late = rig.connect().await;
    late.write(&upload.bytes()).await;
    // The lease has been checked, and the bundle is about to be written.
    blobs.has_begun.notified().await;
    rig.clock.store(NOW.0 + 31_000, Ordering::SeqCst);
    let job = second.lease(&rig, 0).await;
    assert_eq!(job["attempt"], 2);
    let bundle = bundle_of("the second");
    let uploaded = rig.send(&second.upload(&job, 0, &bundle, &bundle)).await;
    assert_eq!(uploaded.json()["data"]["complete"], true);
    assert_eq!(second.finish(&rig, &job).await, "held");
    blobs.may_continue.notify_one();
    let reply = late.reply_to("PUT").await;
    assert_eq!(reply.json()["data"]["hold"], "lost");

    let status = get(&format!("/v1/audit/status/{tracking_id}")).key(&rig.key);
    let status = rig.send(&status).await.json();
    let audit_id = status["data"]["auditId"].as_str().unwrap();
    let trace = get(&format!("/v1/audit/report/{audit_id}?format=trace")).key(&rig.key);
    let trace: Value = rig.send(&trace).await.json();
    assert_eq!(trace["traceEvents"][0]["name"], "the second");
    // The lost attempt's evidence is removed, in whichever order the two ended.
    wait_for_one_file(dir.path()).await;
}

#[tokio::test]
async fn evidence_of_an_attempt_without_a_result_is_removed_when_another_finishes() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::with_bundles(Arc::new(FileBlobs::open(dir.path()).unwrap())).await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    rig.start().await;
    for name in ["the first", "the second"] {
        let job = agent.lease(&rig, 0).await;
        let bundle = bundle_of(name);
        let uploaded = rig.send(&agent.upload(&job, 0, &bundle, &bundle)).await;
        assert_eq!(uploaded.json()["data"]["complete"], true);
        if name == "the second" {
            assert_eq!(agent.finish(&rig, &job).await, "held");
        }
        rig.clock.fetch_add(31_000, Ordering::SeqCst);
    }
    wait_for_one_file(dir.path()).await;
}
