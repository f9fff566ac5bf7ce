use std::time::Duration;

use plumbline_store::{SecretStore, StoreError, StoredSecret, Timestamp};

use super::{Backend, NOW, accepted, account, later};

async fn put(secrets: &dyn SecretStore, account_id: &str, name: &str, sealed: &[u8]) -> bool {
    let put = secrets.put_secret(account_id, name, sealed, 3, NOW);
    put.await.unwrap()
}

fn entry(name: &str, updated_at: Timestamp) -> StoredSecret {
    StoredSecret {
        name: name.to_owned(),
        created_at: NOW,
        updated_at,
    }
}

pub async fn a_secret_is_stored_replaced_listed_and_deleted(backend: &dyn Backend) {
    let (store, secrets) = backend.open_secrets().await;
    let id = account(&*store, 1).await.id;
    assert_eq!(secrets.secrets(&id).await.unwrap(), []);
    assert!(put(&*secrets, &id, "b", b"\0\xff sealed").await);
    assert!(put(&*secrets, &id, "B.1", b"other").await);
    let sealed = secrets.sealed_secret(&id, "b").await.unwrap();
    assert_eq!(sealed.as_deref(), Some(&b"\0\xff sealed"[..]));
    assert_eq!(secrets.sealed_secret(&id, "c").await.unwrap(), None);

    let then = later(Duration::from_secs(5));
    let replaced = secrets.put_secret(&id, "b", b"new", 3, then).await.unwrap();
    assert!(replaced);
    let (_, reopened) = backend.open_secrets().await;
    let sealed = reopened.sealed_secret(&id, "b").await.unwrap();
    assert_eq!(sealed.as_deref(), Some(&b"new"[..]));
    let listed = reopened.secrets(&id).await.unwrap();
    assert_eq!(listed, [entry("B.1", NOW), entry("b", then)]);

    assert!(secrets.delete_secret(&id, "b").await.unwrap());
    assert!(!secrets.delete_secret(&id, "b").await.unwrap());
    assert_eq!(secrets.sealed_secret(&id, "b").await.unwrap(), None);
    assert_eq!(secrets.secrets(&id).await.unwrap(), [entry("B.1", NOW)]);
}

pub async fn a_secret_belongs_to_one_account(backend: &dyn Backend) {
    let (store, secrets) = backend.open_secrets().await;
    let (mine, theirs) = (account(&*store, 1).await.id, account(&*store, 1).await.id);
    assert!(put(&*secrets, &mine, "name", b"mine").await);
    assert_eq!(secrets.sealed_secret(&theirs, "name").await.unwrap(), None);
    assert_eq!(secrets.secrets(&theirs).await.unwrap(), []);
    assert!(!secrets.delete_secret(&theirs, "name").await.unwrap());
    assert!(put(&*secrets, &theirs, "name", b"theirs").await);
    let sealed = secrets.sealed_secret(&mine, "name").await.unwrap();
    assert_eq!(sealed.as_deref(), Some(&b"mine"[..]));
    let nobody = secrets.put_secret("nobody", "name", b"x", 3, NOW).await;
    assert!(matches!(nobody, Err(StoreError::NotFound(_))), "{nobody:?}");
}

pub async fn the_number_of_secrets_per_account_is_limited(backend: &dyn Backend) {
    let (store, secrets) = backend.open_secrets().await;
    let id = account(&*store, 1).await.id;
    let puts = (0..8).map(|n| {
        let (secrets, id) = (secrets.clone(), id.clone());
        tokio::spawn(async move { put(&*secrets, &id, &format!("secret-{n}"), b"x").await })
    });
    let mut stored = 0;
    for put in puts.collect::<Vec<_>>() {
        stored += u32::from(put.await.unwrap());
    }
    assert_eq!(stored, 3, "of concurrent calls");
    let listed = secrets.secrets(&id).await.unwrap();
    assert_eq!(listed.len(), 3);
    assert!(
        put(&*secrets, &id, &listed[0].name, b"again").await,
        "replaces"
    );
    assert!(!put(&*secrets, &id, "one-more", b"x").await);
    assert!(secrets.delete_secret(&id, &listed[0].name).await.unwrap());
    assert!(put(&*secrets, &id, "one-more", b"x").await);
}

