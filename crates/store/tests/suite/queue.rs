use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plumbline_store::{
    AuditState, LeaseScope, LeaseState, MAX_ATTEMPTS, MAX_FAULTS, QueueDepth, ReleaseReason,
    ReturnReason, Submission, Timestamp,
};

use super::{
    Backend, LEASE, NOW, accepted, account, audit, balance, failed, later, lease, measured,
    scope_at, single,
};

pub async fn a_thousand_audits_and_sixteen_leasers_lease_each_once(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 1000).await;
    let accepts: Vec<_> = (0..1000)
        .map(|n| {
            let (store, audit) = (Arc::clone(&store), audit(&account, &format!("a{n}")));
            tokio::spawn(async move { store.submit(Submission::single(audit)).await.unwrap() })
        })
        .collect();
    for accept in accepts {
        accept.await.unwrap();
    }
    // Half of them use the same store, half another one, as another process would.
    let other = backend.open().await;
    let leasers: Vec<_> = (0..16)
        .map(|n| {
            let store = Arc::clone(if n % 2 == 0 { &store } else { &other });
            tokio::spawn(async move {
                let mut leased = Vec::new();
                while let Some(lease) = store
                    .lease(&LeaseScope::any_location("leaser"), NOW, LEASE)
                    .await
                    .unwrap()
                {
                    leased.push(lease);
                }
                leased
            })
        })
        .collect();
    let mut ids = HashSet::new();
    let mut leases = 0;
    for leaser in leasers {
        for lease in leaser.await.unwrap() {
            assert_eq!((lease.attempt, lease.faults), (1, 0));
            ids.insert(lease.tracking_id);
            leases += 1;
        }
    }
    assert_eq!((leases, ids.len()), (1000, 1000));
}

pub async fn the_oldest_waiting_audit_is_leased_first(backend: &dyn Backend) {
    let store = backend.open().await;
    // Only the order of acceptance decides, not names and times.
    let account = account(&*store, 3).await;
    for (name, after_s) in [("c", 3), ("a", 1), ("b", 2)] {
        let mut audit = audit(&account, name);
        audit.accepted_at = later(Duration::from_secs(after_s));
        store.submit(Submission::single(audit)).await.unwrap();
    }
    for expected in ["c", "a", "b"] {
        let lease = lease(&*store, NOW).await.unwrap();
        assert_eq!(lease.tracking_id, expected);
        assert_eq!(lease.audit_id, audit(&account, expected).audit_id);
        assert_eq!(lease.order, audit(&account, expected).order);
        assert_eq!(lease.owner, "agent/1".into());
        assert_eq!(lease.expires_at, later(LEASE));
        assert!(!lease.is_exhausted());
    }
    assert_eq!(lease(&*store, NOW).await, None);
}

pub async fn only_audits_of_the_scopes_locations_are_leased(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 4).await;
    for (name, location) in [("a", "here"), ("b", "there"), ("c", "far"), ("d", "here")] {
        let mut audit = audit(&account, name);
        audit.order.location = location.to_owned();
        store.submit(Submission::single(audit)).await.unwrap();
    }
    let taken = async |locations: &[&str], now| {
        let lease = store.lease(&scope_at(locations), now, LEASE).await.unwrap();
        lease.map(|lease| lease.tracking_id)
    };
    assert_eq!(taken(&[], NOW).await, None);
    assert_eq!(taken(&["nowhere"], NOW).await, None);
    assert_eq!(taken(&["far", "there"], NOW).await.as_deref(), Some("b"));
    assert_eq!(taken(&["there"], NOW).await, None);
    assert_eq!(taken(&["far", "there"], NOW).await.as_deref(), Some("c"));
    assert_eq!(
        lease(&*store, NOW).await.map(|lease| lease.tracking_id),
        Some("a".to_owned())
    );
    // This includes audits whose lease has expired.
    let over = later(LEASE);
    assert_eq!(taken(&["far"], over).await.as_deref(), Some("c"));
    assert_eq!(taken(&["far"], over).await, None);
}

pub async fn an_expired_lease_is_taken_over_and_counts_a_fault(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a", "b"]).await;
    let first = lease(&*store, NOW).await.unwrap();
    assert_eq!(first.tracking_id, "a");

    let just_before = Timestamp(first.expires_at.0 - 1);
    let other = lease(&*store, just_before).await.unwrap();
    assert_eq!(other.tracking_id, "b");
    assert_eq!(lease(&*store, just_before).await, None);

    let second = lease(&*store, first.expires_at).await.unwrap();
    assert_eq!(second.tracking_id, "a");
    assert_eq!((second.attempt, second.faults), (2, 1));
    assert_eq!(lease(&*store, first.expires_at).await, None);
}

