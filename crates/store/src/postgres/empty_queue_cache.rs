//! Remembers which scopes have no work, to avoid queries of the database.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::{PostgresStore, lanes};
use crate::LeaseScope;

type Locations = Option<Vec<String>>;

/// Remembers for which sets of locations the queue was empty: the value of
/// `Notifier::arrival_count` before the last query that found no work for them.
#[derive(Default)]
pub(super) struct EmptyQueueCache(Mutex<HashMap<Locations, u64>>);

impl EmptyQueueCache {
    pub(super) fn record_empty(&self, locations: Locations, arrival_count: u64) {
        let mut entries = self.0.lock();
        let entry = entries.entry(locations).or_default();
        *entry = arrival_count.max(*entry);
    }
}

impl PostgresStore {
    /// Whether there may be an audit that the scope can lease. After a query found none, the
    /// database is not queried again until an audit arrives; the caller then tries to lease, which
    /// is a query as well.
    ///
    /// `must_query` skips the cache, because notifications may have been missed.
    pub(super) async fn may_have_work(&self, scope: &LeaseScope, must_query: bool) -> bool {
        let arrival_count = self.notifier.arrival_count.load(Ordering::SeqCst);
        let empty_at = self.empty_queues.0.lock().get(&scope.locations).copied();
        if self.notifier.is_listening.load(Ordering::Relaxed)
            && !must_query
            && let Some(empty_at) = empty_at
        {
            return empty_at != arrival_count;
        }
        let (locations, per_account) = (scope.locations.clone(), self.running_per_account);
        let has_waiting = self
            .read(move |db| {
                Box::pin(
                    async move { lanes::has_waiting(db, locations.as_ref(), per_account).await },
                )
            })
            .await;
        // If the query fails, leasing would fail as well.
        if matches!(has_waiting, Ok(true)) {
            return true;
        }
        self.empty_queues
            .record_empty(scope.locations.clone(), arrival_count);
        false
    }
}
