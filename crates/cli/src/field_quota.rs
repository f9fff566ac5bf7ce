//! The quota of the Chrome UX Report API, shared by several servers on one store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plumbline_field::Quota;
use plumbline_server::Clock;
use plumbline_store::{BucketGrant, BucketRate, BucketRequest, SharedLimits, Store, StoreError};

/// The capacity of the bucket. With 30, and 120 more a minute, no more than the API's 150 requests
/// pass in any minute.
const BURST: i64 = 30;
/// The time that one request takes to refill.
const COST_NS: i64 = 60_000_000_000 / 120;
/// The name of the bucket. Servers on one store are expected to use the same API key, or keys of
/// one project.
const BUCKET: &str = "field data";
/// The wait after a failed request to the store.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A quota in the store. If only one server uses the store, the local rate limit is enough.
pub struct SharedQuota {
    store: Arc<dyn Store>,
    clock: Clock,
}

impl SharedQuota {
    /// Creates a quota.
    pub fn new(store: Arc<dyn Store>, clock: Clock) -> Self {
        Self { store, clock }
    }

    async fn take_from(
        &self,
        limits: &dyn SharedLimits,
    ) -> Result<Result<(), Duration>, StoreError> {
        let now_ns = (self.clock)().0.saturating_mul(1_000_000);
        let rate = BucketRate {
            now_ns,
            burst_ns: BURST * COST_NS,
            cost_ns: COST_NS,
        };
        let one = BucketRequest {
            bucket: BUCKET.to_owned(),
            debt_ns: 0,
            requested: 1,
        };
        let taken = limits.take(rate, vec![one]).await?;
        Ok(match taken.first() {
            Some(BucketGrant { granted: 1.., .. }) => Ok(()),
            Some(BucketGrant { full_at_ns, .. }) => {
                let missing_ns = full_at_ns + COST_NS - (now_ns + rate.burst_ns);
                Err(Duration::from_nanos(missing_ns.max(0).unsigned_abs()))
            }
            None => Err(RETRY_AFTER),
        })
    }
}

#[async_trait]
impl Quota for SharedQuota {
    async fn take(&self) -> Result<(), Duration> {
        let Some(limits) = self.store.shared_limits() else {
            return Ok(());
        };
        self.take_from(limits).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "failed to read the quota for field data");
            Err(RETRY_AFTER)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use plumbline_store::{PostgresOptions, PostgresStore, SqliteStore, Timestamp};

    use super::*;
    use crate::cluster::Database;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_servers_share_one_quota() {
        let database = Database::fresh();
        let now_ms = Arc::new(AtomicI64::new(1_800_000_000_000));
        let server = async || {
            let store = PostgresStore::open(&database.url, PostgresOptions::default());
            let clock = Arc::clone(&now_ms);
            let clock = Arc::new(move || Timestamp(clock.load(Ordering::SeqCst)));
            SharedQuota::new(Arc::new(store.await.unwrap()), clock)
        };
        let servers = [server().await, server().await];
        let passed_of = async |tries: usize| {
            let mut passed = 0;
            for number in 0..tries {
                passed += usize::from(servers[number % 2].take().await.is_ok());
            }
            passed
        };
        assert_eq!(passed_of(40).await, 30);
        let wait = servers[0].take().await.unwrap_err();
        assert_eq!(wait, Duration::from_millis(500));
        let mut passed = 30;
        // Up to just before a minute is over.
        for _ in 0..59 {
            now_ms.fetch_add(1000, Ordering::SeqCst);
            passed += passed_of(4).await;
        }
        assert_eq!(passed, 30 + 59 * 2);
    }

    #[tokio::test]
    async fn a_server_with_its_own_store_does_not_wait() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("store.db")).unwrap();
        let clock = Arc::new(|| Timestamp(1_800_000_000_000));
        let quota = SharedQuota::new(Arc::new(store), clock);
        for _ in 0..1000 {
            assert_eq!(quota.take().await, Ok(()));
        }
    }
}
