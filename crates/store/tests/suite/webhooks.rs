use std::sync::Arc;
use std::time::Duration;

use plumbline_store::{
    Account, AuditOptions, Delivery, DeliveryClaim, DeliveryDepth, DeliveryEvent, DeliveryLane,
    DeliveryOutcome, LeaseState, NewAudit, Store, Submission, Timestamp,
};

use super::cancelling::cancel;
use super::{Backend, NEVER, NOW, account, audit, failed, later, lease, measured};

const HOLD: Duration = Duration::from_secs(60);

fn with_webhook(account: &Account, name: &str) -> NewAudit {
    NewAudit {
        options: AuditOptions {
            webhook: Some(format!("https://{name}.example/hook")),
            ..AuditOptions::default()
        },
        ..audit(account, name)
    }
}

async fn finished(store: &dyn Store, names: &[&str]) -> Account {
    let account = account(store, 10).await;
    for name in names {
        store
            .submit(Submission::single(with_webhook(&account, name)))
            .await
            .unwrap();
        let held = lease(store, NOW).await.unwrap();
        store.finish(&held, measured()).await.unwrap();
    }
    account
}

/// Claims webhooks of a lane, beginning after an account.
async fn claim(
    store: &dyn Store,
    lane: DeliveryLane,
    after: &str,
    now: Timestamp,
) -> Vec<Delivery> {
    let claim = DeliveryClaim {
        lane,
        after_account: after.to_owned(),
        hold: HOLD,
        limit: 10,
    };
    store.claim_deliveries(claim, now).await.unwrap().deliveries
}

/// Claims webhooks of both lanes.
async fn due(store: &dyn Store, now: Timestamp) -> Vec<Delivery> {
    let mut claimed = claim(store, DeliveryLane::First, "", now).await;
    claimed.extend(claim(store, DeliveryLane::Retry, "", now).await);
    claimed
}

fn tracking_ids(claimed: &[Delivery]) -> Vec<&str> {
    claimed
        .iter()
        .map(|delivery| delivery.audit.tracking_id.as_str())
        .collect()
}

pub async fn a_webhook_is_due_when_its_audit_is_finished(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 5).await;
    store
        .submit(Submission::single(with_webhook(&account, "a")))
        .await
        .unwrap();
    store
        .submit(Submission::single(audit(&account, "without")))
        .await
        .unwrap();
    assert_eq!(due(&*store, later(NEVER)).await, []);
    for end in [failed(), measured()] {
        let held = lease(&*store, NOW).await.unwrap();
        store.finish(&held, end).await.unwrap();
    }
    drop(store);
    let store = backend.open().await;
    let deliveries = due(&*store, NOW).await;
    assert_eq!(deliveries.len(), 1);
    let delivery = &deliveries[0];
    assert_eq!(delivery.account_id, account.id);
    assert_eq!(delivery.webhook, "https://a.example/hook");
    assert_eq!(delivery.audit.tracking_id, "a");
    assert_eq!(delivery.audit.error, failed().error);
    assert_eq!((delivery.finished_at, delivery.attempt), (NOW, 1));
}

pub async fn a_webhook_is_tried_until_it_is_delivered_or_given_up(backend: &dyn Backend) {
    let store = backend.open().await;
    finished(&*store, &["a", "b"]).await;
    let first = due(&*store, NOW).await;
    assert_eq!(first.len(), 2);
    let summary = measured().summary.unwrap();
    assert_eq!(first[0].lab_data, summary.lab_data);
    assert_eq!(first[0].audit.final_url, summary.final_url);
    assert_eq!(due(&*store, NOW).await, [], "claimed");
    let again_at = later(Duration::from_secs(10));
    let retry = DeliveryOutcome::RetryAt(again_at, "refused".to_owned());
    assert_eq!(
        store.settle(&first[0], retry).await.unwrap(),
        LeaseState::Held
    );
    assert_eq!(
        store
            .settle(&first[1], DeliveryOutcome::Delivered)
            .await
            .unwrap(),
        LeaseState::Held
    );
    assert_eq!(due(&*store, Timestamp(again_at.0 - 1)).await, []);
    let second = due(&*store, again_at).await;
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].attempt, 2);
    let depth = |pending, given_up| DeliveryDepth { pending, given_up };
    assert_eq!(store.delivery_depth().await.unwrap(), depth(1, 0));
    let over = DeliveryOutcome::GivenUp("gone".to_owned());
    store.settle(&second[0], over).await.unwrap();
    assert_eq!(store.delivery_depth().await.unwrap(), depth(0, 1));
    assert_eq!(due(&*store, later(NEVER * 1000)).await, []);
}

