use std::time::Duration;

use plumbline_store::{
    Account, AuditEntry, AuditFilter, AuditOptions, AuditState, AuditSummary, Cookie,
    FinishedAudit, ListCursor, NewAudit, ReleaseReason, ReturnReason, Store, Submission, Timestamp,
    UnsummarizedAudit, VisitOptions, VisitState,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{Backend, NEVER, NOW, accepted, account, audit, balance, failed, lease, measured};

fn at(account: &Account, name: &str, ms: i64) -> NewAudit {
    NewAudit {
        accepted_at: Timestamp(NOW.0 + ms),
        ..audit(account, name)
    }
}

fn names(audits: &[AuditEntry]) -> Vec<&str> {
    audits
        .iter()
        .map(|audit| audit.tracking_id.as_str())
        .collect()
}

async fn all(store: &dyn Store, account: &Account, filter: AuditFilter, limit: u32) -> Vec<String> {
    let (mut entries, mut after) = (Vec::new(), None);
    loop {
        let page = store
            .audits(&account.id, filter.clone(), after, limit)
            .await
            .unwrap();
        assert!(page.audits.len() <= limit as usize);
        entries.extend(names(&page.audits).into_iter().map(str::to_owned));
        match page.next {
            Some(next) => {
                assert!(
                    after.is_none_or(|before| next < before),
                    "the cursor must advance"
                );
                after = Some(next);
            }
            None => return entries,
        }
    }
}

pub async fn audits_of_the_account_are_listed_newest_first(backend: &dyn Backend) {
    let store = backend.open().await;
    let mine = account(&*store, 10).await;
    let theirs = account(&*store, 10).await;
    for (n, owner) in [&mine, &theirs, &mine, &theirs, &mine].iter().enumerate() {
        store
            .submit(Submission::single(at(owner, &n.to_string(), n as i64)))
            .await
            .unwrap();
    }
    let page = store
        .audits(&mine.id, AuditFilter::default(), None, 100)
        .await
        .unwrap();
    assert_eq!(names(&page.audits), ["4", "2", "0"]);
    assert_eq!(page.next, None);
    let newest = &page.audits[0];
    assert_eq!(newest.order, audit(&mine, "4").order);
    assert_eq!(newest.accepted_at, Timestamp(NOW.0 + 4));
    assert_eq!((newest.number, newest.runs), (3, 1));
    assert_eq!((newest.finished_at, &newest.error), (None, &None));
    assert_eq!(newest.state, AuditState::NotStarted);
    let nobody = store
        .audits("nobody", AuditFilter::default(), None, 100)
        .await;
    assert_eq!(nobody.unwrap().audits, []);
}

pub async fn completed_audits_are_listed_with_their_figures(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["measured", "failed", "waiting"]).await;
    for finished in [measured(), failed()] {
        let held = lease(&*store, NOW).await.unwrap();
        store.finish(&held, finished).await.unwrap();
    }
    let page = store
        .audits(&account.id, AuditFilter::default(), None, 100)
        .await
        .unwrap();
    assert_eq!(names(&page.audits), ["waiting", "failed", "measured"]);
    let figures: Vec<_> = page.audits.iter().map(|audit| &audit.lab_data).collect();
    let summary = measured().summary.unwrap();
    assert_eq!(figures, [&None, &None, &summary.lab_data]);
    let final_urls: Vec<_> = page.audits.iter().map(|audit| &audit.final_url).collect();
    assert_eq!(final_urls, [&None, &None, &summary.final_url]);
    let status = store.status(&account.id, "measured").await.unwrap();
    assert_eq!(status.unwrap().final_url, summary.final_url);
}

