use std::sync::Arc;
use std::time::Duration;

use plumbline_store::{Key, Retention, Share, SharedReport, StoreError, Timestamp, session_digest};

use super::{Backend, NOW, accepted, account, audit, later, lease, measured};

pub async fn a_session_lasts_until_it_is_closed_or_expires(backend: &dyn Backend) {
    let (store, pages) = backend.open_pages().await;
    let account = account(&*store, 1).await;
    let key = Key::generate().unwrap();
    let add = store.add_key(&account.id, key.id(), key.digest(), None, NOW);
    add.await.unwrap();
    let hour = Duration::from_secs(3600);
    for secret in ["one", "other"] {
        let open = pages.open_session(session_digest(secret), key.id(), later(hour), 9, NOW);
        open.await.unwrap();
    }
    let key_id = |secret: &'static str, now| {
        let pages = Arc::clone(&pages);
        async move {
            let key = pages.session(session_digest(secret), now).await.unwrap();
            key.map(|key| key.id)
        }
    };
    assert_eq!(key_id("one", NOW).await.as_deref(), Some(key.id()));
    assert_eq!(key_id("never opened", NOW).await, None);
    assert_eq!(key_id("one", later(hour)).await, None, "expired");

    pages.close_session(session_digest("one")).await.unwrap();
    pages.close_session(session_digest("one")).await.unwrap();
    assert_eq!(key_id("one", NOW).await, None, "closed");
    assert_eq!(key_id("other", NOW).await.as_deref(), Some(key.id()));
}

pub async fn a_session_needs_a_key_that_exists(backend: &dyn Backend) {
    let (_store, pages) = backend.open_pages().await;
    let open = pages.open_session(session_digest("s"), "nobody", later(super::LEASE), 9, NOW);
    assert!(open.await.is_err());
}

pub async fn a_page_is_shared_by_one_token_at_a_time_until_it_expires(backend: &dyn Backend) {
    let (store, pages) = backend.open_pages().await;
    let (mine, theirs) = (account(&*store, 1).await, account(&*store, 1).await);
    let long_page = format!("history/https://example.com/{}", "a".repeat(4000));
    let new_link = |token: &str, expires_at: Option<Timestamp>| {
        Some(Share {
            token: token.to_owned(),
            expires_at,
        })
    };
    for page in ["compare/a/b", &long_page] {
        let token = |name: &str| format!("{name}-{}", page.len());
        let (first, second) = (token("first"), token("second"));
        let share = new_link(&first, None);
        pages.share_page(&mine.id, page, share, NOW).await.unwrap();
        let end = later(Duration::from_millis(10));
        let share = new_link(&second, Some(end));
        pages
            .share_page(&mine.id, page, share.clone(), NOW)
            .await
            .unwrap();
        assert_eq!(pages.shared_page(&first, NOW).await.unwrap(), None);
        let shared = pages.shared_page(&second, NOW).await.unwrap().unwrap();
        assert_eq!(
            (shared.account_id.as_str(), shared.page.as_str()),
            (mine.id.as_str(), page)
        );
        assert_eq!(pages.page_share(&mine.id, page, NOW).await.unwrap(), share);
        assert_eq!(pages.page_share(&theirs.id, page, NOW).await.unwrap(), None);
        assert_eq!(pages.shared_page(&second, end).await.unwrap(), None);
        assert_eq!(pages.page_share(&mine.id, page, end).await.unwrap(), None);
        pages.share_page(&theirs.id, page, None, NOW).await.unwrap();
        assert!(pages.shared_page(&second, NOW).await.unwrap().is_some());
        pages.share_page(&mine.id, page, None, NOW).await.unwrap();
        assert_eq!(pages.shared_page(&second, NOW).await.unwrap(), None);
    }
}

pub async fn a_report_can_be_read_by_its_token_while_it_is_shared(backend: &dyn Backend) {
    let (store, pages) = backend.open_pages().await;
    let mine = accepted(&*store, &["mine", "waiting"]).await;
    let theirs = account(&*store, 1).await;
    let held = lease(&*store, NOW).await.unwrap();
    store.finish(&held, measured()).await.unwrap();
    let id = held.audit_id.as_str();

    assert_eq!(pages.shared_report("token", NOW).await.unwrap(), None);
    for (account_id, audit_id) in [
        (theirs.id.as_str(), id),
        (&mine.id, "report-of-waiting"),
        (&mine.id, "unknown"),
    ] {
        let refused = pages.share(account_id, audit_id, link("token"), NOW).await;
        assert!(
            matches!(refused, Err(StoreError::NotFound(_))),
            "{audit_id}"
        );
    }
    pages.share(&mine.id, id, link("first"), NOW).await.unwrap();
    pages.share(&mine.id, id, link("token"), NOW).await.unwrap();
    assert_eq!(
        pages.shared_report("first", NOW).await.unwrap(),
        None,
        "replaced"
    );
    let shared = pages.shared_report("token", NOW).await.unwrap().unwrap();
    assert_eq!(
        (shared.audit_id.as_str(), shared.report),
        (id, measured().report)
    );
    let share = pages.shared(&mine.id, id, NOW).await.unwrap();
    assert_eq!(share, link("token"));
    assert_eq!(pages.shared(&theirs.id, id, NOW).await.unwrap(), None);
    let listed = SharedReport {
        audit_id: id.to_owned(),
        url: audit(&mine, "mine").order.url,
        share: link("token").unwrap(),
        shared_at: NOW,
    };
    assert_eq!(pages.shares(&mine.id, NOW, 10).await.unwrap(), [listed]);
    assert_eq!(pages.shares(&mine.id, NOW, 0).await.unwrap(), []);
    assert_eq!(pages.shares(&theirs.id, NOW, 10).await.unwrap(), []);

    pages.share(&mine.id, id, None, NOW).await.unwrap();
    assert_eq!(pages.shares(&mine.id, NOW, 10).await.unwrap(), []);
    assert_eq!(
        pages.shared_report("token", NOW).await.unwrap(),
        None,
        "not shared"
    );
    assert_eq!(pages.shared(&mine.id, id, NOW).await.unwrap(), None);
}

