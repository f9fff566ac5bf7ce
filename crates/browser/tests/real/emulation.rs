//! Tests of the emulated device as seen by a page, a frame in another process and a worker.

use std::time::Duration;

use plumbline_browser::VisitPlan;
use plumbline_trace::Trace;
use serde_json::{Value, json};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;

use crate::site::Site;
use crate::{TestBed, device, plan};

struct Views {
    page: Value,
    frame: Value,
    worker: Value,
}

async fn visit_with(id: &str) -> Views {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let plan = VisitPlan {
        device: device(id),
        idle: Duration::from_millis(1500),
        ..plan(site.url("what-the-page-sees.html"))
    };
    bed.measure(&plan).await;
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

/// Checks user agent and platform in every process and in request headers.
fn check_identity(views: &Views, user_agent: &str, platform: &str) {
    for view in [&views.page, &views.frame, &views.worker] {
        let text = view["userAgent"].as_str().unwrap();
        assert!(text.contains(user_agent), "{}: {text}", view["here"]);
        assert!(!text.contains("Headless"));
    }
    for view in [&views.page, &views.frame] {
        assert_eq!(view["platform"], platform, "{}", view["here"]);
        assert_eq!(view["headers"]["user-agent"], views.page["userAgent"]);
        // Chromium's own window fills the screen.
        assert_eq!(view["displayModes"], json!(["browser"]), "{}", view["here"]);
    }
}

fn check_touch(view: &Value, touch: bool) {
    let points = if touch { 5 } else { 0 };
    assert_eq!(view["touchPoints"], points, "{}", view["here"]);
    assert_eq!(view["touchEvents"], touch, "{}", view["here"]);
    assert_eq!(view["coarse"], touch, "{}", view["here"]);
    assert_eq!(view["hover"], !touch, "{}", view["here"]);
    assert_eq!(view["anyFine"], !touch, "{}", view["here"]);
}

#[tokio::test]
async fn an_android_phone_has_the_same_identity_in_every_process() {
    let views = visit_with("mobile").await;
    check_identity(&views, "moto g power (2022)", "Linux armv81");
    assert_eq!(views.page["inner"], json!([412, 823]));
    assert_eq!(views.page["orientation"], "portrait-primary");
    assert_eq!(views.page["visible"], "visible");
    for view in [&views.page, &views.frame] {
        assert_eq!(view["screen"], json!([412, 823]));
        assert_eq!(view["scale"], 1.75);
        assert_eq!(view["cpuPerformance"], 1, "{}", view["here"]);
        check_touch(view, true);
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
    let views = visit_with("iphone12Pro").await;
    check_identity(&views, "iPhone; CPU iPhone OS", "iPhone");
    assert_eq!(views.page["inner"], json!([390, 664]));
    for view in [&views.page, &views.frame] {
        assert_eq!(view["screen"], json!([390, 844]), "{}", view["here"]);
        assert_eq!(view["scale"], 3, "{}", view["here"]);
        check_touch(view, true);
        let headers = view["headers"].as_object().unwrap();
        let hints = headers
            .keys()
            .filter(|name| name.starts_with("sec-ch-ua"))
            .count();
        assert_eq!(hints, 0, "{headers:?}");
    }
}

#[tokio::test]
async fn a_tablet_is_not_a_phone() {
    let views = visit_with("samsungGalaxyTab7").await;
    check_identity(&views, "SM-T870", "Linux armv81");
    assert!(!views.page["userAgent"].as_str().unwrap().contains("Mobile"));
    check_touch(&views.page, true);
    assert_eq!(views.page["headers"]["sec-ch-ua-mobile"], "?0");
    assert_eq!(views.page["hints"]["formFactors"], json!(["Tablet"]));
}

#[tokio::test]
async fn a_desktop_has_a_mouse() {
    let views = visit_with("desktop").await;
    check_identity(&views, "Macintosh; Intel Mac OS X", "MacIntel");
    assert_eq!(views.page["inner"], json!([1350, 940]));
    assert_eq!(views.page["scale"], 1);
    assert_eq!(views.page["orientation"], "landscape-primary");
    check_touch(&views.page, false);
    check_touch(&views.frame, false);
    assert_eq!(views.page["hints"]["bitness"], "64");
    assert_eq!(views.page["headers"]["sec-ch-ua-platform"], "\"macOS\"");
}

#[tokio::test]
async fn the_grease_brand_is_that_of_this_chromium() {
    let views = visit_with("mobile").await;
    let brands = views.page["hints"]["brands"].as_array().unwrap();
    let grease = brands.iter().find(|brand| {
        let name = brand["brand"].as_str().unwrap();
        name.starts_with("Not")
    });
    // The browser's own list, which is not overridden in a page of a plain profile.
    let own = own_brands().await;
    assert!(own.contains(grease.unwrap()), "{own:?}");
}

async fn own_brands() -> Vec<Value> {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let mut dump = std::process::Command::new(bed.launcher.chromium());
    let home = tempfile::tempdir().unwrap();
    // No sandbox, because it does not work as root and only a page of this test is loaded.
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

/// A page is drawn as large as the screenshots, of which it must not notice anything.
#[tokio::test]
async fn screenshots_contain_the_whole_viewport_and_the_page_is_not_resized() {
    for (id, viewport) in [("mobile", [412, 823]), ("desktop", [1350, 940])] {
        let (bed, site) = (TestBed::new(), Site::start().await);
        let plan = VisitPlan {
            device: device(id),
            ..plan(site.url("coloured-corners.html"))
        };
        let bundle = bed.measure(&plan).await;
        let report = site.reports()["page"].clone();
        assert_eq!(report["size"], json!([viewport[0], viewport[1], 1]), "{id}");
        let seen = ["root", "inside true", "outside false"];
        assert_eq!(report["seen"], json!(seen), "{id}");

        let trace = Trace::read(&bundle.trace).unwrap();
        let screenshot = trace.screenshots.last().unwrap().jpeg().unwrap();
        let mut decoder = JpegDecoder::new(ZCursor::new(&screenshot));
        let pixels = decoder.decode().unwrap();
        let (width, height) = decoder.dimensions().unwrap();
        assert!(
            (480..=500).contains(&width.max(height)),
            "{id}: {width}, {height}"
        );
        let colour = |x: usize, y: usize| {
            let at = (y * width + x) * 3;
            pixels[at..at + 3].iter().map(|value| *value > 128)
        };
        let corners = [
            (2, 2),
            (width - 3, 2),
            (2, height - 3),
            (width - 3, height - 3),
        ];
        let expected = [
            [true, false, false],
            [false, true, false],
            [false, false, true],
            [true, true, false],
        ];
        for ((x, y), expected) in corners.into_iter().zip(expected) {
            assert!(colour(x, y).eq(expected), "{id}: the corner at {x}, {y}");
        }
    }
}