pub async fn an_audit_is_found_by_its_account_only(backend: &dyn Backend) {
    let store = backend.open().await;
    let mine = accepted(&*store, &["mine"]).await;
    let theirs = account(&*store, 1).await;
    let entry = store.audit(&mine.id, "mine").await.unwrap().unwrap();
    assert_eq!(entry.order, audit(&mine, "mine").order);
    assert_eq!(entry.state, AuditState::NotStarted);
    assert_eq!(store.audit(&theirs.id, "mine").await.unwrap(), None);
    assert_eq!(store.audit(&mine.id, "unknown").await.unwrap(), None);
}

pub async fn labels_are_stored_and_found(backend: &dyn Backend) {
    let (store, pages) = backend.open_pages().await;
    let mine = account(&*store, 9).await;
    let labelled = |name: &str, labels: &[&str]| NewAudit {
        options: AuditOptions {
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            ..AuditOptions::default()
        },
        ..audit(&mine, name)
    };
    let batch = Submission {
        batch_id: Some("batch".to_owned()),
        audits: vec![
            labelled("a", &["red", "blue \"quoted\""]),
            labelled("b", &["red"]),
        ],
        ..Submission::single(audit(&mine, "none"))
    };
    store.submit(batch).await.unwrap();
    for (name, labels) in [("c", &[][..]), ("d", &["red"])] {
        let submission = Submission::single(labelled(name, labels));
        store.submit(submission).await.unwrap();
    }
    let theirs = accepted(&*store, &["theirs"]).await;
    let find = async |account: &Account, filter: AuditFilter| {
        let page = store.audits(&account.id, filter, None, 2).await.unwrap();
        let names = names(&page.audits).join(" ");
        (names, page.next.is_some())
    };
    let label = |label: &str| AuditFilter {
        label: Some(label.to_owned()),
        ..AuditFilter::default()
    };
    assert_eq!(find(&mine, label("red")).await, ("d b".to_owned(), true));
    let page = store.audits(&mine.id, label("red"), None, 2).await.unwrap();
    let rest = store.audits(&mine.id, label("red"), page.next, 2).await;
    assert_eq!(names(&rest.unwrap().audits), ["a"]);
    let quoted = label("blue \"quoted\"");
    assert_eq!(find(&mine, quoted).await, ("a".to_owned(), false));
    assert_eq!(find(&mine, label("Red")).await, (String::new(), false));
    assert_eq!(find(&theirs, label("red")).await, (String::new(), false));
    let with_url = AuditFilter {
        url_part: Some("//A.EX".to_owned()),
        ..label("red")
    };
    assert_eq!(find(&mine, with_url).await, ("a".to_owned(), false));
    let recent = pages.recent(&mine.id, None, 10).await.unwrap();
    let labels = |name: &str| {
        let mut audits = recent.iter().filter(|audit| audit.tracking_id == name);
        audits.next().unwrap().labels.as_slice()
    };
    assert_eq!(labels("a"), ["red", "blue \"quoted\""]);
    assert_eq!(labels("c"), [""; 0]);
    let entry = store.audit(&mine.id, "a").await.unwrap().unwrap();
    assert_eq!(entry.labels, ["red", "blue \"quoted\""]);
    let status = store.status(&mine.id, "c").await.unwrap().unwrap();
    assert_eq!(status.labels, [""; 0]);
    // Deleting an audit deletes its labels.
    let id = audit(&mine, "d").audit_id;
    let held = lease(&*store, NOW).await.unwrap();
    store.finish(&held, measured()).await.unwrap();
    while let Some(held) = lease(&*store, NOW).await {
        store.finish(&held, measured()).await.unwrap();
    }
    assert!(store.delete_audit(&mine.id, &id).await.unwrap());
    assert_eq!(find(&mine, label("red")).await, ("b a".to_owned(), false));
}

