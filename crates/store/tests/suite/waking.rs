use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use plumbline_store::{LeaseScope, ReleaseReason, Store, Submission};
use tokio::time::timeout;

use super::{Backend, LEASE, NEVER, NOW, accepted, account, audit, lease, measured, seat_at};

static ANYWHERE: LeaseScope = LeaseScope {
    owner: String::new(),
    locations: None,
    slots: None,
};

type Waiter<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Waits as agents do, having found nothing; what follows certainly happens while it does. A store may wake them for
/// less than an audit: then they look again.
async fn waiting<'a>(store: &'a dyn Store, seat: &'a LeaseScope) -> Waiter<'a> {
    for _ in 0..1000 {
        let found = store.lease(seat, NOW, LEASE).await.unwrap();
        assert_eq!(found, None, "there is nothing to wait for");
        let mut waiter: Waiter<'a> = Box::pin(store.wait_for_work(seat, NEVER));
        tokio::select! {
            biased;
            () = &mut waiter => {}
            () = std::future::ready(()) => return waiter,
        }
    }
    panic!("it never sleeps");
}

pub async fn a_waiter_wakes_when_an_audit_is_accepted(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 1).await;
    let first = waiting(&*store, &ANYWHERE).await;
    let second = waiting(&*store, &ANYWHERE).await;
    store
        .submit(Submission::single(audit(&account, "a")))
        .await
        .unwrap();
    timeout(NEVER / 2, async { tokio::join!(first, second) })
        .await
        .expect("both wake");
}

pub async fn a_waiter_wakes_when_an_audit_is_handed_back_or_recovered(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a"]).await;
    let held = lease(&*store, NOW).await.unwrap();
    let waiter = waiting(&*store, &ANYWHERE).await;
    store.release(&held, ReleaseReason::Drained).await.unwrap();
    timeout(NEVER / 2, waiter).await.expect("handed back");

    lease(&*store, NOW).await.unwrap();
    let waiter = waiting(&*store, &ANYWHERE).await;
    store.recover("agent/").await.unwrap();
    timeout(NEVER / 2, waiter).await.expect("recovered");
}

pub async fn what_arrived_before_waiting_is_not_missed(backend: &dyn Backend) {
    let store = backend.open().await;
    assert_eq!(lease(&*store, NOW).await, None);
    accepted(&*store, &["a"]).await;
    timeout(NEVER / 2, store.wait_for_work(&ANYWHERE, NEVER))
        .await
        .expect("the audit waits already");
    // Also where another process has accepted it.
    let other = backend.open().await;
    timeout(NEVER / 2, other.wait_for_work(&ANYWHERE, NEVER))
        .await
        .expect("the audit waits already");
}

pub async fn a_waiter_sleeps_while_nothing_waits_that_it_may_take(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 2).await;
    store
        .submit(Submission::single(audit(&account, "a")))
        .await
        .unwrap();
    let seat = seat_at(&["elsewhere"]);
    let waiter = waiting(&*store, &seat).await;
    let mut there = audit(&account, "b");
    there.order.location = "elsewhere".to_owned();
    store.submit(Submission::single(there)).await.unwrap();
    timeout(NEVER / 2, waiter)
        .await
        .expect("there is one for it");
}

pub async fn a_waiter_gives_up_after_its_time(backend: &dyn Backend) {
    let store = backend.open().await;
    timeout(
        NEVER,
        store.wait_for_work(&ANYWHERE, Duration::from_millis(1)),
    )
    .await
    .expect("the time had passed");
}

/// As agents do it: lease until there is nothing, then wait. With a wake-up lost, one of them sleeps
/// while audits wait, and the time runs out.
pub async fn no_wake_up_is_lost_between_many_leasers(backend: &dyn Backend) {
    const AUDITS: u32 = 300;
    let store = backend.open().await;
    let account = account(&*store, AUDITS).await;
    let left = Arc::new(tokio::sync::Semaphore::new(0));
    let leasers: Vec<_> = (0..8)
        .map(|_| {
            let (store, left) = (Arc::clone(&store), Arc::clone(&left));
            tokio::spawn(async move {
                loop {
                    match store
                        .lease(&LeaseScope::any_location("leaser"), NOW, LEASE)
                        .await
                        .unwrap()
                    {
                        Some(lease) => {
                            store.finish(&lease, measured()).await.unwrap();
                            left.add_permits(1);
                        }
                        None => store.wait_for_work(&ANYWHERE, NEVER).await,
                    }
                }
            })
        })
        .collect();
    for n in 0..AUDITS {
        store
            .submit(Submission::single(audit(&account, &n.to_string())))
            .await
            .unwrap();
        // One at a time, so that the leasers run dry again and again.
        let done = timeout(NEVER / 2, left.acquire())
            .await
            .expect("all were leased");
        done.unwrap().forget();
    }
    for leaser in leasers {
        leaser.abort();
    }
}

pub async fn an_acceptance_nobody_waits_for_still_wakes(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 1).await;
    let waiter = waiting(&*store, &ANYWHERE).await;
    {
        let mut accept = pin!(store.submit(Submission::single(audit(&account, "a"))));
        tokio::select! {
            biased;
            answer = &mut accept => { answer.unwrap(); }
            () = std::future::ready(()) => {}
        }
    }
    timeout(NEVER / 2, waiter).await.expect("it was accepted");
}
