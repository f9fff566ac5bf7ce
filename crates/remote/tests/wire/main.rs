//! The agent's client against a real server, over reliable and unreliable connections.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod connection;
mod rig;

use std::path::Path;
use std::time::Duration;

use plumbline_remote::{Server, Trust};
use plumbline_seam::{Job, LeaseState, NextJob, ReturnReason, Work, WorkError};
use plumbline_store::{AgentStore, AgentToken, Store};
use tokio::time::timeout;

use crate::connection::{Fault, FaultyProxy, fixed_response, tls_proxy};
use crate::rig::{NOW, Rig, output};

/// Far longer than anything here takes: reached only when something hangs.
const NEVER: Duration = Duration::from_secs(25);

async fn job(work: &dyn Work) -> Job {
    match work.next_job(0, NEVER).await {
        Ok(NextJob::Job(job)) => *job,
        other => panic!("no job: {other:?}"),
    }
}

fn bundle() -> Vec<u8> {
    (0..400_000_u32).map(|n| (n % 251) as u8).collect()
}

#[tokio::test]
async fn a_report_and_its_evidence_arrive_over_connections_that_break_repeatedly() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let proxy = FaultyProxy::to(rig.address).await;
    let work = rig.work(proxy.address);
    let job = job(&work).await;
    assert_eq!(work.heartbeat(&job).await.unwrap(), LeaseState::Held);
    // The connection that is open breaks, too.
    proxy.break_all();
    proxy.add_faults([
        Fault::CutAfter(150_000),
        Fault::Refused,
        Fault::CutAfter(500),
    ]);
    proxy.add_faults([
        Fault::CutAfter(90_000),
        Fault::Refused,
        Fault::CutAfter(100_000),
    ]);
    assert_eq!(
        work.finish(&job, output(Some(bundle()))).await.unwrap(),
        LeaseState::Held
    );
    assert_eq!(rig.bundle("report-of-a").await, Some(bundle()));
    assert!(rig.is_completed("a").await);
    assert!(
        proxy.bytes_sent() < 3 * 400_000,
        "{} bytes",
        proxy.bytes_sent()
    );
}

#[tokio::test]
async fn evidence_that_was_damaged_on_the_way_is_sent_again() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let proxy = FaultyProxy::to(rig.address).await;
    let work = rig.work(proxy.address);
    let job = job(&work).await;
    proxy.break_all();
    proxy.add_faults([Fault::DamageAt(200_000)]);
    let result = work.finish(&job, output(Some(bundle()))).await;
    assert_eq!(result.unwrap(), LeaseState::Held);
    assert_eq!(rig.bundle("report-of-a").await, Some(bundle()));
}

#[tokio::test]
async fn a_server_whose_disk_is_full_gets_the_report_without_its_evidence() {
    let rig = Rig::new().await;
    rig.start("a").await;
    rig.fill_disk("a-1-bundle");
    let work = rig.work(rig.address);
    let job = job(&work).await;
    // Far more than the server reads of a refused body: the refusal must still arrive.
    let large = vec![7; 50_000_000];
    let result = timeout(NEVER, work.finish(&job, output(Some(large)))).await;
    assert_eq!(result.unwrap().unwrap(), LeaseState::Held);
    assert!(rig.is_completed("a").await);
    assert_eq!(rig.bundle("report-of-a").await, None);
    let left = std::fs::read_dir(rig.uploads()).unwrap().count();
    assert_eq!(left, 0, "a failed upload must not occupy space");
}

#[tokio::test]
async fn requests_are_repeated_while_the_server_is_unavailable() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let proxy = FaultyProxy::to(rig.address).await;
    let work = rig.work(proxy.address);
    let job = job(&work).await;
    proxy.break_all();
    proxy.add_faults([Fault::Refused, Fault::Refused, Fault::CutAfter(10)]);
    assert_eq!(
        work.return_job(&job, ReturnReason::Drained).await.unwrap(),
        LeaseState::Held
    );
    assert_eq!(
        work.return_job(&job, ReturnReason::Fault).await.unwrap(),
        LeaseState::Lost
    );
    let queue = rig.store.queue(1).await.unwrap();
    assert_eq!((queue[0].faults, &queue[0].lease), (0, &None));
}

#[tokio::test]
async fn a_result_that_comes_too_late_is_refused() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let work = rig.work(rig.address);
    let first = job(&work).await;
    rig.take_over("a").await;
    assert_eq!(work.heartbeat(&first).await.unwrap(), LeaseState::Lost);
    let result = work.finish(&first, output(Some(bundle()))).await;
    assert_eq!(result.unwrap(), LeaseState::Lost);
    assert_eq!(rig.bundle("report-of-a").await, None);
    assert!(!rig.is_completed("a").await);
}

