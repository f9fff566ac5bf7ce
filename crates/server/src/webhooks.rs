//! Delivers webhooks when audits are completed: signed, at least once, until the receiver accepts
//! one or the schedule ends.
//!
//! Deliveries are stored in the same transaction as the report, so a restart loses none. Requests
//! are sent by a [`WebhookTransport`], which also decides which addresses may be reached.

use std::{pin::pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use hmac::{Hmac, KeyInit, Mac};
use plumbline_report::contract::iso8601_ms;
use plumbline_store::{
    ClaimedDeliveries, Delivery, DeliveryClaim, DeliveryEvent, DeliveryLane, DeliveryOutcome,
    StoreError, Timestamp,
};
use serde::Serialize;
use sha2::Sha256;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tracing::{error, info, warn};

use crate::{
    App,
    api::{audit::Tracking, batches::BatchStatus},
};

/// The waits after the first, second … failed attempt. There are no attempts after the last one.
pub const WEBHOOK_RETRIES: [Duration; 6] = [
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 60 * 60),
    Duration::from_secs(6 * 60 * 60),
];

/// How long an attempt may take as a whole, including reading the response.
pub const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may take to connect to a receiver, send the request and receive the head of the
/// response. Receivers are expected to respond before they process a webhook.
pub const WEBHOOK_HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// An attempt whose outcome was not recorded is repeated after this time.
const CLAIM_DURATION: Duration = Duration::from_secs(60);
/// The number of first attempts that this server makes concurrently. The store limits those of one
/// account and of one receiver, for all servers together.
const CONCURRENT_FIRST_ATTEMPTS: usize = 64;
/// The number of further attempts that this server makes concurrently.
const CONCURRENT_RETRIES: usize = 32;
/// The longest time between two claims.
const MAX_CLAIM_INTERVAL: Duration = Duration::from_secs(60);
/// The time between two claims while webhooks wait for running attempts, possibly of another
/// server.
const CLAIM_INTERVAL_WHILE_BLOCKED: Duration = Duration::from_secs(1);
/// The pause after a failed claim.
const RETRY_AFTER_ERROR: Duration = Duration::from_secs(5);

/// The request of a webhook.
#[derive(Debug, Clone)]
pub struct WebhookRequest {
    /// The URL of the receiver.
    pub url: String,
    /// The headers, without those that every request has.
    pub headers: Vec<(&'static str, String)>,
    /// The JSON body.
    pub body: String,
}

/// Sends the requests of webhooks.
#[async_trait]
pub trait WebhookTransport: Send + Sync + 'static {
    /// Sends a POST request to an address that may be reached, without following redirects, and
    /// returns the status.
    async fn post(&self, request: WebhookRequest) -> Result<u16, String>;
}

/// Delivers webhooks until `stop` turns true and running attempts have ended. `retries` are the
/// waits between attempts, usually [`WEBHOOK_RETRIES`].
///
/// First attempts and retries run in separate lanes, so that failing receivers delay no first
/// attempt. In each lane accounts take turns.
pub fn deliver_webhooks(
    app: App,
    transport: Arc<dyn WebhookTransport>,
    retries: Vec<Duration>,
    stop: watch::Receiver<bool>,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let deliverer = Arc::new(Deliverer {
            app,
            transport,
            retries,
            settled: Notify::new(),
        });
        let first = Arc::clone(&deliverer).deliver(
            DeliveryLane::First,
            CONCURRENT_FIRST_ATTEMPTS,
            stop.clone(),
        );
        let retry = deliverer.deliver(DeliveryLane::Retry, CONCURRENT_RETRIES, stop);
        tokio::join!(first, retry);
    })
}

/// Makes attempts to deliver webhooks.
struct Deliverer {
    app: App,
    transport: Arc<dyn WebhookTransport>,
    retries: Vec<Duration>,
    /// Notified when an attempt has been settled: a place is free, or a retry was scheduled.
    settled: Notify,
}

