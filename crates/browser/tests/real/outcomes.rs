//! Tests of the results of visits, for pages that load and for pages that do not.

use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::time::Duration;

use plumbline_browser::{
    LaunchOptions, NetworkPath, Phase, VisitError, VisitEvent, VisitPlan, visit,
};
use plumbline_bundle::FailureCode;
use serde_json::Value;

use crate::site::Site;
use crate::socks::Socks;
use crate::{TestBed, device, plan};

#[tokio::test]
async fn a_visit_returns_trace_log_and_screenshot() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let (phases, documents) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let plan = plan(site.url("plain-text.html"));
    let observer = |event: VisitEvent<'_>| match event {
        VisitEvent::PhaseStarted(phase) => phases.lock().unwrap().push(phase),
        VisitEvent::DocumentLoaded(url) => documents.lock().unwrap().push(url.to_owned()),
        VisitEvent::StepEnded(_) | VisitEvent::ConsentEnded { .. } => {}
    };
    let bundle = visit(bed.browser().await, &plan, &observer).await.unwrap();

    let expected = [Phase::Preparing, Phase::Loading, Phase::Gathering];
    assert_eq!(*phases.lock().unwrap(), expected);
    assert_eq!(*documents.lock().unwrap(), [bundle.final_url.as_str()]);
    assert_eq!(bundle.timings.len(), 3);
    assert_eq!(bundle.final_url, site.url("plain-text.html"));
    assert_eq!(bundle.document.status, 200);
    assert_eq!(bundle.document.mime_type, "text/html");
    assert!(bundle.browser.product.starts_with("Chrome/"));
    assert!(bundle.warnings.is_empty(), "{:?}", bundle.warnings);

    let trace: Value = serde_json::from_slice(&bundle.trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let count = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    for name in [
        "navigationStart",
        "firstContentfulPaint",
        "Screenshot",
        "RunTask",
        "thread_name",
    ] {
        assert!(count(name) > 0, "no {name} in the trace");
    }
    let log: Value = serde_json::from_slice(&bundle.log).unwrap();
    let mut log = log.as_array().unwrap().iter();
    let first = log
        .find(|event| event["method"] == "Network.requestWillBeSent")
        .unwrap();
    assert_eq!(
        first["params"]["request"]["url"],
        site.url("plain-text.html")
    );
    assert_eq!(first["targetType"], "page");
}

#[tokio::test]
async fn the_evidence_contains_nothing_about_the_host() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("plain-text.html"))).await;
    let chromium = bed.launcher.chromium().to_str().unwrap();
    let run_dir = bed.run_dir.path().to_str().unwrap();
    for evidence in [bundle.trace, bundle.log] {
        let text = String::from_utf8(evidence).unwrap();
        for secret in [chromium, run_dir, "--user-data-dir", "num_cpus", "cpu-"] {
            assert!(!text.contains(secret), "{secret}");
        }
    }
}

#[tokio::test]
async fn the_screenshot_has_the_size_of_the_device() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let plan = VisitPlan {
        device: device("desktop"),
        ..plan(site.url("plain-text.html"))
    };
    let screenshot = bed.measure(&plan).await.screenshot.unwrap();
    assert_eq!((screenshot.width_px, screenshot.height_px), (1350, 940));
    assert_eq!(screenshot.mime_type, "image/jpeg");
    // The beginning of every JPEG, in base64.
    assert!(screenshot.data.starts_with("/9j/"));
}

#[tokio::test]
async fn redirects_by_the_server_are_followed_without_a_warning() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("redirect"))).await;
    assert_eq!(bundle.requested_url, site.url("redirect"));
    assert_eq!(bundle.final_url, site.url("plain-text.html"));
    assert!(bundle.warnings.is_empty());
}

#[tokio::test]
async fn navigations_by_the_page_are_followed_with_a_warning() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    for page in ["redirect-by-meta.html", "redirect-by-script.html"] {
        let plan = VisitPlan {
            idle: Duration::from_millis(1500),
            ..plan(site.url(page))
        };
        let bundle = bed.measure(&plan).await;
        assert_ne!(bundle.final_url, bundle.requested_url);
        assert!(bundle.warnings[0].contains("The page navigated to"));
    }
}

#[tokio::test]
async fn a_redirect_to_another_site_is_followed_into_another_process() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let plan = VisitPlan {
        idle: Duration::from_millis(1500),
        ..plan(site.url("redirect-to-other-site.html"))
    };
    let bundle = bed.measure(&plan).await;
    assert!(bundle.final_url.starts_with("http://localhost:"));
    assert!(bundle.final_url.ends_with("/long-tasks.html"));
}

