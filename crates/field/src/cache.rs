//! Caches results that are still valid, including negative ones.

use std::num::NonZeroUsize;

use lru::LruCache;

use crate::calendar::valid_until_ms;
use crate::query::Query;
use crate::response::QueryResult;

/// Maximum number of entries. A query has at most 2 kB and a result about 4 kB, so the cache has at
/// most 12 MB.
const MAX_ENTRIES: NonZeroUsize = NonZeroUsize::new(2048).unwrap();

/// LRU cache of results, in memory. A restart only costs some queries of the quota.
pub(crate) struct Cache(LruCache<Query, Entry>);

struct Entry {
    answer: QueryResult,
    until_ms: i64,
}

impl Default for Cache {
    fn default() -> Self {
        Self(LruCache::new(MAX_ENTRIES))
    }
}

impl Cache {
    pub(crate) fn get(&mut self, query: &Query, now_ms: i64) -> Option<QueryResult> {
        let entry = self.0.get(query)?;
        // A clock that was set back must not extend validity: no result is valid for more than a
        // day.
        if now_ms >= entry.until_ms || valid_until_ms(now_ms) < entry.until_ms {
            self.0.pop(query);
            return None;
        }
        Some(entry.answer.clone())
    }

    pub(crate) fn insert(&mut self, query: Query, answer: QueryResult, now_ms: i64) {
        let until_ms = valid_until_ms(now_ms);
        self.0.put(query, Entry { answer, until_ms });
    }
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::FormFactor;
    use plumbline_model::field::{FieldReason, RecordScope};
    use proptest::prelude::*;

    use super::*;
    use crate::query::QueryKind;

    /// 15 Nov 2026, 12:00 UTC.
    const NOON_MS: i64 = 1_794_744_000_000;
    const HOUR_MS: i64 = 3_600_000;

    fn query(number: usize) -> Query {
        Query {
            kind: QueryKind::Current,
            record: RecordScope::Url,
            subject: format!("https://example.com/{number}"),
            form_factor: FormFactor::Phone,
        }
    }

    const MISSING: QueryResult = Err(FieldReason::NotInDataset);

    #[test]
    fn a_missing_record_is_cached_until_the_next_update() {
        let mut cache = Cache::default();
        cache.insert(query(1), MISSING, NOON_MS);
        assert_eq!(cache.get(&query(1), NOON_MS), Some(MISSING));
        let before = NOON_MS + 16 * HOUR_MS - 1;
        assert_eq!(cache.get(&query(1), before), Some(MISSING));
        assert_eq!(cache.get(&query(1), before + 1), None);
        assert_eq!(cache.get(&query(2), NOON_MS), None);
    }

    #[test]
    fn another_form_factor_or_kind_of_record_is_another_query() {
        let mut cache = Cache::default();
        cache.insert(query(1), MISSING, NOON_MS);
        for other in [
            Query {
                form_factor: FormFactor::Desktop,
                ..query(1)
            },
            Query {
                record: RecordScope::Origin,
                ..query(1)
            },
            Query {
                kind: QueryKind::History,
                ..query(1)
            },
        ] {
            assert_eq!(cache.get(&other, NOON_MS), None);
        }
    }

    #[test]
    fn the_least_recently_used_entry_is_evicted_first() {
        let mut cache = Cache::default();
        for number in 0..MAX_ENTRIES.get() {
            cache.insert(query(number), MISSING, NOON_MS);
        }
        assert!(cache.get(&query(0), NOON_MS).is_some());
        cache.insert(query(MAX_ENTRIES.get()), MISSING, NOON_MS);
        assert!(cache.get(&query(0), NOON_MS).is_some());
        assert!(cache.get(&query(1), NOON_MS).is_none());
    }

    proptest! {
        #[test]
        fn an_inserted_result_is_returned_whatever_came_before(
            steps in prop::collection::vec((0_usize..3000, any::<bool>(), 0_i64..40), 0..300),
        ) {
            let mut cache = Cache::default();
            for (number, insert, hours) in steps {
                let now_ms = NOON_MS + hours * HOUR_MS;
                if insert {
                    cache.insert(query(number), MISSING, now_ms);
                    prop_assert_eq!(cache.get(&query(number), now_ms), Some(MISSING));
                } else {
                    cache.get(&query(number), now_ms);
                }
            }
        }
    }
}
