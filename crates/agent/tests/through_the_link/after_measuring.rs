//! Requests that are made after the page was measured.

use std::sync::Arc;

use plumbline_agent::{AgentLocation, Auditor};
use plumbline_browser::Pool;
use plumbline_bundle::{
    Artifact, Bundle, Encoding, FailureCode, FlowRecords, FlowStepKind, InteractionRecords, Record,
};
use plumbline_catalog::{BUILT_IN, Catalog};
use plumbline_link::Guard;
use plumbline_model::media::ReportMedia;
use plumbline_model::report::CpuEmulationMethod;
use plumbline_seam::{AuditOutput, Interactions, Order, Steps, VisitOptions};
use plumbline_traffic::RootCertStore;
use serde_json::{Value, json};

use crate::rig::{cpu, interception, launcher};
use crate::site::{Response, Site};

#[tokio::test]
async fn a_large_robots_txt_is_read_whole_also_on_a_slow_network() {
    // Takes ten seconds on 2G at its full rate; its deadline is two.
    let robots = format!(
        "User-agent: *\nDisallow:\n{}",
        "# a comment\n".repeat(30_000)
    );
    let site = Site::serve([
        (
            "/",
            Response::html("<!doctype html><html lang=en><title>Small</title><h1>Hello"),
        ),
        ("/robots.txt", Response::new("text/plain", robots)),
    ])
    .await;
    let output = audit(&site, "normal2g").await;
    assert_eq!(output.report.conditions.cpu.visits, 1);
    let bundle = Bundle::unpack(&output.bundle.unwrap()).unwrap();
    let Artifact::Gathered(raw) = &bundle.artifacts["robots-txt"] else {
        panic!("{:?}", bundle.artifacts["robots-txt"]);
    };
    let robots: Value = serde_json::from_str(raw.get()).unwrap();
    assert_eq!(robots["status"], 200, "{}", robots["error"]);
    assert!(robots["content"].as_str().unwrap().len() > 300_000);
}

#[tokio::test]
async fn a_source_map_beyond_what_a_visit_may_transfer_does_not_make_the_page_too_large() {
    let script = format!(
        "var text = '{}';\n//# sourceMappingURL=/map",
        "x".repeat(2000)
    );
    let site = Site::serve([
        (
            "/",
            Response::html(
                "<!doctype html><html lang=en><title>Small</title><h1>Hello</h1><script src=/script>\
                 </script>",
            ),
        ),
        ("/script", Response::new("text/javascript", script)),
        ("/map", Response::new("application/json", " ".repeat(110_000_000))),
    ])
    .await;
    let output = audit(&site, "wifiFast").await;
    assert!(site.requested_paths().contains(&"/map".to_owned()));
    assert!(output.report.error.is_none(), "{:?}", output.report.error);
}

#[tokio::test]
async fn interactions_follow_the_visit_and_are_part_of_its_evidence() {
    let page = "<!doctype html><html lang=en><meta name=viewport content=width=device-width><title>Small\
                </title><h1>Hello</h1><button onclick=\"this.textContent = 'Pressed'\">Press</button>";
    let site = Site::serve([("/", Response::html(page))]).await;
    let options = VisitOptions {
        interactions: Interactions::ALL,
        ..VisitOptions::default()
    };
    let output = audit_with(&site, "normal2g", options).await;
    assert!(output.report.error.is_none(), "{:?}", output.report.error);
    assert_eq!(output.report.conditions.cpu.visits, 1);
    let responsiveness = output.report.responsiveness.unwrap();
    assert_eq!(responsiveness.records.error, None);
    assert_eq!(responsiveness.measured(), 1, "{responsiveness:?}");
    assert_eq!(responsiveness.worst().unwrap().name, "Press");
    let bundle = Bundle::unpack(&output.bundle.unwrap()).unwrap();
    let records = InteractionRecords::stored_in(&bundle).unwrap();
    assert_eq!(records, responsiveness.records);
}

#[tokio::test]
async fn a_flow_follows_the_visit_on_the_emulated_network_and_is_part_of_its_evidence() {
    let page = "<!doctype html><html lang=en><meta name=viewport content=width=device-width><title>Small\
                </title><h1>Hello</h1><a href=/next>Next</a>";
    let next = "<!doctype html><html lang=en><title>Next</title><h1>Next</h1><input>";
    let site = Site::serve([("/", Response::html(page)), ("/next", Response::html(next))]).await;
    let flow = json!([
        { "type": "click", "selector": "a" },
        { "type": "fill", "selector": "input", "value": "lamp" },
    ]);
    let options = VisitOptions {
        flow: Steps::parse_flow(flow).unwrap(),
        ..VisitOptions::default()
    };
    let output = audit_with(&site, "normal2g", options).await;
    assert!(output.report.error.is_none(), "{:?}", output.report.error);
    let flow = *output.report.flow.unwrap();
    assert_eq!(flow.error, None);
    let [next, fill] = &flow.steps[..] else {
        panic!("{flow:#?}");
    };
    assert_eq!(next.kind, FlowStepKind::Navigation);
    assert_eq!(fill.kind, FlowStepKind::Timespan);
    // A round trip of this network takes 300 ms or more.
    assert!(next.fcp_ms.unwrap() >= 300.0, "{next:#?}");
    let media = ReportMedia::unpack(&output.media.unwrap()).unwrap();
    let pictures = media
        .flow
        .iter()
        .flatten()
        .filter(|picture| !picture.data.is_empty());
    assert_eq!(pictures.count(), 2);
    let bundle = Bundle::unpack(&output.bundle.unwrap()).unwrap();
    let mut records = FlowRecords::stored_in(&bundle).unwrap();
    assert_eq!(records.take_screenshots().iter().flatten().count(), 2);
    assert_eq!(records, flow);
}