pub async fn a_late_result_is_refused(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["a"]).await;
    let late = lease(&*store, NOW).await.unwrap();
    let newest = lease(&*store, late.expires_at).await.unwrap();

    assert_eq!(
        store.heartbeat(&late, later(LEASE)).await.unwrap(),
        LeaseState::Lost
    );
    assert_eq!(
        store.finish(&late, failed()).await.unwrap(),
        LeaseState::Lost
    );
    let hold = store
        .release(&late, ReleaseReason::Returned(ReturnReason::Fault))
        .await
        .unwrap();
    assert_eq!(hold, LeaseState::Lost);
    let status = store.status(&account.id, "a").await.unwrap().unwrap();
    assert_eq!(status.state, AuditState::InProgress);
    assert_eq!(balance(backend, &*store, &account).await, 0);

    assert_eq!(
        store.finish(&newest, measured()).await.unwrap(),
        LeaseState::Held
    );
    assert_eq!(
        store.finish(&late, failed()).await.unwrap(),
        LeaseState::Lost
    );
    let report = store.report(&account.id, &newest.audit_id).await.unwrap();
    assert_eq!(report.unwrap().report, measured().report);
    assert_eq!(balance(backend, &*store, &account).await, 0);
}

pub async fn an_expired_lease_stays_valid_until_another_takes_over(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a", "b"]).await;
    let a = lease(&*store, NOW).await.unwrap();
    let b = lease(&*store, NOW).await.unwrap();
    // Both leases expired long ago.
    let much_later = later(LEASE * 10);
    assert_eq!(
        store.heartbeat(&a, much_later).await.unwrap(),
        LeaseState::Held
    );
    let mut finished = measured();
    finished.finished_at = much_later;
    assert_eq!(store.finish(&b, finished).await.unwrap(), LeaseState::Held);
    assert_eq!(
        store.finish(&a, measured()).await.unwrap(),
        LeaseState::Held
    );
}

pub async fn a_heartbeat_prevents_a_takeover(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a"]).await;
    let held = lease(&*store, NOW).await.unwrap();
    let until = later(LEASE * 2);
    assert_eq!(
        store.heartbeat(&held, until).await.unwrap(),
        LeaseState::Held
    );
    assert_eq!(lease(&*store, held.expires_at).await, None);
    assert!(lease(&*store, until).await.is_some());
}

pub async fn a_finished_or_released_lease_is_lost(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a", "b"]).await;
    let finished = lease(&*store, NOW).await.unwrap();
    let returned = lease(&*store, NOW).await.unwrap();
    assert_eq!(
        store.finish(&finished, measured()).await.unwrap(),
        LeaseState::Held
    );
    let hold = store
        .release(&returned, ReleaseReason::Returned(ReturnReason::Drained))
        .await
        .unwrap();
    assert_eq!(hold, LeaseState::Held);
    for lost in [&finished, &returned] {
        assert_eq!(
            store.heartbeat(lost, later(LEASE)).await.unwrap(),
            LeaseState::Lost
        );
        assert_eq!(
            store.finish(lost, measured()).await.unwrap(),
            LeaseState::Lost
        );
        let hold = store
            .release(lost, ReleaseReason::Returned(ReturnReason::Fault))
            .await
            .unwrap();
        assert_eq!(hold, LeaseState::Lost);
    }
    let again = lease(&*store, NOW).await.unwrap();
    assert_eq!((again.attempt, again.faults), (2, 0));
}

pub async fn only_unconfirmed_leases_can_be_released_as_unconfirmed(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a", "b"]).await;
    let unconfirmed = lease(&*store, NOW).await.unwrap();
    let confirmed = lease(&*store, NOW).await.unwrap();
    let extended = Timestamp(confirmed.expires_at.0 + 1);
    store.heartbeat(&confirmed, extended).await.unwrap();
    for (lease, hold) in [
        (&unconfirmed, LeaseState::Held),
        (&unconfirmed, LeaseState::Lost),
        (&confirmed, LeaseState::Lost),
    ] {
        let result = store.release(lease, ReleaseReason::Unconfirmed).await;
        assert_eq!(result.unwrap(), hold);
    }
    let again = lease(&*store, NOW).await.unwrap();
    assert_eq!(again.tracking_id, "a");
    assert_eq!((again.attempt, again.faults), (2, 0));
    // An earlier attempt cannot release the audit.
    let late = store
        .release(&unconfirmed, ReleaseReason::Unconfirmed)
        .await;
    assert_eq!(late.unwrap(), LeaseState::Lost);
    assert_eq!(
        store.finish(&confirmed, measured()).await.unwrap(),
        LeaseState::Held
    );
}

