use plumbline_store::{
    Acceptance, AgentProcess, AuditOptions, AuditState, FinishedAudit, Key, LeaseOwner, LeaseScope,
    LeaseState, NewAudit, Order, ProcessSet, Submission,
};

use super::{
    Backend, LEASE, NOW, accepted, account, audit, balance, failed, later, lease, measured,
};

pub async fn audits_and_reports_of_other_accounts_are_not_found(backend: &dyn Backend) {
    let store = backend.open().await;
    let mine = accepted(&*store, &["mine"]).await;
    let theirs = account(&*store, 1).await;
    let held = lease(&*store, NOW).await.unwrap();
    store.finish(&held, measured()).await.unwrap();
    assert!(store.status(&mine.id, "mine").await.unwrap().is_some());
    assert!(
        store
            .report(&mine.id, &held.audit_id)
            .await
            .unwrap()
            .is_some()
    );
    for stranger in [theirs.id.as_str(), "", "unknown"] {
        assert_eq!(store.status(stranger, "mine").await.unwrap(), None);
        assert_eq!(store.report(stranger, &held.audit_id).await.unwrap(), None);
    }
}

pub async fn all_data_survives_reopening(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["done", "failed", "running", "waiting"]).await;
    let key = Key::generate().unwrap();
    let add = store.add_key(&account.id, key.id(), key.digest(), None, NOW);
    add.await.unwrap();
    let done = lease(&*store, NOW).await.unwrap();
    store.finish(&done, measured()).await.unwrap();
    let fails = lease(&*store, NOW).await.unwrap();
    store.finish(&fails, failed()).await.unwrap();
    let running = lease(&*store, NOW).await.unwrap();
    drop(store);

    let store = backend.open().await;
    assert_eq!(balance(backend, &*store, &account).await, 1);
    let record = store.key(key.id()).await.unwrap().unwrap();
    assert_eq!((record.digest, record.credits), (key.digest(), 1));
    for (name, state, error) in [
        ("done", AuditState::Completed, None),
        ("failed", AuditState::Completed, failed().error),
        ("running", AuditState::InProgress, None),
        ("waiting", AuditState::NotStarted, None),
    ] {
        let status = store.status(&account.id, name).await.unwrap().unwrap();
        assert_eq!((status.state, status.error), (state, error), "{name}");
        assert_eq!(status.url, audit(&account, name).order.url);
    }
    let report = store.report(&account.id, &done.audit_id).await.unwrap();
    assert_eq!(report.unwrap().report, measured().report);
    // A lease is still held by the same attempt after a restart of the store.
    assert_eq!(
        store.heartbeat(&running, later(LEASE)).await.unwrap(),
        LeaseState::Held
    );
    let next = lease(&*store, NOW).await.unwrap();
    assert_eq!(next.tracking_id, "waiting");
}

pub async fn two_open_stores_see_each_others_writes(backend: &dyn Backend) {
    let one = backend.open().await;
    let two = backend.open().await;
    let account = account(&*one, 1).await;
    assert_eq!(two.add_credits(&account.id, 1, NOW).await.unwrap(), 2);
    for (store, name) in [(&one, "a"), (&two, "b")] {
        let acceptance = store
            .submit(Submission::single(audit(&account, name)))
            .await
            .unwrap();
        assert_eq!(acceptance, Acceptance::Accepted);
    }
    let refused = one
        .submit(Submission::single(audit(&account, "c")))
        .await
        .unwrap();
    assert_eq!(refused, Acceptance::InsufficientCredits);
    let a = lease(&*two, NOW).await.unwrap();
    assert_eq!(a.tracking_id, "a");
    assert_eq!(one.finish(&a, failed()).await.unwrap(), LeaseState::Held);
    let status = two.status(&account.id, "a").await.unwrap().unwrap();
    assert_eq!(status.state, AuditState::Completed);
    assert_eq!(balance(backend, &*two, &account).await, 1);
}

