//! What a page, a frame in another process and a worker see of the device.

use std::time::Duration;

use plumbline_browser::VisitPlan;
use serde_json::{Value, json};

use crate::site::Site;
use crate::{Bench, device, plan};

struct Views {
    page: Value,
    frame: Value,
    worker: Value,
}

async fn views_of(id: &str) -> Views {
    let (bench, site) = (Bench::new(), Site::start().await);
    let plan = VisitPlan {
        device: device(id),
        quiet: Duration::from_millis(1500),
        ..plan(site.url("what-the-page-sees.html"))
    };
    bench.measured(&plan).await;
    let reports = site.reports();
    let view = |here: &str| {
        reports
            .get(here)
            .unwrap_or_else(|| panic!("no {here}"))
            .clone()
    };
    Views {
        page: view("page"),
        frame: view("frame"),
        worker: view("worker"),
    }
}

/// In every process, and in what it sends.
fn everywhere_is(views: &Views, user_agent: &str, platform: &str) {
    for view in [&views.page, &views.frame, &views.worker] {
        let seen = view["userAgent"].as_str().unwrap();
        assert!(seen.contains(user_agent), "{}: {seen}", view["here"]);
        assert!(!seen.contains("Headless"));
    }
    for view in [&views.page, &views.frame] {
        assert_eq!(view["platform"], platform, "{}", view["here"]);
        assert_eq!(view["headers"]["user-agent"], views.page["userAgent"]);
    }
}

fn is_touched(view: &Value, touch: bool) {
    let points = if touch { 5 } else { 0 };
    assert_eq!(view["touchPoints"], points, "{}", view["here"]);
    assert_eq!(view["touchEvents"], touch, "{}", view["here"]);
    assert_eq!(view["coarse"], touch, "{}", view["here"]);
    assert_eq!(view["hover"], !touch, "{}", view["here"]);
    assert_eq!(view["anyFine"], !touch, "{}", view["here"]);
}

#[tokio::test]
async fn an_android_phone_is_itself_in_every_process() {
    let views = views_of("mobile").await;
    everywhere_is(&views, "moto g power (2022)", "Linux armv81");
    assert_eq!(views.page["inner"], json!([412, 823]));
    assert_eq!(views.page["orientation"], "portrait-primary");
    assert_eq!(views.page["visible"], "visible");
    for view in [&views.page, &views.frame] {
        assert_eq!(view["screen"], json!([412, 823]));
        assert_eq!(view["scale"], 1.75);
        is_touched(view, true);
        assert_eq!(view["headers"]["sec-ch-ua-mobile"], "?1");
        assert_eq!(view["headers"]["sec-ch-ua-platform"], "\"Android\"");
    }
    for view in [&views.page, &views.frame, &views.worker] {
        let hints = &view["hints"];
        assert_eq!(hints["model"], "moto g power (2022)");
        assert_eq!(hints["platform"], "Android");
        assert_eq!(hints["platformVersion"], "11.0.0");
        assert_eq!(hints["bitness"], "");
        assert_eq!(hints["architecture"], "");
        assert_eq!(hints["mobile"], true);
        assert_eq!(hints["formFactors"], json!(["Mobile"]));
        assert_eq!(hints["fullVersionList"].as_array().unwrap().len(), 3);
    }
}

#[tokio::test]
async fn an_iphone_has_its_own_viewport_and_sends_no_client_hints() {
    let views = views_of("iphone12Pro").await;
    everywhere_is(&views, "iPhone; CPU iPhone OS", "iPhone");
    assert_eq!(views.page["inner"], json!([390, 664]));
    for view in [&views.page, &views.frame] {
        assert_eq!(view["screen"], json!([390, 844]), "{}", view["here"]);
        assert_eq!(view["scale"], 3, "{}", view["here"]);
        is_touched(view, true);
        let headers = view["headers"].as_object().unwrap();
        let hints = headers
            .keys()
            .filter(|name| name.starts_with("sec-ch-ua"))
            .count();
        assert_eq!(hints, 0, "{headers:?}");
    }
}

#[tokio::test]
async fn a_tablet_is_no_phone() {
    let views = views_of("samsungGalaxyTab7").await;
    everywhere_is(&views, "SM-T870", "Linux armv81");
    assert!(!views.page["userAgent"].as_str().unwrap().contains("Mobile"));
    is_touched(&views.page, true);
    assert_eq!(views.page["headers"]["sec-ch-ua-mobile"], "?0");
    assert_eq!(views.page["hints"]["formFactors"], json!(["Tablet"]));
}

#[tokio::test]
async fn a_desktop_has_a_mouse() {
    let views = views_of("desktop").await;
    everywhere_is(&views, "Macintosh; Intel Mac OS X", "MacIntel");
    assert_eq!(views.page["inner"], json!([1350, 940]));
    assert_eq!(views.page["scale"], 1);
    assert_eq!(views.page["orientation"], "landscape-primary");
    is_touched(&views.page, false);
    is_touched(&views.frame, false);
    assert_eq!(views.page["hints"]["bitness"], "64");
    assert_eq!(views.page["headers"]["sec-ch-ua-platform"], "\"macOS\"");
}

#[tokio::test]
async fn the_made_up_brand_is_the_one_that_this_chromium_makes_up() {
    let views = views_of("mobile").await;
    let brands = views.page["hints"]["brands"].as_array().unwrap();
    let made_up = brands.iter().find(|brand| {
        let name = brand["brand"].as_str().unwrap();
        name.starts_with("Not")
    });
    // The browser's own list, which nothing overrides in a page of a plain profile.
    let own = own_brands().await;
    assert!(own.contains(made_up.unwrap()), "{own:?}");
}

async fn own_brands() -> Vec<Value> {
    let (bench, site) = (Bench::new(), Site::start().await);
    let mut dump = std::process::Command::new(bench.launcher.chromium());
    let home = tempfile::tempdir().unwrap();
    // Only asked for its brands, on a page of ours: the sandbox of root is not the matter here.
    dump.args([
        "--headless=new",
        "--no-sandbox",
        "--no-first-run",
        "--virtual-time-budget=3000",
    ])
    .arg(format!("--user-data-dir={}", home.path().display()))
    .env_clear()
    .env("HOME", home.path())
    .env("TMPDIR", home.path())
    .arg("--dump-dom")
    .arg(site.url("what-the-page-sees.html?here=own"))
    .stderr(std::process::Stdio::null());
    let output = tokio::task::spawn_blocking(move || dump.output())
        .await
        .unwrap()
        .unwrap();
    assert!(output.status.success());
    site.reports()["own"]["hints"]["brands"]
        .as_array()
        .unwrap()
        .clone()
}