pub async fn an_attempt_that_was_never_settled_is_repeated(backend: &dyn Backend) {
    let store = backend.open().await;
    finished(&*store, &["a"]).await;
    let lost = due(&*store, NOW).await;
    let second = due(&*store, later(HOLD)).await;
    assert_eq!(second[0].attempt, 2);
    let late = store
        .settle(&lost[0], DeliveryOutcome::Delivered)
        .await
        .unwrap();
    assert_eq!(late, LeaseState::Lost);
    assert_eq!(store.delivery_depth().await.unwrap().pending, 1);
}

pub async fn waiters_wake_when_a_webhook_is_due(backend: &dyn Backend) {
    let store = backend.open().await;
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move {
            loop {
                let mut arrival = std::pin::pin!(store.delivery_notify().notified());
                arrival.as_mut().enable();
                if let [delivery] = &due(&*store, NOW).await[..] {
                    return delivery.clone();
                }
                arrival.await;
            }
        })
    };
    finished(&*store, &["a"]).await;
    let delivery = waiting.await.unwrap();
    let soon = later(Duration::from_millis(20));
    let retry = DeliveryOutcome::RetryAt(soon, "refused".to_owned());
    store.settle(&delivery, retry).await.unwrap();
    let nothing_yet = DeliveryClaim {
        lane: DeliveryLane::First,
        after_account: String::new(),
        hold: HOLD,
        limit: 10,
    };
    let claimed = store.claim_deliveries(nothing_yet, NOW).await.unwrap();
    assert_eq!(
        (claimed.deliveries.len(), claimed.next_claim_at),
        (0, Some(soon))
    );
    assert_eq!(due(&*store, soon).await.len(), 1);
}

pub async fn accounts_take_turns_and_have_at_most_two_active_attempts(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut accounts = [
        finished(&*store, &["a", "b", "c", "d"]).await.id,
        finished(&*store, &["e"]).await.id,
        finished(&*store, &["f"]).await.id,
    ];
    let first_account = accounts[0].clone();
    accounts.sort();
    let claimed = claim(&*store, DeliveryLane::First, "", NOW).await;
    let mut served: Vec<_> = claimed.iter().map(|d| d.account_id.as_str()).collect();
    assert_eq!(served.pop(), Some(&*first_account), "in the second round");
    assert_eq!(served, accounts);
    let mut of_first: Vec<_> = tracking_ids(&claimed);
    of_first.retain(|id| ["a", "b", "c", "d"].contains(id));
    assert_eq!(of_first, ["a", "b"], "the longest due first");

    // An attempt stops to count when it is settled, or when its hold time has passed.
    assert!(
        claim(&*store, DeliveryLane::First, "", NOW)
            .await
            .is_empty()
    );
    let a = claimed.iter().find(|d| d.audit.tracking_id == "a").unwrap();
    store.settle(a, DeliveryOutcome::Delivered).await.unwrap();
    let next = claim(&*store, DeliveryLane::First, "", NOW).await;
    assert_eq!(tracking_ids(&next), ["c"]);
    let silent = later(HOLD);
    let next = claim(&*store, DeliveryLane::First, "", silent).await;
    assert_eq!(tracking_ids(&next), ["d"]);
}

pub async fn turns_begin_after_the_account_that_was_served_last(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut accounts = Vec::new();
    for name in ["a", "b", "c"] {
        accounts.push((finished(&*store, &[name]).await.id, name));
    }
    accounts.sort();
    let claimed = claim(&*store, DeliveryLane::First, &accounts[0].0, NOW).await;
    let expected = [accounts[1].1, accounts[2].1, accounts[0].1];
    assert_eq!(tracking_ids(&claimed), expected);
}

