//! A load with a profiler after the visit.

use std::sync::Arc;

use plumbline_agent::{AgentLocation, Auditor};
use plumbline_browser::Pool;
use plumbline_bundle::{Bundle, CodePlace, FunctionTime, ProfileRecords, Record};
use plumbline_catalog::{BUILT_IN, Catalog};
use plumbline_link::Guard;
use plumbline_seam::{AuditOutput, Order, VisitOptions};
use plumbline_traffic::RootCertStore;
use serde_json::Value;

use crate::rig::{cpu, interception, launcher};
use crate::site::{Response, Site};

const PAGE: &str = include_str!("../../../../fixtures/pages/slow-functions.html");
const SCRIPT: &str = include_str!("../../../../fixtures/pages/slow-functions.min.js");
const MAP: &str = include_str!("../../../../fixtures/pages/slow-functions.min.js.map");

async fn site(script: &str) -> Site {
    Site::serve([
        ("/", Response::html(PAGE)),
        (
            "/slow-functions.min.js",
            Response::new("text/javascript", script),
        ),
        (
            "/slow-functions.min.js.map",
            Response::new("application/json", MAP),
        ),
    ])
    .await
}

async fn audit(site: &Site, device: &str) -> AuditOutput {
    let catalog = Catalog::load(BUILT_IN).unwrap();
    let order = Order {
        url: site.url("/"),
        device: device.to_owned(),
        network: "wifiFast".to_owned(),
        location: catalog.locations()[0].id.clone(),
        options: VisitOptions {
            profile: true,
            ..VisitOptions::default()
        },
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
    auditor.audit(&order, &|_| {}).await.unwrap()
}

/// Returns the name, the file and the line from 1 of a place, as people see it.
fn shown(place: &CodePlace) -> (&str, &str, u32) {
    let (file, line, _) = place.position();
    let file = file.rsplit('/').next().unwrap();
    (place.function_name(), file, line + 1)
}

#[track_caller]
fn named<'a>(times: &'a [FunctionTime], name: &str) -> &'a FunctionTime {
    let time = times.iter().find(|it| it.function.function_name() == name);
    time.unwrap_or_else(|| panic!("{name} is not in {times:#?}"))
}

#[tokio::test]
async fn a_profile_names_functions_and_lines_of_the_source_that_scripts_were_built_from() {
    let site = site(SCRIPT).await;
    for device in ["desktop", "mobile"] {
        let output = audit(&site, device).await;
        assert!(output.report.error.is_none(), "{:?}", output.report.error);
        let profile = *output.report.profile.unwrap();
        assert_eq!(profile.error, None, "{profile:#?}");

        let compute = named(&profile.functions, "computeChecksum");
        let expected = ("computeChecksum", "slow-functions.js", 3);
        assert_eq!(shown(&compute.function), expected);
        let has_long_task = profile.tasks.iter().any(|task| {
            let functions = task.functions.iter();
            let of_task = functions.map(|time| shown(&time.function));
            task.duration_ms >= 190.0 && of_task.take(1).eq([expected])
        });
        assert!(has_long_task, "{:#?}", profile.tasks);
        let (_, _, hottest) = shown(compute.hottest.as_ref().unwrap());
        assert!((5..=7).contains(&hottest), "{compute:#?}");

        let align = named(&profile.functions, "readHeight");
        assert_eq!(
            shown(&align.function),
            ("readHeight", "slow-functions.js", 22)
        );
        let reflow = &profile.reflows[0];
        assert_eq!(
            shown(&reflow.place),
            ("readHeight", "slow-functions.js", 23)
        );
        assert!(reflow.count >= 2 && reflow.total_ms >= 30.0, "{reflow:#?}");
        assert_eq!(reflow.place.url, site.url("/slow-functions.min.js"));
        let has_path = profile.tasks.iter().any(|task| {
            let names = task.path.iter().map(|call| call.function.function_name());
            names.eq(["", "computeChecksum"])
        });
        assert!(has_path, "{:#?}", profile.tasks);

        let bundle = Bundle::unpack(&output.bundle.unwrap()).unwrap();
        let stored = ProfileRecords::stored_in(&bundle).unwrap();
        // What is only needed to read source maps is not stored.
        let json = |records: &ProfileRecords| serde_json::to_value(records).unwrap();
        assert_eq!(json(&stored), json(&profile));
        let trace: Value = serde_json::from_slice(&bundle.profile_trace.unwrap()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert!(events.iter().any(|event| event["name"] == "ProfileChunk"));
        let measured: Value = serde_json::from_slice(&bundle.trace).unwrap();
        let mut events = measured["traceEvents"].as_array().unwrap().iter();
        assert!(!events.any(|event| event["name"] == "ProfileChunk"));
    }
}

#[tokio::test]
async fn a_script_without_a_source_map_is_named_by_its_own_names_and_positions() {
    let (script, _) = SCRIPT.split_once("//#").unwrap();
    let site = site(script).await;
    let output = audit(&site, "desktop").await;
    assert!(
        !site
            .requested_paths()
            .contains(&"/slow-functions.min.js.map".to_owned())
    );
    let profile = *output.report.profile.unwrap();
    let compute = &named(&profile.functions, "t").function;
    assert_eq!(compute.original, None);
    assert_eq!(shown(compute), ("t", "slow-functions.min.js", 1));
    assert_eq!(compute.column, 58);
}