async fn audit(site: &Site, network: &str) -> AuditOutput {
    audit_with(site, network, VisitOptions::default()).await
}

async fn audit_with(site: &Site, network: &str, options: VisitOptions) -> AuditOutput {
    let (auditor, order) = auditor_for(site, network, options);
    auditor.audit(&order, &|_| {}).await.unwrap()
}

/// Returns an auditor that visits a page once, and an order for the page.
fn auditor_for(site: &Site, network: &str, options: VisitOptions) -> (Auditor, Order) {
    let catalog = Catalog::load(BUILT_IN).unwrap();
    let order = Order {
        url: site.url("/"),
        device: "desktop".to_owned(),
        network: network.to_owned(),
        location: catalog.locations()[0].id.clone(),
        options,
    };
    let auditor = Auditor {
        interception: interception(RootCertStore::empty()),
        browsers: Pool::start(launcher(), 0),
        agent_location: AgentLocation {
            id: order.location.clone(),
            is_stated: true,
        },
        max_visits: 1,
        catalog: Arc::new(catalog),
        guard: Arc::new(Guard::new(vec!["127.0.0.0/8".parse().unwrap()])),
        cpu: cpu(),
    };
    (auditor, order)
}

#[tokio::test]
async fn later_visits_use_what_the_first_has_gathered_from_the_page() {
    let page = "<!doctype html><title>A page</title><h1>Hello</h1><img src=/missing.png>";
    let site = Site::serve([("/", Response::html(page))]).await;
    let (auditor, order) = auditor_for(&site, "wifiFast", VisitOptions::default());
    let output = auditor.audit_runs(&order, 2, Encoding::Container, &|_| {});
    let output = output.await.unwrap();
    assert_eq!(output.report.runs.as_ref().unwrap().count, 2);
    let requests = site.requested_paths();
    let count = |path: &str| requests.iter().filter(|it| it.as_str() == path).count();
    assert_eq!((count("/"), count("/missing.png")), (2, 2), "{requests:?}");
    assert_eq!(count("/robots.txt"), 1, "{requests:?}");
    // Whichever of the two is reported, it has everything.
    assert!(output.report.scores.accessibility < Some(100));
    let bundle = Bundle::unpack(&output.bundle.unwrap()).unwrap();
    for name in ["axe", "console", "trace-elements", "scheduler"] {
        let artifact = &bundle.artifacts[name];
        assert!(matches!(artifact, Artifact::Gathered(_)), "{name}");
    }
    assert!(bundle.screenshot.is_some());
}

#[tokio::test]
async fn the_report_of_a_page_without_a_page_clock_says_that_chromium_throttled_it() {
    let page = "<!doctype html><title>A page</title><h1>Hello</h1>";
    let site = Site::serve([("/", Response::html(page))]).await;
    let (auditor, mut order) = auditor_for(&site, "wifiFast", VisitOptions::default());
    order.device = "redmi5A".to_owned();
    let output = auditor.audit(&order, &|_| {}).await.unwrap();
    let cpu = output.report.conditions.cpu;
    assert_eq!(cpu.emulation, Some(CpuEmulationMethod::Chromium));
    assert!(cpu.rate > 1.0 && !cpu.limited_by_host, "{cpu:?}");
    assert!(cpu.contention.is_some(), "{cpu:?}");
}

#[tokio::test]
async fn a_trace_flood_is_too_large_at_once_and_no_internal_error() {
    let page = include_str!("../../../../fixtures/hostile/trace-marks.html");
    let site = Site::serve([("/", Response::html(page))]).await;
    let (mut auditor, order) = auditor_for(&site, "wifiFast", VisitOptions::default());
    auditor.max_visits = 3;
    let output = auditor.audit(&order, &|_| {}).await.unwrap();
    let failure = output.report.error.unwrap();
    assert_eq!(failure.code, FailureCode::TooLarge, "{failure}");
    assert_eq!(output.report.conditions.cpu.visits, 1);
}