pub async fn the_options_of_a_visit_are_stored(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 2).await;
    let options = VisitOptions {
        allow_error_status: true,
        ..VisitOptions::default()
    };
    let mut with_options = audit(&account, "with");
    with_options.order.options = options.clone();
    for audit in [with_options, audit(&account, "without")] {
        store.submit(Submission::single(audit)).await.unwrap();
    }
    for (name, expected) in [("with", options), ("without", VisitOptions::default())] {
        let lease = lease(&*store, NOW).await.unwrap();
        assert_eq!(lease.tracking_id, name);
        assert_eq!(lease.order.options, expected);
    }
    let page = store
        .audits(&account.id, AuditFilter::default(), None, 10)
        .await
        .unwrap();
    let listed = page.audits.iter().map(|audit| &audit.order.options);
    let allows: Vec<_> = listed.map(|options| options.allow_error_status).collect();
    assert_eq!(allows, [false, true]);
}

pub async fn the_values_of_a_state_are_erased_when_the_audit_has_ended(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 2).await;
    let state = VisitState {
        cookies: vec![Cookie {
            name: "session".to_owned(),
            value: "secret".into(),
            ..Cookie::default()
        }],
        ..VisitState::default()
    };
    let options = VisitOptions {
        state: Some(Box::new(state)),
        ..VisitOptions::default()
    };
    let mut with_state = audit(&account, "with");
    with_state.order.options = options.clone();
    store.submit(Submission::single(with_state)).await.unwrap();
    // Also a later attempt needs the values.
    let first = lease(&*store, NOW).await.unwrap();
    assert_eq!(first.order.options, options);
    let fault = ReleaseReason::Returned(ReturnReason::Fault);
    store.release(&first, fault).await.unwrap();
    let held = lease(&*store, NOW).await.unwrap();
    assert_eq!(held.order.options, options);
    store.finish(&held, measured()).await.unwrap();
    let page = store
        .audits(&account.id, AuditFilter::default(), None, 10)
        .await
        .unwrap();
    let ended = &page.audits[0].order.options;
    assert_eq!(*ended, options.without_values());
    let cookie = &ended.state.as_ref().unwrap().cookies[0];
    assert_eq!(
        (cookie.name.as_str(), cookie.value.expose()),
        ("session", "")
    );
}

pub async fn a_missing_summary_is_found_and_added_once(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["old", "new", "waiting"]).await;
    let old = FinishedAudit {
        summary: None,
        ..measured()
    };
    for finished in [old, measured()] {
        let held = lease(&*store, NOW).await.unwrap();
        store.finish(&held, finished).await.unwrap();
    }
    let missing = store.unsummarized(10).await.unwrap();
    let expected = UnsummarizedAudit {
        tracking_id: "old".to_owned(),
        report: measured().report,
    };
    assert_eq!(missing, [expected]);
    assert_eq!(store.unsummarized(0).await.unwrap(), []);

    let added = AuditSummary {
        lab_data: Some("{}".to_owned()),
        summary: "{}".to_owned(),
        final_url: None,
    };
    // Of an audit that is not completed, and of one that has a summary, nothing changes.
    for tracking_id in ["old", "new", "waiting", "unknown"] {
        let summary = added.clone();
        store.store_summary(tracking_id, summary).await.unwrap();
    }
    assert_eq!(store.unsummarized(10).await.unwrap(), []);
    let page = store
        .audits(&account.id, AuditFilter::default(), None, 100)
        .await
        .unwrap();
    let figures: Vec<_> = page.audits.iter().map(|audit| &audit.lab_data).collect();
    let listed = measured().summary.unwrap().lab_data;
    assert_eq!(figures, [&None, &listed, &added.lab_data]);
}

pub async fn a_page_ends_where_the_next_begins(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 10).await;
    for n in 0..7 {
        // Several have the same time: the order of acceptance decides.
        store
            .submit(Submission::single(at(&account, &n.to_string(), n / 3)))
            .await
            .unwrap();
    }
    for limit in [1, 2, 3, 6, 7, 8] {
        let entries = all(&*store, &account, AuditFilter::default(), limit).await;
        assert_eq!(
            entries,
            ["6", "5", "4", "3", "2", "1", "0"],
            "limit {limit}"
        );
    }
}

