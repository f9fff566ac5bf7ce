//! Forgets what has been kept long enough: by itself, and when an operator asks.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plumbline_store::{Blobs, Retention, Store, StoreError, Timestamp};

use crate::blobs::KeptBlobs;
use crate::clock::now;

/// Deleted at a time, so that a start never waits long behind it.
const AT_ONCE: u32 = 200;
const EVERY: Duration = Duration::from_secs(60 * 60);
const HOURS_A_DAY: u64 = 24;

/// What is kept, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    pub bundles: Duration,
    /// `None` keeps audits for ever.
    pub audits: Option<Duration>,
    pub audits_per_account: Option<u64>,
}

impl Keep {
    fn retention(self, now: Timestamp) -> Retention {
        Retention {
            accepted_before: self.audits.map(|age| before(now, age)),
            keep_per_account: self.audits_per_account,
        }
    }
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    let age_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp(now.0.saturating_sub(age_ms))
}

/// Now and every hour.
pub async fn forget_by_itself(store: Arc<dyn Store>, blobs: KeptBlobs, keep: Keep) {
    let mut hour = tokio::time::interval(EVERY);
    for hours in 0_u64.. {
        hour.tick().await;
        match forget(&*store, &blobs, keep.retention(now())).await {
            Ok(0) => {}
            Ok(audits) => tracing::info!(audits, "old audits are forgotten"),
            Err(error) => tracing::warn!(%error, "old audits could not be forgotten"),
        }
        remove_older(&*blobs.bundles, keep.bundles, "bundles").await;
        // Report media go with their audits. What stayed because it could not be removed then goes a
        // day later; all of them are looked through for it, so not every hour.
        if let Some(age) = keep.audits.filter(|_| hours % HOURS_A_DAY == 0) {
            remove_older(&*blobs.media, age + EVERY * 24, "exhibits").await;
        }
    }
}

async fn remove_older(blobs: &dyn Blobs, age: Duration, what: &str) {
    match blobs.remove_older(age, SystemTime::now()).await {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, what, "old blobs are removed"),
        Err(error) => tracing::warn!(%error, what, "old blobs could not be removed"),
    }
}

/// Deletes all that need not be kept, with its evidence; returns how many audits.
pub async fn forget(
    store: &dyn Store,
    blobs: &KeptBlobs,
    retention: Retention,
) -> Result<u64, StoreError> {
    let mut forgotten = 0;
    loop {
        let round = store.purge(retention, now(), AT_ONCE).await?;
        if round.audits.is_empty() {
            return Ok(forgotten);
        }
        forgotten += round.audits.len() as u64;
        for audit in &round.audits {
            blobs.remove(audit).await;
        }
    }
}
