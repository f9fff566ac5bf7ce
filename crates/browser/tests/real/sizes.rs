//! Pages that make the browser say more than we may hold.

use std::time::Duration;

use plumbline_browser::VisitPlan;
use plumbline_bundle::FailureCode;

use crate::site::Site;
use crate::{Bench, plan};

/// The most that our process may need, whatever a page does.
const MAX_MB: u64 = 400;

/// The most memory that this process has ever had.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kb = peak.unwrap().split_whitespace().nth(1).unwrap();
    kb.parse::<u64>().unwrap() / 1024
}

/// Some of these pages keep the browser busy for long, and that is not what is tested.
fn slow_plan(site: &Site, page: &str) -> VisitPlan {
    VisitPlan {
        deadline: Duration::from_secs(150),
        ..plan(site.url(&format!("hostile/{page}")))
    }
}

#[tokio::test]
async fn what_is_too_large_to_hold_ends_the_visit_and_is_not_held() {
    let (bench, site) = (Bench::new(), Site::start().await);
    for (page, reason) in [
        ("console-large-message.html", Some("larger than 32 MB")),
        // These two make the browser large as well: which limit is reached first depends on the host.
        ("memory-console-text.html", None),
        ("memory-images-in-page.html", None),
        ("trace-marks.html", Some("record")),
    ] {
        let failure = bench.failed(&slow_plan(&site, page)).await;
        assert_eq!(failure.code, FailureCode::TooLarge, "{page}: {failure}");
        if let Some(reason) = reason {
            assert!(failure.message.contains(reason), "{page}: {failure}");
        }
        assert!(peak_mb() < MAX_MB, "{page}: {} MB", peak_mb());
    }
    assert_eq!(bench.leftover_files(), 0);
}

#[tokio::test]
async fn a_script_too_large_to_read_is_not_read() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let page = "memory-inline-script.html";
    let bundle = bench.measured(&slow_plan(&site, page)).await;
    // Listed by its length, or not at all where a busy host did not find the time to list it.
    assert!(bundle.artifacts.contains_key("scripts"));
    assert!(peak_mb() < MAX_MB, "{} MB", peak_mb());
}
