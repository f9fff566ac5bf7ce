use plumbline_seam::Replay;
use plumbline_store::{Acceptance, Account, Submission};

use super::{Backend, account, audit};

pub async fn replays_of_a_recording_are_found_newest_first(backend: &dyn Backend) {
    let (store, pages) = backend.open_pages().await;
    let mine = account(&*store, 10).await;
    let theirs = account(&*store, 10).await;
    let replaying = |account: &Account, name: &str| {
        let mut audit = audit(account, name);
        audit.order.options.replay = Some(Box::new(Replay {
            recording: "report-of-recorded".to_owned(),
            attempt: 1,
            changes: Vec::new(),
            left_out: Vec::new(),
            subject: None,
            repeatable: false,
        }));
        audit
    };
    for account in [&mine, &theirs] {
        let audits = ["first", "second"].map(|name| {
            let name = format!("{name} of {}", account.id);
            replaying(account, &name)
        });
        for audit in audits {
            let submission = Submission::single(audit);
            assert_eq!(
                store.submit(submission).await.unwrap(),
                Acceptance::Accepted
            );
        }
    }
    let of = |account: &Account, recording: &str, limit: u32| {
        let (store, id, recording) = (store.clone(), account.id.clone(), recording.to_owned());
        async move {
            let replays = store.replays(&id, &recording, limit).await.unwrap();
            let names = replays.into_iter().map(|replay| replay.audit.tracking_id);
            names.collect::<Vec<_>>()
        }
    };
    let expected = ["second", "first"].map(|name| format!("{name} of {}", mine.id));
    assert_eq!(of(&mine, "report-of-recorded", 10).await, expected);
    assert_eq!(of(&mine, "report-of-recorded", 1).await, expected[..1]);
    assert!(of(&mine, "report-of-other", 10).await.is_empty());
    assert_eq!(of(&theirs, "report-of-recorded", 10).await.len(), 2);

    // They are recent audits, but not part of the history of their page.
    let url = audit(&mine, expected[0].as_str()).order.url;
    assert_eq!(pages.recent(&mine.id, None, 10).await.unwrap().len(), 2);
    assert!(
        pages
            .recent(&mine.id, Some(&url), 10)
            .await
            .unwrap()
            .is_empty()
    );
}
