use std::time::Duration;

use plumbline_store::{
    Account, AuditOptions, Delivery, DeliveryDepth, Hold, NewAudit, Settled, Store, Timestamp,
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
        store.accept(with_webhook(&account, name)).await.unwrap();
        let held = lease(store, NOW).await.unwrap();
        store.finish(&held, measured()).await.unwrap();
    }
    account
}

async fn due(store: &dyn Store, now: Timestamp) -> Vec<Delivery> {
    store.due_deliveries(now, HOLD, 10).await.unwrap()
}

pub async fn a_webhook_is_due_when_its_audit_is_finished(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 5).await;
    store.accept(with_webhook(&account, "a")).await.unwrap();
    store.accept(audit(&account, "without")).await.unwrap();
    assert_eq!(due(&*store, later(NEVER)).await, []);
    for end in [failed(), measured()] {
        let held = lease(&*store, NOW).await.unwrap();
        store.finish(&held, end).await.unwrap();
    }
    drop(store);
    let store = backend.open().await;
    let found = due(&*store, NOW).await;
    assert_eq!(found.len(), 1);
    let delivery = &found[0];
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
    assert_eq!(due(&*store, NOW).await, [], "claimed");
    let again_at = later(Duration::from_secs(10));
    let again = Settled::Again(again_at, "refused".to_owned());
    assert_eq!(store.settle(&first[0], again).await.unwrap(), Hold::Held);
    assert_eq!(
        store.settle(&first[1], Settled::Delivered).await.unwrap(),
        Hold::Held
    );
    assert_eq!(due(&*store, Timestamp(again_at.0 - 1)).await, []);
    let second = due(&*store, again_at).await;
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].attempt, 2);
    let depth = |pending, given_up| DeliveryDepth { pending, given_up };
    assert_eq!(store.delivery_depth().await.unwrap(), depth(1, 0));
    let over = Settled::GivenUp("gone".to_owned());
    store.settle(&second[0], over).await.unwrap();
    assert_eq!(store.delivery_depth().await.unwrap(), depth(0, 1));
    assert_eq!(due(&*store, later(NEVER * 1000)).await, []);
}

pub async fn an_attempt_that_was_never_heard_of_again_is_repeated(backend: &dyn Backend) {
    let store = backend.open().await;
    finished(&*store, &["a"]).await;
    let lost = due(&*store, NOW).await;
    let second = due(&*store, later(HOLD)).await;
    assert_eq!(second[0].attempt, 2);
    let late = store.settle(&lost[0], Settled::Delivered).await.unwrap();
    assert_eq!(late, Hold::Lost);
    assert_eq!(store.delivery_depth().await.unwrap().pending, 1);
}

pub async fn who_delivers_wakes_when_something_is_due(backend: &dyn Backend) {
    let store = backend.open().await;
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move {
            loop {
                store.delivery_arrives(NOW, NEVER).await;
                if let [delivery] = &due(&*store, NOW).await[..] {
                    return delivery.clone();
                }
            }
        })
    };
    finished(&*store, &["a"]).await;
    let delivery = waiting.await.unwrap();
    let soon = Settled::Again(later(Duration::from_millis(20)), "refused".to_owned());
    store.settle(&delivery, soon).await.unwrap();
    store.delivery_arrives(NOW, NEVER).await;
    assert_eq!(
        due(&*store, later(Duration::from_millis(20))).await.len(),
        1
    );
}

pub async fn a_deleted_audit_is_told_to_nobody(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = finished(&*store, &["a"]).await;
    let id = audit(&account, "a").audit_id;
    assert!(store.delete_audit(&account.id, &id).await.unwrap());
    assert_eq!(due(&*store, NOW).await, []);
}

pub async fn an_accounts_secret_stays_until_it_is_rotated(backend: &dyn Backend) {
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
