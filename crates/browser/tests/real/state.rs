//! Tests of visits with a state: a site with a login, and another site that must not know of it.

use plumbline_browser::VisitPlan;
use plumbline_bundle::{Artifact, Bundle, FailureCode};
use plumbline_seam::VisitOptions;
use serde_json::{Value, json};

use crate::site::Site;
use crate::{TestBed, plan};

/// Returns a plan with the options of a start.
pub(crate) fn plan_with(url: String, options: Value) -> VisitPlan {
    let options: VisitOptions = serde_json::from_value(options).unwrap();
    assert_eq!(options.validate(), Ok(()));
    VisitPlan {
        state: options.state,
        expect: options.expect,
        steps: options.steps,
        consent: options.consent,
        view: options.view,
        ..plan(url)
    }
}

pub(crate) fn account_of(site: &Site, other: &Site) -> String {
    site.url(&format!("account?other={}", other.address()))
}

fn right_cookie() -> Value {
    json!({ "cookies": [{ "name": "session", "value": "the-right-session", "httpOnly": true }] })
}

/// Returns the number of bytes that all requests of a visit received, and whether one of them was
/// answered by a cache. The icon does not count: a browser requests it once.
pub(crate) fn transfer(bundle: &Bundle) -> (f64, bool) {
    let log: Vec<Value> = serde_json::from_slice(&bundle.log).unwrap();
    let is_icon = |event: &&Value| {
        let url = event["params"]["request"]["url"].as_str();
        url.is_some_and(|url| url.ends_with("/favicon.ico"))
    };
    let icon = log.iter().find(is_icon);
    let icon = icon.map(|event| &event["params"]["requestId"]);
    let finished = log.iter().filter(|event| {
        event["method"] == "Network.loadingFinished" && icon != Some(&event["params"]["requestId"])
    });
    let bytes = finished.filter_map(|event| event["params"]["encodedDataLength"].as_f64());
    let from_cache = log.iter().any(|event| {
        event["method"] == "Network.requestServedFromCache"
            || event["params"]["response"]["fromDiskCache"] == true
    });
    (bytes.sum(), from_cache)
}

#[tokio::test]
async fn a_page_behind_a_login_is_measured_with_each_kind_of_credentials() {
    let (bed, site, other) = (TestBed::new(), Site::start().await, Site::start().await);
    for state in [
        right_cookie(),
        json!({ "cookies": [{ "name": "session", "value": "the-right-session", "domain": "127.0.0.1" }] }),
        json!({ "headers": [{ "name": "X-Token", "value": "the-right-token" }] }),
        json!({ "basicAuth": { "username": "ada", "password": "lovelace" } }),
    ] {
        let expect =
            json!({ "selector": "#account", "text": "Account of  Ada", "url": "*/account?*" });
        let options = json!({ "state": state, "expect": expect });
        let bundle = bed
            .measure(&plan_with(account_of(&site, &other), options))
            .await;
        assert_eq!(bundle.document.status, 200, "{state}");
        assert!(bundle.final_url.contains("/account"), "{state}");
    }
}

#[tokio::test]
async fn a_page_that_is_not_the_expected_one_is_a_failure_that_names_the_reason() {
    let (bed, site, other) = (TestBed::new(), Site::start().await, Site::start().await);
    let wrong = json!({ "cookies": [{ "name": "session", "value": "a-wrong-session" }] });
    for (expect, reason) in [
        (
            json!({ "text": "Account of Ada" }),
            "does not show the text `Account of Ada`",
        ),
        (
            json!({ "selector": "#account" }),
            "no element matches `#account`",
        ),
        (
            json!({ "selector": "]" }),
            "`]` is not a valid CSS selector",
        ),
        (
            json!({ "url": "*/account?*" }),
            "its URL is not `*/account?*`",
        ),
        (json!({ "cookie": "member" }), "it has no cookie `member`"),
    ] {
        let options = json!({ "state": wrong, "expect": expect });
        let plan = plan_with(account_of(&site, &other), options);
        let failure = bed.measure_failure(&plan).await;
        assert_eq!(failure.code, FailureCode::PreconditionFailed, "{failure}");
        assert!(failure.message.contains(reason), "{failure}");
        assert!(failure.message.contains(&site.url("login")), "{failure}");
    }
    // Cookies that scripts cannot read count as well.
    let options = json!({ "state": right_cookie(), "expect": { "cookie": "session" } });
    bed.measure(&plan_with(account_of(&site, &other), options))
        .await;
}

