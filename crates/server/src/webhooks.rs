//! Tells webhooks that audits are completed: signed, at least once, until they say yes or the
//! schedule is over.
//!
//! What is to be told stands in the store, in the same transaction as the report: a restart loses
//! none of it. How a request gets out, and to whom one may get, is not known here: see [`Post`].

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use hmac::{Hmac, KeyInit, Mac};
use plumbline_report::contract::iso8601_ms;
use plumbline_store::{Delivery, Settled, StoreError, Timestamp};
use serde::Serialize;
use sha2::Sha256;
use tokio::{sync::watch, task::JoinSet};
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

/// How long an attempt may take.
pub const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// An attempt that was never heard of again is repeated after this.
const HOLD: Duration = Duration::from_secs(60);
const AT_A_TIME: usize = 8;
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(60);
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

/// Delivers until `stop` turns true and what runs has ended. `retries` are waits between attempts,
/// usually [`WEBHOOK_RETRIES`].
pub async fn deliver_webhooks(
    app: App,
    post: Arc<dyn Post>,
    retries: Vec<Duration>,
    mut stop: watch::Receiver<bool>,
) {
    let sender = Arc::new(Sender { app, post, retries });
    let mut running = JoinSet::new();
    while !*stop.borrow() {
        while running.try_join_next().is_some() {}
        let free = AT_A_TIME - running.len();
        let now = (sender.app.clock)();
        let claimed = match free {
            0 => Ok(Vec::new()),
            _ => sender.claim(now, free).await,
        };
        let next_look = match &claimed {
            Ok(found) if !found.is_empty() => {
                for delivery in claimed.unwrap_or_default() {
                    let sender = Arc::clone(&sender);
                    running.spawn(async move { sender.attempt(&delivery).await });
                }
                continue;
            }
            Ok(_) => LOOK_AT_LEAST_EVERY,
            Err(error) => {
                error!(%error, "webhooks that are due could not be read");
                tokio::time::sleep(AFTER_ERROR).await;
                continue;
            }
        };
        tokio::select! {
            () = sender.app.store.delivery_arrives(now, next_look), if free > 0 => {}
            Some(_) = running.join_next() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    while running.join_next().await.is_some() {}
}

struct Sender {
    app: App,
    post: Arc<dyn Post>,
    retries: Vec<Duration>,
}

impl Sender {
    async fn claim(&self, now: Timestamp, at_most: usize) -> Result<Vec<Delivery>, StoreError> {
        let at_most = u32::try_from(at_most).unwrap_or(u32::MAX);
        self.app.store.due_deliveries(now, HOLD, at_most).await
    }

    async fn attempt(&self, delivery: &Delivery) {
        let (audit, attempt) = (&delivery.audit.tracking_id, delivery.attempt);
        let sent = tokio::time::timeout(WEBHOOK_TIMEOUT, self.send(delivery)).await;
        let settled = match sent.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
            Ok(()) => {
                info!(audit, attempt, "webhook delivered");
                Settled::Delivered
            }
            Err(reason) => {
                warn!(audit, attempt, reason, "webhook not delivered");
                self.after_failure(attempt, reason)
            }
        };
        self.app.metrics.webhook(match settled {
            Settled::Delivered => "delivered",
            Settled::Again(..) => "failed",
            Settled::GivenUp(_) => "given-up",
        });
        if let Err(error) = self.app.store.settle(delivery, settled).await {
            error!(audit, attempt, %error, "what became of a webhook could not be kept");
        }
    }

    fn after_failure(&self, attempt: u32, reason: String) -> Settled {
        let failed = usize::try_from(attempt).unwrap_or(usize::MAX);
        match self.retries.get(failed.saturating_sub(1)) {
            Some(wait) => Settled::Again((self.app.clock)().plus(*wait), reason),
            None => Settled::GivenUp(reason),
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
