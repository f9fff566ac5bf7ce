use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use plumbline_store::{
    AgentProcess, LeaseOwner, LeaseScope, ReleaseReason, ReturnReason, Store, Submission,
};
use tokio::time::timeout;

use super::{
    Backend, LEASE, NEVER, NOW, accepted, account, audit, lease, measured, scope_at, single,
};

static ANY_LOCATION: LeaseScope = LeaseScope {
    owner: LeaseOwner {
        process: AgentProcess::Other(String::new()),
        slot: 0,
    },
    locations: None,
    slots: None,
};

type Waiter<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Returns a future that waits for work, after the queue was found empty. It has been polled once,
/// so later events happen while it waits. A store may wake waiters spuriously; then it is repeated.
async fn waiting<'a>(store: &'a dyn Store, scope: &'a LeaseScope) -> Waiter<'a> {
    for _ in 0..1000 {
        let result = store.lease(scope, NOW, LEASE).await.unwrap();
        assert_eq!(result, None, "the queue must be empty");
        let mut waiter: Waiter<'a> = Box::pin(store.wait_for_work(scope, NEVER));
        tokio::select! {
            biased;
            () = &mut waiter => {}
            () = std::future::ready(()) => return waiter,
        }
    }
    panic!("waiting always returns at once");
}

pub async fn a_waiter_wakes_when_an_audit_is_accepted(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 1).await;
    let first = waiting(&*store, &ANY_LOCATION).await;
    let second = waiting(&*store, &ANY_LOCATION).await;
    store
        .submit(Submission::single(audit(&account, "a")))
        .await
        .unwrap();
    timeout(NEVER / 2, async { tokio::join!(first, second) })
        .await
        .expect("both wake");
}

pub async fn a_waiter_wakes_when_an_audit_is_released_or_recovered(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a"]).await;
    let held = lease(&*store, NOW).await.unwrap();
    let waiter = waiting(&*store, &ANY_LOCATION).await;
    store
        .release(&held, ReleaseReason::Returned(ReturnReason::Drained))
        .await
        .unwrap();
    timeout(NEVER / 2, waiter).await.expect("released");

    lease(&*store, NOW).await.unwrap();
    let waiter = waiting(&*store, &ANY_LOCATION).await;
    store.recover(&single("agent")).await.unwrap();
    timeout(NEVER / 2, waiter).await.expect("recovered");
}

pub async fn an_audit_that_arrived_before_waiting_is_not_missed(backend: &dyn Backend) {
    let store = backend.open().await;
    assert_eq!(lease(&*store, NOW).await, None);
    accepted(&*store, &["a"]).await;
    timeout(NEVER / 2, store.wait_for_work(&ANY_LOCATION, NEVER))
        .await
        .expect("the audit waits already");
    // Also where another process has accepted it.
    let other = backend.open().await;
    timeout(NEVER / 2, other.wait_for_work(&ANY_LOCATION, NEVER))
        .await
        .expect("the audit waits already");
}

pub async fn a_waiter_sleeps_while_no_audit_of_its_scope_waits(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 2).await;
    store
        .submit(Submission::single(audit(&account, "a")))
        .await
        .unwrap();
    let scope = scope_at(&["elsewhere"]);
    let waiter = waiting(&*store, &scope).await;
    let mut there = audit(&account, "b");
    there.order.location = "elsewhere".to_owned();
    store.submit(Submission::single(there)).await.unwrap();
    timeout(NEVER / 2, waiter)
        .await
        .expect("there is one for it");
}

pub async fn waiting_ends_after_its_maximum_time(backend: &dyn Backend) {
    let store = backend.open().await;
    timeout(
        NEVER,
        store.wait_for_work(&ANY_LOCATION, Duration::from_millis(1)),
    )
    .await
    .expect("the maximum time has passed");
}

/// Like agents, the leasers lease until the queue is empty, then wait. If a wakeup were lost, one
/// would sleep while audits wait, and the test would time out.
pub async fn no_wakeup_is_lost_among_many_leasers(backend: &dyn Backend) {
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
                        None => store.wait_for_work(&ANY_LOCATION, NEVER).await,
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
        // One at a time, so that the queue becomes empty repeatedly.
        let done = timeout(NEVER / 2, left.acquire())
            .await
            .expect("all were leased");
        done.unwrap().forget();
    }
    for leaser in leasers {
        leaser.abort();
    }
}

pub async fn a_submission_whose_caller_is_gone_still_wakes_waiters(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 1).await;
    let waiter = waiting(&*store, &ANY_LOCATION).await;
    {
        let mut accept = pin!(store.submit(Submission::single(audit(&account, "a"))));
        tokio::select! {
            biased;
            answer = &mut accept => { answer.unwrap(); }
            () = std::future::ready(()) => {}
        }
    }
    timeout(NEVER / 2, waiter)
        .await
        .expect("woken by the submission");
}
