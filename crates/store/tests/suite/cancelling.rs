use std::time::Duration;

use plumbline_store::{
    Acceptance, Account, AuditError, AuditOptions, AuditState, AuditSummary, Cancellation,
    CancelledAudit, Cookie, DeliveryClaim, DeliveryLane, FailureLimit, LeaseState, NewAudit,
    QueueDepth, ReleaseReason, ReturnReason, Store, Submission, Timestamp, VisitState,
};

use super::{Backend, NEVER, NOW, accepted, account, audit, balance, later, lease, measured};

/// The time of all cancellations, which is later than that of the submissions.
const CANCELLED_AT: Timestamp = Timestamp(NOW.0 + 5);

fn error() -> AuditError {
    AuditError {
        code: "CANCELLED".to_owned(),
        message: "someone cancelled it".to_owned(),
    }
}

/// Cancels audits, and returns the tracking ids of those that were not completed before.
pub async fn cancel(store: &dyn Store, account: &Account, names: &[&str]) -> Vec<String> {
    let mut orders = Vec::new();
    for name in names {
        let stored = store.audit(&account.id, name).await.unwrap();
        orders.push(stored.map_or_else(|| audit(account, name).order, |stored| stored.order));
    }
    let audits = names
        .iter()
        .zip(orders)
        .map(|(name, order)| CancelledAudit {
            tracking_id: (*name).to_owned(),
            order,
            report: format!(r#"{{"cancelled":"{name}"}}"#),
            summary: AuditSummary {
                lab_data: None,
                summary: format!(r#"{{"of":"{name}"}}"#),
                final_url: None,
            },
        });
    let cancellation = Cancellation {
        account_id: account.id.clone(),
        audits: audits.collect(),
        error: error(),
        at: CANCELLED_AT,
    };
    let mut cancelled = store.cancel(cancellation).await.unwrap();
    cancelled.sort_unstable();
    cancelled
}

pub async fn a_cancelled_audit_loses_the_values_of_its_state(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 1).await;
    let state = VisitState {
        cookies: vec![Cookie {
            name: "session".to_owned(),
            value: "secret".into(),
            ..Cookie::default()
        }],
        ..VisitState::default()
    };
    let mut with_state = audit(&account, "with");
    with_state.order.options.state = Some(Box::new(state));
    let options = with_state.order.options.clone();
    store.submit(Submission::single(with_state)).await.unwrap();
    cancel(&*store, &account, &["with"]).await;
    let ended = store.audit(&account.id, "with").await.unwrap().unwrap();
    assert_eq!(ended.order.options, options.without_values());
}

pub async fn a_cancelled_audit_is_completed_and_refunded_once(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 4).await;
    let webhook = Some("https://receiver.example/".to_owned());
    let options = AuditOptions {
        webhook,
        ..AuditOptions::default()
    };
    for name in ["running", "waiting"] {
        let audit = NewAudit {
            options: options.clone(),
            ..audit(&account, name)
        };
        store.submit(Submission::single(audit)).await.unwrap();
    }
    lease(&*store, NOW).await.unwrap();
    assert_eq!(balance(backend, &*store, &account).await, 2);
    let both = ["running", "waiting"];
    assert_eq!(cancel(&*store, &account, &both).await, both);
    assert_eq!(cancel(&*store, &account, &both).await, [""; 0]);
    assert_eq!(balance(backend, &*store, &account).await, 4);
    assert_eq!(store.queue_depth().await.unwrap(), QueueDepth::default());
    for name in both {
        let status = store.status(&account.id, name).await.unwrap().unwrap();
        assert_eq!(status.state, AuditState::Completed);
        assert_eq!(status.error, Some(error()));
        let report = store.report(&account.id, &status.audit_id).await.unwrap();
        let report = report.unwrap();
        assert_eq!(report.report, format!(r#"{{"cancelled":"{name}"}}"#));
        assert_eq!(report.created_at, CANCELLED_AT);
        let listed = store.audit(&account.id, name).await.unwrap().unwrap();
        assert_eq!(listed.finished_at, Some(CANCELLED_AT));
    }
    assert_eq!(store.unsummarized(10).await.unwrap(), []);
    let claim = DeliveryClaim {
        lane: DeliveryLane::First,
        after_account: String::new(),
        hold: NEVER,
        limit: 10,
    };
    let claimed = store.claim_deliveries(claim, CANCELLED_AT).await.unwrap();
    assert_eq!(claimed.deliveries.len(), 2);
    for delivery in claimed.deliveries {
        assert_eq!(delivery.audit.error, Some(error()));
        assert_eq!(delivery.finished_at, CANCELLED_AT);
    }
}

pub async fn a_cancelled_audit_is_not_leased(backend: &dyn Backend) {
    let store = backend.open().await;
    let mine = accepted(&*store, &["a", "b"]).await;
    let theirs = accepted(&*store, &["c"]).await;
    cancel(&*store, &mine, &["a", "b"]).await;
    // The account whose queue is empty now does not take the turn of another.
    let next = lease(&*store, NOW).await.unwrap();
    assert_eq!(next.tracking_id, "c");
    assert_eq!(lease(&*store, NOW).await, None);
    store.add_credits(&mine.id, 1, NOW).await.unwrap();
    let again = Submission::single(audit(&mine, "d"));
    assert_eq!(store.submit(again).await.unwrap(), Acceptance::Accepted);
    assert_eq!(lease(&*store, NOW).await.unwrap().tracking_id, "d");
    cancel(&*store, &theirs, &["c"]).await;
    assert_eq!(
        lease(&*store, later(NEVER * 2)).await.unwrap().tracking_id,
        "d",
        "an expired lease of a cancelled audit is not taken over"
    );
}

pub async fn the_lease_of_a_cancelled_audit_is_lost(backend: &dyn Backend) {
    let (store, agents) = backend.open_agents().await;
    let account = accepted(&*store, &["running", "returned"]).await;
    let running = lease(&*store, NOW).await.unwrap();
    let returned = lease(&*store, NOW).await.unwrap();
    let drained = ReleaseReason::Returned(ReturnReason::Drained);
    store.release(&returned, drained).await.unwrap();
    cancel(&*store, &account, &["running", "returned"]).await;
    for lost in [&running, &returned] {
        let until = later(NEVER);
        let heartbeat = store.heartbeat(lost, until).await.unwrap();
        assert_eq!(heartbeat, LeaseState::Lost);
        let finish = store.finish(lost, measured()).await.unwrap();
        assert_eq!(finish, LeaseState::Lost);
        let release = store.release(lost, drained).await.unwrap();
        assert_eq!(release, LeaseState::Lost);
        let state = agents.attempt_state(&lost.tracking_id, lost.attempt).await;
        assert_eq!(state.unwrap(), plumbline_store::AttemptState::Lost);
        let status = store.status(&account.id, &lost.tracking_id).await.unwrap();
        assert_eq!(status.unwrap().error, Some(error()));
    }
    assert_eq!(agents.running(None).await.unwrap(), []);
    assert_eq!(balance(backend, &*store, &account).await, 2);
}

pub async fn only_unfinished_audits_of_the_account_are_cancelled(backend: &dyn Backend) {
    let store = backend.open().await;
    let mine = accepted(&*store, &["finished", "waiting"]).await;
    let theirs = accepted(&*store, &["theirs"]).await;
    let held = lease(&*store, NOW).await.unwrap();
    store.finish(&held, measured()).await.unwrap();
    let names = ["finished", "theirs", "unknown", "waiting"];
    assert_eq!(cancel(&*store, &mine, &names).await, ["waiting"]);
    let finished = store.status(&mine.id, "finished").await.unwrap().unwrap();
    assert_eq!(finished.error, None);
    let other = store.status(&theirs.id, "theirs").await.unwrap().unwrap();
    assert_eq!(other.state, AuditState::NotStarted);
    assert_eq!(balance(backend, &*store, &mine).await, 1);
    assert_eq!(balance(backend, &*store, &theirs).await, 0);
    assert_eq!(cancel(&*store, &mine, &[]).await, [""; 0]);
}

pub async fn waiters_wake_when_an_audit_is_cancelled(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["a"]).await;
    let waiting = store.wait_for_completion(&account.id, "a", NEVER);
    let (status, _) = tokio::join!(waiting, async {
        tokio::task::yield_now().await;
        cancel(&*store, &account, &["a"]).await
    });
    assert_eq!(status.unwrap().unwrap().state, AuditState::Completed);
}

pub async fn audits_cancelled_before_their_first_lease_do_not_count_as_failures(
    backend: &dyn Backend,
) {
    let store = backend.open().await;
    let account = account(&*store, 9).await;
    let submit = async |name: &str| {
        let submission = Submission {
            failures: Some(FailureLimit {
                max_failures: 1,
                window: Duration::from_secs(3600),
            }),
            accepted_at: CANCELLED_AT,
            ..Submission::single(audit(&account, name))
        };
        store.submit(submission).await.unwrap()
    };
    assert_eq!(submit("waiting").await, Acceptance::Accepted);
    cancel(&*store, &account, &["waiting"]).await;
    assert_eq!(submit("deleted").await, Acceptance::Accepted);
    cancel(&*store, &account, &["deleted"]).await;
    let deleted = store.delete_audit(&account.id, "report-of-deleted").await;
    assert!(deleted.unwrap());
    assert_eq!(submit("running").await, Acceptance::Accepted);
    lease(&*store, NOW).await.unwrap();
    cancel(&*store, &account, &["running"]).await;
    let acceptance = submit("refused").await;
    assert!(matches!(acceptance, Acceptance::TooManyFailed(_)));
}