pub async fn pages_are_stable_while_audits_are_added_and_deleted(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 20).await;
    for n in 0..6 {
        store
            .submit(Submission::single(at(&account, &n.to_string(), n)))
            .await
            .unwrap();
    }
    let first = store
        .audits(&account.id, AuditFilter::default(), None, 3)
        .await
        .unwrap();
    assert_eq!(names(&first.audits), ["5", "4", "3"]);
    store
        .submit(Submission::single(at(&account, "new", 9)))
        .await
        .unwrap();
    // The last audit of the page, and one of the next page, are deleted meanwhile.
    for _ in 0..4 {
        let held = lease(&*store, NOW).await.unwrap();
        store.finish(&held, measured()).await.unwrap();
    }
    for gone in ["3", "1"] {
        let id = audit(&account, gone).audit_id;
        assert!(store.delete_audit(&account.id, &id).await.unwrap());
    }
    let second = store
        .audits(&account.id, AuditFilter::default(), first.next, 3)
        .await
        .unwrap();
    assert_eq!(names(&second.audits), ["2", "0"]);
    assert_eq!(second.next, None);
}

pub async fn any_filter_lists_exactly_the_matching_audits(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 1000).await;
    let mut runner = TestRunner::default();
    let letter = || prop::sample::select(vec!["a", "b"]);
    let some_letter = || prop::option::weighted(0.3, letter());
    let audits = prop::collection::vec(
        (letter(), letter(), letter(), letter(), letter(), 0..20_i64),
        60,
    )
    .new_tree(&mut runner)
    .unwrap()
    .current();
    for (n, (url, device, network, location, label, ms)) in audits.into_iter().enumerate() {
        let mut audit = at(&account, &n.to_string(), ms);
        audit.order.url = url.to_owned();
        audit.order.device = device.to_owned();
        audit.order.network = network.to_owned();
        audit.order.location = location.to_owned();
        audit.options.labels = vec![label.to_owned()];
        store.submit(Submission::single(audit)).await.unwrap();
    }
    for n in 0..30 {
        let held = lease(&*store, NOW).await.unwrap();
        if n % 3 > 0 {
            let end = if n % 3 == 1 { measured() } else { failed() };
            store.finish(&held, end).await.unwrap();
        }
    }
    let every = store
        .audits(&account.id, AuditFilter::default(), None, 100)
        .await
        .unwrap()
        .audits;
    assert_eq!(every.len(), 60);
    let state = prop::sample::select(vec![
        AuditState::NotStarted,
        AuditState::InProgress,
        AuditState::Completed,
    ]);
    let filters = (
        (some_letter(), some_letter(), some_letter(), some_letter()),
        some_letter(),
        prop::option::weighted(0.3, state),
        prop::option::weighted(0.3, 0..20_i64),
        prop::option::weighted(0.3, 0..20_i64),
        1..10_u32,
    );
    for _ in 0..100 {
        let ((url, device, network, location), label, state, from, to, limit) =
            filters.new_tree(&mut runner).unwrap().current();
        let owned = |letter: Option<&str>| letter.map(str::to_owned);
        let filter = AuditFilter {
            url: owned(url),
            device: owned(device),
            network: owned(network),
            location: owned(location),
            state,
            label: owned(label),
            url_part: None,
            from: from.map(|ms| Timestamp(NOW.0 + ms)),
            to: to.map(|ms| Timestamp(NOW.0 + ms)),
        };
        let fitting: Vec<_> = every.iter().filter(|audit| filter.matches(audit)).collect();
        let entries = all(&*store, &account, filter.clone(), limit).await;
        let expected: Vec<_> = fitting.iter().map(|a| a.tracking_id.clone()).collect();
        assert_eq!(entries, expected, "{filter:?}");
    }
}