/// A backend may refuse text that it cannot store (PostgreSQL has no NUL in text), but then it
/// charges nothing. Accepted text is returned unchanged.
pub async fn unusual_text_is_stored_unchanged_or_refused(backend: &dyn Backend) {
    let store = backend.open().await;
    let long = "x".repeat(100_000);
    let odd = [
        "",
        " ",
        "\0",
        "a\0b",
        "%",
        "_",
        "'; DROP TABLE audits; --",
        "\"",
        "\\",
        "e\u{301}",
        "é",
        "\u{202e}gnp",
        "🦀👩‍👩‍👧",
        "\u{feff}",
        "\u{10ffff}",
        "\r\n\t",
        "?1",
        ":a",
        "$1",
        &long,
    ];
    let mut expected = 100;
    for (n, text) in odd.into_iter().enumerate() {
        let name = store.create_account(text, 0, NOW).await;
        if let Ok(account) = name {
            assert_eq!(account.name, text);
        }
        let account = account(&*store, expected).await;
        let order = Order {
            url: text.to_owned(),
            device: text.to_owned(),
            network: text.to_owned(),
            location: text.to_owned(),
            options: plumbline_store::VisitOptions::default(),
        };
        let audit = NewAudit {
            account_id: account.id.clone(),
            tracking_id: text.to_owned(),
            audit_id: format!("{n}{text}"),
            order: order.clone(),
            options: AuditOptions::default(),
            accepted_at: NOW,
        };
        if store.submit(Submission::single(audit)).await.is_err() {
            assert_eq!(
                balance(backend, &*store, &account).await,
                i64::from(expected)
            );
            continue;
        }
        assert_eq!(
            balance(backend, &*store, &account).await,
            i64::from(expected) - 1
        );
        let owner = LeaseOwner {
            process: AgentProcess::Other(text.to_owned()),
            slot: 0,
        };
        let held = store
            .lease(&LeaseScope::any_location(owner.clone()), NOW, LEASE)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((&held.tracking_id, &held.order), (&text.to_owned(), &order));
        let longer = AgentProcess::Other(format!("{text}\0"));
        let recovered = store.recover(&ProcessSet::Single(longer)).await;
        assert_eq!(recovered.unwrap(), 0);
        let recovered = store
            .recover(&ProcessSet::Single(owner.process.clone()))
            .await;
        assert_eq!(recovered.unwrap(), 1);
        let held = store
            .lease(&LeaseScope::any_location(owner.clone()), NOW, LEASE)
            .await
            .unwrap()
            .unwrap();
        let mut finished = failed();
        finished.report = text.to_owned();
        let error = finished.error.as_mut().unwrap();
        error.message = text.to_owned();
        let error = finished.error.clone();
        assert_eq!(
            store.finish(&held, finished).await.unwrap(),
            LeaseState::Held
        );
        let status = store.status(&account.id, text).await.unwrap().unwrap();
        assert_eq!(status.error, error);
        let report = store.report(&account.id, &held.audit_id).await.unwrap();
        assert_eq!(report.unwrap().report, text);
        expected -= 1;
    }
    for text in odd {
        assert_eq!(store.status(text, text).await.ok().flatten(), None);
        assert_eq!(store.report(text, text).await.ok().flatten(), None);
        assert_eq!(store.key(text).await.ok().flatten(), None);
        assert!(store.add_credits(text, 1, NOW).await.is_err());
        assert!(store.revoke_key(text, NOW).await.is_err());
    }
    store.ping().await.unwrap();
}

pub async fn a_large_report_is_returned_unchanged(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["a"]).await;
    let held = lease(&*store, NOW).await.unwrap();
    let finished = FinishedAudit {
        report: format!("[{}0]", "1234567890,".repeat(1_000_000)),
        ..measured()
    };
    store.finish(&held, finished.clone()).await.unwrap();
    let report = store.report(&account.id, &held.audit_id).await.unwrap();
    assert!(report.unwrap().report == finished.report);
}

pub async fn ping_succeeds(backend: &dyn Backend) {
    backend.open().await.ping().await.unwrap();
}
