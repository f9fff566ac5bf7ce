use std::time::Duration;

use plumbline_store::{
    Acceptance, Account, AuditOptions, AuditState, FailureLimit, FinishedAudit, IdempotencyRecord,
    NewAudit, Store, Submission, Timestamp,
};

use super::{Backend, NOW, account, audit, balance, failed, lease, measured};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn of_runs(account: &Account, name: &str, runs: u32) -> NewAudit {
    NewAudit {
        options: AuditOptions {
            runs,
            ..AuditOptions::default()
        },
        ..audit(account, name)
    }
}

fn idempotent(account: &Account, name: &str, key: &str, digest: u8) -> Submission {
    Submission {
        idempotency: Some(IdempotencyRecord {
            key: key.to_owned(),
            digest: [digest; 32],
            reply: format!("reply to {name}"),
            until: NOW.plus(DAY),
        }),
        ..Submission::single(audit(account, name))
    }
}

fn batch(account: &Account, id: &str, names: &[&str]) -> Submission {
    Submission {
        audits: names.iter().map(|name| audit(account, name)).collect(),
        batch_id: Some(id.to_owned()),
        ..Submission::single(audit(account, names[0]))
    }
}

async fn submitted(store: &dyn Store, submission: Submission) -> Acceptance {
    store.submit(submission).await.unwrap()
}

pub async fn an_audit_costs_as_many_credits_as_it_has_runs(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 8).await;
    let accepted = store
        .submit(Submission::single(of_runs(&account, "five", 5)))
        .await
        .unwrap();
    assert_eq!(accepted, Acceptance::Accepted);
    let refused = store
        .submit(Submission::single(of_runs(&account, "four", 4)))
        .await
        .unwrap();
    assert_eq!(refused, Acceptance::InsufficientCredits);
    assert_eq!(balance_of(&*store, &account).await, 3);
    let held = lease(&*store, NOW).await.unwrap();
    assert_eq!(held.runs, 5);
    store.finish(&held, failed()).await.unwrap();
    assert_eq!(balance_of(&*store, &account).await, 8);
    let ledger = backend.ledger(&account.id).await;
    let amounts: Vec<_> = ledger.iter().map(|entry| entry.amount).collect();
    assert_eq!(amounts, [8, -5, 5]);
}

async fn balance_of(store: &dyn Store, account: &Account) -> i64 {
    store.add_credits(&account.id, 0, NOW).await.unwrap()
}

pub async fn a_repeated_idempotency_key_returns_the_first_reply_and_costs_nothing(
    backend: &dyn Backend,
) {
    let store = backend.open().await;
    let account = account(&*store, 1).await;
    let first = submitted(&*store, idempotent(&account, "a", "key", 1)).await;
    assert_eq!(first, Acceptance::Accepted);
    // This also holds without credits.
    for name in ["b", "c"] {
        let again = submitted(&*store, idempotent(&account, name, "key", 1)).await;
        assert_eq!(again, Acceptance::Replayed("reply to a".to_owned()));
    }
    let other = submitted(&*store, idempotent(&account, "d", "key", 2)).await;
    assert_eq!(other, Acceptance::KeyReused);
    assert_eq!(balance(backend, &*store, &account).await, 0);
    drop(store);
    let store = backend.open().await;
    let again = submitted(&*store, idempotent(&account, "e", "key", 1)).await;
    assert_eq!(again, Acceptance::Replayed("reply to a".to_owned()));
}

pub async fn the_decision_on_an_idempotency_key_is_known_without_a_submission(
    backend: &dyn Backend,
) {
    let store = backend.open().await;
    let (one, two) = (account(&*store, 1).await, account(&*store, 1).await);
    submitted(&*store, idempotent(&one, "a", "key", 1)).await;
    let earlier = async |account: &Account, key: &str, digest: u8, now: Timestamp| {
        let record = idempotent(account, "b", key, digest).idempotency.unwrap();
        let earlier = store.earlier_acceptance(&account.id, &record, now);
        earlier.await.unwrap()
    };
    let replayed = Acceptance::Replayed("reply to a".to_owned());
    assert_eq!(earlier(&one, "key", 1, NOW).await, Some(replayed));
    let reused = Some(Acceptance::KeyReused);
    assert_eq!(earlier(&one, "key", 2, NOW).await, reused);
    assert_eq!(earlier(&one, "other", 1, NOW).await, None);
    assert_eq!(earlier(&two, "key", 1, NOW).await, None);
    assert_eq!(earlier(&one, "key", 1, NOW.plus(DAY)).await, None);
}