pub async fn a_released_audit_keeps_its_position(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a", "b", "c"]).await;
    let a = lease(&*store, NOW).await.unwrap();
    let b = lease(&*store, NOW).await.unwrap();
    store
        .release(&b, ReleaseReason::Returned(ReturnReason::Fault))
        .await
        .unwrap();
    store
        .release(&a, ReleaseReason::Returned(ReturnReason::Drained))
        .await
        .unwrap();
    // An audit with a fault goes after others.
    for expected in ["a", "c", "b"] {
        let lease = lease(&*store, NOW).await.unwrap();
        assert_eq!(lease.tracking_id, expected);
    }
}

pub async fn only_faults_exhaust_an_audit(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["a"]).await;
    for _ in 0..5 {
        let drained = lease(&*store, NOW).await.unwrap();
        assert_eq!(drained.faults, 0);
        store
            .release(&drained, ReleaseReason::Returned(ReturnReason::Drained))
            .await
            .unwrap();
    }
    for faults in 0..MAX_FAULTS {
        let faulty = lease(&*store, NOW).await.unwrap();
        assert_eq!(faulty.faults, faults);
        assert!(!faulty.is_exhausted());
        store
            .release(&faulty, ReleaseReason::Returned(ReturnReason::Fault))
            .await
            .unwrap();
    }
    // The holder may die before it finishes the audit, so it is leased until one does.
    let last = lease(&*store, NOW).await.unwrap();
    assert!(last.is_exhausted());
    let last = lease(&*store, last.expires_at).await.unwrap();
    assert!(last.is_exhausted());
    assert_eq!(
        store.finish(&last, failed()).await.unwrap(),
        LeaseState::Held
    );
    assert_eq!(lease(&*store, later(LEASE * 10)).await, None);
    assert_eq!(balance(backend, &*store, &account).await, 1);
}

pub async fn an_audit_leased_too_often_is_exhausted(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a"]).await;
    for attempt in 1..=MAX_ATTEMPTS {
        let lease = lease(&*store, NOW).await.unwrap();
        assert_eq!((lease.attempt, lease.is_exhausted()), (attempt, false));
        store
            .release(&lease, ReleaseReason::Returned(ReturnReason::Drained))
            .await
            .unwrap();
    }
    let last = lease(&*store, NOW).await.unwrap();
    assert_eq!((last.faults, last.is_exhausted()), (0, true));
}

pub async fn three_crashes_of_its_process_exhaust_an_audit(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["a"]).await;
    for faults in 0..MAX_FAULTS {
        let held = lease(&*store, NOW).await.unwrap();
        assert_eq!((held.faults, held.is_exhausted()), (faults, false));
        // Confirmed or not, the process had started to work on it.
        store.heartbeat(&held, later(LEASE)).await.unwrap();
        assert_eq!(store.recover(&single("agent")).await.unwrap(), 1);
    }
    let last = lease(&*store, NOW).await.unwrap();
    assert!(last.is_exhausted());
    assert_eq!(
        store.finish(&last, failed()).await.unwrap(),
        LeaseState::Held
    );
    assert_eq!(balance(backend, &*store, &account).await, 1);
}

pub async fn crashes_are_spread_over_the_waiting_audits(backend: &dyn Backend) {
    let store = backend.open().await;
    let names = ["a", "b", "c", "d", "e"];
    accepted(&*store, &names).await;
    // Twice as many crashes as audits: each audit has two faults, and none is exhausted.
    for nth in 0..2 * names.len() {
        let held = lease(&*store, NOW).await.unwrap();
        assert_eq!(held.tracking_id, names[nth % names.len()]);
        assert!(!held.is_exhausted());
        assert_eq!(store.recover(&single("agent")).await.unwrap(), 1);
    }
}

