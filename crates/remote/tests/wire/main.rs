//! An agent's end of the wire against a real server, over lines of every kind.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod line;
mod rig;

use std::path::Path;
use std::time::Duration;

use plumbline_agent::{Hold, Job, Next, Work, WorkError};
use plumbline_remote::{Server, Trust};
use plumbline_store::{AgentStore, AgentToken, Store};
use tokio::time::timeout;

use crate::line::{Fault, Line, answering, secured};
use crate::rig::{NOW, Rig, audited};

/// Far longer than anything here takes: reached only when something hangs.
const NEVER: Duration = Duration::from_secs(25);

async fn job(work: &dyn Work) -> Job {
    match work.next(0, NEVER).await {
        Ok(Next::Job(job)) => job,
        other => panic!("no job: {other:?}"),
    }
}

fn bundle() -> Vec<u8> {
    (0..400_000_u32).map(|n| (n % 251) as u8).collect()
}

#[tokio::test]
async fn a_report_and_its_evidence_arrive_over_a_line_that_breaks_again_and_again() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let line = Line::to(rig.address).await;
    let work = rig.work(line.address);
    let job = job(&work).await;
    assert_eq!(work.heartbeat(&job).await.unwrap(), Hold::Held);
    // The one that is open breaks, too.
    line.break_all();
    line.next([
        Fault::CutAfter(150_000),
        Fault::Refused,
        Fault::CutAfter(500),
    ]);
    line.next([
        Fault::CutAfter(90_000),
        Fault::Refused,
        Fault::CutAfter(100_000),
    ]);
    assert_eq!(
        work.finish(&job, audited(Some(bundle()))).await.unwrap(),
        Hold::Held
    );
    assert_eq!(rig.bundle("report-of-a").await, Some(bundle()));
    assert!(rig.is_completed("a").await);
    assert!(line.carried() < 3 * 400_000, "{} bytes", line.carried());
}

#[tokio::test]
async fn evidence_that_was_damaged_on_the_way_is_sent_again() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let line = Line::to(rig.address).await;
    let work = rig.work(line.address);
    let job = job(&work).await;
    line.break_all();
    line.next([Fault::DamageAt(200_000)]);
    let handed_in = work.finish(&job, audited(Some(bundle()))).await;
    assert_eq!(handed_in.unwrap(), Hold::Held);
    assert_eq!(rig.bundle("report-of-a").await, Some(bundle()));
}

#[tokio::test]
async fn a_server_whose_disk_is_full_gets_the_report_without_its_evidence() {
    let rig = Rig::new().await;
    rig.start("a").await;
    rig.fill_disk("a-1-bundle");
    let work = rig.work(rig.address);
    let job = job(&work).await;
    // Far more than is read of a body that nobody wants: the refusal must arrive all the same.
    let large = vec![7; 50_000_000];
    let handed_in = timeout(NEVER, work.finish(&job, audited(Some(large)))).await;
    assert_eq!(handed_in.unwrap().unwrap(), Hold::Held);
    assert!(rig.is_completed("a").await);
    assert_eq!(rig.bundle("report-of-a").await, None);
    let left = std::fs::read_dir(rig.uploads()).unwrap().count();
    assert_eq!(left, 0, "what cannot be kept takes no room");
}

#[tokio::test]
async fn a_server_that_is_away_is_waited_for() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let line = Line::to(rig.address).await;
    let work = rig.work(line.address);
    let job = job(&work).await;
    line.break_all();
    line.next([Fault::Refused, Fault::Refused, Fault::CutAfter(10)]);
    assert_eq!(work.drained(&job).await.unwrap(), Hold::Held);
    assert_eq!(work.fault(&job).await.unwrap(), Hold::Lost);
    let queue = rig.store.queue(1).await.unwrap();
    assert_eq!((queue[0].faults, &queue[0].lease), (0, &None));
}

#[tokio::test]
async fn a_result_that_comes_too_late_stays_with_its_agent() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let work = rig.work(rig.address);
    let first = job(&work).await;
    rig.take_over("a").await;
    assert_eq!(work.heartbeat(&first).await.unwrap(), Hold::Lost);
    let handed_in = work.finish(&first, audited(Some(bundle()))).await;
    assert_eq!(handed_in.unwrap(), Hold::Lost);
    assert_eq!(rig.bundle("report-of-a").await, None);
    assert!(!rig.is_completed("a").await);
}