#[tokio::test]
async fn an_error_page_fails_with_its_status() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let cases = [
        ("missing-page", "status 404"),
        ("auth", "status 401"),
        ("auth-as-text", "status 401"),
        ("empty-error", "status 500"),
    ];
    for (path, status) in cases {
        let failure = bed.measure_failure(&plan(site.url(path))).await;
        assert_eq!(failure.code, FailureCode::HttpError, "{path}: {failure}");
        assert!(failure.message.contains(status), "{path}: {failure}");
    }
    for (path, status, target) in [
        ("redirect-to-error", "404", "missing-page"),
        ("redirect-to-empty-error", "500", "empty-error"),
    ] {
        let failure = bed.measure_failure(&plan(site.url(path))).await;
        assert_eq!(failure.code, FailureCode::HttpError, "{path}: {failure}");
        let target = site.url(target);
        let message = format!(
            "The server responded with status {status}. The page had redirected to {target}."
        );
        assert_eq!(failure.message, message);
    }
}

#[tokio::test]
async fn an_error_page_with_a_body_is_measured_with_a_warning_if_that_is_allowed() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let allowing = |path| VisitPlan {
        allow_error_status: true,
        ..plan(site.url(path))
    };
    let failure = bed.measure_failure(&allowing("empty-error")).await;
    assert_eq!(failure.code, FailureCode::NoPaint, "{failure}");
    for (path, status) in [("missing-page", 404), ("auth", 401)] {
        let bundle = bed.measure(&allowing(path)).await;
        assert_eq!(bundle.document.status, status);
        assert!(bundle.warnings[0].contains(&status.to_string()));
    }
}

#[tokio::test]
async fn responses_that_are_not_pages_fail_with_a_reason() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let cases = [
        ("empty", FailureCode::NoPaint),
        ("nothing-painted.html", FailureCode::NoPaint),
        ("no-content", FailureCode::NotHtml),
        ("download", FailureCode::NotHtml),
        ("words.txt", FailureCode::NotHtml),
        ("picture.svg", FailureCode::NotHtml),
        ("broken", FailureCode::ConnectionFailed),
        ("redirect-loop", FailureCode::TooManyRedirects),
        ("redirect-to-file", FailureCode::BlockedTarget),
        ("reloads-forever.html", FailureCode::TooManyRedirects),
    ];
    for (path, code) in cases {
        let failure = bed.measure_failure(&plan(site.url(path))).await;
        assert_eq!(failure.code, code, "{path}: {failure}");
    }
}

#[tokio::test]
async fn the_failure_of_a_page_that_consists_of_frames_mentions_them() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let failure = bed
        .measure_failure(&plan(site.url("only-frames.html")))
        .await;
    assert_eq!(failure.code, FailureCode::NoPaint, "{failure}");
    assert!(failure.message.contains("its frames"), "{failure}");
}

#[tokio::test]
async fn hosts_that_do_not_respond_fail_with_a_reason() {
    let bed = TestBed::new();
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let cases = [
        (format!("http://{closed}/"), FailureCode::ConnectionFailed),
        (
            "http://no-such-host.invalid/".to_owned(),
            FailureCode::DnsFailure,
        ),
        ("http://127.0.0.1:1/".to_owned(), FailureCode::BlockedTarget),
        ("file:///etc/passwd".to_owned(), FailureCode::BlockedTarget),
        ("chrome://version".to_owned(), FailureCode::BlockedTarget),
        ("not an address".to_owned(), FailureCode::BlockedTarget),
    ];
    for (url, code) in cases {
        let failure = bed.measure_failure(&plan(url.clone())).await;
        assert_eq!(failure.code, code, "{url}: {failure}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_a_tls_failure() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let url = site.url("plain-text.html").replace("http:", "https:");
    let failure = bed.measure_failure(&plan(url)).await;
    assert_eq!(failure.code, FailureCode::TlsFailure, "{failure}");
}

#[tokio::test]
async fn different_kinds_of_timeouts_have_different_codes() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let cases = [
        ("hang", FailureCode::Timeout),
        ("runs-forever.html", FailureCode::PageHung),
        ("runs-forever-at-once.html", FailureCode::PageHung),
        ("runs-forever-while-navigating.html", FailureCode::PageHung),
    ];
    for (path, code) in cases {
        let plan = VisitPlan {
            deadline: Duration::from_secs(3),
            ..plan(site.url(path))
        };
        let failure = bed.measure_failure(&plan).await;
        assert_eq!(failure.code, code, "{path}: {failure}");
    }
}

#[tokio::test]
async fn a_page_that_is_never_idle_is_measured_at_the_deadline() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let pages = [
        "never-rests.html",
        "three-requests-never-end.html",
        "goes-to-a-page-that-never-answers.html",
    ];
    for page in pages {
        let plan = VisitPlan {
            deadline: Duration::from_secs(3),
            ..plan(site.url(page))
        };
        let bundle = bed.measure(&plan).await;
        assert!(
            bundle.warnings.iter().any(|w| w.contains("not idle")),
            "{page}"
        );
    }
}