pub async fn recovery_returns_the_audits_of_a_dead_process_to_the_queue(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a", "b", "c", "d", "e"]).await;
    let mut leases = Vec::new();
    for owner in ["one/1", "one/2", "two/1", "ONE/1"] {
        leases.push(
            store
                .lease(&LeaseScope::any_location(owner), NOW, LEASE)
                .await
                .unwrap()
                .unwrap(),
        );
    }
    assert_eq!(store.recover(&single("%")).await.unwrap(), 0);
    assert_eq!(store.recover(&single("one_")).await.unwrap(), 0);
    assert_eq!(store.recover(&single("one")).await.unwrap(), 2);
    assert_eq!(store.recover(&single("one")).await.unwrap(), 0);
    assert_eq!(
        store.finish(&leases[0], measured()).await.unwrap(),
        LeaseState::Lost
    );
    assert_eq!(
        store.finish(&leases[2], measured()).await.unwrap(),
        LeaseState::Held
    );
    assert_eq!(
        store.finish(&leases[3], measured()).await.unwrap(),
        LeaseState::Held
    );
    for (name, attempt, faults) in [("e", 1, 0), ("a", 2, 1), ("b", 2, 1)] {
        let lease = lease(&*store, NOW).await.unwrap();
        assert_eq!(lease.tracking_id, name);
        assert_eq!((lease.attempt, lease.faults), (attempt, faults));
    }
}

pub async fn a_client_never_sees_an_audit_go_backwards(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["a"]).await;
    let state = async || {
        let status = store.status(&account.id, "a").await.unwrap();
        status.unwrap().state
    };
    assert_eq!(state().await, AuditState::NotStarted);
    let first = lease(&*store, NOW).await.unwrap();
    assert_eq!(state().await, AuditState::InProgress);
    store
        .release(&first, ReleaseReason::Returned(ReturnReason::Drained))
        .await
        .unwrap();
    assert_eq!(state().await, AuditState::InProgress);
    lease(&*store, NOW).await.unwrap();
    store.recover(&single("agent")).await.unwrap();
    assert_eq!(state().await, AuditState::InProgress);
    let last = lease(&*store, NOW).await.unwrap();
    store.finish(&last, measured()).await.unwrap();
    assert_eq!(state().await, AuditState::Completed);
}

pub async fn a_report_is_readable_once_the_audit_is_completed(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["a"]).await;
    let audit_id = audit(&account, "a").audit_id;
    assert_eq!(store.report(&account.id, &audit_id).await.unwrap(), None);
    let held = lease(&*store, NOW).await.unwrap();
    assert_eq!(store.report(&account.id, &audit_id).await.unwrap(), None);
    let mut finished = measured();
    finished.finished_at = later(Duration::from_millis(1234));
    store.finish(&held, finished.clone()).await.unwrap();

    let report = store.report(&account.id, &audit_id).await.unwrap().unwrap();
    assert_eq!(report.audit_id, audit_id);
    assert_eq!(report.tracking_id, "a");
    assert_eq!(report.order, audit(&account, "a").order);
    assert_eq!(report.created_at, finished.finished_at);
    assert_eq!(report.error, None);
    assert_eq!(report.report, finished.report);
    // A tracking id is not an audit id, and vice versa.
    assert_eq!(store.report(&account.id, "a").await.unwrap(), None);
    assert_eq!(store.status(&account.id, &audit_id).await.unwrap(), None);
}

pub async fn an_unknown_lease_is_lost(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a"]).await;
    let mut unknown = lease(&*store, NOW).await.unwrap();
    unknown.tracking_id = "unknown".to_owned();
    assert_eq!(
        store.heartbeat(&unknown, NOW).await.unwrap(),
        LeaseState::Lost
    );
    assert_eq!(
        store.finish(&unknown, failed()).await.unwrap(),
        LeaseState::Lost
    );
    let hold = store
        .release(&unknown, ReleaseReason::Returned(ReturnReason::Fault))
        .await
        .unwrap();
    assert_eq!(hold, LeaseState::Lost);
}

pub async fn the_queue_depth_counts_waiting_and_running_audits(backend: &dyn Backend) {
    let store = backend.open().await;
    assert_eq!(store.queue_depth().await.unwrap(), QueueDepth::default());
    accepted(&*store, &["a", "b", "c", "d"]).await;
    let done = lease(&*store, NOW).await.unwrap();
    store.finish(&done, measured()).await.unwrap();
    lease(&*store, NOW).await.unwrap();
    let depth = QueueDepth {
        waiting: 2,
        running: 1,
    };
    assert_eq!(store.queue_depth().await.unwrap(), depth);
}
