use std::time::Duration;

use plumbline_store::{
    Acceptance, AuditFilter, IdempotencyRecord, NewAudit, PurgeResult, Retention, Submission,
    Timestamp,
};

use super::cancelling::cancel;
use super::{Backend, NOW, accepted, account, audit, balance, lease, measured};

fn ids(purged: &PurgeResult) -> Vec<&str> {
    let audits = purged.audits.iter();
    audits.map(|audit| audit.audit_id.as_str()).collect()
}

pub async fn audits_beyond_their_retention_are_deleted(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 10).await;
    for (name, ms) in [("old", 0), ("old-too", 1), ("running", 2), ("new", 100)] {
        let audit = NewAudit {
            accepted_at: Timestamp(NOW.0 + ms),
            ..audit(&account, name)
        };
        store.submit(Submission::single(audit)).await.unwrap();
    }
    let mut leases = Vec::new();
    for _ in 0..4 {
        leases.push(lease(&*store, NOW).await.unwrap());
    }
    for done in [0, 1, 3] {
        store.finish(&leases[done], measured()).await.unwrap();
    }
    let retention = Retention {
        accepted_before: Some(Timestamp(NOW.0 + 50)),
        keep_per_account: None,
    };
    let first = store.purge(retention, NOW, 1).await.unwrap();
    assert_eq!(ids(&first), ["report-of-old"]);
    let second = store.purge(retention, NOW, 10).await.unwrap();
    assert_eq!(ids(&second), ["report-of-old-too"]);
    let third = store.purge(retention, NOW, 10).await.unwrap();
    assert_eq!(ids(&third), [""; 0]);
    let left = store
        .audits(&account.id, AuditFilter::default(), None, 10)
        .await
        .unwrap();
    let left: Vec<_> = left.audits.iter().map(|a| a.tracking_id.as_str()).collect();
    assert_eq!(left, ["new", "running"]);
    assert_eq!(balance(backend, &*store, &account).await, 6);
}

pub async fn the_number_of_audits_kept_per_account_is_limited(backend: &dyn Backend) {
    let store = backend.open().await;
    let many = accepted(&*store, &["a", "b", "c", "d"]).await;
    let few = accepted(&*store, &["e", "f"]).await;
    for _ in 0..6 {
        let held = lease(&*store, NOW).await.unwrap();
        store.finish(&held, measured()).await.unwrap();
    }
    let retention = Retention {
        accepted_before: None,
        keep_per_account: Some(2),
    };
    let purged = store.purge(retention, NOW, 100).await.unwrap();
    let mut purged = ids(&purged);
    purged.sort_unstable();
    assert_eq!(purged, ["report-of-a", "report-of-b"]);
    assert_eq!(
        ids(&store.purge(retention, NOW, 100).await.unwrap()),
        [""; 0]
    );
    for (account, name, is_there) in [(&many, "a", false), (&many, "c", true), (&few, "e", true)] {
        let status = store.status(&account.id, name).await.unwrap();
        assert_eq!(status.is_some(), is_there, "{name}");
    }
    let none = Retention::default();
    assert_eq!(ids(&store.purge(none, NOW, 100).await.unwrap()), [""; 0]);
}

pub async fn a_batch_without_audits_is_deleted(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 10).await;
    for (batch, names) in [("emptied", ["a", "b"]), ("kept", ["c", "d"])] {
        let submission = Submission {
            batch_id: Some(batch.to_owned()),
            audits: names.map(|name| audit(&account, name)).into(),
            ..Submission::single(audit(&account, "none"))
        };
        store.submit(submission).await.unwrap();
    }
    cancel(&*store, &account, &["a", "b", "c"]).await;
    for name in ["a", "b", "c"] {
        let id = format!("report-of-{name}");
        assert!(store.delete_audit(&account.id, &id).await.unwrap());
    }
    let purged = store.purge(Retention::default(), NOW, 10).await.unwrap();
    assert_eq!(ids(&purged), [""; 0]);
    assert_eq!(store.batch(&account.id, "emptied").await.unwrap(), None);
    let kept = store.batch(&account.id, "kept").await.unwrap().unwrap();
    assert_eq!(kept.audits.len(), 1);
}

pub async fn purging_an_idempotency_record_frees_its_key(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 5).await;
    let submission = |name: &str| Submission {
        idempotency: Some(IdempotencyRecord {
            key: "key".to_owned(),
            digest: [0; 32],
            reply: name.to_owned(),
            until: NOW.plus(Duration::from_secs(1)),
        }),
        ..Submission::single(audit(&account, name))
    };
    store.submit(submission("a")).await.unwrap();
    let much_later = NOW.plus(Duration::from_secs(60));
    store
        .purge(Retention::default(), much_later, 10)
        .await
        .unwrap();
    let again = store.submit(submission("b")).await.unwrap();
    assert_eq!(again, Acceptance::Accepted);
}

pub async fn operators_see_accounts_and_the_queue(backend: &dyn Backend) {
    let store = backend.open().await;
    assert_eq!(store.waiting_since().await.unwrap(), None);
    let account = account(&*store, 9).await;
    for (name, ms) in [("a", 0), ("b", 5), ("c", 7)] {
        let audit = NewAudit {
            accepted_at: Timestamp(NOW.0 + ms),
            ..audit(&account, name)
        };
        store.submit(Submission::single(audit)).await.unwrap();
    }
    let done = lease(&*store, NOW).await.unwrap();
    store.finish(&done, measured()).await.unwrap();
    let held = lease(&*store, NOW).await.unwrap();
    assert_eq!(
        store.waiting_since().await.unwrap(),
        Some(Timestamp(NOW.0 + 7))
    );
    let queue = store.queue(10).await.unwrap();
    let seen: Vec<_> = queue
        .iter()
        .map(|audit| (audit.tracking_id.as_str(), audit.lease.clone()))
        .collect();
    let lease = (held.owner.clone(), held.expires_at);
    assert_eq!(seen, [("b", Some(lease)), ("c", None)]);
    assert_eq!(store.queue(1).await.unwrap().len(), 1);
    let accounts = store.accounts().await.unwrap();
    assert_eq!(accounts.len(), 1);
    assert_eq!(accounts[0].account.credits, 6);
    let summary = &accounts[0];
    assert_eq!(
        (summary.keys, summary.audits, summary.unfinished),
        (0, 3, 2)
    );
    assert!(store.latency().writes.count > 0);
}