pub async fn a_refused_submission_does_not_store_its_idempotency_key(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 0).await;
    let poor = submitted(&*store, idempotent(&account, "a", "key", 1)).await;
    assert_eq!(poor, Acceptance::InsufficientCredits);
    store.add_credits(&account.id, 1, NOW).await.unwrap();
    let richer = submitted(&*store, idempotent(&account, "b", "key", 1)).await;
    assert_eq!(richer, Acceptance::Accepted);
}

pub async fn an_idempotency_key_belongs_to_one_account_and_expires(backend: &dyn Backend) {
    let store = backend.open().await;
    let (one, two) = (account(&*store, 5).await, account(&*store, 5).await);
    for account in [&one, &two] {
        let name = format!("of-{}", account.id);
        let acceptance = submitted(&*store, idempotent(account, &name, "key", 1)).await;
        assert_eq!(acceptance, Acceptance::Accepted);
    }
    let after = |name: &str, at: Timestamp| {
        let mut submission = idempotent(&one, name, "key", 2);
        submission.accepted_at = at;
        submission
    };
    let just_before = Timestamp(NOW.plus(DAY).0 - 1);
    let early = submitted(&*store, after("early", just_before)).await;
    assert_eq!(early, Acceptance::KeyReused);
    let late = submitted(&*store, after("late", NOW.plus(DAY))).await;
    assert_eq!(late, Acceptance::Accepted);
}

pub async fn of_concurrent_submissions_with_the_same_key_one_is_accepted(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 100).await;
    let tasks: Vec<_> = (0..50)
        .map(|n| {
            let (store, account) = (store.clone(), account.clone());
            let submission = idempotent(&account, &n.to_string(), "key", 1);
            tokio::spawn(async move { store.submit(submission).await.unwrap() })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    let accepted = answers.iter().filter(|a| **a == Acceptance::Accepted);
    assert_eq!(accepted.count(), 1);
    answers.retain(|answer| *answer != Acceptance::Accepted);
    assert!(answers.iter().all(|answer| answer == &answers[0]));
    assert_eq!(balance(backend, &*store, &account).await, 99);
}

pub async fn the_number_of_unfinished_audits_per_account_is_limited(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 10).await;
    let bounded = |name: &str| Submission {
        max_unfinished: Some(2),
        ..Submission::single(audit(&account, name))
    };
    for name in ["a", "b"] {
        assert_eq!(
            submitted(&*store, bounded(name)).await,
            Acceptance::Accepted
        );
    }
    let refused = submitted(&*store, bounded("c")).await;
    assert_eq!(refused, Acceptance::TooManyUnfinished);
    let held = lease(&*store, NOW).await.unwrap();
    let refused = submitted(&*store, bounded("c")).await;
    assert_eq!(refused, Acceptance::TooManyUnfinished);
    store.finish(&held, measured()).await.unwrap();
    assert_eq!(submitted(&*store, bounded("c")).await, Acceptance::Accepted);
    assert_eq!(balance(backend, &*store, &account).await, 7);
    let other = super::account(&*store, 1).await;
    let others = Submission {
        max_unfinished: Some(2),
        ..Submission::single(audit(&other, "d"))
    };
    assert_eq!(submitted(&*store, others).await, Acceptance::Accepted);
}

pub async fn a_batch_is_accepted_as_a_whole_or_not_at_all(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 4).await;
    let too_expensive = batch(&account, "expensive", &["a", "b", "c", "d", "e"]);
    let refused = submitted(&*store, too_expensive).await;
    assert_eq!(refused, Acceptance::InsufficientCredits);
    assert_eq!(store.batch(&account.id, "expensive").await.unwrap(), None);
    // The third audit has the id of the first: nothing is stored.
    let broken = store.submit(batch(&account, "broken", &["a", "b", "a"]));
    assert!(broken.await.is_err());
    assert_eq!(store.batch(&account.id, "broken").await.unwrap(), None);
    assert_eq!(balance(backend, &*store, &account).await, 4);

    let good = batch(&account, "good", &["a", "b", "c"]);
    assert_eq!(submitted(&*store, good).await, Acceptance::Accepted);
    assert_eq!(balance(backend, &*store, &account).await, 1);
    let held = lease(&*store, NOW).await.unwrap();
    store.finish(&held, failed()).await.unwrap();
    let stored = store.batch(&account.id, "good").await.unwrap().unwrap();
    assert_eq!((stored.accepted, stored.accepted_at), (3, NOW));
    let states: Vec<_> = stored
        .audits
        .iter()
        .map(|audit| (audit.tracking_id.as_str(), audit.state))
        .collect();
    assert_eq!(
        states,
        [
            ("a", AuditState::Completed),
            ("b", AuditState::NotStarted),
            ("c", AuditState::NotStarted)
        ]
    );
    let stranger = super::account(&*store, 0).await;
    assert_eq!(store.batch(&stranger.id, "good").await.unwrap(), None);
    store
        .delete_audit(&account.id, &held.audit_id)
        .await
        .unwrap();
    let stored = store.batch(&account.id, "good").await.unwrap().unwrap();
    assert_eq!((stored.accepted, stored.audits.len()), (3, 2));
}