#[tokio::test]
async fn headers_and_cookies_never_reach_other_sites() {
    let (bed, site, other) = (TestBed::new(), Site::start().await, Site::start().await);
    let state = json!({
        "headers": [{ "name": "X-Token", "value": "the-right-token" }, { "name": "X-More", "value": "1" }],
        "basicAuth": { "username": "ada", "password": "lovelace" },
    });
    let options = json!({ "state": state, "expect": { "selector": "#account" } });
    bed.measure(&plan_with(account_of(&site, &other), options))
        .await;
    let own = site.headers();
    for path in ["account", "cached.js", "worker.js", "leave"] {
        let (_, headers) = own.iter().find(|(own, _)| own == path).unwrap();
        assert_eq!(headers["x-token"], "the-right-token", "{path}");
        assert_eq!(headers["authorization"], "Basic YWRhOmxvdmVsYWNl", "{path}");
    }
    let others = other.headers();
    // Also the request after a redirect of the own site.
    for path in ["script.js", "frame", "data", "landed"] {
        assert!(
            others.iter().any(|(other, _)| other == path),
            "{path} was not requested"
        );
    }
    for (path, headers) in others {
        for name in ["x-token", "x-more", "authorization", "cookie"] {
            assert!(!headers.contains_key(name), "{path} had the header {name}");
        }
        // A header of the client would have caused a preflight.
        assert!(
            !headers.contains_key("access-control-request-headers"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_navigation_that_leaves_the_site_takes_no_headers_along() {
    let (bed, site, other) = (TestBed::new(), Site::start().await, Site::start().await);
    let url = site.url(&format!("leave?other={}", other.address()));
    let state = json!({ "headers": [{ "name": "X-Token", "value": "the-right-token" }] });
    bed.measure_failure(&plan_with(url, json!({ "state": state })))
        .await;
    assert_eq!(site.headers()[0].1["x-token"], "the-right-token");
    let others = other.headers();
    assert!(others.iter().any(|(path, _)| path == "landed"));
    assert!(
        others
            .iter()
            .all(|(_, headers)| !headers.contains_key("x-token"))
    );
}

#[tokio::test]
async fn a_signed_in_visit_transfers_as_much_as_one_without_a_state() {
    let (bed, site, other) = (TestBed::new(), Site::start().await, Site::start().await);
    let public = site.url(&format!("public?other={}", other.address()));
    let cold = transfer(&bed.measure(&plan(public)).await);
    let headers = json!({ "headers": [{ "name": "X-Token", "value": "the-right-token" }] });
    for state in [right_cookie(), headers] {
        let options = json!({ "state": state, "expect": { "selector": "#account" } });
        let bundle = bed
            .measure(&plan_with(account_of(&site, &other), options))
            .await;
        assert_eq!(transfer(&bundle), cold, "{state}");
    }
    assert!(cold.0 > 10_000.0 && !cold.1, "{cold:?}");
}

#[tokio::test]
async fn storage_and_script_exist_before_the_page_in_documents_of_the_named_origins() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let state = |origins: Value| {
        json!({
            "localStorage": { "token": "a \"token\"" }, "sessionStorage": { "tab": "the tab" },
            "script": "window.flag = 'set'; // the end", "origins": origins,
        })
    };
    let url = site.url("seeded-storage.html");
    let expect = json!({ "text": "a \"token\" the tab set" });
    let options = json!({ "state": state(json!([])), "expect": expect });
    bed.measure(&plan_with(url.clone(), options)).await;
    let reports = site.reports();
    assert_eq!(
        reports["page"]["shown"],
        json!(["a \"token\"", "the tab", "set"])
    );
    assert_eq!(reports["frame"]["shown"], json!([null, null, null]));

    let (own, frame) = (site.url(""), site.url("").replace("127.0.0.1", "localhost"));
    let options = json!({ "state": state(json!([own, frame])), "expect": expect });
    bed.measure(&plan_with(url, options)).await;
    assert_eq!(
        site.reports()["frame"]["shown"],
        json!(["a \"token\"", "the tab", "set"])
    );
}

#[tokio::test]
async fn blocked_hosts_get_no_request_and_the_user_agent_has_its_suffix() {
    let (bed, site, other) = (TestBed::new(), Site::start().await, Site::start().await);
    let at_localhost = format!("localhost:{}", other.address().port());
    let url = site.url(&format!("public?other={at_localhost}"));
    let state = json!({ "blockedHosts": ["localhost"], "userAgentSuffix": "Lab/1.0" });
    let bundle = bed
        .measure(&plan_with(url, json!({ "state": state })))
        .await;
    // The browser may have connected in advance, and sent nothing.
    let mut requests = other.headers().into_iter();
    assert_eq!(requests.find(|(_, headers)| !headers.is_empty()), None);
    // The check of console errors ignores these, as in Lighthouse.
    let Artifact::Gathered(console) = &bundle.artifacts["console"] else {
        panic!("{:?}", bundle.artifacts["console"]);
    };
    let entries: Vec<Value> = serde_json::from_str(console.get()).unwrap();
    let texts = entries.iter().filter_map(|entry| entry["text"].as_str());
    let mut network = texts.filter(|text| text.contains("net::ERR"));
    assert!(
        network.all(|text| text.contains("ERR_BLOCKED_BY_CLIENT.Inspector")),
        "{entries:?}"
    );
    assert!(bundle.browser.user_agent.ends_with(" Lab/1.0"));
    let agents = site.user_agents_for("public");
    assert!(agents[0].ends_with(" Lab/1.0"), "{agents:?}");
}

#[tokio::test]
async fn a_state_that_the_browser_refuses_is_named_without_its_value() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let options = json!({ "state": { "script": "let a = 1;\nlet secret secret;" } });
    let failure = bed
        .measure_failure(&plan_with(site.url("plain-text.html"), options))
        .await;
    assert_eq!(failure.code, FailureCode::PreconditionFailed, "{failure}");
    let message = "The script of the state has a syntax error in line 2.";
    assert_eq!(failure.message, message);
    // Cookies with such names have no path.
    let cookie =
        json!({ "name": "__Host-a", "value": "secret-value", "secure": true, "path": "/a" });
    let options = json!({ "state": { "cookies": [cookie] } });
    let plan = plan_with(site.url("plain-text.html"), options);
    let failure = bed.measure_failure(&plan).await;
    assert_eq!(failure.code, FailureCode::PreconditionFailed, "{failure}");
    assert!(failure.message.contains("`__Host-a`"), "{failure}");
    assert!(!failure.message.contains("secret-value"), "{failure}");
}
