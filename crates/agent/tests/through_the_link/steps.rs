//! Steps before a visit pass the guard like the visit, and leave no connection to it.

use plumbline_browser::{NetworkPath, VisitError, VisitPlan, visit};
use plumbline_bundle::FailureCode;
use plumbline_link::ConnectionOutcome;
use plumbline_seam::Steps;
use serde_json::json;

use crate::rig::{launcher, open_link, plan};
use crate::site::{Response, Site};

async fn site() -> Site {
    let page = "<!doctype html><title>A page</title><h1>Hello</h1><a href='/second'>Next</a>";
    Site::serve([
        ("/", Response::html(page)),
        ("/second", Response::html("<h1>Second</h1>")),
    ])
    .await
}

#[tokio::test]
async fn the_visit_opens_connections_of_its_own_after_the_steps() {
    let site = site().await;
    let allow = site.address.to_string();
    let (link, steps_link) = (open_link(&[&allow]).await, open_link(&[&allow]).await);
    let steps =
        json!([{ "type": "click", "selector": "a" }, { "type": "waitFor", "url": "*/second" }]);
    let plan = VisitPlan {
        steps: Steps::parse(steps).unwrap(),
        steps_network: NetworkPath::Proxy(steps_link.address()),
        ..plan(&site.url("/"), &link)
    };
    let browser = launcher().launch().await.unwrap();
    visit(browser, &plan, &|_| {}).await.unwrap();
    for link in [link, steps_link] {
        let records = link.records();
        let mut own = records
            .iter()
            .filter(|record| record.port == site.address.port());
        let is_connected = own.any(|record| matches!(record.outcome, ConnectionOutcome::Connected));
        assert!(is_connected, "{records:?}");
    }
    let paths = site.requested_paths();
    let pages = paths
        .iter()
        .filter(|path| *path == "/" || *path == "/second");
    assert_eq!(pages.collect::<Vec<_>>(), ["/", "/second", "/"]);
}

#[tokio::test]
async fn steps_cannot_reach_forbidden_addresses() {
    let secret = Site::serve([("/", Response::html("secret"))]).await;
    let site = site().await;
    let allow = site.address.to_string();
    let (link, steps_link) = (open_link(&[&allow]).await, open_link(&[&allow]).await);
    for steps in [
        json!([{ "type": "goto", "url": secret.url("/") }]),
        json!([
            { "type": "goto", "url": "/" },
            { "type": "waitFor", "expression": format!("fetch('{}').then(() => 1)", secret.url("/")), "timeout": 500 },
        ]),
    ] {
        let plan = VisitPlan {
            steps: Steps::parse(steps).unwrap(),
            steps_network: NetworkPath::Proxy(steps_link.address()),
            ..plan(&site.url("/"), &link)
        };
        let browser = launcher().launch().await.unwrap();
        match visit(browser, &plan, &|_| {}).await {
            Err(VisitError::Page(failure)) => {
                assert_eq!(failure.code, FailureCode::PreconditionFailed, "{failure}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(secret.requested_paths(), Vec::<String>::new());
}
