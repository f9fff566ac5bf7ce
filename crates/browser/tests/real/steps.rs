//! Tests of steps before a visit.

use std::sync::Mutex;

use plumbline_browser::{VisitError, VisitEvent, VisitPlan, visit};
use plumbline_bundle::{Bundle, Failure, FailureCode, StepRecord};
use serde_json::{Value, json};

use crate::site::Site;
use crate::state::{account_of, plan_with, transfer};
use crate::{TestBed, device};

/// Returns the result of a visit and the records of its steps.
async fn perform(bed: &TestBed, plan: &VisitPlan) -> (Result<Bundle, VisitError>, Vec<StepRecord>) {
    let records = Mutex::new(Vec::new());
    let observe = |event: VisitEvent<'_>| {
        if let VisitEvent::StepEnded(record) = event {
            records.lock().unwrap().push(record.clone());
        }
    };
    let result = visit(bed.browser().await, plan, &observe).await;
    (result, records.into_inner().unwrap())
}

async fn fail(bed: &TestBed, url: String, options: Value) -> (Failure, Vec<StepRecord>) {
    let (result, records) = perform(bed, &plan_with(url, options)).await;
    match result {
        Err(VisitError::Page(failure)) => (failure, records),
        other => panic!("{other:?}"),
    }
}

/// The login as a recording of the Recorder in Chrome DevTools.
fn recorded_login(site: &Site, password: &str) -> Value {
    json!({
        "title": "Sign in",
        "steps": [
            { "type": "setViewport", "width": 1280, "height": 720, "deviceScaleFactor": 1,
              "isMobile": false, "hasTouch": false, "isLandscape": false },
            { "type": "navigate", "url": site.url("sign-in"),
              "assertedEvents": [{ "type": "navigation", "url": "", "title": "Sign in" }] },
            { "type": "click", "target": "main", "selectors": [["aria/Name"], ["input[name=name]"]],
              "offsetX": 5, "offsetY": 5.5 },
            { "type": "change", "target": "main", "value": "ada", "selectors": [["aria/Name"]] },
            { "type": "keyDown", "target": "main", "key": "Tab" },
            { "type": "keyUp", "target": "main", "key": "Tab" },
            { "type": "change", "value": password, "selectors": [["#none"], ["xpath///*[@name=\"password\"]"]] },
            { "type": "click", "selectors": [["text/No such text"], ["aria/Sign in[role=\"button\"]"]],
              "assertedEvents": [{ "type": "navigation", "url": "", "title": "" }] },
        ],
    })
}

fn login(password: &str) -> Value {
    json!([
        { "type": "goto", "url": "/sign-in" },
        { "type": "fill", "selector": "[name=name]", "value": "ada" },
        { "type": "fill", "selector": "[name=password]", "value": password },
        { "type": "press", "key": "Enter" },
        { "type": "waitFor", "selector": "#account", "timeout": 3000 },
    ])
}

#[tokio::test]
async fn a_page_behind_a_login_form_is_measured_as_cold_as_any_other() {
    let (bed, site, other) = (TestBed::new(), Site::start().await, Site::start().await);
    let url = || account_of(&site, &other);
    let expect = json!({ "selector": "#account" });
    let seeded = json!({ "cookies": [{ "name": "session", "value": "the-right-session" }] });
    let plan = plan_with(url(), json!({ "state": seeded }));
    let (cold_bytes, _) = transfer(&bed.measure(&plan).await);
    for steps in [login("love & lace"), recorded_login(&site, "love & lace")] {
        let number = steps.as_array().map_or(8, Vec::len);
        let options = json!({ "steps": steps, "expect": expect });
        let (result, records) = perform(&bed, &plan_with(url(), options)).await;
        let bundle = result.unwrap();
        assert_eq!(bundle.final_url, url());
        let (bytes, from_cache) = transfer(&bundle);
        assert!(!from_cache, "{steps}");
        assert_eq!(bytes, cold_bytes, "{steps}");
        assert_eq!(records.len(), number, "{records:?}");
        let last = records.last().unwrap();
        assert_eq!(
            (last.url.as_str(), &last.error),
            (site.url("account").as_str(), &None)
        );
        for record in &records {
            let screenshot = record.screenshot.as_ref().unwrap();
            assert!(screenshot.data.starts_with("/9j/"), "{}", record.title);
            assert!(!format!("{record:?}").contains("lace"), "{}", record.title);
        }
        assert!(
            bundle.screenshot.unwrap().width_px < 1280,
            "the device's own viewport"
        );
        let log = String::from_utf8(bundle.log).unwrap();
        assert!(
            !log.contains("sign-in"),
            "requests of the steps are not recorded"
        );
    }
}

