//! What is fetched besides the page, when measuring is over.

use std::sync::Arc;

use plumbline_agent::{Audited, Auditor, Cpu, Order};
use plumbline_browser::Pool;
use plumbline_bundle::{Artifact, Bundle, FailureCode};
use plumbline_catalog::{BUILT_IN, Catalog};
use plumbline_link::Guard;
use serde_json::Value;

use crate::rig::launcher;
use crate::site::{Answer, Site};

#[tokio::test]
async fn a_large_robots_txt_is_read_whole_also_on_a_slow_network() {
    // Ten seconds on 2G at its full rate; two are given to it.
    let robots = format!(
        "User-agent: *\nDisallow:\n{}",
        "# a comment\n".repeat(30_000)
    );
    let site = Site::serve([
        (
            "/",
            Answer::html("<!doctype html><html lang=en><title>Small</title><h1>Hello"),
        ),
        ("/robots.txt", Answer::of("text/plain", robots)),
    ])
    .await;
    let audited = audit(&site, "normal2g").await;
    assert_eq!(audited.report.conditions.cpu.visits, 1);
    let bundle = Bundle::unpack(&audited.bundle.unwrap()).unwrap();
    let Artifact::Gathered(raw) = &bundle.artifacts["robots-txt"] else {
        panic!("{:?}", bundle.artifacts["robots-txt"]);
    };
    let read: Value = serde_json::from_str(raw.get()).unwrap();
    assert_eq!(read["status"], 200, "{}", read["error"]);
    assert!(read["content"].as_str().unwrap().len() > 300_000);
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
            Answer::html(
                "<!doctype html><html lang=en><title>Small</title><h1>Hello</h1><script src=/script>\
                 </script>",
            ),
        ),
        ("/script", Answer::of("text/javascript", script)),
        ("/map", Answer::of("application/json", " ".repeat(110_000_000))),
    ])
    .await;
    let audited = audit(&site, "wifiFast").await;
    assert!(site.asked().contains(&"/map".to_owned()));
    assert!(audited.report.error.is_none(), "{:?}", audited.report.error);
}

async fn audit(site: &Site, network: &str) -> Audited {
    let catalog = Catalog::load(BUILT_IN).unwrap();
    let order = Order {
        url: site.url("/"),
        device: "desktop".to_owned(),
        network: network.to_owned(),
        location: catalog.locations()[0].id.clone(),
    };
    let auditor = Auditor {
        browsers: Pool::start(launcher(), 0),
        stands_at: order.location.clone(),
        most_visits: 1,
        catalog: Arc::new(catalog),
        guard: Arc::new(Guard::new(vec!["127.0.0.0/8".parse().unwrap()])),
        cpu: Cpu::new(launcher(), None),
    };
    auditor.audit(&order, &|_| {}).await.unwrap()
}

#[tokio::test]
async fn a_trace_flood_is_too_large_at_once_and_no_fault_of_ours() {
    let page = include_str!("../../../../fixtures/hostile/trace-marks.html");
    let site = Site::serve([("/", Answer::html(page))]).await;
    let catalog = Catalog::load(BUILT_IN).unwrap();
    let order = Order {
        url: site.url("/"),
        device: "desktop".to_owned(),
        network: "wifiFast".to_owned(),
        location: catalog.locations()[0].id.clone(),
    };
    let auditor = Auditor {
        browsers: Pool::start(launcher(), 0),
        stands_at: order.location.clone(),
        most_visits: 3,
        catalog: Arc::new(catalog),
        guard: Arc::new(Guard::new(vec!["127.0.0.0/8".parse().unwrap()])),
        cpu: Cpu::new(launcher(), None),
    };
    let audited = auditor.audit(&order, &|_| {}).await.unwrap();
    let failure = audited.report.error.unwrap();
    assert_eq!(failure.code, FailureCode::TooLarge, "{failure}");
    assert_eq!(audited.report.conditions.cpu.visits, 1);
}
