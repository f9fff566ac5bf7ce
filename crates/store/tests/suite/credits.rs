use std::sync::Arc;

use plumbline_store::{Acceptance, LeaseState, LedgerReason, QueueDepth, StoreError, Submission};

use super::{Backend, NOW, accepted, account, audit, balance, failed, lease, measured};

pub async fn two_hundred_starts_on_fifty_credits_accept_exactly_fifty(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 50).await;
    let starts: Vec<_> = (0..200)
        .map(|n| {
            let (store, audit) = (Arc::clone(&store), audit(&account, &format!("a{n}")));
            tokio::spawn(async move { store.submit(Submission::single(audit)).await.unwrap() })
        })
        .collect();
    let mut accepted = 0;
    for start in starts {
        accepted += i32::from(start.await.unwrap() == Acceptance::Accepted);
    }
    assert_eq!(accepted, 50);
    assert_eq!(balance(backend, &*store, &account).await, 0);
    let waiting = QueueDepth {
        waiting: 50,
        running: 0,
    };
    assert_eq!(store.queue_depth().await.unwrap(), waiting);
}

pub async fn an_audit_costs_one_credit_and_a_refused_one_costs_nothing(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 1).await;
    let first = store
        .submit(Submission::single(audit(&account, "first")))
        .await
        .unwrap();
    assert_eq!(first, Acceptance::Accepted);
    let second = store
        .submit(Submission::single(audit(&account, "second")))
        .await
        .unwrap();
    assert_eq!(second, Acceptance::InsufficientCredits);
    assert_eq!(store.status(&account.id, "second").await.unwrap(), None);
    assert_eq!(balance(backend, &*store, &account).await, 0);

    assert_eq!(store.add_credits(&account.id, 1, NOW).await.unwrap(), 1);
    let again = store
        .submit(Submission::single(audit(&account, "second")))
        .await
        .unwrap();
    assert_eq!(again, Acceptance::Accepted);
    let reasons: Vec<_> = backend
        .ledger(&account.id)
        .await
        .into_iter()
        .map(|entry| (entry.reason, entry.amount, entry.tracking_id))
        .collect();
    assert_eq!(
        reasons,
        [
            (LedgerReason::Opening, 1, None),
            (LedgerReason::Audit, -1, Some("first".to_owned())),
            (LedgerReason::Adjustment, 1, None),
            (LedgerReason::Audit, -1, Some("second".to_owned())),
        ]
    );
}

pub async fn an_id_that_is_in_use_is_refused_and_costs_nothing(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 5).await;
    store
        .submit(Submission::single(audit(&account, "a")))
        .await
        .unwrap();

    let mut same_audit_id = audit(&account, "b");
    same_audit_id.audit_id = audit(&account, "a").audit_id;
    for taken in [audit(&account, "a"), same_audit_id] {
        assert!(store.submit(Submission::single(taken)).await.is_err());
    }
    assert_eq!(balance(backend, &*store, &account).await, 4);

    // A refusal does not undo other submissions in the same transaction.
    let starts: Vec<_> = (0..40)
        .map(|n| {
            let id = if n % 2 == 0 {
                "a".to_owned()
            } else {
                format!("n{n}")
            };
            let (store, audit) = (Arc::clone(&store), audit(&account, &id));
            tokio::spawn(async move { store.submit(Submission::single(audit)).await.ok() })
        })
        .collect();
    let mut accepted = 0;
    for start in starts {
        accepted += i32::from(start.await.unwrap() == Some(Acceptance::Accepted));
    }
    assert_eq!(accepted, 4);
    assert_eq!(balance(backend, &*store, &account).await, 0);
}

pub async fn subtracting_more_than_the_balance_leaves_zero(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 3).await;
    assert_eq!(store.add_credits(&account.id, -2, NOW).await.unwrap(), 1);
    assert_eq!(store.add_credits(&account.id, -2, NOW).await.unwrap(), 0);
    assert_eq!(store.add_credits(&account.id, -2, NOW).await.unwrap(), 0);
    assert_eq!(balance(backend, &*store, &account).await, 0);
}

pub async fn extreme_amounts_do_not_overflow_the_balance(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, u32::MAX).await;
    let most = store.add_credits(&account.id, i64::MAX, NOW).await.unwrap();
    assert_eq!(most, i64::MAX);
    assert_eq!(balance(backend, &*store, &account).await, i64::MAX);
    let least = store.add_credits(&account.id, i64::MIN, NOW).await.unwrap();
    assert_eq!(least, 0);
    assert_eq!(balance(backend, &*store, &account).await, 0);
}

pub async fn an_unknown_account_is_not_found(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut nobody = account(&*store, 1).await;
    nobody.id = "nobody".to_owned();
    let refused = store.submit(Submission::single(audit(&nobody, "a"))).await;
    assert!(matches!(refused, Err(StoreError::NotFound("account"))));
    let refused = store.add_credits("nobody", 1, NOW).await;
    assert!(matches!(refused, Err(StoreError::NotFound("account"))));
}

pub async fn an_audit_without_measurements_is_refunded_once(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["fails", "works"]).await;
    let fails = lease(&*store, NOW).await.unwrap();
    let works = lease(&*store, NOW).await.unwrap();
    assert_eq!(
        store.finish(&works, measured()).await.unwrap(),
        LeaseState::Held
    );
    assert_eq!(balance(backend, &*store, &account).await, 0);

    assert_eq!(
        store.finish(&fails, failed()).await.unwrap(),
        LeaseState::Held
    );
    assert_eq!(balance(backend, &*store, &account).await, 1);
    for _ in 0..3 {
        assert_eq!(
            store.finish(&fails, failed()).await.unwrap(),
            LeaseState::Lost
        );
        assert_eq!(
            store.finish(&works, failed()).await.unwrap(),
            LeaseState::Lost
        );
    }
    assert_eq!(balance(backend, &*store, &account).await, 1);

    let status = store.status(&account.id, "fails").await.unwrap().unwrap();
    assert_eq!(status.error, failed().error);
    let report = store.report(&account.id, &status.audit_id).await.unwrap();
    assert_eq!(report.unwrap().error, failed().error);
}
