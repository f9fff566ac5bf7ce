//! Rate limits: requests per key, and wrong keys per address.

mod shared;

use std::{collections::HashMap, sync::Arc};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use parking_lot::Mutex;
use plumbline_store::{Store, StoreError, Timestamp};

use self::shared::SharedBuckets;

const NS_PER_MINUTE: i128 = 60_000_000_000;
const NS_PER_MS: i128 = 1_000_000;
const NS_PER_S: i128 = 1_000_000_000;

/// The state of a bucket after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateStatus {
    /// The size of the bucket.
    pub(crate) limit: u32,
    /// The requests that are left.
    pub(crate) remaining: u32,
    /// When the bucket will be full again, in seconds since the epoch.
    pub(crate) reset_s: i64,
    /// The time after which a refused request can succeed; `None` if the request was not refused.
    pub(crate) retry_after_s: Option<i64>,
}

impl RateStatus {
    pub(crate) fn is_refused(&self) -> bool {
        self.retry_after_s.is_some()
    }

    /// Adds the headers that describe the limit.
    pub(crate) fn write_to(&self, headers: &mut HeaderMap) {
        const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
        const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
        const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
        headers.insert(LIMIT, HeaderValue::from(self.limit));
        headers.insert(REMAINING, HeaderValue::from(self.remaining));
        headers.insert(RESET, HeaderValue::from(self.reset_s));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
    }
}

/// A token bucket that holds `limit` and refills with `limit` a minute, stored as one number: the
/// time at which it will be full, in nanoseconds since the epoch. Integers avoid drift.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    full_at_ns: i128,
}

impl Bucket {
    fn full(now: Timestamp) -> Self {
        Self {
            full_at_ns: now_ns(now),
        }
    }

    fn is_full(self, now: Timestamp) -> bool {
        self.full_at_ns <= now_ns(now)
    }

    /// Takes `count` at once, or none of them. A count larger than the bucket counts as a full
    /// bucket: a limit delays requests, but refuses none for ever.
    fn take(&mut self, now: Timestamp, limit: u32, count: u32) -> RateStatus {
        self.take_with_debt(now, limit, count, 0)
    }

    /// Takes from a bucket that may be below empty by as much as refills within `max_debt_ns`.
    fn take_with_debt(
        &mut self,
        now: Timestamp,
        limit: u32,
        count: u32,
        max_debt_ns: i128,
    ) -> RateStatus {
        let each = ns_per_token(limit);
        let taken = each * i128::from(count.min(limit));
        let empty = now_ns(now) + each * i128::from(limit);
        // Below `now` the bucket is full; above `empty` the clock was set back, and no client
        // should wait longer for that than an empty bucket takes to refill.
        let full_at = self.full_at_ns.clamp(now_ns(now), empty + max_debt_ns);
        let after = full_at + taken;
        let is_refused = count > 0 && after > empty;
        self.full_at_ns = if is_refused { full_at } else { after };
        RateStatus {
            limit,
            remaining: u32::try_from((empty - self.full_at_ns).max(0) / each).unwrap_or(limit),
            reset_s: ceil_seconds(self.full_at_ns),
            retry_after_s: is_refused.then(|| ceil_seconds(after - empty)),
        }
    }
}

/// Returns the time in which one token refills, of `limit` a minute.
fn ns_per_token(limit: u32) -> i128 {
    (NS_PER_MINUTE / i128::from(limit.max(1))).max(1)
}

fn now_ns(now: Timestamp) -> i128 {
    i128::from(now.0) * NS_PER_MS
}

fn ceil_seconds(ns: i128) -> i64 {
    i64::try_from((ns + NS_PER_S - 1).div_euclid(NS_PER_S)).unwrap_or(i64::MAX)
}

/// The buckets of keys (or addresses) that took something lately. A full bucket is the same as
/// none, so full ones are removed each time the number of buckets could have doubled.
pub(crate) struct Buckets {
    limit: u32,
    map: Mutex<BucketMap>,
}

struct BucketMap {
    by_key: HashMap<String, Bucket>,
    sweep_at: usize,
}

const SWEEP_AT_LEAST: usize = 1024;

