//! Tests of answers to consent dialogs.

use std::sync::Mutex;

use plumbline_browser::{VisitEvent, visit};
use serde_json::{Value, json};

use crate::TestBed;
use crate::site::Site;
use crate::state::plan_with;

/// Visits a page with a choice, and returns the manager whose dialog was answered.
async fn answer(bed: &TestBed, site: &Site, manager: &str, options: Value) -> Option<String> {
    let url = site.url(&format!("asks-for-consent.html?manager={manager}"));
    let answered = Mutex::new(Vec::new());
    let observe = |event: VisitEvent<'_>| {
        if let VisitEvent::ConsentEnded { manager } = event {
            answered.lock().unwrap().push(manager.map(str::to_owned));
        }
    };
    let plan = plan_with(url, options);
    visit(bed.browser().await, &plan, &observe).await.unwrap();
    let answered = answered.into_inner().unwrap();
    assert_eq!(answered.len(), 1, "{answered:?}");
    answered.into_iter().next().unwrap()
}

#[tokio::test]
async fn the_dialogs_of_known_managers_are_answered_before_the_visit() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    for (manager, name, consent, text) in [
        ("onetrust", "OneTrust", "accept", "Choice: accepted"),
        ("onetrust", "OneTrust", "reject", "Choice: rejected"),
        ("usercentrics", "Usercentrics", "reject", "Choice: rejected"),
        ("sourcepoint", "Sourcepoint", "accept", "Choice: accepted"),
    ] {
        let options = json!({ "consent": consent, "expect": { "text": text } });
        let answered = answer(&bed, &site, manager, options).await;
        assert_eq!(answered.as_deref(), Some(name));
    }
}

#[tokio::test]
async fn a_page_without_a_known_dialog_is_measured_as_it_is() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let options = json!({ "consent": "accept", "expect": { "text": "No choice" } });
    assert_eq!(answer(&bed, &site, "other", options).await, None);
}

#[tokio::test]
async fn steps_come_before_consent() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    // The choice of the steps is there when the page is opened for consent: no dialog is shown.
    let steps = json!([
        { "type": "click", "selector": "#onetrust-reject-all-handler" },
        { "type": "waitFor", "expression": "document.cookie.includes('rejected')" },
    ]);
    let options =
        json!({ "consent": "accept", "steps": steps, "expect": { "text": "Choice: rejected" } });
    assert_eq!(answer(&bed, &site, "onetrust", options).await, None);
}