#[tokio::test]
async fn a_wrong_password_ends_with_the_step_that_failed_and_its_picture() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let options = json!({ "steps": login("secret-guess") });
    let (failure, records) = fail(&bed, site.url("account"), options).await;
    assert_eq!(failure.code, FailureCode::PreconditionFailed);
    let message = format!(
        "Step 5 of 5 (wait for `#account`) failed: no element matches `#account`. The page is at {}.",
        site.url("sign-in")
    );
    assert_eq!(failure.message, message);
    assert_eq!(records.len(), 5);
    let last = records.last().unwrap();
    assert_eq!(last.error.as_deref(), Some("no element matches `#account`"));
    assert!(last.screenshot.is_some());
    assert!(
        !site.paths().contains(&"account".to_owned()),
        "nothing was measured"
    );
}

#[tokio::test]
async fn every_kind_of_step_reaches_the_page_and_its_storage_carries_over() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let steps = json!([
        { "type": "emulateNetworkConditions", "download": 1_000_000, "upload": 1_000_000, "latency": 1 },
        { "type": "fill", "selector": "aria/Your name", "value": "Ada" },
        { "type": "press", "key": "Shift+A" },
        { "type": "fill", "selector": "pierce/#notes", "value": "one\ntwo" },
        { "type": "fill", "selector": "#day", "value": "2026-11-17" },
        { "type": "fill", "selector": "#terms", "value": "true" },
        { "type": "select", "selector": "#color", "value": "Green" },
        { "type": "hover", "selector": "#menu" },
        { "type": "click", "selector": "text/Menu item" },
        { "type": "scroll", "selector": "#box", "y": 120 },
        { "type": "scroll", "x": 0, "y": 400 },
        { "type": "assert", "expression": "scrollY > 300" },
        { "type": "doubleClick", "selector": "#double" },
        { "type": "click", "selectors": [["x-card", "button"]] },
        { "type": "click", "selectors": ["aria/Buy it"] },
        { "type": "click", "selectors": [["button"]], "frame": [0] },
        { "type": "click", "selectors": ["#inner"], "frame": [1] },
        { "type": "click", "selector": "#far", "button": "primary", "offsetX": 2, "offsetY": 2 },
        { "type": "click", "selector": "#route", "assertedEvents": [{ "type": "navigation" }] },
        { "type": "waitFor", "url": "*?view=2" },
        { "type": "waitForElement", "selectors": ["li.row"], "operator": "==", "count": 2, "visible": true,
          "attributes": { "class": "row" }, "properties": { "tagName": "LI" } },
        { "type": "waitForExpression", "expression": "document.querySelectorAll('.row').length === 2" },
        { "type": "waitFor", "idle": true },
        { "type": "assert", "selector": ".row", "text": "Menu item", "url": "*view=2" },
        { "type": "close" },
    ]);
    // The menu is only visible while the mouse is over it.
    let mut steps = steps.as_array().unwrap().clone();
    steps.retain(|step| step["text"] != "Menu item");
    let url = site.url("reacts-to-input.html?measured");
    let options = json!({ "steps": steps });
    let (result, records) = perform(&bed, &plan_with(url, options)).await;
    let errors: Vec<_> = records
        .iter()
        .filter(|record| record.error.is_some())
        .collect();
    assert!(
        errors.is_empty(),
        "{:?} {:?}",
        errors[0].title,
        errors[0].error
    );
    assert_eq!(
        records[0].title,
        format!("go to {}", site.url("reacts-to-input.html?measured"))
    );
    result.unwrap();
    let reports = site.reports();
    let measured = &reports["?measured"];
    let notes: Vec<_> = measured["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_str().unwrap())
        .collect();
    assert_eq!(
        notes,
        [
            "key ShiftLeft with Shift",
            "key KeyA with Shift",
            "name AdaA",
            "notes one\ntwo",
            "day 2026-11-17",
            "terms true",
            "color g",
            "menu item",
            "scrolled 120",
            "double",
            "card",
            "card",
            "frame",
            "far",
            "route",
        ]
    );
    assert!(reports.contains_key("other frame"), "{reports:?}");
    // Session storage of the tab carries over, its history does not.
    assert_eq!(
        (&measured["visits"], &measured["length"]),
        (&json!("2"), &json!(2)),
        "{measured}"
    );
}

