//! Tests of the steps that are measured after a visit.

use plumbline_browser::{LaunchOptions, VisitPlan, measure_flow};
use plumbline_bundle::{FlowRecords, FlowStepKind, FlowStepRecord};
use plumbline_seam::Steps;
use serde_json::{Value, json};

use crate::page_time::by_clock;
use crate::site::Site;
use crate::{TestBed, plan};

fn plan_for(site: &Site, flow: Value) -> VisitPlan {
    VisitPlan {
        flow: Steps::parse_flow(flow).unwrap(),
        ..plan(site.url("flow.html"))
    }
}

async fn records_of(bed: &TestBed, plan: &VisitPlan) -> FlowRecords {
    measure_flow(bed.browser().await, plan, &|_| {}).await
}

fn kinds(records: &FlowRecords) -> Vec<FlowStepKind> {
    records.steps.iter().map(|step| step.kind).collect()
}

/// A visitor who opens a menu, looks at offers and lamps, searches, and goes to the basket.
fn visitor() -> Value {
    json!([
        { "type": "click", "selector": "#menu" },
        { "type": "click", "selector": "#offers" },
        { "type": "waitFor", "selector": "#offer.shown" },
        { "type": "click", "selector": "#lamps" },
        { "type": "waitFor", "expression": "document.querySelector('main').textContent.includes('words words')" },
        { "type": "fill", "selector": "#search", "value": "floor" },
        { "type": "click", "selector": "a" },
    ])
}

fn assert_visitor(records: &FlowRecords) {
    assert_eq!(records.error, None);
    assert_eq!(
        kinds(records),
        [
            FlowStepKind::Timespan,
            FlowStepKind::Timespan,
            FlowStepKind::SoftNavigation,
            FlowStepKind::Timespan,
            FlowStepKind::Navigation,
        ]
    );
    let [menu, offers, lamps, search, basket] = &records.steps[..] else {
        panic!("{records:#?}");
    };
    let inp = |step: &FlowStepRecord| step.interaction.as_ref().map(|timing| timing.duration_ms);
    assert!(inp(menu).is_some_and(|ms| ms >= 112.0), "{menu:#?}");
    assert_eq!(
        menu.interaction.as_ref().unwrap().scripts[0].function,
        "opensMenu"
    );
    assert!(menu.long_tasks >= 1 && menu.tbt_ms >= 60.0, "{menu:#?}");
    assert_eq!(menu.cls, 0.0);
    assert!(offers.cls > 0.02, "{offers:#?}");
    assert!(
        offers.tbt_ms >= 180.0 && offers.settled_ms >= 1300.0,
        "{offers:#?}"
    );
    assert!(lamps.url.ends_with("flow.html?lamps"), "{lamps:#?}");
    assert_eq!(lamps.requests, 1);
    assert!(lamps.lcp_ms.is_some_and(|ms| ms >= 300.0), "{lamps:#?}");
    assert!(
        lamps.transfer_bytes > 0 && lamps.settled_ms >= 300.0,
        "{lamps:#?}"
    );
    assert!(inp(search).is_some_and(|ms| ms >= 56.0), "{search:#?}");
    assert!(basket.url.ends_with("flow-basket.html"));
    assert!(basket.requests >= 1 && basket.interaction.is_none());
    assert!(
        basket.fcp_ms.is_some() && basket.lcp_ms >= basket.fcp_ms,
        "{basket:#?}"
    );
    assert!(records.steps.iter().all(|step| step.screenshot.is_some()));
}

#[tokio::test]
async fn each_step_has_its_kind_and_its_figures() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let records = records_of(&bed, &plan_for(&site, visitor())).await;
    assert_visitor(&records);
}

#[tokio::test]
async fn the_figures_of_a_slower_device_are_those_of_its_clock() {
    let bed = TestBed::with(LaunchOptions {
        page_clock: true,
        ..LaunchOptions::default()
    });
    let site = Site::start().await;
    let plan = VisitPlan {
        throttle: by_clock(4.0),
        ..plan_for(&site, visitor())
    };
    assert_visitor(&records_of(&bed, &plan).await);
}

#[tokio::test]
async fn a_flow_may_begin_on_another_page() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let recording = json!({
        "title": "To the basket",
        "steps": [
            { "type": "setViewport", "width": 800, "height": 600, "deviceScaleFactor": 1,
              "isMobile": false, "hasTouch": false, "isLandscape": false },
            { "type": "navigate", "url": site.url("flow-basket.html") },
            { "type": "navigate", "url": "/flow.html" },
        ],
    });
    let records = records_of(&bed, &plan_for(&site, recording)).await;
    assert_eq!(kinds(&records), [FlowStepKind::Navigation; 2]);
    let first = site.paths().into_iter().next();
    assert_eq!(first.as_deref(), Some("flow-basket.html"));
    assert!(
        records.steps.iter().all(|step| step.fcp_ms.is_some()),
        "{records:#?}"
    );
}

#[tokio::test]
async fn a_step_that_fails_ends_the_flow_with_a_reason() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let flow = json!([
        { "type": "click", "selector": "#menu" },
        { "type": "assert", "text": "The menu" },
        { "type": "click", "selector": "#missing", "timeout": 500 },
        { "type": "click", "selector": "#lamps" },
    ]);
    let records = records_of(&bed, &plan_for(&site, flow)).await;
    let [menu, missing] = &records.steps[..] else {
        panic!("{records:#?}");
    };
    assert_eq!(menu.error, None);
    assert!(
        missing.error.as_ref().unwrap().contains("#missing"),
        "{missing:#?}"
    );
    assert!(missing.screenshot.is_some());
    let flow = json!([
        { "type": "click", "selector": "#menu" },
        { "type": "assert", "text": "Another menu" },
    ]);
    let records = records_of(&bed, &plan_for(&site, flow)).await;
    let error = records.steps[0].error.as_ref().unwrap();
    assert!(error.starts_with("check the page: "), "{error}");
}

#[tokio::test]
async fn a_page_that_cannot_be_opened_is_a_reason_without_steps() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let plan = VisitPlan {
        url: site.url("missing-page"),
        ..plan_for(&site, json!([{ "type": "click", "selector": "#menu" }]))
    };
    let records = records_of(&bed, &plan).await;
    assert!(records.steps.is_empty());
    assert!(records.error.unwrap().contains("404"));
}
