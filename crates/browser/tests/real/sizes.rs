//! Pages that make the browser say more than we may hold.

use std::time::Duration;

use plumbline_browser::VisitPlan;
use plumbline_bundle::{Artifact, FailureCode};
use serde_json::Value;

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
    for (page, why) in [
        ("memory-console-text.html", "larger than 32 MB"),
        ("memory-images-in-page.html", "more than 128 MB"),
        // Which bound comes first depends on how much of it was waiting.
        ("memory-long-addresses.html", "record"),
        ("trace-marks.html", "record"),
        ("trace-long-marks.html", "record"),
    ] {
        let failure = bench.failed(&slow_plan(&site, page)).await;
        assert_eq!(failure.code, FailureCode::TooLarge, "{page}: {failure}");
        assert!(failure.message.contains(why), "{page}: {failure}");
        assert!(peak_mb() < MAX_MB, "{page}: {} MB", peak_mb());
    }
    assert_eq!(bench.leftover_files(), 0);
}

#[tokio::test]
async fn much_that_need_not_be_kept_is_not_kept() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let plan = slow_plan(&site, "memory-inline-script.html");
    let bundle = bench.measured(&plan).await;
    let Artifact::Gathered(scripts) = &bundle.artifacts["scripts"] else {
        panic!("{:?}", bundle.artifacts["scripts"]);
    };
    let scripts: Value = serde_json::from_str(scripts.get()).unwrap();
    let lengths = scripts.as_array().unwrap().iter();
    let longest = lengths.filter_map(|script| script["length"].as_u64()).max();
    assert!(longest > Some(60_000_000), "{longest:?}");
    assert!(peak_mb() < MAX_MB, "{} MB", peak_mb());
}
