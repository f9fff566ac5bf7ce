//! Uploads of evidence.

use plumbline_store::AgentStore;

use crate::{
    agent::Agent,
    rig::{EVIDENCE_BYTES, Rig, get, put},
};

#[tokio::test]
async fn an_interrupted_upload_continues_at_its_end() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    rig.start().await;
    let job = agent.lease(&rig, 0).await;
    let bundle: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0]).collect();

    let request = agent.upload(&job, 0, &bundle, &bundle).bytes();
    let mut broken = rig.connect().await;
    broken.write(&request[..request.len() - 40_000]).await;
    broken.end().await;
    drop(broken);
    let request = agent.authorize(get(&agent.evidence(&job, "bundle", "")));
    let mut received = 0;
    // Wait until the service has noticed the end of the request.
    while received == 0 {
        let reply = rig.send(&request).await.json();
        received = reply["data"]["received"].as_u64().unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(received, 60_000);
    for offset in [0, 59_999, 60_001] {
        let conflict = agent.upload(&job, offset, &bundle[offset..], &bundle);
        assert_eq!(rig.send(&conflict).await.status, 409);
    }
    let rest = agent.upload(&job, 60_000, &bundle[60_000..], &bundle);
    assert_eq!(rig.send(&rest).await.json()["data"]["complete"], true);
    let lease = rig.store.running(None).await.unwrap().remove(0);
    assert_eq!(rig.blob("bundles", &lease.audit_id), Some(bundle));
}

#[tokio::test]
async fn a_corrupt_upload_is_refused_and_may_be_sent_again() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    rig.start().await;
    let job = agent.lease(&rig, 0).await;
    let (bundle, damaged) = (b"evidence".repeat(100), b"evidense".repeat(100));
    let refused = rig.send(&agent.upload(&job, 0, &damaged, &bundle)).await;
    assert_eq!(refused.status, 422);
    let lease = rig.store.running(None).await.unwrap().remove(0);
    assert_eq!(rig.blob("bundles", &lease.audit_id), None);
    let again = rig.send(&agent.upload(&job, 0, &bundle, &bundle)).await;
    assert_eq!(again.json()["data"]["complete"], true);
    assert_eq!(rig.blob("bundles", &lease.audit_id), Some(bundle));
}

#[tokio::test]
async fn an_upload_needs_a_valid_size_digest_and_kind() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "frankfurt", "eu").await;
    rig.start().await;
    let job = agent.lease(&rig, 0).await;
    let put =
        |kind: &str, query: &str| agent.authorize(put(&agent.evidence(&job, kind, query), "x"));
    let digest = "0".repeat(64);
    let too_large = format!("?offset=0&bytes={}&sha256={digest}", EVIDENCE_BYTES + 1);
    let one = format!("?offset=0&bytes=1&sha256={digest}");
    let none = format!("?offset=0&bytes=0&sha256={digest}");
    for (kind, query, status) in [
        ("bundle", too_large.as_str(), 413),
        ("bundle", none.as_str(), 413),
        ("secrets", one.as_str(), 404),
        ("bundle", "", 400),
        ("bundle", "?offset=-1&bytes=1&sha256=00", 400),
        ("bundle", "?offset=0&bytes=1&sha256=00", 400),
    ] {
        let reply = rig.send(&put(kind, query)).await;
        assert_eq!(reply.status, status, "{kind} {query}");
    }
}