#[tokio::test]
async fn a_drained_agent_exits_and_a_revoked_one_is_refused() {
    let rig = Rig::new().await;
    let work = rig.work(rig.address);
    rig.store.drain_agent("tests", true, NOW).await.unwrap();
    let next = work.next_job(0, NEVER).await.unwrap();
    assert!(matches!(next, NextJob::Drain), "{next:?}");
    rig.store.revoke_agent("tests", NOW).await.unwrap();
    let refused = work.next_job(0, NEVER).await;
    assert!(matches!(refused, Err(WorkError::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn another_protocol_version_is_a_refusal_and_a_missing_one_is_temporary() {
    let rig = Rig::new().await;
    let other = fixed_response("200 OK\r\nX-Plumbline-Protocol: 2", "{\"data\":{}}").await;
    let refused = rig.work(other).next_job(0, NEVER).await;
    let Err(WorkError::Refused(reason)) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("protocol 2"), "{reason}");
    for (status, body) in [
        ("502 Bad Gateway", "<h1>Oh</h1>"),
        ("200 OK", "{\"data\":{}}"),
    ] {
        let proxy = fixed_response(status, body).await;
        let failed = rig.work(proxy).next_job(0, NEVER).await;
        assert!(matches!(failed, Err(WorkError::Failed(_))), "{failed:?}");
    }
}

#[tokio::test]
async fn over_https_only_the_named_authority_is_trusted() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let proxy = tls_proxy(rig.address).await;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let url = format!("https://localhost:{}", proxy.port());
    let server = |ca: Option<&str>| {
        let trust = Trust {
            ca_file: ca.map(|name| data.join(name)),
            plain_http: false,
        };
        Server::new(&url, &rig.token, &trust)
    };
    let stranger = rig.work_at(server(Some("other.pem")).unwrap());
    let failed = stranger.next_job(0, NEVER).await;
    assert!(matches!(failed, Err(WorkError::Failed(_))), "{failed:?}");
    // On a machine without trusted authorities, the client cannot be created.
    if let Ok(server) = server(None) {
        let failed = rig.work_at(server).next_job(0, NEVER).await;
        assert!(matches!(failed, Err(WorkError::Failed(_))), "{failed:?}");
    }
    let work = rig.work_at(server(Some("ca.pem")).unwrap());
    let job = job(&work).await;
    let result = work.finish(&job, output(Some(bundle()))).await;
    assert_eq!(result.unwrap(), LeaseState::Held);
    assert_eq!(rig.bundle("report-of-a").await, Some(bundle()));
}

#[tokio::test]
async fn a_job_is_confirmed_before_it_is_started() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let work = rig.work(rig.address);
    let job = job(&work).await;
    let until = async || rig.store.running(None).await.unwrap()[0].expires_at;
    let as_leased = NOW.plus(Duration::from_secs(30));
    assert_eq!(until().await, as_leased);
    // The server's clock does not advance. Only a heartbeat changes the expiry, and only one after
    // the confirmation, for which the server that gave the job does not use its store.
    assert_eq!(work.heartbeat(&job).await.unwrap(), LeaseState::Held);
    assert!(until().await > as_leased);
}

/// A response that contains a job and, read as the response to a heartbeat, says that it is lost.
macro_rules! job_and_lost {
    ($confirm:literal) => {
        concat!(
            r#"{"data":{"job":{"trackingId":"a","attempt":1,"url":"https://example.com/","#,
            r#""device":"mobile","network":"normal4g","location":"eu","runs":1,"exhausted":false,"#,
            r#""heartbeatMs":7500,"leaseMs":30000"#,
            $confirm,
            r#"},"drain":false,"hold":"lost"}}"#
        )
    };
}

#[tokio::test]
async fn a_job_that_was_lost_before_it_was_confirmed_is_not_started() {
    let rig = Rig::new().await;
    let lost = job_and_lost!(r#","confirmWithinMs":5000"#);
    let server = fixed_response("200 OK\r\nX-Plumbline-Protocol: 1", lost).await;
    let next = rig.work(server).next_job(0, NEVER).await;
    assert!(matches!(next, Ok(NextJob::None)), "{next:?}");
}

#[tokio::test]
async fn no_confirmation_is_sent_if_the_server_does_not_request_it() {
    let rig = Rig::new().await;
    let server = fixed_response("200 OK\r\nX-Plumbline-Protocol: 1", job_and_lost!("")).await;
    let next = rig.work(server).next_job(0, NEVER).await;
    assert!(matches!(next, Ok(NextJob::Job(_))), "{next:?}");
}

#[tokio::test]
async fn an_unknown_token_is_refused() {
    let rig = Rig::new().await;
    let token = AgentToken::generate().unwrap().reveal();
    let url = format!("http://{}", rig.address);
    let server = Server::new(&url, &token, &Trust::default()).unwrap();
    let refused = rig.work_at(server).next_job(0, NEVER).await;
    assert!(matches!(refused, Err(WorkError::Refused(_))), "{refused:?}");
}
