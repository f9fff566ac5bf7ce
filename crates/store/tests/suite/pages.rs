use std::sync::Arc;
use std::time::Duration;

use plumbline_store::{AuditState, Key, StoreError, session_digest};

use super::{Backend, NOW, accepted, account, audit, later, lease, measured};

pub async fn a_session_lasts_until_it_is_closed_or_over(backend: &dyn Backend) {
    let (store, pages) = backend.open_pages().await;
    let account = account(&*store, 1).await;
    let key = Key::generate().unwrap();
    let add = store.add_key(&account.id, key.id(), key.digest(), None, NOW);
    add.await.unwrap();
    let hour = Duration::from_secs(3600);
    for secret in ["one", "other"] {
        let open = pages.open_session(session_digest(secret), key.id(), later(hour), NOW);
        open.await.unwrap();
    }
    let whose = |secret: &'static str, now| {
        let pages = Arc::clone(&pages);
        async move {
            let key = pages.session(session_digest(secret), now).await.unwrap();
            key.map(|key| key.id)
        }
    };
    assert_eq!(whose("one", NOW).await.as_deref(), Some(key.id()));
    assert_eq!(whose("never opened", NOW).await, None);
    assert_eq!(whose("one", later(hour)).await, None, "it is over");

    pages.close_session(session_digest("one")).await.unwrap();
    pages.close_session(session_digest("one")).await.unwrap();
    assert_eq!(whose("one", NOW).await, None, "it is closed");
    assert_eq!(whose("other", NOW).await.as_deref(), Some(key.id()));
}

pub async fn a_session_needs_a_key_that_exists(backend: &dyn Backend) {
    let (_store, pages) = backend.open_pages().await;
    let open = pages.open_session(session_digest("s"), "nobody", later(super::LEASE), NOW);
    assert!(open.await.is_err());
}

pub async fn a_shared_report_is_read_by_its_token_until_it_is_switched_off(backend: &dyn Backend) {
    let (store, pages) = backend.open_pages().await;
    let mine = accepted(&*store, &["mine", "waiting"]).await;
    let theirs = account(&*store, 1).await;
    let held = lease(&*store, NOW).await.unwrap();
    store.finish(&held, measured()).await.unwrap();
    let id = held.audit_id.as_str();

    assert_eq!(pages.shared_report("token").await.unwrap(), None);
    for (who, what) in [
        (theirs.id.as_str(), id),
        (&mine.id, "report-of-waiting"),
        (&mine.id, "unknown"),
    ] {
        let refused = pages.share(who, what, Some("token"), NOW).await;
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{what}");
    }
    pages.share(&mine.id, id, Some("first"), NOW).await.unwrap();
    pages.share(&mine.id, id, Some("token"), NOW).await.unwrap();
    assert_eq!(
        pages.shared_report("first").await.unwrap(),
        None,
        "replaced"
    );
    let shared = pages.shared_report("token").await.unwrap().unwrap();
    assert_eq!(
        (shared.audit_id.as_str(), shared.report),
        (id, measured().report)
    );
    let token = pages.share_token(&mine.id, id).await.unwrap();
    assert_eq!(token.as_deref(), Some("token"));
    assert_eq!(pages.share_token(&theirs.id, id).await.unwrap(), None);

    pages.share(&mine.id, id, None, NOW).await.unwrap();
    assert_eq!(
        pages.shared_report("token").await.unwrap(),
        None,
        "switched off"
    );
    assert_eq!(pages.share_token(&mine.id, id).await.unwrap(), None);
}

pub async fn recent_audits_are_the_accounts_own_newest_first(backend: &dyn Backend) {
    let (store, pages) = backend.open_pages().await;
    let mine = accepted(&*store, &["a", "b", "c"]).await;
    let theirs = accepted(&*store, &["d"]).await;
    let held = lease(&*store, NOW).await.unwrap();
    store.finish(&held, measured()).await.unwrap();

    let all = pages.recent(&mine.id, None, 10).await.unwrap();
    let names: Vec<_> = all.iter().map(|audit| audit.tracking_id.as_str()).collect();
    assert_eq!(names, ["c", "b", "a"]);
    assert_eq!(
        all[0].audit_id, None,
        "told to nobody before it is completed"
    );
    assert_eq!(all[2].audit_id.as_deref(), Some("report-of-a"));
    assert_eq!(all[2].report, Some(measured().report));
    assert_eq!(pages.recent(&mine.id, None, 2).await.unwrap().len(), 2);

    let url = audit(&mine, "b").order.url;
    let of_one = pages.recent(&mine.id, Some(&url), 10).await.unwrap();
    assert_eq!(of_one.len(), 1);
    assert_eq!(pages.recent(&theirs.id, Some(&url), 10).await.unwrap(), []);
}

pub async fn an_order_is_told_to_its_account_only(backend: &dyn Backend) {
    let (store, pages) = backend.open_pages().await;
    let mine = accepted(&*store, &["mine"]).await;
    let theirs = account(&*store, 1).await;
    let found = pages.order(&mine.id, "mine").await.unwrap();
    assert_eq!(found, Some(audit(&mine, "mine").order));
    assert_eq!(pages.order(&theirs.id, "mine").await.unwrap(), None);
    let status = store.status(&mine.id, "mine").await.unwrap().unwrap();
    assert_eq!(status.state, AuditState::NotStarted);
}
