use std::time::Duration;

use plumbline_store::{
    Account, AuditOptions, Delivery, DeliveryClaim, DeliveryDepth, DeliveryLane, DeliveryOutcome,
    LeaseState, NewAudit, Store, Submission, Timestamp,
};

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