pub async fn a_receiver_has_at_most_two_active_attempts_of_all_accounts(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut accounts = Vec::new();
    for name in ["a", "b", "c"] {
        let account = account(&*store, 10).await;
        let mut audit = with_webhook(&account, name);
        audit.options.webhook = Some(format!("https://same.example/{name}"));
        store.submit(Submission::single(audit)).await.unwrap();
        let held = lease(&*store, NOW).await.unwrap();
        store.finish(&held, measured()).await.unwrap();
        accounts.push(account.id);
    }
    assert_eq!(claim(&*store, DeliveryLane::First, "", NOW).await.len(), 2);
    assert!(
        claim(&*store, DeliveryLane::First, "", NOW)
            .await
            .is_empty()
    );
}

pub async fn retries_leave_capacity_for_first_attempts(backend: &dyn Backend) {
    let store = backend.open().await;
    finished(&*store, &["a", "b", "c", "d"]).await;
    let first = claim(&*store, DeliveryLane::First, "", NOW).await;
    for delivery in &first {
        let retry = DeliveryOutcome::RetryAt(NOW, "refused".to_owned());
        store.settle(delivery, retry).await.unwrap();
    }
    let retries = claim(&*store, DeliveryLane::Retry, "", NOW).await;
    assert_eq!(tracking_ids(&retries), ["a"]);
    assert_eq!(retries[0].attempt, 2);
    let first = claim(&*store, DeliveryLane::First, "", NOW).await;
    assert_eq!(tracking_ids(&first), ["c"]);
}

pub async fn the_webhook_of_a_deleted_audit_is_not_sent(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = finished(&*store, &["a"]).await;
    let id = audit(&account, "a").audit_id;
    assert!(store.delete_audit(&account.id, &id).await.unwrap());
    assert_eq!(due(&*store, NOW).await, []);
}

pub async fn the_webhook_secret_of_an_account_stays_until_it_is_rotated(backend: &dyn Backend) {
    let store = backend.open().await;
    let (one, two) = (account(&*store, 0).await, account(&*store, 0).await);
    let secret = store.webhook_secret(&one.id, false).await.unwrap();
    assert!(secret.len() >= 43, "{secret}");
    assert_eq!(store.webhook_secret(&one.id, false).await.unwrap(), secret);
    assert_ne!(store.webhook_secret(&two.id, false).await.unwrap(), secret);
    let rotated = store.webhook_secret(&one.id, true).await.unwrap();
    assert_ne!(rotated, secret);
    assert_eq!(store.webhook_secret(&one.id, false).await.unwrap(), rotated);
    assert!(store.webhook_secret("nobody", false).await.is_err());
}

/// Submits a batch with a webhook.
async fn batch(store: &dyn Store, account: &Account, names: &[&str]) {
    let audits = names.iter().map(|name| with_webhook(account, name));
    let submission = Submission {
        batch_id: Some("all".to_owned()),
        audits: audits.collect(),
        ..Submission::single(audit(account, "none"))
    };
    store.submit(submission).await.unwrap();
}

