use std::sync::Arc;

use plumbline_store::{
    BucketGrant, BucketRate, BucketRequest, Retention, SharedLimits, Store, Timestamp,
};
use tokio::task::JoinSet;

use super::{Backend, NOW};

const SECOND: i64 = 1_000_000_000;

/// Returns the rate of buckets with ten tokens, of which one is refilled each second.
fn rate(now: Timestamp, each: i64) -> BucketRate {
    BucketRate {
        now_ns: now.0 * 1_000_000,
        burst_ns: 10 * SECOND,
        cost_ns: each * SECOND,
    }
}

fn request(bucket: &str, requested: u32) -> BucketRequest {
    BucketRequest {
        bucket: bucket.to_owned(),
        debt_ns: 0,
        requested,
    }
}

async fn take(limits: &dyn SharedLimits, rate: BucketRate, request: BucketRequest) -> (u32, i64) {
    let grants = limits.take(rate, vec![request]).await.unwrap();
    let [
        BucketGrant {
            full_at_ns,
            granted,
        },
    ] = grants[..]
    else {
        panic!("{grants:?}");
    };
    (granted, (full_at_ns - NOW.0 * 1_000_000) / SECOND)
}

/// Opens two stores, as two processes would. `None` for a backend without shared limits.
async fn opened(backend: &dyn Backend) -> Option<[Arc<dyn Store>; 2]> {
    let stores = [backend.open().await, backend.open().await];
    let shared = stores.each_ref().map(|s| s.shared_limits().is_some());
    assert_eq!(shared, [backend.is_shared(); 2]);
    backend.is_shared().then_some(stores)
}

fn limits(store: &Arc<dyn Store>) -> &dyn SharedLimits {
    store.shared_limits().unwrap()
}

pub async fn a_bucket_is_shared_by_all_open_stores(backend: &dyn Backend) {
    let Some([one, other]) = opened(backend).await else {
        return;
    };
    let (one, other) = (limits(&one), limits(&other));
    let now = rate(NOW, 1);
    assert_eq!(take(one, now, request("a", 6)).await, (6, 6));
    assert_eq!(take(other, now, request("a", 6)).await, (4, 10));
    assert_eq!(take(one, now, request("a", 1)).await, (0, 10));
    assert_eq!(take(one, now, request("b", 1)).await, (1, 1));
    let later = rate(Timestamp(NOW.0 + 3_000), 1);
    assert_eq!(take(one, later, request("a", 5)).await, (3, 13));
    let much_later = rate(Timestamp(NOW.0 + 100_000), 1);
    assert_eq!(take(other, much_later, request("a", 1)).await, (1, 101));
}

pub async fn each_request_is_granted_completely_or_not_at_all(backend: &dyn Backend) {
    let Some([one, other]) = opened(backend).await else {
        return;
    };
    let (one, other) = (limits(&one), limits(&other));
    assert_eq!(take(one, rate(NOW, 4), request("a", 2)).await, (2, 8));
    assert_eq!(take(other, rate(NOW, 4), request("a", 1)).await, (0, 8));
    assert_eq!(take(other, rate(NOW, 2), request("a", 3)).await, (1, 10));
}

pub async fn debt_is_subtracted_and_refilled_first(backend: &dyn Backend) {
    let Some([one, other]) = opened(backend).await else {
        return;
    };
    let (one, other) = (limits(&one), limits(&other));
    let indebted = |debt: i64, requested: u32| BucketRequest {
        debt_ns: debt * SECOND,
        ..request("a", requested)
    };
    assert_eq!(take(one, rate(NOW, 1), indebted(3, 0)).await, (0, 3));
    assert_eq!(take(other, rate(NOW, 1), indebted(2, 9)).await, (5, 10));
    assert_eq!(take(one, rate(NOW, 1), indebted(1, 1)).await, (0, 11));
    let later = rate(Timestamp(NOW.0 + 1_000), 1);
    assert_eq!(take(other, later, request("a", 1)).await, (0, 11));
    // A clock that is set back, or an excessive debt, does not block others for long.
    assert_eq!(take(one, rate(NOW, 1), indebted(90, 0)).await, (0, 101));
    let (granted, full_at) = take(other, rate(NOW, 1), request("a", 1)).await;
    assert_eq!((granted, full_at), (0, 11));
}

pub async fn concurrent_requests_to_many_buckets_do_not_deadlock(backend: &dyn Backend) {
    let Some(stores) = opened(backend).await else {
        return;
    };
    let mut tasks = JoinSet::new();
    for n in 0..40_usize {
        let store = Arc::clone(&stores[n % 2]);
        tasks.spawn(async move {
            // Each request uses another order.
            let buckets = (0..8_usize).map(|bucket| (bucket * 3 + n) % 8);
            let requests = buckets.map(|bucket| request(&bucket.to_string(), 1));
            let grants = limits(&store).take(rate(NOW, 1), requests.collect()).await;
            let grants = grants.unwrap();
            assert_eq!(grants.len(), 8);
            grants.iter().map(|grant| grant.granted).sum::<u32>()
        });
    }
    let granted: u32 = tasks.join_all().await.iter().sum();
    assert_eq!(granted, 8 * 10);
}

pub async fn purging_keeps_buckets_that_are_not_full(backend: &dyn Backend) {
    let Some([one, other]) = opened(backend).await else {
        return;
    };
    take(limits(&one), rate(NOW, 1), request("a", 10)).await;
    let purge = async |now| one.purge(Retention::default(), now, 10).await.unwrap();
    purge(NOW).await;
    assert_eq!(
        take(limits(&other), rate(NOW, 1), request("a", 1)).await,
        (0, 10)
    );
    purge(Timestamp(NOW.0 + 10_000)).await;
    assert_eq!(
        take(limits(&other), rate(NOW, 1), request("a", 1)).await,
        (1, 1)
    );
}
