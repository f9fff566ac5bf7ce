use std::pin::pin;
use std::time::Duration;

use plumbline_store::{Account, MAX_INTERACTIVE_IN_A_ROW, Store, Submission};
use tokio::time::timeout;

use super::{Backend, LEASE, NEVER, NOW, account, audit, later, lease, measured, scope_at};

/// Submits the audits `{name}0`, `{name}1`, … of a new account.
async fn singles(store: &dyn Store, name: &str, count: u32) -> Account {
    let account = account(store, count).await;
    for n in 0..count {
        store
            .submit(Submission::single(audit(&account, &format!("{name}{n}"))))
            .await
            .unwrap();
    }
    account
}

async fn batch(store: &dyn Store, account: &Account, name: &str, count: u32) {
    let audits = (0..count).map(|n| audit(account, &format!("{name}{n}")));
    let submission = Submission {
        audits: audits.collect(),
        batch_id: Some(name.to_owned()),
        ..Submission::single(audit(account, name))
    };
    store.submit(submission).await.unwrap();
}

async fn leased(store: &dyn Store, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..count {
        names.extend(lease(store, NOW).await.map(|lease| lease.tracking_id));
    }
    names
}

pub async fn accounts_take_turns(backend: &dyn Backend) {
    let store = backend.open().await;
    singles(&*store, "a", 3).await;
    singles(&*store, "b", 3).await;
    assert_eq!(leased(&*store, 3).await, ["a0", "b0", "a1"]);
    // This holds across servers, and for accounts that come later.
    let other = backend.open().await;
    singles(&*other, "c", 2).await;
    assert_eq!(leased(&*other, 3).await, ["c0", "b1", "a2"]);
    assert_eq!(leased(&*store, 9).await, ["c1", "b2"]);
}

pub async fn a_large_batch_does_not_delay_single_audits_of_others(backend: &dyn Backend) {
    let store = backend.open().await;
    let busy = account(&*store, 1000).await;
    batch(&*store, &busy, "many", 1000).await;
    assert_eq!(leased(&*store, 3).await, ["many0", "many1", "many2"]);
    singles(&*store, "one", 1).await;
    assert_eq!(leased(&*store, 2).await, ["one0", "many3"]);
    // Two batches are leased in turn.
    let second = account(&*store, 10).await;
    batch(&*store, &second, "few", 10).await;
    assert_eq!(leased(&*store, 3).await, ["few0", "many4", "few1"]);
}

/// An account does not move to the front by having no waiting audit for a moment.
pub async fn accounts_with_one_waiting_audit_at_a_time_take_turns_as_well(backend: &dyn Backend) {
    let store = backend.open().await;
    singles(&*store, "a", 5).await;
    let other = account(&*store, 5).await;
    let mut order = Vec::new();
    for n in 0..5 {
        store
            .submit(Submission::single(audit(&other, &format!("b{n}"))))
            .await
            .unwrap();
        order.extend(leased(&*store, 2).await);
    }
    let turns: Vec<_> = order.iter().map(|name| &name[..1]).collect();
    for two in turns.chunks(2) {
        assert!(two.contains(&"a") && two.contains(&"b"), "{order:?}");
    }
}

pub async fn single_audits_go_before_batches_but_do_not_starve_them(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 1000).await;
    batch(&*store, &account, "batch", 3).await;
    for n in 0..20 {
        store
            .submit(Submission::single(audit(&account, &format!("start{n}"))))
            .await
            .unwrap();
    }
    let order = leased(&*store, 23).await;
    assert_eq!(order.len(), 23);
    assert_eq!(order[0], "start0");
    let in_a_row = usize::try_from(MAX_INTERACTIVE_IN_A_ROW).unwrap();
    for n in 0..3 {
        let name = format!("batch{n}");
        let index = order.iter().position(|leased| *leased == name).unwrap();
        assert!(
            index >= n * in_a_row && index < (n + 1) * (in_a_row + 1),
            "{order:?}"
        );
    }
}

pub async fn the_number_of_running_audits_per_account_is_limited(backend: &dyn Backend) {
    let store = backend.open_bounded(2).await;
    singles(&*store, "a", 4).await;
    let held = lease(&*store, NOW).await.unwrap();
    let second = lease(&*store, NOW).await.unwrap();
    assert_eq!(lease(&*store, NOW).await, None);
    singles(&*store, "b", 1).await;
    assert_eq!(leased(&*store, 2).await, ["b0"]);

    let scope = plumbline_store::LeaseScope::any_location("waiter");
    let mut waiter = pin!(store.wait_for_work(&scope, NEVER));
    let early = timeout(Duration::from_millis(50), waiter.as_mut()).await;
    assert!(early.is_err(), "woken although nothing may run");
    store.finish(&held, measured()).await.unwrap();
    timeout(NEVER / 2, waiter)
        .await
        .expect("woken when an audit ended");
    assert_eq!(leased(&*store, 2).await, ["a2"]);

    // Taking over an expired lease does not increase the number of running audits.
    let over = lease(&*store, later(LEASE)).await.unwrap();
    assert_eq!(over.tracking_id, second.tracking_id);
}