impl Deliverer {
    /// Delivers the webhooks of one lane.
    async fn deliver(
        self: Arc<Self>,
        lane: DeliveryLane,
        max_concurrent: usize,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut running = JoinSet::new();
        let mut after_account = String::new();
        while !*stop.borrow() {
            while running.try_join_next().is_some() {}
            // Registered before the claim, so that no notification in between is missed.
            let mut arrival = pin!(self.app.store.delivery_notify().notified());
            let mut settled = pin!(self.settled.notified());
            arrival.as_mut().enable();
            settled.as_mut().enable();
            let now = (self.app.clock)();
            let free = max_concurrent - running.len();
            let claimed = match self.claim(lane, &after_account, free, now).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    error!(%error, "failed to claim due webhooks");
                    tokio::select! {
                        () = tokio::time::sleep(RETRY_AFTER_ERROR) => {}
                        _ = stop.wait_for(|stop| *stop) => {}
                    }
                    continue;
                }
            };
            if let Some(last) = claimed.deliveries.last() {
                after_account.clone_from(&last.account_id);
                for delivery in claimed.deliveries {
                    let deliverer = Arc::clone(&self);
                    running.spawn(async move { deliverer.attempt(&delivery).await });
                }
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(wait_after(&claimed, now)) => {}
                () = arrival, if lane == DeliveryLane::First => {}
                () = settled => {}
                Some(_) = running.join_next() => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        }
        while running.join_next().await.is_some() {}
    }

    async fn claim(
        &self,
        lane: DeliveryLane,
        after_account: &str,
        at_most: usize,
        now: Timestamp,
    ) -> Result<ClaimedDeliveries, StoreError> {
        if at_most == 0 {
            return Ok(ClaimedDeliveries::default());
        }
        let claim = DeliveryClaim {
            lane,
            after_account: after_account.to_owned(),
            hold: CLAIM_DURATION,
            limit: u32::try_from(at_most).unwrap_or(u32::MAX),
        };
        self.app.store.claim_deliveries(claim, now).await
    }

    async fn attempt(&self, delivery: &Delivery) {
        let (audit, attempt) = (&delivery.audit.tracking_id, delivery.attempt);
        let result = tokio::time::timeout(WEBHOOK_TIMEOUT, self.send(delivery)).await;
        let settled = match result.unwrap_or_else(|_| Err("timeout".to_owned())) {
            Ok(()) => {
                info!(audit, attempt, "webhook delivered");
                DeliveryOutcome::Delivered
            }
            Err(reason) => {
                warn!(audit, attempt, reason, "failed to deliver webhook");
                self.after_failure(attempt, reason)
            }
        };
        self.app.metrics.webhook(match settled {
            DeliveryOutcome::Delivered => "delivered",
            DeliveryOutcome::RetryAt(..) => "failed",
            DeliveryOutcome::GivenUp(_) => "given-up",
        });
        if let Err(error) = self.app.store.settle(delivery, settled).await {
            error!(audit, attempt, %error, "failed to record the outcome of a webhook");
        }
        self.settled.notify_waiters();
    }

    fn after_failure(&self, attempt: u32, reason: String) -> DeliveryOutcome {
        let attempts = usize::try_from(attempt).unwrap_or(usize::MAX);
        match self.retries.get(attempts.saturating_sub(1)) {
            Some(wait) => DeliveryOutcome::RetryAt((self.app.clock)().plus(*wait), reason),
            None => DeliveryOutcome::GivenUp(reason),
        }
    }

    /// Returns the body of a webhook.
    async fn body(&self, delivery: &Delivery) -> Result<String, String> {
        let completed_at = iso8601_ms(delivery.finished_at.0);
        let body = match &delivery.event {
            DeliveryEvent::AuditCompleted => serde_json::to_string(&Event {
                event: "audit.completed",
                completed_at,
                data: Tracking::with_figures(delivery),
            }),
            DeliveryEvent::BatchCompleted(batch_id) => {
                let batch = self.app.store.batch(&delivery.account_id, batch_id).await;
                let batch = batch.map_err(|error| error.to_string())?;
                let batch = batch.ok_or_else(|| "the batch is deleted".to_owned())?;
                serde_json::to_string(&Event {
                    event: "batch.completed",
                    completed_at,
                    data: BatchStatus::from(&batch),
                })
            }
        };
        body.map_err(|error| error.to_string())
    }

    async fn send(&self, delivery: &Delivery) -> Result<(), String> {
        let store = &self.app.store;
        let secret = store.webhook_secret(&delivery.account_id, false).await;
        let secret = secret.map_err(|error| error.to_string())?;
        let body = self.body(delivery).await?;
        let sent_at_s = (self.app.clock)().0.div_euclid(1000);
        let request = WebhookRequest {
            url: delivery.webhook.clone(),
            headers: vec![
                ("content-type", "application/json".to_owned()),
                ("user-agent", "Plumbline-Webhook/1".to_owned()),
                ("x-plumbline-timestamp", sent_at_s.to_string()),
                ("x-plumbline-attempt", delivery.attempt.to_string()),
                ("x-plumbline-signature", sign(&secret, sent_at_s, &body)?),
            ],
            body,
        };
        match self.transport.post(request).await? {
            200..=299 => Ok(()),
            status => Err(format!("status {status}")),
        }
    }
}

/// Returns how long to wait for a notification after a claim without results.
fn wait_after(claimed: &ClaimedDeliveries, now: Timestamp) -> Duration {
    if claimed.has_more_due {
        return CLAIM_INTERVAL_WHILE_BLOCKED;
    }
    let due_in_ms = claimed
        .next_claim_at
        .map(|at| at.0.saturating_sub(now.0).max(0));
    due_in_ms.map_or(MAX_CLAIM_INTERVAL, |ms| {
        MAX_CLAIM_INTERVAL.min(Duration::from_millis(ms.unsigned_abs()))
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<T> {
    event: &'static str,
    completed_at: String,
    data: T,
}

/// Returns the signature: `v1=` and the HMAC-SHA256, in hex, of the time stamp, a dot, and the
/// body. The time stamp is signed so that an old request cannot be replayed as a new one.
fn sign(secret: &str, sent_at_s: i64, body: &str) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map_err(|error| format!("cannot sign: {error}"))?;
    mac.update(format!("{sent_at_s}.{body}").as_bytes());
    let digest = mac.finalize().into_bytes();
    Ok(format!("v1={}", hex::encode(digest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected value is from `printf '1800000000.{"a":1}' | openssl dgst -sha256 -hmac
    /// whsec_x`.
    #[test]
    fn a_signature_equals_that_of_openssl() {
        assert_eq!(
            sign("whsec_x", 1_800_000_000, "{\"a\":1}").unwrap(),
            "v1=f20d18d08da09ed70c7d90a4cc6242e6c8fd59c4145ce0c03a09fb20e01ef470"
        );
    }
}
