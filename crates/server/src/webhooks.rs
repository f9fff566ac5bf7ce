//! Tells webhooks that audits are completed: signed, at least once, until they say yes or the
//! schedule is over.
//!
//! What is to be told stands in the store, in the same transaction as the report: a restart loses
//! none of it. How a request gets out, and to whom one may get, is not known here: see [`Post`].

use std::{pin::pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use hmac::{Hmac, KeyInit, Mac};
use plumbline_report::contract::iso8601_ms;
use plumbline_store::{
    ClaimedDeliveries, Delivery, DeliveryClaim, DeliveryLane, DeliveryOutcome, StoreError,
    Timestamp,
};
use serde::Serialize;
use sha2::Sha256;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tracing::{error, info, warn};

use crate::{App, api::audit::Tracking};

/// When the next attempt is made after the first, second … has failed; then no more.
pub const WEBHOOK_RETRIES: [Duration; 6] = [
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 60 * 60),
    Duration::from_secs(6 * 60 * 60),
];

/// How long an attempt may take as a whole, reading the answer included.
pub const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a receiver may take to be connected to, to read the request and to send the head of its
/// answer. Receivers are expected to take a webhook first and to work afterwards.
pub const WEBHOOK_HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// An attempt that was never heard of again is repeated after this.
const HOLD: Duration = Duration::from_secs(60);
/// Attempts of this server that are under way, by lane. How many of them one account or one receiver
/// may have is decided by the store, for all servers together.
const FIRST_AT_A_TIME: usize = 64;
const RETRIES_AT_A_TIME: usize = 32;
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(60);
/// While webhooks are held back by attempts that are under way, possibly at another server.
const LOOK_WHILE_HELD_BACK: Duration = Duration::from_secs(1);
const AFTER_ERROR: Duration = Duration::from_secs(5);

/// A request as it is to be sent.
#[derive(Debug, Clone)]
pub struct WebhookRequest {
    pub url: String,
    /// Beside the ones that any request has.
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

/// Sends a POST, to addresses that may be reached, following no redirect, and says the status.
#[async_trait]
pub trait Post: Send + Sync + 'static {
    async fn post(&self, request: WebhookRequest) -> Result<u16, String>;
}

/// Delivers until `stop` turns true and the attempts under way have ended. `retries` are the waits
/// between attempts, usually [`WEBHOOK_RETRIES`].
///
/// First attempts and retries run beside each other, so that receivers that fail delay nobody's first
/// attempt. In each lane accounts take turns.
pub async fn deliver_webhooks(
    app: App,
    post: Arc<dyn Post>,
    retries: Vec<Duration>,
    stop: watch::Receiver<bool>,
) {
    let sender = Arc::new(Sender {
        app,
        post,
        retries,
        settled: Notify::new(),
    });
    let first = Arc::clone(&sender).deliver(DeliveryLane::First, FIRST_AT_A_TIME, stop.clone());
    let retry = sender.deliver(DeliveryLane::Retry, RETRIES_AT_A_TIME, stop);
    tokio::join!(first, retry);
}

struct Sender {
    app: App,
    post: Arc<dyn Post>,
    retries: Vec<Duration>,
    /// Notified when an attempt has been settled: a place is free, or a retry was scheduled.
    settled: Notify,
}

impl Sender {
    /// Delivers one lane.
    async fn deliver(
        self: Arc<Self>,
        lane: DeliveryLane,
        at_a_time: usize,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut running = JoinSet::new();
        let mut after_account = String::new();
        while !*stop.borrow() {
            while running.try_join_next().is_some() {}
            // Listened to before the claim, so that nothing in between is missed.
            let mut arrival = pin!(self.app.store.delivery_notify().notified());
            let mut settled = pin!(self.settled.notified());
            arrival.as_mut().enable();
            settled.as_mut().enable();
            let now = (self.app.clock)();
            let free = at_a_time - running.len();
            let claimed = match self.claim(lane, &after_account, free, now).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    error!(%error, "due webhooks could not be read");
                    tokio::select! {
                        () = tokio::time::sleep(AFTER_ERROR) => {}
                        _ = stop.wait_for(|stop| *stop) => {}
                    }
                    continue;
                }
            };
            if let Some(last) = claimed.deliveries.last() {
                after_account.clone_from(&last.account_id);
                for delivery in claimed.deliveries {
                    let sender = Arc::clone(&self);
                    running.spawn(async move { sender.attempt(&delivery).await });
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
            hold: HOLD,
            limit: u32::try_from(at_most).unwrap_or(u32::MAX),
        };
        self.app.store.claim_deliveries(claim, now).await
    }