impl Buckets {
    pub(crate) fn new(limit: u32) -> Self {
        let map = BucketMap {
            by_key: HashMap::new(),
            sweep_at: SWEEP_AT_LEAST,
        };
        Self {
            limit,
            map: Mutex::new(map),
        }
    }

    /// Returns the state of a bucket without taking anything.
    pub(crate) fn peek(&self, key: &str, now: Timestamp) -> Option<RateStatus> {
        self.take_many(key, now, 0)
    }

    /// Takes `count` at once, or none of them. Returns `None` if there is no limit.
    pub(crate) fn take_many(&self, key: &str, now: Timestamp, count: u32) -> Option<RateStatus> {
        if self.limit == 0 {
            return None;
        }
        let mut map = self.map.lock();
        if let Some(bucket) = map.by_key.get_mut(key) {
            return Some(bucket.take(now, self.limit, count));
        }
        if map.by_key.len() >= map.sweep_at {
            map.by_key.retain(|_, bucket| !bucket.is_full(now));
            map.sweep_at = SWEEP_AT_LEAST.max(map.by_key.len() * 2);
        }
        let mut bucket = Bucket::full(now);
        let status = bucket.take(now, self.limit, count);
        if count > 0 {
            map.by_key.insert(key.to_owned(), bucket);
        }
        Some(status)
    }
}

/// A rate limit by key.
pub(crate) enum RateLimiter {
    /// A limit of this server alone.
    Local(Buckets),
    /// A limit that all servers on the store share.
    Shared(Arc<SharedBuckets>),
}

impl RateLimiter {
    /// Creates a limit of `per_minute` for each key; 0 means no limit. Servers share the limits of
    /// the same name.
    pub(crate) fn new(name: &'static str, per_minute: u32, store: &Arc<dyn Store>) -> Self {
        match store.shared_limits() {
            Some(_) if per_minute > 0 => {
                let shared = SharedBuckets::new(name, per_minute, Arc::clone(store));
                Self::Shared(Arc::new(shared))
            }
            _ => Self::Local(Buckets::new(per_minute)),
        }
    }

    /// Takes `count` at once, or none of them. Returns `None` if there is no limit.
    pub(crate) async fn take(
        &self,
        key: &str,
        now: Timestamp,
        count: u32,
    ) -> Result<Option<RateStatus>, StoreError> {
        match self {
            Self::Local(buckets) => Ok(buckets.take_many(key, now, count)),
            Self::Shared(buckets) => buckets.take(key, now, count).await.map(Some),
        }
    }

    /// Returns the state as far as this server knows it, without taking anything.
    pub(crate) fn peek(&self, key: &str, now: Timestamp) -> Option<RateStatus> {
        match self {
            Self::Local(buckets) => buckets.peek(key, now),
            Self::Shared(buckets) => Some(buckets.peek(key, now)),
        }
    }

