//! Tests of Chromium's own throttling, which emulates a processor where browsers see no clock of
//! their own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use plumbline_browser::{Benchmark, CorePace, Gauge, LaunchOptions, Launcher, Throttle, VisitPlan};
use plumbline_bundle::Artifact;
use serde_json::Value;

use crate::site::Site;
use crate::{TestBed, plan};

/// The number of comparisons of which one must show the effect of throttling. Other tests use the
/// cores as well: they make everything without throttling slower, and Chromium's throttling does
/// nothing while its thread has no core.
const COMPARISONS: usize = 8;

const THROTTLED: Throttle = Throttle::ByChromium {
    rate: 8.0,
    nominal: CorePace { turn_ns: 0.0 },
};

/// A page that reports how long it worked.
const WORKING_PAGE: &str = "<!doctype html><title>Works</title><h1>Work</h1><script>
  const start = performance.now();
  let hash = 1;
  for (let i = 0; i < 2e7; i++) hash = (hash * 31 + i) | 0;
  const body = {here: 'work', ms: performance.now() - start, hash};
  fetch('/report', {method: 'POST', body: JSON.stringify(body)});
</script>";

#[tokio::test]
async fn a_throttled_cpu_has_a_lower_index() {
    let bed = TestBed::new();
    let gauge = Gauge::open(&bed.launcher).await.unwrap();
    assert!(!gauge.sees_clock());
    let mut pairs = Vec::new();
    let is_lower = |(throttled, unthrottled): &(f64, f64)| throttled < &(unthrottled / 2.0);
    while !pairs.iter().any(is_lower) && pairs.len() < COMPARISONS {
        let unthrottled = gauge.read(Throttle::NONE, Benchmark::Quick).await.unwrap();
        let throttled = gauge.read(THROTTLED, Benchmark::Quick).await.unwrap();
        assert!(throttled.pace.turn_ns > 0.0, "{throttled:?}");
        pairs.push((throttled.index, unthrottled.index));
    }
    assert!(pairs.iter().any(is_lower), "{pairs:?}");
    gauge.close().await;
}

#[tokio::test]
async fn a_page_without_a_page_clock_is_slowed_down_by_chromium_and_its_work_is_recorded() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    site.add_file("work.html", "", WORKING_PAGE);
    let work_ms = async |throttle| {
        let plan = VisitPlan {
            throttle,
            ..plan(site.url("work.html"))
        };
        let bundle = bed.measure(&plan).await;
        assert!(has_worked(&bundle.artifacts["scheduler"]));
        site.reports()["work"]["ms"].as_f64().unwrap()
    };
    let mut pairs = Vec::new();
    let is_slower = |(throttled, unthrottled): &(f64, f64)| throttled > &(unthrottled * 2.0);
    while !pairs.iter().any(is_slower) && pairs.len() < COMPARISONS {
        pairs.push((work_ms(THROTTLED).await, work_ms(Throttle::NONE).await));
    }
    assert!(pairs.iter().any(is_slower), "{pairs:?}");
}

/// Returns whether a main thread has worked, according to the artifact about it.
fn has_worked(scheduler: &Artifact) -> bool {
    let Artifact::Gathered(raw) = scheduler else {
        return false;
    };
    let scheduler: Value = serde_json::from_str(raw.get()).unwrap();
    assert_eq!(scheduler["rate"], 1.0);
    let threads = scheduler["threads"].as_array().unwrap();
    let samples = threads
        .iter()
        .flat_map(|thread| thread["samples"].as_array().unwrap());
    samples.into_iter().any(|it| it[3].as_f64().unwrap() > 0.0)
}

#[tokio::test]
async fn a_browser_that_cannot_be_preloaded_does_not_see_its_clock() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let chromium = Launcher::find(LaunchOptions::default()).unwrap();
    let chromium = chromium.chromium().display().to_string();
    let wrapper = folder.path().join("chromium");
    let script = format!("#!/bin/sh\nunset LD_PRELOAD\nexec '{chromium}' \"$@\"\n");
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, Permissions::from_mode(0o755)).unwrap();
    let bed = TestBed::with(LaunchOptions {
        chromium: Some(wrapper),
        page_clock: true,
        ..LaunchOptions::default()
    });
    let browser = bed.browser().await;
    assert!(!browser.sees_clock());
    browser.close().await;
}