fn link(token: &str) -> Option<Share> {
    Some(Share {
        token: token.to_owned(),
        expires_at: None,
    })
}

pub async fn an_expired_link_is_invalid_and_deleted(backend: &dyn Backend) {
    let (store, pages) = backend.open_pages().await;
    let mine = accepted(&*store, &["mine"]).await;
    let held = lease(&*store, NOW).await.unwrap();
    store.finish(&held, measured()).await.unwrap();
    let id = held.audit_id.as_str();
    let day = Duration::from_secs(24 * 60 * 60);
    let (end, before) = (later(day), later(day - Duration::from_millis(1)));
    let share = Some(Share {
        token: "token".to_owned(),
        expires_at: Some(end),
    });
    pages.share(&mine.id, id, share.clone(), NOW).await.unwrap();
    let opens = async |now| pages.shared_report("token", now).await.unwrap().is_some();
    assert!(opens(before).await);
    assert_eq!(pages.shared(&mine.id, id, before).await.unwrap(), share);
    assert_eq!(pages.shares(&mine.id, before, 9).await.unwrap().len(), 1);
    assert_eq!(pages.shares(&mine.id, end, 9).await.unwrap(), []);
    assert!(!opens(end).await);
    assert_eq!(pages.shared(&mine.id, id, end).await.unwrap(), None);

    let purge = async |now| store.purge(Retention::default(), now, 10).await.unwrap();
    purge(before).await;
    assert!(opens(before).await);
    purge(end).await;
    assert!(!opens(before).await, "deleted, not only expired");
    pages.share(&mine.id, id, link("again"), end).await.unwrap();
    let shared = pages.shared_report("again", later(day * 9999)).await;
    assert!(shared.unwrap().is_some(), "without expiry");
}

pub async fn the_number_of_sessions_per_key_is_limited_and_the_oldest_end_first(
    backend: &dyn Backend,
) {
    let (store, pages) = backend.open_pages().await;
    let account = account(&*store, 1).await;
    let keys = [Key::generate().unwrap(), Key::generate().unwrap()];
    for key in &keys {
        let add = store.add_key(&account.id, key.id(), key.digest(), None, NOW);
        add.await.unwrap();
    }
    let second = Duration::from_secs(1);
    for (n, secret) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let end = later(second * (100 + u32::try_from(n).unwrap()));
        let open = pages.open_session(session_digest(secret), keys[0].id(), end, 3, NOW);
        open.await.unwrap();
        let other = session_digest(&format!("other {secret}"));
        let open = pages.open_session(other, keys[1].id(), end, 9, NOW);
        open.await.unwrap();
    }
    let is_open = async |secret: &str| {
        let record = pages.session(session_digest(secret), NOW).await;
        record.unwrap().is_some()
    };
    for (secret, open) in [
        ("a", false),
        ("b", false),
        ("c", true),
        ("d", true),
        ("e", true),
    ] {
        assert_eq!(is_open(secret).await, open, "{secret}");
        assert!(is_open(&format!("other {secret}")).await);
    }
    assert_eq!(pages.close_sessions(Some(keys[0].id())).await.unwrap(), 3);
    assert_eq!(pages.close_sessions(Some(keys[0].id())).await.unwrap(), 0);
    assert!(!is_open("e").await && is_open("other e").await);
    assert_eq!(pages.close_sessions(None).await.unwrap(), 5);
    assert!(!is_open("other e").await);
}

pub async fn summaries_of_completed_audits_are_found_by_their_ids(backend: &dyn Backend) {
    let (store, pages) = backend.open_pages().await;
    let mine = accepted(&*store, &["a"]).await;
    accepted(&*store, &["b"]).await;
    let ids = ["report-of-a", "report-of-b", "unknown"].map(str::to_owned);
    let summaries = || pages.summaries(&mine.id, ids.to_vec());
    assert_eq!(summaries().await.unwrap(), []);
    for _ in 0..2 {
        let held = lease(&*store, NOW).await.unwrap();
        store.finish(&held, measured()).await.unwrap();
    }
    let summary = measured().summary.unwrap().summary;
    assert_eq!(
        summaries().await.unwrap(),
        [("report-of-a".to_owned(), summary)],
        "not those of other accounts"
    );
    assert_eq!(pages.summaries(&mine.id, Vec::new()).await.unwrap(), []);
}

pub async fn recent_audits_of_the_account_are_listed_newest_first(backend: &dyn Backend) {
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
        "not published before it is completed"
    );
    assert_eq!(all[2].audit_id.as_deref(), Some("report-of-a"));
    let summary = measured().summary.map(|summary| summary.summary);
    assert_eq!(all[2].summary, summary);
    assert_eq!(all[0].summary, None);
    assert_eq!(pages.recent(&mine.id, None, 2).await.unwrap().len(), 2);

    let url = audit(&mine, "b").order.url;
    let of_one = pages.recent(&mine.id, Some(&url), 10).await.unwrap();
    assert_eq!(of_one.len(), 1);
    assert_eq!(pages.recent(&theirs.id, Some(&url), 10).await.unwrap(), []);
}
