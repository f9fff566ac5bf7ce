use std::sync::Arc;

use plumbline_store::{
    BucketGrant, BucketRate, BucketRequest, Retention, SharedLimits, Store, Timestamp,
};
use tokio::task::JoinSet;

use super::{Backend, NOW};

const SECOND: i64 = 1_000_000_000;

/// Ten, of which one flows back each second.
fn rate(now: Timestamp, each: i64) -> BucketRate {
    BucketRate {
        now_ns: now.0 * 1_000_000,
        burst_ns: 10 * SECOND,
        cost_ns: each * SECOND,
    }
}

fn want(bucket: &str, wanted: u32) -> BucketRequest {
    BucketRequest {
        bucket: bucket.to_owned(),
        debt_ns: 0,
        requested: wanted,
    }
}

async fn take(limits: &dyn SharedLimits, rate: BucketRate, taking: BucketRequest) -> (u32, i64) {
    let taken = limits.take(rate, vec![taking]).await.unwrap();
    let [
        BucketGrant {
            full_at_ns,
            granted,
        },
    ] = taken[..]
    else {
        panic!("{taken:?}");
    };
    (granted, (full_at_ns - NOW.0 * 1_000_000) / SECOND)
}

/// As another process would. Who has the store for itself counts in memory: then there is nothing to hold to.
async fn opened(backend: &dyn Backend) -> Option<[Arc<dyn Store>; 2]> {
    let stores = [backend.open().await, backend.open().await];
    let shared = stores.each_ref().map(|s| s.shared_limits().is_some());
    assert_eq!(shared, [backend.is_shared(); 2]);
    backend.is_shared().then_some(stores)
}

fn limits(store: &Arc<dyn Store>) -> &dyn SharedLimits {
    store.shared_limits().unwrap()
}

pub async fn a_bucket_is_shared_by_all_who_opened_the_store(backend: &dyn Backend) {
    let Some([one, other]) = opened(backend).await else {
        return;
    };
    let (one, other) = (limits(&one), limits(&other));
    let now = rate(NOW, 1);
    assert_eq!(take(one, now, want("a", 6)).await, (6, 6));
    assert_eq!(take(other, now, want("a", 6)).await, (4, 10));
    assert_eq!(take(one, now, want("a", 1)).await, (0, 10));
    assert_eq!(take(one, now, want("b", 1)).await, (1, 1));
    let later = rate(Timestamp(NOW.0 + 3_000), 1);
    assert_eq!(take(one, later, want("a", 5)).await, (3, 13));
    let much_later = rate(Timestamp(NOW.0 + 100_000), 1);
    assert_eq!(take(other, much_later, want("a", 1)).await, (1, 101));
}

pub async fn each_who_waits_gets_all_it_wants_or_nothing(backend: &dyn Backend) {
    let Some([one, other]) = opened(backend).await else {
        return;
    };
    let (one, other) = (limits(&one), limits(&other));
    assert_eq!(take(one, rate(NOW, 4), want("a", 2)).await, (2, 8));
    assert_eq!(take(other, rate(NOW, 4), want("a", 1)).await, (0, 8));
    assert_eq!(take(other, rate(NOW, 2), want("a", 3)).await, (1, 10));
}

pub async fn what_was_let_pass_is_owed_and_flows_back_first(backend: &dyn Backend) {
    let Some([one, other]) = opened(backend).await else {
        return;
    };
    let (one, other) = (limits(&one), limits(&other));
    let owing = |owed: i64, wanted: u32| BucketRequest {
        debt_ns: owed * SECOND,
        ..want("a", wanted)
    };
    assert_eq!(take(one, rate(NOW, 1), owing(3, 0)).await, (0, 3));
    assert_eq!(take(other, rate(NOW, 1), owing(2, 9)).await, (5, 10));
    assert_eq!(take(one, rate(NOW, 1), owing(1, 1)).await, (0, 11));
    let later = rate(Timestamp(NOW.0 + 1_000), 1);
    assert_eq!(take(other, later, want("a", 1)).await, (0, 11));
    // A clock that is set back, or a server that owes without end, bars nobody for long.
    assert_eq!(take(one, rate(NOW, 1), owing(90, 0)).await, (0, 101));
    let (granted, full_at) = take(other, rate(NOW, 1), want("a", 1)).await;
    assert_eq!((granted, full_at), (0, 11));
}

pub async fn many_buckets_are_asked_at_once_by_many(backend: &dyn Backend) {
    let Some(stores) = opened(backend).await else {
        return;
    };
    let mut asking = JoinSet::new();
    for n in 0..40_usize {
        let store = Arc::clone(&stores[n % 2]);
        asking.spawn(async move {
            // Each in another order.
            let buckets = (0..8_usize).map(|bucket| (bucket * 3 + n) % 8);
            let takings = buckets.map(|bucket| want(&bucket.to_string(), 1));
            let taken = limits(&store).take(rate(NOW, 1), takings.collect()).await;
            let taken = taken.unwrap();
            assert_eq!(taken.len(), 8);
            taken.iter().map(|taken| taken.granted).sum::<u32>()
        });
    }
    let granted: u32 = asking.join_all().await.iter().sum();
    assert_eq!(granted, 8 * 10);
}

pub async fn forgetting_keeps_a_bucket_that_is_not_full(backend: &dyn Backend) {
    let Some([one, other]) = opened(backend).await else {
        return;
    };
    take(limits(&one), rate(NOW, 1), want("a", 10)).await;
    let forget = async |now| one.purge(Retention::default(), now, 10).await.unwrap();
    forget(NOW).await;
    assert_eq!(
        take(limits(&other), rate(NOW, 1), want("a", 1)).await,
        (0, 10)
    );
    forget(Timestamp(NOW.0 + 10_000)).await;
    assert_eq!(
        take(limits(&other), rate(NOW, 1), want("a", 1)).await,
        (1, 1)
    );
}