/// A page must not examine all audits, and the list must not end early.
pub async fn a_search_with_few_matches_comes_to_its_end(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = account(&*store, 10_000).await;
    let audits = |n: i64| {
        let mut audit = at(&account, &n.to_string(), n);
        audit.order.url = "a".to_owned();
        audit.order.device = if n == 0 { "rare" } else { "b" }.to_owned();
        audit
    };
    for from in (0..4_500).step_by(500) {
        let submission = Submission {
            audits: (from..from + 500).map(audits).collect(),
            ..Submission::single(audits(0))
        };
        store.submit(submission).await.unwrap();
    }
    let filter = AuditFilter {
        url: Some("a".to_owned()),
        device: Some("rare".to_owned()),
        ..AuditFilter::default()
    };
    assert_eq!(all(&*store, &account, filter, 5).await, ["0"]);
}

pub async fn a_cursor_gives_no_access_to_other_accounts(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["theirs"]).await;
    let mine = account(&*store, 1).await;
    let anywhere = ListCursor {
        accepted_at: Timestamp(i64::MAX),
        number: i64::MAX,
    };
    let page = store.audits(&mine.id, AuditFilter::default(), Some(anywhere), 10);
    assert_eq!(page.await.unwrap().audits, []);
}

pub async fn a_deleted_audit_is_not_refunded(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["done", "waiting"]).await;
    let held = lease(&*store, NOW).await.unwrap();
    store.finish(&held, measured()).await.unwrap();
    let stranger = super::account(&*store, 1).await;
    for (owner, id) in [
        (&stranger.id, held.audit_id.as_str()),
        (&account.id, "done"),
        (&account.id, "report-of-waiting"),
        (&account.id, "unknown"),
    ] {
        assert!(!store.delete_audit(owner, id).await.unwrap(), "{id}");
    }
    assert!(
        store
            .delete_audit(&account.id, &held.audit_id)
            .await
            .unwrap()
    );
    assert!(
        !store
            .delete_audit(&account.id, &held.audit_id)
            .await
            .unwrap()
    );
    let report = store.report(&account.id, &held.audit_id).await.unwrap();
    assert_eq!(report, None);
    assert_eq!(store.status(&account.id, "done").await.unwrap(), None);
    assert_eq!(balance(backend, &*store, &account).await, 0);
    assert_eq!(
        store.finish(&held, measured()).await.unwrap(),
        plumbline_store::LeaseState::Lost
    );
    // The next audit does not inherit anything from the deleted one.
    store.add_credits(&account.id, 1, NOW).await.unwrap();
    store
        .submit(Submission::single(audit(&account, "next")))
        .await
        .unwrap();
    assert_eq!(balance(backend, &*store, &account).await, 0);
}

pub async fn waiting_for_completion_ends_with_the_audit(backend: &dyn Backend) {
    let store = backend.open().await;
    let account = accepted(&*store, &["a", "b"]).await;
    let (a, b) = (
        lease(&*store, NOW).await.unwrap(),
        lease(&*store, NOW).await.unwrap(),
    );
    let waiting = {
        let (store, account_id) = (store.clone(), account.id.clone());
        tokio::spawn(async move {
            store
                .wait_for_completion(&account_id, "a", NEVER)
                .await
                .unwrap()
        })
    };
    // The end of another audit does not matter.
    store.finish(&b, measured()).await.unwrap();
    let at_once = store
        .wait_for_completion(&account.id, "b", NEVER)
        .await
        .unwrap();
    assert_eq!(at_once.unwrap().state, AuditState::Completed);
    let too_short = store
        .wait_for_completion(&account.id, "a", Duration::from_millis(5))
        .await
        .unwrap();
    assert_eq!(too_short.unwrap().state, AuditState::InProgress);
    store.finish(&a, measured()).await.unwrap();
    let woken = waiting.await.unwrap().unwrap();
    assert_eq!(woken.state, AuditState::Completed);
    assert_eq!(
        store
            .wait_for_completion(&account.id, "c", NEVER)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        store
            .wait_for_completion("nobody", "a", NEVER)
            .await
            .unwrap(),
        None
    );
}
