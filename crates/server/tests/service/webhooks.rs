//! Delivery of webhooks.

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
    receivers::{PlainTransport, Tarpit, TestReceiver},
    rig::{NOW, Rig, get, order, post, start},
};

/// A transport that records requests and returns the given responses.
struct RecordingTransport {
    requests: mpsc::UnboundedSender<WebhookRequest>,
    responses: Mutex<Vec<Result<u16, String>>>,
}

#[async_trait]
impl WebhookTransport for RecordingTransport {
    async fn post(&self, request: WebhookRequest) -> Result<u16, String> {
        self.requests.send(request).unwrap();
        let mut responses = self.responses.lock().unwrap();
        if responses.len() > 1 {
            responses.remove(0)
        } else {
            responses[0].clone()
        }
    }
}

/// A service that delivers webhooks.
struct Delivery {
    rig: Rig,
    requests: mpsc::UnboundedReceiver<WebhookRequest>,
    _stop: watch::Sender<bool>,
}

async fn start_delivery(responses: &[Result<u16, &str>], retries: Vec<Duration>) -> Delivery {
    let mut app: Option<App> = None;
    let rig = Rig::with(|rig_app| app = Some(rig_app.clone())).await;
    // The time at which the rig's audits are finished.
    rig.clock.store(NOW.0 + 7, Ordering::SeqCst);
    let (sender, requests) = mpsc::unbounded_channel();
    let (stop, stopped) = watch::channel(false);
    let responses = responses
        .iter()
        .map(|response| response.map_err(str::to_owned))
        .collect();
    let transport = RecordingTransport {
        requests: sender,
        responses: Mutex::new(responses),
    };
    tokio::spawn(deliver_webhooks(
        app.unwrap(),
        Arc::new(transport),
        retries,
        stopped,
    ));
    Delivery {
        rig,
        requests,
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
    let header = request.headers.iter().find(|(other, _)| *other == name);
    header.unwrap().1.clone()
}

#[tokio::test]
async fn a_completed_audit_has_one_signed_webhook() {
    let mut delivery = start_delivery(&[Ok(204)], vec![]).await;
    let error = AuditError {
        code: "TIMEOUT".to_owned(),
        message: "late".to_owned(),
    };
    let (tracking_id, audit_id) = completed(&delivery.rig, Some(error)).await;
    let request = delivery.requests.recv().await.unwrap();
    assert_eq!(request.url, "https://hooks.example/audits?x=1");
    let body: Value = serde_json::from_str(&request.body).unwrap();
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
    assert_eq!(header(&request, "content-type"), "application/json");
    assert_eq!(header(&request, "x-plumbline-timestamp"), "1800000000");
    assert_eq!(header(&request, "x-plumbline-attempt"), "1");

    let rig = &delivery.rig;
    let secret = rig
        .send(&get("/v1/webhook-secret").key(&rig.key))
        .await
        .json();
    let secret = secret["data"]["secret"].as_str().unwrap().to_owned();
    let signed = format!("1800000000.{}", request.body);
    let expected = format!("v1={}", hmac_by_hand(&secret, &signed));
    assert_eq!(header(&request, "x-plumbline-signature"), expected);
}

/// Computes an HMAC as in RFC 2104.
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
async fn a_failed_delivery_is_repeated_exactly_as_often_as_documented() {
    // The rig's clock does not move, so every wait of zero is over at once.
    let responses = [Ok(500), Ok(302), Err("refused"), Ok(404)];
    let retries = vec![Duration::ZERO; WEBHOOK_RETRIES.len()];
    let mut delivery = start_delivery(&responses, retries).await;
    completed(&delivery.rig, None).await;
    let mut attempts = Vec::new();
    for _ in 0..=WEBHOOK_RETRIES.len() {
        let request = delivery.requests.recv().await.unwrap();
        attempts.push(header(&request, "x-plumbline-attempt"));
    }
    assert_eq!(attempts, ["1", "2", "3", "4", "5", "6", "7"]);
    loop {
        let depth = delivery.rig.store.delivery_depth().await.unwrap();
        if depth.given_up == 1 {
            assert_eq!(depth.pending, 0);
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(delivery.requests.try_recv().is_err());
}

#[tokio::test]
async fn a_successful_delivery_ends_the_retries() {
    let mut delivery = start_delivery(&[Ok(503), Ok(200)], vec![Duration::ZERO; 6]).await;
    completed(&delivery.rig, None).await;
    let first = delivery.requests.recv().await.unwrap();
    let second = delivery.requests.recv().await.unwrap();
    assert_eq!(first.body, second.body);
    completed(&delivery.rig, None).await;
    let other = delivery.requests.recv().await.unwrap();
    assert_ne!(other.body, second.body, "the next belongs to another audit");
}

#[tokio::test]
async fn a_receiver_that_never_responds_delays_no_webhook_of_another_account() {
    let mut app: Option<App> = None;
    let rig = Rig::with(|rig_app| app = Some(rig_app.clone())).await;
    rig.clock.store(NOW.0 + 7, Ordering::SeqCst);
    let (tarpit, mut receiver) = (Tarpit::open().await, TestReceiver::open().await);
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(deliver_webhooks(
        app.unwrap(),
        Arc::new(PlainTransport),
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
    tarpit.wait_for_connections(2).await;
    let other = rig.new_key(&rig.new_account(5).await, None).await;
    let mut body = order();
    body["webhook"] = json!(receiver.url());
    assert_eq!(rig.send(&start(&other, &body)).await.status, 200);
    let lease = rig.lease().await;
    rig.finish(&lease, json!({}), None).await;
    let webhook = receiver.next().await;
    assert!(webhook.contains(&lease.audit_id), "{webhook}");
    assert_eq!(
        tarpit.counts(),
        (2, 0),
        "accepted, and closed by the server"
    );
}

#[test]
fn the_schedule_is_as_documented() {
    let seconds = WEBHOOK_RETRIES.map(|wait| wait.as_secs());
    assert_eq!(seconds, [10, 60, 300, 1800, 7200, 21600]);
}

#[tokio::test]
async fn the_end_of_a_batch_has_a_webhook_with_counts_and_scores() {
    let mut delivery = start_delivery(&[Ok(204)], vec![]).await;
    let rig = &delivery.rig;
    let body = json!({
        "urls": ["https://example.com/", "https://example.com/b"], "devices": ["mobile"],
        "networks": ["cable"], "locations": ["eu"], "webhook": "https://hooks.example/batches",
    });
    let request = post("/v1/batches", body.to_string()).key(&rig.key).json();
    let started = rig.send(&request).await.json();
    let batch_id = started["data"]["batchId"].as_str().unwrap();
    let first = rig.lease().await;
    rig.finish(&first, crate::visitor::report(), None).await;
    let path = format!("/v1/batches/{batch_id}/cancel");
    rig.send(&post(&path, "").key(&rig.key)).await;
    let mut events = Vec::new();
    for _ in 0..3 {
        let request = delivery.requests.recv().await.unwrap();
        assert_eq!(request.url, "https://hooks.example/batches");
        assert!(header(&request, "x-plumbline-signature").starts_with("v1="));
        events.push(serde_json::from_str::<Value>(&request.body).unwrap());
    }
    assert_eq!(events[0]["event"], "audit.completed");
    assert_eq!(events[1]["event"], "audit.completed");
    let last = &events[2];
    assert_eq!(last["event"], "batch.completed");
    assert_eq!(last["completedAt"], "2027-01-15T08:00:00.007Z");
    let batch = get(&format!("/v1/batches/{batch_id}")).key(&delivery.rig.key);
    let batch = delivery.rig.send(&batch).await.json();
    assert_eq!(last["data"], batch["data"]);
    assert_eq!(last["data"]["counts"]["failed"], 1);
    assert_eq!(last["data"]["audits"][0]["labData"]["performance"], 91);
}