pub async fn the_account_of_an_audit_is_known(backend: &dyn Backend) {
    let (store, secrets) = backend.open_secrets().await;
    let account = accepted(&*store, &["one"]).await;
    let owner = secrets.account_of_audit("one").await.unwrap();
    assert_eq!(owner, Some(account.id));
    assert_eq!(secrets.account_of_audit("two").await.unwrap(), None);
}

async fn define(secrets: &dyn SecretStore, account_id: &str, name: &str, now: Timestamp) -> bool {
    let put = secrets.put_saved_session(account_id, name, b"\0definition", 2, now);
    put.await.unwrap()
}

pub async fn a_saved_session_is_defined_made_and_deleted(backend: &dyn Backend) {
    let (store, secrets) = backend.open_secrets().await;
    let (mine, theirs) = (account(&*store, 1).await.id, account(&*store, 1).await.id);
    for name in ["b", "a"] {
        assert!(define(&*secrets, &mine, name, NOW).await);
    }
    assert!(!define(&*secrets, &mine, "c", NOW).await, "too many");
    let session = secrets.saved_session(&mine, "a").await.unwrap().unwrap();
    assert_eq!(session.definition, b"\0definition");
    assert_eq!(session.state, None);
    let then = later(Duration::from_secs(5));
    let put = secrets.put_session_state(&mine, "a", session.version, b"\xff", then);
    assert!(put.await.unwrap());
    let (_, reopened) = backend.open_secrets().await;
    let session = reopened.saved_session(&mine, "a").await.unwrap().unwrap();
    assert_eq!(session.state.as_deref(), Some(&b"\xff"[..]));
    let listed = reopened.saved_sessions(&mine).await.unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|it| (it.name.as_str(), it.made_at))
        .collect();
    assert_eq!(listed, [("a", Some(then)), ("b", None)]);

    assert_eq!(secrets.saved_session(&theirs, "a").await.unwrap(), None);
    assert!(!secrets.delete_saved_session(&theirs, "a").await.unwrap());
    assert!(secrets.delete_saved_session(&mine, "a").await.unwrap());
    assert!(!secrets.delete_saved_session(&mine, "a").await.unwrap());
    assert_eq!(secrets.saved_session(&mine, "a").await.unwrap(), None);
    let nobody = secrets.put_saved_session("nobody", "a", b"x", 2, NOW).await;
    assert!(matches!(nobody, Err(StoreError::NotFound(_))), "{nobody:?}");
}

pub async fn a_state_of_an_earlier_definition_is_not_stored(backend: &dyn Backend) {
    let (store, secrets) = backend.open_secrets().await;
    let id = account(&*store, 1).await.id;
    let version = async || {
        let session = secrets.saved_session(&id, "a").await.unwrap();
        session.unwrap().version
    };
    assert!(define(&*secrets, &id, "a", NOW).await);
    let first = version().await;
    let put = secrets.put_session_state(&id, "a", first, b"state", NOW);
    assert!(put.await.unwrap());
    // Defined again within the same millisecond: the state is that of another login.
    assert!(define(&*secrets, &id, "a", NOW).await);
    let second = version().await;
    assert!(second > first);
    let session = secrets.saved_session(&id, "a").await.unwrap().unwrap();
    assert_eq!(session.state, None);
    let late = secrets.put_session_state(&id, "a", first, b"late", NOW);
    assert!(!late.await.unwrap());
    let session = secrets.saved_session(&id, "a").await.unwrap().unwrap();
    assert_eq!(session.state, None);
}
