//! Telling others that an audit is completed.

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use async_trait::async_trait;
use plumbline_server::{App, WEBHOOK_RETRIES, WebhookRequest, WebhookTransport, deliver_webhooks};
use plumbline_store::{AuditError, Store};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::{
    receivers::{Dialling, Receiving, Tarpit},
    rig::{NOW, Rig, get, order, start},
};

/// Keeps what it is sent and answers as it was told.
struct Receiver {
    got: mpsc::UnboundedSender<WebhookRequest>,
    answers: Mutex<Vec<Result<u16, String>>>,
}

#[async_trait]
impl WebhookTransport for Receiver {
    async fn post(&self, request: WebhookRequest) -> Result<u16, String> {
        self.got.send(request).unwrap();
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 {
            answers.remove(0)
        } else {
            answers[0].clone()
        }
    }
}

struct Delivering {
    rig: Rig,
    got: mpsc::UnboundedReceiver<WebhookRequest>,
    _stop: watch::Sender<bool>,
}

async fn delivering(answers: &[Result<u16, &str>], retries: Vec<Duration>) -> Delivering {
    let mut app: Option<App> = None;
    let rig = Rig::with(|made| app = Some(made.clone())).await;
    // The moment at which the rig's audits are finished.
    rig.clock.store(NOW.0 + 7, Ordering::SeqCst);
    let (got, receiving) = mpsc::unbounded_channel();
    let (stop, stopped) = watch::channel(false);
    let answers = answers
        .iter()
        .map(|answer| answer.map_err(str::to_owned))
        .collect();
    let receiver = Receiver {
        got,
        answers: Mutex::new(answers),
    };
    tokio::spawn(deliver_webhooks(
        app.unwrap(),
        Arc::new(receiver),
        retries,
        stopped,
    ));
    Delivering {
        rig,
        got: receiving,
        _stop: stop,
    }
}

async fn completed(rig: &Rig, error: Option<AuditError>) -> (String, String) {
    let mut body = order();
    body["webhook"] = json!("https://hooks.example/audits?x=1");
    let tracking_id = rig.start_with(&body).await;
    let lease = rig.lease().await;
    rig.finish(&lease, json!({}), error).await;
    (tracking_id, lease.audit_id)
}

fn header(request: &WebhookRequest, name: &str) -> String {
    let found = request.headers.iter().find(|(found, _)| *found == name);
    found.unwrap().1.clone()
}

#[tokio::test]
async fn a_completed_audit_is_told_once_and_signed() {
    let mut delivering = delivering(&[Ok(204)], vec![]).await;
    let error = AuditError {
        code: "TIMEOUT".to_owned(),
        message: "late".to_owned(),
    };
    let (tracking_id, audit_id) = completed(&delivering.rig, Some(error)).await;
    let got = delivering.got.recv().await.unwrap();
    assert_eq!(got.url, "https://hooks.example/audits?x=1");
    let body: Value = serde_json::from_str(&got.body).unwrap();
    assert_eq!(
        body,
        json!({
            "event": "audit.completed", "completedAt": "2027-01-15T08:00:00.007Z",
            "data": {
                "trackingId": tracking_id, "auditId": audit_id, "url": "https://example.com/",
                "status": "completed", "error": { "code": "TIMEOUT", "message": "late" },
            },
        })
    );
    assert_eq!(header(&got, "content-type"), "application/json");
    assert_eq!(header(&got, "x-plumbline-timestamp"), "1800000000");
    assert_eq!(header(&got, "x-plumbline-attempt"), "1");

    let rig = &delivering.rig;
    let secret = rig
        .ask(&get("/v1/webhook-secret").key(&rig.key))
        .await
        .json();
    let secret = secret["data"]["secret"].as_str().unwrap().to_owned();
    let signed = format!("1800000000.{}", got.body);
    let expected = format!("v1={}", hmac_by_hand(&secret, &signed));
    assert_eq!(header(&got, "x-plumbline-signature"), expected);
}

/// RFC 2104, written out.
fn hmac_by_hand(secret: &str, text: &str) -> String {
    use sha2::{Digest, Sha256};
    let mut block = [0_u8; 64];
    block[..secret.len()].copy_from_slice(secret.as_bytes());
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new()
        .chain_update(pad(0x36))
        .chain_update(text)
        .finalize();
    let outer = Sha256::new()
        .chain_update(pad(0x5c))
        .chain_update(inner)
        .finalize();
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn what_is_not_a_yes_is_tried_again_exactly_as_often_as_documented() {
    // The clock of the rig stands still, so every wait of nothing is over at once.
    let answers = [Ok(500), Ok(302), Err("refused"), Ok(404)];
    let retries = vec![Duration::ZERO; WEBHOOK_RETRIES.len()];
    let mut delivering = delivering(&answers, retries).await;
    completed(&delivering.rig, None).await;
    let mut attempts = Vec::new();
    for _ in 0..=WEBHOOK_RETRIES.len() {
        let got = delivering.got.recv().await.unwrap();
        attempts.push(header(&got, "x-plumbline-attempt"));
    }
    assert_eq!(attempts, ["1", "2", "3", "4", "5", "6", "7"]);
    loop {
        let depth = delivering.rig.store.delivery_depth().await.unwrap();
        if depth.given_up == 1 {
            assert_eq!(depth.pending, 0);
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(delivering.got.try_recv().is_err());
}

#[tokio::test]
async fn a_yes_ends_the_retries() {
    let mut delivering = delivering(&[Ok(503), Ok(200)], vec![Duration::ZERO; 6]).await;
    completed(&delivering.rig, None).await;
    let first = delivering.got.recv().await.unwrap();
    let second = delivering.got.recv().await.unwrap();
    assert_eq!(first.body, second.body);
    completed(&delivering.rig, None).await;
    let other = delivering.got.recv().await.unwrap();
    assert_ne!(other.body, second.body, "the next is another audit's");
}

#[tokio::test]
async fn a_receiver_that_never_answers_delays_no_other_accounts_webhook() {
    let mut app: Option<App> = None;
    let rig = Rig::with(|made| app = Some(made.clone())).await;
    rig.clock.store(NOW.0 + 7, Ordering::SeqCst);
    let (tarpit, mut receiver) = (Tarpit::open().await, Receiving::open().await);
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(deliver_webhooks(
        app.unwrap(),
        Arc::new(Dialling),
        WEBHOOK_RETRIES.to_vec(),
        stopped,
    ));
    for _ in 0..34 {
        let mut body = order();
        body["webhook"] = json!(tarpit.url());
        rig.start_with(&body).await;
        let lease = rig.lease().await;
        rig.finish(&lease, json!({}), None).await;
    }
    tarpit.holds(2).await;
    let other = rig.new_key(&rig.new_account(5).await, None).await;
    let mut body = order();
    body["webhook"] = json!(receiver.url());
    assert_eq!(rig.ask(&start(&other, &body)).await.status, 200);
    let lease = rig.lease().await;
    rig.finish(&lease, json!({}), None).await;
    let told = receiver.told().await;
    assert!(told.contains(&lease.audit_id), "{told}");
    assert_eq!(tarpit.counts(), (2, 0), "accepted, and given up by us");
}

#[test]
fn the_schedule_is_the_documented_one() {
    let seconds = WEBHOOK_RETRIES.map(|wait| wait.as_secs());
    assert_eq!(seconds, [10, 60, 300, 1800, 7200, 21600]);
}