#[tokio::test]
async fn a_page_that_never_stops_loading_is_too_large() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let plan = VisitPlan {
        max_bytes: 20_000_000,
        ..plan(site.url("loads-without-end.html"))
    };
    assert_eq!(bed.measure_failure(&plan).await.code, FailureCode::TooLarge);
}

#[tokio::test]
async fn dialogs_do_not_block_a_visit() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("opens-dialogs.html"))).await;
    assert!(bundle.warnings[0].contains("dialog"));
    let report = &site.reports()["dialogs"];
    assert_eq!(report["agreed"], false);
    assert!(report["said"].is_null());
}

#[tokio::test]
async fn windows_printing_and_permissions_do_not_block_a_visit() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let plan = VisitPlan {
        idle: Duration::from_millis(2500),
        ..plan(site.url("asks-for-everything.html"))
    };
    let bundle = bed.measure(&plan).await;
    assert_eq!(bundle.final_url, site.url("asks-for-everything.html"));
    let report = &site.reports()["permissions"];
    assert_eq!(report["notified"], "denied");
    assert_eq!(report["position"], "denied 1");
}

#[tokio::test]
async fn downloads_and_forbidden_urls_do_not_change_the_page() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let pages = [
        "goes-to-download.html",
        "goes-to-forbidden-place.html?file:///etc/passwd",
        "goes-to-forbidden-place.html?chrome://version",
        "goes-to-forbidden-place.html?view-source:http://127.0.0.1/",
    ];
    for page in pages {
        let bundle = bed.measure(&plan(site.url(page))).await;
        assert_eq!(bundle.final_url, site.url(page));
        assert_eq!(bundle.document.status, 200);
    }
}

#[tokio::test]
async fn frames_workers_and_service_workers_are_in_the_log() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let cases = [
        ("frames.html", "iframe", "frame-inside.html?other"),
        ("works-in-worker.html", "worker", "picture.svg"),
        (
            "installs-service-worker.html",
            "service_worker",
            "picture.svg?kept",
        ),
    ];
    for (page, kind, request) in cases {
        let plan = VisitPlan {
            idle: Duration::from_millis(1000),
            ..plan(site.url(page))
        };
        let bundle = bed.measure(&plan).await;
        let log: Vec<Value> = serde_json::from_slice(&bundle.log).unwrap();
        let events_of_kind = log
            .iter()
            .filter(|event| event["targetType"] == kind)
            .count();
        let is_requested = log.iter().any(|event| {
            let url = event["params"]["request"]["url"].as_str();
            url.is_some_and(|url| url.contains(request))
        });
        assert!(
            events_of_kind > 0 && is_requested,
            "{page}: {events_of_kind} events of {kind}"
        );
    }
    assert!(site.reports().contains_key("service worker"));
    let agents = site.user_agents_for("picture.svg");
    assert!(
        agents.iter().all(|agent| agent.contains("moto g power")),
        "{agents:?}"
    );
}

#[tokio::test]
async fn a_page_that_exceeds_the_memory_limit_is_too_large() {
    let site = Site::start().await;
    let bed = TestBed::with(LaunchOptions {
        memory_bytes: 700 << 20,
        ..LaunchOptions::default()
    });
    let failure = bed
        .measure_failure(&plan(site.url("takes-much-memory.html")))
        .await;
    assert_eq!(failure.code, FailureCode::TooLarge, "{failure}");
    assert!(failure.message.contains("700 MiB"), "{failure}");
}

#[tokio::test]
async fn with_a_proxy_there_are_no_direct_connections() {
    let site = Site::start().await;
    let bed = TestBed::new();
    let closed: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let plan = VisitPlan {
        network: NetworkPath::Proxy(closed),
        ..plan(site.url("plain-text.html"))
    };
    let failure = bed.measure_failure(&plan).await;
    assert_eq!(failure.code, FailureCode::ConnectionFailed, "{failure}");
    assert!(site.paths().is_empty());
}

#[tokio::test]
async fn only_the_proxy_resolves_names_and_chromium_makes_no_requests_of_its_own() {
    let site = Site::start().await;
    let socks = Socks::forwarding_to(site.address()).await;
    let bed = TestBed::with(LaunchOptions {
        only_through_proxy: true,
        ..LaunchOptions::default()
    });
    let pages = [
        "plain-text.html",
        "works-in-worker.html",
        "reaches-out-in-every-way.html",
    ];
    for page in pages {
        let plan = VisitPlan {
            network: NetworkPath::Proxy(socks.address),
            idle: Duration::from_millis(2000),
            ..plan(format!("http://some-name.test/{page}"))
        };
        let bundle = bed.measure(&plan).await;
        assert_eq!(bundle.document.status, 200);
    }
    let expected = [
        "127.0.0.1",
        "preconnected.test",
        "some-name.test",
        "websocket.test",
    ];
    assert_eq!(socks.hosts(), expected);
    let direct = bed.visit(&plan("http://some-name.test/".to_owned())).await;
    assert!(matches!(direct, Err(VisitError::Fault(_))), "{direct:?}");
}
