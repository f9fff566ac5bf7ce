//! Deletes audits and evidence after their retention time.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plumbline_store::{Blobs, Retention, Store, StoreError, Timestamp};

use crate::blobs::EvidenceBlobs;
use crate::clock::now;

/// The most audits deleted in one transaction, so that other writes do not wait long.
const BATCH_SIZE: u32 = 200;
/// The interval between two runs.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
const HOURS_A_DAY: u64 = 24;

/// The retention times.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    pub bundles: Duration,
    /// `None` keeps audits forever.
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

/// Deletes old audits and evidence now and every hour.
pub async fn run_periodically(store: Arc<dyn Store>, blobs: EvidenceBlobs, keep: Keep) {
    let mut hour = tokio::time::interval(INTERVAL);
    for hours in 0_u64.. {
        hour.tick().await;
        match purge(&*store, &blobs, keep.retention(now())).await {
            Ok(0) => {}
            Ok(audits) => tracing::info!(audits, "deleted old audits"),
            Err(error) => tracing::warn!(%error, "failed to delete old audits"),
        }
        remove_older(&*blobs.bundles, keep.bundles, "bundles").await;
        // Report media are deleted with their audits. Those that could not be deleted then are
        // deleted a day later. That reads the whole list, so it is done once a day.
        if let Some(age) = keep.audits.filter(|_| hours % HOURS_A_DAY == 0) {
            remove_older(&*blobs.media, age + INTERVAL * 24, "exhibits").await;
        }
    }
}

async fn remove_older(blobs: &dyn Blobs, age: Duration, kind: &str) {
    match blobs.remove_older(age, SystemTime::now()).await {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, kind, "deleted old evidence"),
        Err(error) => tracing::warn!(%error, kind, "failed to delete old evidence"),
    }
}

/// Deletes old audits with their evidence and returns their number.
pub async fn purge(
    store: &dyn Store,
    blobs: &EvidenceBlobs,
    retention: Retention,
) -> Result<u64, StoreError> {
    let mut deleted = 0;
    loop {
        let batch = store.purge(retention, now(), BATCH_SIZE).await?;
        if batch.audits.is_empty() {
            return Ok(deleted);
        }
        deleted += batch.audits.len() as u64;
        for audit in &batch.audits {
            blobs.remove(audit).await;
        }
    }
}