pub async fn the_webhook_of_a_batch_follows_that_of_its_last_audit(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 5).await;
    batch(&*store, &account, &["a", "b", "c"]).await;
    let held = lease(&*store, NOW).await.unwrap();
    store.finish(&held, measured()).await.unwrap();
    for delivery in due(&*store, NOW).await {
        assert_eq!(delivery.event, DeliveryEvent::AuditCompleted);
        let outcome = DeliveryOutcome::Delivered;
        store.settle(&delivery, outcome).await.unwrap();
    }
    assert_eq!(due(&*store, NOW).await, [], "the batch has not ended");
    let cancelled = cancel(&*store, &account, &["b", "c"]).await;
    assert_eq!(cancelled, ["b", "c"]);
    let now = later(Duration::from_secs(1));
    let last = due(&*store, now).await;
    assert_eq!(tracking_ids(&last), ["b", "c"]);
    for delivery in &last {
        assert_eq!(delivery.event, DeliveryEvent::AuditCompleted);
        let outcome = DeliveryOutcome::GivenUp("refused".to_owned());
        let settled = store.settle(delivery, outcome).await.unwrap();
        assert_eq!(settled, LeaseState::Held);
    }
    let of_batch = due(&*store, now).await;
    assert_eq!(of_batch.len(), 1);
    assert_eq!(
        of_batch[0].event,
        DeliveryEvent::BatchCompleted("all".to_owned())
    );
    assert_eq!(of_batch[0].account_id, account.id);
    assert_eq!(of_batch[0].attempt, 1);
    let late = store.settle(&last[1], DeliveryOutcome::Delivered).await;
    assert_eq!(late.unwrap(), LeaseState::Lost, "an attempt for the audit");
    let retry = DeliveryOutcome::RetryAt(now, "refused".to_owned());
    store.settle(&of_batch[0], retry).await.unwrap();
    let again = due(&*store, now).await;
    assert_eq!((again.len(), again[0].attempt), (1, 2));
    assert_eq!(again[0].event, of_batch[0].event);
    let delivered = store.settle(&again[0], DeliveryOutcome::Delivered).await;
    assert_eq!(delivered.unwrap(), LeaseState::Held);
    assert_eq!(due(&*store, later(NEVER)).await, []);
    let depth = DeliveryDepth {
        pending: 0,
        given_up: 1,
    };
    assert_eq!(store.delivery_depth().await.unwrap(), depth);
}

pub async fn the_webhook_of_a_batch_is_sent_although_its_last_audit_is_deleted(
    backend: &dyn Backend,
) {
    let store = backend.open().await;
    let account = account(&*store, 5).await;
    batch(&*store, &account, &["a", "b", "c"]).await;
    for _ in 0..3 {
        let held = lease(&*store, NOW).await.unwrap();
        store.finish(&held, measured()).await.unwrap();
    }
    let deliver = async |delivery: &Delivery| {
        let settled = store.settle(delivery, DeliveryOutcome::Delivered).await;
        assert_eq!(settled.unwrap(), LeaseState::Held);
    };
    let delete = async |name: &str| {
        let id = audit(&account, name).audit_id;
        assert!(store.delete_audit(&account.id, &id).await.unwrap());
    };
    // The webhook of the other audit is still to be delivered, too.
    delete("c").await;
    let of_audits = due(&*store, NOW).await;
    assert_eq!(tracking_ids(&of_audits), ["a", "b"]);
    for delivery in &of_audits {
        assert_eq!(delivery.event, DeliveryEvent::AuditCompleted);
        deliver(delivery).await;
    }
    let of_batch = due(&*store, NOW).await;
    assert_eq!(tracking_ids(&of_batch), ["b"]);
    let event = DeliveryEvent::BatchCompleted("all".to_owned());
    assert_eq!(of_batch[0].event, event);
    // That of the other audit was delivered before.
    delete("b").await;
    let again = due(&*store, later(HOLD)).await;
    assert_eq!(tracking_ids(&again), ["a"]);
    assert_eq!((&again[0].event, again[0].attempt), (&event, 1));
    deliver(&again[0]).await;
    delete("a").await;
    assert_eq!(due(&*store, later(NEVER * 10)).await, []);
}

pub async fn a_batch_whose_audits_end_at_the_same_time_has_one_webhook(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 9).await;
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    batch(&*store, &account, &names).await;
    let mut finishes = Vec::new();
    for _ in names {
        let (store, held) = (Arc::clone(&store), lease(&*store, NOW).await.unwrap());
        finishes.push(tokio::spawn(async move {
            store.finish(&held, measured()).await.unwrap()
        }));
    }
    for finish in finishes {
        assert_eq!(finish.await.unwrap(), LeaseState::Held);
    }
    let (mut audits, mut batches) = (0, 0);
    loop {
        let claimed = due(&*store, NOW).await;
        if claimed.is_empty() {
            break;
        }
        for delivery in claimed {
            match delivery.event {
                DeliveryEvent::AuditCompleted => audits += 1,
                DeliveryEvent::BatchCompleted(_) => batches += 1,
            }
            let outcome = DeliveryOutcome::Delivered;
            store.settle(&delivery, outcome).await.unwrap();
        }
    }
    assert_eq!((audits, batches), (8, 1));
}
