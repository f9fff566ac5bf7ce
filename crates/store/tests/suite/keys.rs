use std::time::Duration;

use plumbline_store::{Key, StoreError, Submission, Timestamp};

use super::{Backend, NOW, account, audit, later};

pub async fn a_key_is_found_with_its_account_and_balance(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 7).await;
    let key = Key::generate().unwrap();
    let digest = key.digest();
    let add = store.add_key(&account.id, key.id(), digest, None, NOW);
    add.await.unwrap();

    let record = store.key(key.id()).await.unwrap().unwrap();
    assert_eq!(record.id, key.id());
    assert_eq!(record.account_id, account.id);
    assert_eq!(record.account_name, "someone");
    assert_eq!(record.digest, key.digest());
    assert_eq!(record.credits, 7);
    assert_eq!(record.created_at, NOW);
    assert!(record.is_usable(NOW));
    assert_eq!(store.keys().await.unwrap(), [record]);

    store
        .submit(Submission::single(audit(&account, "a")))
        .await
        .unwrap();
    let record = store.key(key.id()).await.unwrap().unwrap();
    assert_eq!(record.credits, 6);
}

pub async fn a_key_can_be_revoked_once_and_expires(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 0).await;
    let digest = Key::generate().unwrap().digest();
    let end = later(Duration::from_secs(10));
    let add = store.add_key(&account.id, "expires", digest, Some(end), NOW);
    add.await.unwrap();
    let add = store.add_key(&account.id, "revoked", digest, None, NOW);
    add.await.unwrap();

    let key = store.key("expires").await.unwrap().unwrap();
    assert!(key.is_usable(NOW));
    assert!(key.is_usable(Timestamp(end.0 - 1)));
    assert!(!key.is_usable(end));

    let first = later(Duration::from_secs(1));
    store.revoke_key("revoked", first).await.unwrap();
    let second = later(Duration::from_secs(2));
    store.revoke_key("revoked", second).await.unwrap();
    let key = store.key("revoked").await.unwrap().unwrap();
    assert_eq!(key.revoked_at, Some(first));
    assert!(!key.is_usable(NOW));
}

pub async fn an_unknown_key_is_none_and_cannot_be_revoked(backend: &dyn Backend) {
    let store = backend.open().await;
    assert_eq!(store.key("unknown").await.unwrap(), None);
    let refused = store.revoke_key("unknown", NOW).await;
    assert!(matches!(refused, Err(StoreError::NotFound("key"))));
    let digest = Key::generate().unwrap().digest();
    let refused = store.add_key("nobody", "key", digest, None, NOW).await;
    assert!(matches!(refused, Err(StoreError::NotFound("account"))));
    assert_eq!(store.keys().await.unwrap(), []);
}

pub async fn a_key_id_is_unique(backend: &dyn Backend) {
    let store = backend.open().await;
    let mine = account(&*store, 0).await;
    let theirs = account(&*store, 0).await;
    assert_ne!(mine.id, theirs.id);
    let key = Key::generate().unwrap();
    let first = store.add_key(&mine.id, "same", key.digest(), None, NOW);
    first.await.unwrap();
    let second = store.add_key(&theirs.id, "same", key.digest(), None, NOW);
    assert!(second.await.is_err());
    let record = store.key("same").await.unwrap().unwrap();
    assert_eq!(record.account_id, mine.id);
}
