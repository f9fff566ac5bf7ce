//! How many requests a key has left, and how many wrong keys an address.

mod shared;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use plumbline_store::{Store, StoreError, Timestamp};

use self::shared::SharedBuckets;

const NS_PER_MINUTE: i128 = 60_000_000_000;
const NS_PER_MS: i128 = 1_000_000;
const NS_PER_S: i128 = 1_000_000_000;

/// What a bucket says to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    /// When the whole burst will be there again, in seconds since the epoch.
    pub(crate) reset_s: i64,
    /// Set when the request is refused: how long until the next will not be.
    pub(crate) retry_after_s: Option<i64>,
}

impl Turn {
    pub(crate) fn is_refused(&self) -> bool {
        self.retry_after_s.is_some()
    }

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

/// A token bucket that holds `limit` and refills with `limit` a minute, kept as one number: the
/// time at which it will be full, in nanoseconds since the epoch. Integers, so that nothing drifts.
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

    /// Takes `count` at once, or none of them. More than a full bucket holds count as a full one: a
    /// limit slows down, and bars nothing for ever.
    fn take(&mut self, now: Timestamp, limit: u32, count: u32) -> Turn {
        self.take_owing(now, limit, count, 0)
    }

    /// From a bucket that may be below empty by as much as flows back within `owing_ns`.
    fn take_owing(&mut self, now: Timestamp, limit: u32, count: u32, owing_ns: i128) -> Turn {
        let each = each_ns(limit);
        let taken = each * i128::from(count.min(limit));
        let empty = now_ns(now) + each * i128::from(limit);
        // Below `now` it has long been full; above `empty` the clock was set back, and nobody
        // shall wait longer for that than an empty bucket takes.
        let full_at = self.full_at_ns.clamp(now_ns(now), empty + owing_ns);
        let after = full_at + taken;
        let refused = count > 0 && after > empty;
        self.full_at_ns = if refused { full_at } else { after };
        Turn {
            limit,
            remaining: u32::try_from((empty - self.full_at_ns).max(0) / each).unwrap_or(limit),
            reset_s: ceil_seconds(self.full_at_ns),
            retry_after_s: refused.then(|| ceil_seconds(after - empty)),
        }
    }
}

/// In which one of `limit` a minute flows back.
fn each_ns(limit: u32) -> i128 {
    (NS_PER_MINUTE / i128::from(limit.max(1))).max(1)
}

fn now_ns(now: Timestamp) -> i128 {
    i128::from(now.0) * NS_PER_MS
}

fn ceil_seconds(ns: i128) -> i64 {
    i64::try_from((ns + NS_PER_S - 1).div_euclid(NS_PER_S)).unwrap_or(i64::MAX)
}

/// One bucket per key (or address) that took something lately. A full bucket is the same as none, so full
/// ones are forgotten each time their number could have doubled.
pub(crate) struct Buckets {
    limit: u32,
    kept: Mutex<Kept>,
}

struct Kept {
    by_key: HashMap<String, Bucket>,
    sweep_at: usize,
}

const SWEEP_AT_LEAST: usize = 1024;

impl Buckets {
    pub(crate) fn new(limit: u32) -> Self {
        let kept = Kept {
            by_key: HashMap::new(),
            sweep_at: SWEEP_AT_LEAST,
        };
        Self {
            limit,
            kept: Mutex::new(kept),
        }
    }

    /// What a bucket holds, without taking anything.
    pub(crate) fn look(&self, key: &str, now: Timestamp) -> Option<Turn> {
        self.take_many(key, now, 0)
    }

    /// `None` when there is no limit.
    pub(crate) fn take_many(&self, key: &str, now: Timestamp, count: u32) -> Option<Turn> {
        if self.limit == 0 {
            return None;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = kept.by_key.get_mut(key) {
            return Some(bucket.take(now, self.limit, count));
        }
        if kept.by_key.len() >= kept.sweep_at {
            kept.by_key.retain(|_, bucket| !bucket.is_full(now));
            kept.sweep_at = SWEEP_AT_LEAST.max(kept.by_key.len() * 2);
        }
        let mut bucket = Bucket::full(now);
        let turn = bucket.take(now, self.limit, count);
        if count > 0 {
            kept.by_key.insert(key.to_owned(), bucket);
        }
        Some(turn)
    }
}

/// A limit on something, kept alone or with every other server on the store.
pub(crate) enum Limit {
    Alone(Buckets),
    Shared(Arc<SharedBuckets>),
}

impl Limit {
    /// `per_minute` of what `name` says, by key; 0 is no limit.
    pub(crate) fn new(name: &'static str, per_minute: u32, store: &Arc<dyn Store>) -> Self {
        match store.shared_limits() {
            Some(_) if per_minute > 0 => {
                let shared = SharedBuckets::new(name, per_minute, Arc::clone(store));
                Self::Shared(Arc::new(shared))
            }
            _ => Self::Alone(Buckets::new(per_minute)),
        }
    }