    async fn attempt(&self, delivery: &Delivery) {
        let (audit, attempt) = (&delivery.audit.tracking_id, delivery.attempt);
        let sent = tokio::time::timeout(WEBHOOK_TIMEOUT, self.send(delivery)).await;
        let settled = match sent.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
            Ok(()) => {
                info!(audit, attempt, "webhook delivered");
                DeliveryOutcome::Delivered
            }
            Err(reason) => {
                warn!(audit, attempt, reason, "webhook not delivered");
                self.after_failure(attempt, reason)
            }
        };
        self.app.metrics.webhook(match settled {
            DeliveryOutcome::Delivered => "delivered",
            DeliveryOutcome::RetryAt(..) => "failed",
            DeliveryOutcome::GivenUp(_) => "given-up",
        });
        if let Err(error) = self.app.store.settle(delivery, settled).await {
            error!(audit, attempt, %error, "what became of a webhook could not be kept");
        }
        self.settled.notify_waiters();
    }

    fn after_failure(&self, attempt: u32, reason: String) -> DeliveryOutcome {
        let failed = usize::try_from(attempt).unwrap_or(usize::MAX);
        match self.retries.get(failed.saturating_sub(1)) {
            Some(wait) => DeliveryOutcome::RetryAt((self.app.clock)().plus(*wait), reason),
            None => DeliveryOutcome::GivenUp(reason),
        }
    }

    async fn send(&self, delivery: &Delivery) -> Result<(), String> {
        let store = &self.app.store;
        let secret = store.webhook_secret(&delivery.account_id, false).await;
        let secret = secret.map_err(|error| error.to_string())?;
        let event = Event {
            event: "audit.completed",
            data: Tracking::from(&delivery.audit),
            completed_at: iso8601_ms(delivery.finished_at.0),
        };
        let body = serde_json::to_string(&event).map_err(|error| error.to_string())?;
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
        match self.post.post(request).await? {
            200..=299 => Ok(()),
            status => Err(format!("answered with {status}")),
        }
    }
}

/// How long to wait for an announcement after a claim that found nothing to do.
fn wait_after(claimed: &ClaimedDeliveries, now: Timestamp) -> Duration {
    if claimed.has_more_due {
        return LOOK_WHILE_HELD_BACK;
    }
    let due_in_ms = claimed
        .next_claim_at
        .map(|at| at.0.saturating_sub(now.0).max(0));
    due_in_ms.map_or(LOOK_AT_LEAST_EVERY, |ms| {
        LOOK_AT_LEAST_EVERY.min(Duration::from_millis(ms.unsigned_abs()))
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    event: &'static str,
    completed_at: String,
    data: Tracking<'a>,
}

/// `v1=` and the HMAC-SHA256, in hex, of the time stamp, a dot, and the body. The time is signed so
/// that an old request cannot be sent again as a new one.
fn sign(secret: &str, sent_at_s: i64, body: &str) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map_err(|error| format!("cannot sign: {error}"))?;
    mac.update(format!("{sent_at_s}.{body}").as_bytes());
    let digest = mac.finalize().into_bytes();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("v1={hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked with `printf '1800000000.{"a":1}' | openssl dgst -sha256 -hmac whsec_x`.
    #[test]
    fn a_signature_is_what_other_tools_compute() {
        assert_eq!(
            sign("whsec_x", 1_800_000_000, "{\"a\":1}").unwrap(),
            "v1=f20d18d08da09ed70c7d90a4cc6242e6c8fd59c4145ce0c03a09fb20e01ef470"
        );
    }
}