#[tokio::test]
async fn who_is_drained_is_told_to_leave_and_who_is_revoked_is_refused() {
    let rig = Rig::new().await;
    let work = rig.work(rig.address);
    rig.store.drain_agent("tests", true, NOW).await.unwrap();
    let told = work.next(0, NEVER).await.unwrap();
    assert!(matches!(told, Next::Leave), "{told:?}");
    rig.store.revoke_agent("tests", NOW).await.unwrap();
    let refused = work.next(0, NEVER).await;
    assert!(matches!(refused, Err(WorkError::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn a_server_of_another_protocol_is_left_and_a_proxy_without_one_asked_again() {
    let rig = Rig::new().await;
    let other = answering("200 OK\r\nX-Plumbline-Protocol: 2", "{\"data\":{}}").await;
    let refused = rig.work(other).next(0, NEVER).await;
    let Err(WorkError::Refused(reason)) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("protocol 2"), "{reason}");
    for (status, body) in [
        ("502 Bad Gateway", "<h1>Oh</h1>"),
        ("200 OK", "{\"data\":{}}"),
    ] {
        let proxy = answering(status, body).await;
        let failed = rig.work(proxy).next(0, NEVER).await;
        assert!(matches!(failed, Err(WorkError::Failed(_))), "{failed:?}");
    }
}

#[tokio::test]
async fn over_https_only_the_named_authority_is_believed() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let line = secured(rig.address).await;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let url = format!("https://localhost:{}", line.port());
    let server = |ca: Option<&str>| {
        let trust = Trust {
            ca_file: ca.map(|name| data.join(name)),
            plain_http: false,
        };
        Server::new(&url, &rig.token, &trust)
    };
    let stranger = rig.work_at(server(Some("other.pem")).unwrap());
    let failed = stranger.next(0, NEVER).await;
    assert!(matches!(failed, Err(WorkError::Failed(_))), "{failed:?}");
    // A machine that trusts nobody cannot be told apart from one that trusts others.
    if let Ok(server) = server(None) {
        let failed = rig.work_at(server).next(0, NEVER).await;
        assert!(matches!(failed, Err(WorkError::Failed(_))), "{failed:?}");
    }
    let work = rig.work_at(server(Some("ca.pem")).unwrap());
    let job = job(&work).await;
    let handed_in = work.finish(&job, audited(Some(bundle()))).await;
    assert_eq!(handed_in.unwrap(), Hold::Held);
    assert_eq!(rig.bundle("report-of-a").await, Some(bundle()));
}

#[tokio::test]
async fn a_job_is_confirmed_before_it_is_begun() {
    let rig = Rig::new().await;
    rig.start("a").await;
    let work = rig.work(rig.address);
    let job = job(&work).await;
    let until = async || rig.store.running(None).await.unwrap()[0].expires_at;
    let as_leased = NOW.plus(Duration::from_secs(30));
    assert_eq!(until().await, as_leased);
    // The server's clock stands still: only a heartbeat moves an expiry, and only one after the confirmation, which the
    // server that gave the job takes without its store.
    assert_eq!(work.heartbeat(&job).await.unwrap(), Hold::Held);
    assert!(until().await > as_leased);
}

/// A job; read as the answer to a heartbeat, it says that the job is lost.
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
async fn a_job_that_was_taken_back_before_it_was_confirmed_is_not_begun() {
    let rig = Rig::new().await;
    let lost = job_and_lost!(r#","confirmWithinMs":5000"#);
    let server = answering("200 OK\r\nX-Plumbline-Protocol: 1", lost).await;
    let next = rig.work(server).next(0, NEVER).await;
    assert!(matches!(next, Ok(Next::Nothing)), "{next:?}");
}

#[tokio::test]
async fn a_server_that_does_not_ask_for_it_is_sent_no_confirmation() {
    let rig = Rig::new().await;
    let server = answering("200 OK\r\nX-Plumbline-Protocol: 1", job_and_lost!("")).await;
    let next = rig.work(server).next(0, NEVER).await;
    assert!(matches!(next, Ok(Next::Job(_))), "{next:?}");
}

#[tokio::test]
async fn a_token_that_nobody_knows_is_refused() {
    let rig = Rig::new().await;
    let token = AgentToken::generate().unwrap().reveal();
    let url = format!("http://{}", rig.address);
    let server = Server::new(&url, &token, &Trust::default()).unwrap();
    let refused = rig.work_at(server).next(0, NEVER).await;
    assert!(matches!(refused, Err(WorkError::Refused(_))), "{refused:?}");
}