    /// Takes `count` at once, or none of them. `None` when there is no limit.
    pub(crate) async fn take(
        &self,
        key: &str,
        now: Timestamp,
        count: u32,
    ) -> Result<Option<Turn>, StoreError> {
        match self {
            Self::Alone(buckets) => Ok(buckets.take_many(key, now, count)),
            Self::Shared(buckets) => buckets.take(key, now, count).await.map(Some),
        }
    }

    /// What is left as far as this server knows, without taking anything.
    pub(crate) fn look(&self, key: &str, now: Timestamp) -> Option<Turn> {
        match self {
            Self::Alone(buckets) => buckets.look(key, now),
            Self::Shared(buckets) => Some(buckets.look(key, now)),
        }
    }

    /// The same, after asking what others have taken unless that was heard a moment ago.
    pub(crate) async fn look_around(
        &self,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Turn>, StoreError> {
        match self {
            Self::Alone(buckets) => Ok(buckets.look(key, now)),
            Self::Shared(buckets) => buckets.look_around(key, now).await.map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Timestamp = Timestamp(1_800_000_000_000);

    impl Buckets {
        fn take(&self, key: &str, now: Timestamp) -> Option<Turn> {
            self.take_many(key, now, 1)
        }
    }

    fn after_ms(ms: i64) -> Timestamp {
        Timestamp(START.0 + ms)
    }

    #[test]
    fn a_burst_up_to_the_limit_passes_and_the_next_waits() {
        let buckets = Buckets::new(3);
        let turns: Vec<_> = (0..4).map(|_| buckets.take("k", START).unwrap()).collect();
        let remaining: Vec<_> = turns.iter().map(|turn| turn.remaining).collect();
        assert_eq!(remaining, [2, 1, 0, 0]);
        assert_eq!(
            turns[3],
            Turn {
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
    fn many_are_taken_together_or_not_at_all() {
        let buckets = Buckets::new(10);
        assert_eq!(buckets.take_many("k", START, 7).unwrap().remaining, 3);
        let refused = buckets.take_many("k", START, 4).unwrap();
        assert_eq!((refused.remaining, refused.retry_after_s), (3, Some(6)));
        assert_eq!(buckets.take_many("k", START, 3).unwrap().remaining, 0);
        // More than a bucket ever holds waits for a full one.
        let larger = buckets.take_many("k", after_ms(59_999), 11).unwrap();
        assert!(larger.is_refused());
        let larger = buckets.take_many("k", after_ms(60_000), 11).unwrap();
        assert!(!larger.is_refused());
    }

    #[test]
    fn looking_takes_nothing() {
        let buckets = Buckets::new(2);
        for _ in 0..5 {
            let seen = buckets.look("k", START).unwrap();
            assert_eq!((seen.remaining, seen.retry_after_s), (2, None));
        }
        buckets.take("k", START);
        assert_eq!(buckets.look("k", START).unwrap().remaining, 1);
    }

    #[test]
    fn zero_is_no_limit() {
        assert_eq!(Buckets::new(0).take("k", START), None);
    }

    #[test]
    fn a_clock_set_back_locks_nobody_out_for_longer_than_a_minute() {
        let buckets = Buckets::new(1);
        buckets.take("k", START);
        let turn = buckets.take("k", after_ms(-86_400_000)).unwrap();
        assert_eq!(turn.retry_after_s, Some(60));
    }

    #[test]
    fn idle_buckets_are_forgotten() {
        let buckets = Buckets::new(60);
        for n in 0..50_000_i64 {
            // A second apart, so that each is full again when the next comes.
            buckets.take(&format!("key-{n}"), after_ms(n * 1000));
        }
        assert!(buckets.kept.lock().unwrap().by_key.len() <= SWEEP_AT_LEAST);
    }

    proptest! {
        #[test]
        fn no_minute_sees_more_than_a_burst_and_a_refill(
            limit in 1_u32..2000,
            steps_ms in proptest::collection::vec(0_i64..500, 1..2000),
        ) {
            let buckets = Buckets::new(limit);
            let (mut now, mut passed) = (START, 0_i64);
            for step in steps_ms {
                now = Timestamp(now.0 + step);
                let turn = buckets.take("k", now).unwrap();
                passed += i64::from(!turn.is_refused());
                prop_assert!(turn.remaining < limit);
                let refilled = (now.0 - START.0) * i64::from(limit) / 60_000;
                prop_assert!(passed <= i64::from(limit) + refilled + 1);
            }
        }

        #[test]
        fn who_waits_as_told_is_served(limit in 1_u32..5000, late_ms in 0_i64..60_000) {
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