    /// Returns the state without taking anything, after a query to the store unless the last one
    /// was a moment ago.
    pub(crate) async fn peek_shared(
        &self,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<RateStatus>, StoreError> {
        match self {
            Self::Local(buckets) => Ok(buckets.peek(key, now)),
            Self::Shared(buckets) => buckets.peek_shared(key, now).await.map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Timestamp = Timestamp(1_800_000_000_000);

    impl Buckets {
        fn take(&self, key: &str, now: Timestamp) -> Option<RateStatus> {
            self.take_many(key, now, 1)
        }
    }

    fn after_ms(ms: i64) -> Timestamp {
        Timestamp(START.0 + ms)
    }

    #[test]
    fn a_burst_up_to_the_limit_passes_and_the_next_request_waits() {
        let buckets = Buckets::new(3);
        let statuses: Vec<_> = (0..4).map(|_| buckets.take("k", START).unwrap()).collect();
        let remaining: Vec<_> = statuses.iter().map(|status| status.remaining).collect();
        assert_eq!(remaining, [2, 1, 0, 0]);
        assert_eq!(
            statuses[3],
            RateStatus {
                limit: 3,
                remaining: 0,
                reset_s: 1_800_000_060,
                retry_after_s: Some(20),
            }
        );
    }

    #[test]
    fn a_refusal_costs_nothing_and_its_wait_is_enough() {
        let buckets = Buckets::new(600);
        for _ in 0..600 {
            assert!(!buckets.take("k", START).unwrap().is_refused());
        }
        for _ in 0..10 {
            assert!(buckets.take("k", after_ms(99)).unwrap().is_refused());
        }
        assert!(!buckets.take("k", after_ms(100)).unwrap().is_refused());
        assert!(buckets.take("k", after_ms(100)).unwrap().is_refused());
    }

    #[test]
    fn keys_do_not_share_a_bucket() {
        let buckets = Buckets::new(1);
        assert!(!buckets.take("a", START).unwrap().is_refused());
        assert!(!buckets.take("b", START).unwrap().is_refused());
        assert!(buckets.take("a", START).unwrap().is_refused());
    }

    #[test]
    fn several_tokens_are_taken_together_or_not_at_all() {
        let buckets = Buckets::new(10);
        assert_eq!(buckets.take_many("k", START, 7).unwrap().remaining, 3);
        let refused = buckets.take_many("k", START, 4).unwrap();
        assert_eq!((refused.remaining, refused.retry_after_s), (3, Some(6)));
        assert_eq!(buckets.take_many("k", START, 3).unwrap().remaining, 0);
        // More than a bucket can hold waits for a full bucket.
        let larger = buckets.take_many("k", after_ms(59_999), 11).unwrap();
        assert!(larger.is_refused());
        let larger = buckets.take_many("k", after_ms(60_000), 11).unwrap();
        assert!(!larger.is_refused());
    }

    #[test]
    fn peeking_takes_nothing() {
        let buckets = Buckets::new(2);
        for _ in 0..5 {
            let status = buckets.peek("k", START).unwrap();
            assert_eq!((status.remaining, status.retry_after_s), (2, None));
        }
        buckets.take("k", START);
        assert_eq!(buckets.peek("k", START).unwrap().remaining, 1);
    }

    #[test]
    fn zero_means_no_limit() {
        assert_eq!(Buckets::new(0).take("k", START), None);
    }

    #[test]
    fn a_clock_set_back_locks_no_key_out_for_longer_than_a_minute() {
        let buckets = Buckets::new(1);
        buckets.take("k", START);
        let status = buckets.take("k", after_ms(-86_400_000)).unwrap();
        assert_eq!(status.retry_after_s, Some(60));
    }

    #[test]
    fn full_buckets_are_removed() {
        let buckets = Buckets::new(60);
        for n in 0..50_000_i64 {
            // A second apart, so that each is full again when the next is used.
            buckets.take(&format!("key-{n}"), after_ms(n * 1000));
        }
        assert!(buckets.map.lock().by_key.len() <= SWEEP_AT_LEAST);
    }

    proptest! {
        #[test]
        fn no_minute_has_more_than_a_burst_and_a_refill(
            limit in 1_u32..2000,
            steps_ms in proptest::collection::vec(0_i64..500, 1..2000),
        ) {
            let buckets = Buckets::new(limit);
            let (mut now, mut passed) = (START, 0_i64);
            for step in steps_ms {
                now = Timestamp(now.0 + step);
                let status = buckets.take("k", now).unwrap();
                passed += i64::from(!status.is_refused());
                prop_assert!(status.remaining < limit);
                let refilled = (now.0 - START.0) * i64::from(limit) / 60_000;
                prop_assert!(passed <= i64::from(limit) + refilled + 1);
            }
        }

        #[test]
        fn a_request_succeeds_after_the_announced_wait(limit in 1_u32..5000, late_ms in 0_i64..60_000) {
            let buckets = Buckets::new(limit);
            for _ in 0..limit {
                buckets.take("k", START);
            }
            let now = after_ms(late_ms);
            if let Some(wait_s) = buckets.take("k", now).unwrap().retry_after_s {
                prop_assert!(wait_s >= 1);
                let later = Timestamp(now.0 + wait_s * 1000);
                prop_assert!(!buckets.take("k", later).unwrap().is_refused());
            }
        }
    }
}