/// A store may write concurrent submissions in one transaction.
pub async fn concurrent_submissions_are_decided_independently(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 21).await;
    store
        .submit(Submission::single(audit(&account, "taken")))
        .await
        .unwrap();
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            // Every second has an id that is in use; one of the others costs too much.
            let name = if n % 2 == 0 { "taken" } else { &n.to_string() };
            let runs = if n == 1 { 22 } else { 1 };
            let submission = Submission::single(of_runs(&account, name, runs));
            let store = store.clone();
            tokio::spawn(async move { store.submit(submission).await })
        })
        .collect();
    for (n, task) in tasks.into_iter().enumerate() {
        match (n, task.await.unwrap()) {
            (1, answer) => assert_eq!(answer.unwrap(), Acceptance::InsufficientCredits),
            (n, answer) if n % 2 == 0 => assert!(answer.is_err(), "{n} has another's id"),
            (_, answer) => assert_eq!(answer.unwrap(), Acceptance::Accepted),
        }
    }
    assert_eq!(balance(backend, &*store, &account).await, 1);
    assert_eq!(store.queue_depth().await.unwrap().waiting, 20);
}

pub async fn the_number_of_failures_within_an_hour_is_limited(backend: &dyn Backend) {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let store = backend.open().await;
    let account = account(&*store, 20).await;
    let minutes = |n: u32| NOW.plus(Duration::from_secs(60) * n);
    let start = async |name: &str, now: Timestamp| {
        let submission = Submission {
            failures: Some(FailureLimit {
                max_failures: 2,
                window: HOUR,
            }),
            accepted_at: now,
            ..Submission::single(audit(&account, name))
        };
        submitted(&*store, submission).await
    };
    let end = async |finished: FinishedAudit, at: Timestamp| {
        let held = lease(&*store, NOW).await.unwrap();
        let finished = FinishedAudit {
            finished_at: at,
            summary: None,
            ..finished
        };
        store.finish(&held, finished).await.unwrap();
        held.audit_id
    };
    for (name, at) in [("a", 0), ("b", 10), ("c", 20)] {
        assert_eq!(start(name, NOW).await, Acceptance::Accepted, "{name}");
        let finished = if name == "b" { measured() } else { failed() };
        end(finished, minutes(at)).await;
    }
    // Two audits have failed, at 0 and at 20 minutes.
    let refused = Acceptance::TooManyFailed(minutes(60));
    assert_eq!(start("d", minutes(20)).await, refused);
    assert_eq!(start("d", minutes(59)).await, refused);
    let mut both = batch(&account, "batch", &["d", "e"]);
    (both.failures, both.accepted_at) = (
        Some(FailureLimit {
            max_failures: 2,
            window: HOUR,
        }),
        minutes(59),
    );
    assert_eq!(submitted(&*store, both).await, refused);
    let other = super::account(&*store, 1).await;
    let others = Submission::single(audit(&other, "other"));
    assert_eq!(submitted(&*store, others).await, Acceptance::Accepted);
    end(measured(), minutes(59)).await;

    assert_eq!(start("d", minutes(60)).await, Acceptance::Accepted);
    let deleted = end(failed(), minutes(70)).await;
    // A failure still counts when its audit is deleted.
    assert!(store.delete_audit(&account.id, &deleted).await.unwrap());
    let refused = Acceptance::TooManyFailed(minutes(80));
    assert_eq!(start("f", minutes(70)).await, refused);
    assert_eq!(start("f", minutes(80)).await, Acceptance::Accepted);
}