#[tokio::test]
async fn a_step_that_cannot_be_performed_in_time_says_why() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let url = || site.url("reacts-to-input.html");
    for (step, reason) in [
        (
            json!({ "type": "click", "selector": "#none" }),
            "no element matches `#none`",
        ),
        (
            json!({ "type": "click", "selector": "#item" }),
            "the element `#item` is not visible",
        ),
        (
            json!({ "type": "select", "selector": "#color", "value": "secret" }),
            "the element `#color` has no such option",
        ),
        (
            json!({ "type": "fill", "selector": "h1", "value": "secret" }),
            "the element `h1` is not a field",
        ),
        (
            json!({ "type": "press", "key": "Tab", "assertedEvents": [{ "type": "navigation" }] }),
            "no navigation followed in time",
        ),
        (
            json!({ "type": "waitFor", "url": "*/other" }),
            "its URL is not `*/other`",
        ),
        (
            json!({ "type": "waitFor", "selector": "li", "count": 3 }),
            "1 elements match `li`",
        ),
        (
            json!({ "type": "assert", "text": "Sign out" }),
            "it does not show the text `Sign out`",
        ),
        (
            json!({ "type": "goto", "url": "/missing-page" }),
            "the server responded with status 404",
        ),
    ] {
        let mut step = step;
        step["timeout"] = json!(700);
        let first = json!({ "type": "goto", "url": "/reacts-to-input.html" });
        let options = json!({ "steps": [first, step] });
        let (failure, records) = fail(&bed, url(), options).await;
        assert_eq!(failure.code, FailureCode::PreconditionFailed, "{failure}");
        assert!(failure.message.starts_with("Step 2 of 2 ("), "{failure}");
        assert!(failure.message.contains(reason), "{failure}");
        assert!(!failure.message.contains("secret"), "{failure}");
        assert_eq!(records.len(), 2);
    }
}

#[tokio::test]
async fn a_service_worker_of_the_steps_does_not_serve_the_visit() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let url = site.url("installs-service-worker.html");
    let controlled = "navigator.serviceWorker.controller !== null";
    let steps = json!([
        { "type": "goto", "url": "/installs-service-worker.html" },
        { "type": "waitFor", "expression": controlled },
        { "type": "waitFor", "idle": true },
    ]);
    let (result, _) = perform(&bed, &plan_with(url, json!({ "steps": steps }))).await;
    let log = String::from_utf8(result.unwrap().log).unwrap();
    assert!(log.contains("service-worker.js"), "it is installed again");
    let requests = site
        .paths()
        .into_iter()
        .filter(|path| path == "service-worker.js");
    assert!(requests.count() >= 2);
}

#[tokio::test]
async fn clicks_hit_their_elements_on_a_page_that_is_shown_zoomed_out() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let click = |name: &str| json!({ "type": "click", "selector": format!("aria/{name}") });
    let has = |text: &str| json!({ "type": "waitFor", "selector": format!("text/{text}") });
    let steps = json!([
        { "type": "goto", "url": "/no-viewport.html" },
        click("Near"),
        has("Near was clicked"),
        click("Far"),
        has("Far was clicked"),
    ]);
    for device_id in ["mobile", "desktop"] {
        let plan = VisitPlan {
            device: device(device_id),
            ..plan_with(site.url("no-viewport.html"), json!({ "steps": steps }))
        };
        let (result, records) = perform(&bed, &plan).await;
        let errors: Vec<_> = records.iter().filter_map(|it| it.error.as_ref()).collect();
        assert!(result.is_ok(), "{device_id}: {errors:?}");
    }
}
