//! Tests of pages about which the browser reports more than the limits permit.

use std::time::Duration;

use plumbline_browser::VisitPlan;
use plumbline_bundle::FailureCode;

use crate::site::Site;
use crate::{TestBed, plan};

/// Maximum memory of this process, whatever a page does.
const MAX_MB: u64 = 400;

/// Returns the peak memory usage of this process.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kb = peak.unwrap().split_whitespace().nth(1).unwrap();
    kb.parse::<u64>().unwrap() / 1024
}

/// Returns a plan with a long deadline, because some of these pages block the browser for long.
fn slow_plan(site: &Site, page: &str) -> VisitPlan {
    VisitPlan {
        deadline: Duration::from_secs(150),
        ..plan(site.url(&format!("hostile/{page}")))
    }
}

#[tokio::test]
async fn a_page_that_exceeds_a_size_limit_ends_the_visit_and_uses_no_more_memory() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    // `make hostile` has pages that also need much memory in the browser.
    for (page, reason) in [
        ("console-large-message.html", "larger than 32 MB"),
        ("trace-marks.html", "trace"),
    ] {
        let failure = bed.measure_failure(&slow_plan(&site, page)).await;
        assert_eq!(failure.code, FailureCode::TooLarge, "{page}: {failure}");
        assert!(failure.message.contains(reason), "{page}: {failure}");
        assert!(peak_mb() < MAX_MB, "{page}: {} MB", peak_mb());
    }
    assert_eq!(bed.leftover_files(), 0);
}

#[tokio::test]
async fn a_script_that_is_too_large_is_not_read() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let page = "memory-inline-script.html";
    let bundle = bed.measure(&slow_plan(&site, page)).await;
    // It is listed with its length, or not at all if the host is too busy.
    assert!(bundle.artifacts.contains_key("scripts"));
    assert!(peak_mb() < MAX_MB, "{} MB", peak_mb());
}