pub async fn turns_are_decided_among_the_audits_of_the_scopes_locations(backend: &dyn Backend) {
    let store = backend.open().await;
    let (one, two) = (account(&*store, 9).await, account(&*store, 9).await);
    for (account, name, location) in [
        (&one, "a0", "here"),
        (&one, "a1", "there"),
        (&one, "a2", "there"),
        (&two, "b0", "far"),
        (&two, "b1", "there"),
    ] {
        let mut audit = audit(account, name);
        audit.order.location = location.to_owned();
        store.submit(Submission::single(audit)).await.unwrap();
    }
    let mut order = Vec::new();
    for locations in [
        &["there"][..],
        &["there", "here"],
        &["here", "there"],
        &["there"],
    ] {
        let scope = scope_at(locations);
        let lease = store.lease(&scope, NOW, LEASE).await.unwrap();
        order.extend(lease.map(|lease| lease.tracking_id));
    }
    assert_eq!(order, ["a1", "b1", "a0", "a2"]);
    assert_eq!(leased(&*store, 2).await, ["b0"]);
}

/// A store may serve concurrent requests in one transaction.
pub async fn concurrent_requests_are_served_in_turn(backend: &dyn Backend) {
    let store = backend.open().await;
    for name in ["a", "b", "c"] {
        singles(&*store, name, 8).await;
    }
    let request = |locations: Option<Vec<String>>| {
        let store = store.clone();
        tokio::spawn(async move {
            let owner = "agent/1".into();
            let scope = plumbline_store::LeaseScope {
                owner,
                locations,
                slots: None,
            };
            store.lease(&scope, NOW, LEASE).await.unwrap()
        })
    };
    for locations in [
        None,
        Some(vec!["some-place".to_owned(), "another".to_owned()]),
    ] {
        let requests: Vec<_> = (0..12).map(|_| request(locations.clone())).collect();
        let mut names = Vec::new();
        for request in requests {
            names.push(request.await.unwrap().unwrap().tracking_id);
        }
        for account in ["a", "b", "c"] {
            let of_account = names.iter().filter(|name| name.starts_with(account));
            assert_eq!(of_account.count(), 4, "{names:?}");
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 12, "{names:?}");
    }
    assert_eq!(lease(&*store, NOW).await, None);
}

pub async fn the_place_in_the_queue_is_the_order_in_which_audits_are_leased(backend: &dyn Backend) {
    let store = backend.open().await;
    let a = singles(&*store, "a", 2).await;
    let b = singles(&*store, "b", 2).await;
    let c = account(&*store, 2).await;
    batch(&*store, &c, "many", 2).await;
    let place = async |account: &Account, name: &str| {
        let position = store.queue_position(&account.id, name).await.unwrap();
        position.map(|position| (position.position, position.running))
    };
    assert_eq!(place(&a, "a0").await, Some((1, 0)));
    assert_eq!(place(&b, "b0").await, Some((2, 0)));
    assert_eq!(place(&a, "a1").await, Some((3, 0)));
    assert_eq!(place(&b, "b1").await, Some((4, 0)));
    assert_eq!(place(&c, "many0").await, Some((5, 0)));
    assert_eq!(place(&c, "many1").await, Some((6, 0)));
    assert_eq!(leased(&*store, 1).await, ["a0"]);
    assert_eq!(place(&a, "a0").await, None, "it does not wait");
    assert_eq!(place(&b, "b0").await, Some((1, 1)));
    assert_eq!(place(&a, "a1").await, Some((2, 1)));
    assert_eq!(place(&b, "b1").await, Some((3, 1)));
    assert_eq!(place(&a, "b0").await, None, "it belongs to another account");
    assert_eq!(place(&a, "unknown").await, None);
    assert_eq!(
        leased(&*store, 9).await,
        ["b0", "a1", "b1", "many0", "many1"]
    );
    // Of many single audits, only some go before each audit of a batch.
    let d = account(&*store, 2).await;
    batch(&*store, &d, "next", 2).await;
    singles(&*store, "e", 9).await;
    assert_eq!(place(&d, "next0").await, Some((5, 6)));
    assert_eq!(place(&d, "next1").await, Some((10, 6)));
}
