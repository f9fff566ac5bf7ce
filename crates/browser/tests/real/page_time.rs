//! Tests of browsers that see a clock of their own.

use plumbline_browser::{Benchmark, CorePace, Gauge, LaunchOptions, Throttle, VisitPlan};

use crate::site::Site;
use crate::{TestBed, plan};

fn bed() -> TestBed {
    TestBed::with(LaunchOptions {
        page_clock: true,
        ..LaunchOptions::default()
    })
}

/// Returns a throttle whose clock does not follow the speed of the core.
pub(crate) fn by_clock(rate: f64) -> Throttle {
    Throttle::ByClock {
        rate,
        nominal: CorePace::default(),
    }
}

#[tokio::test]
async fn a_fast_clock_makes_a_slow_processor_and_a_slow_clock_a_fast_one() {
    let bed = bed();
    let gauge = Gauge::open(&bed.launcher).await.unwrap();
    assert!(gauge.sees_clock());
    let index = async |rate| {
        let throttle = by_clock(rate);
        let reading = gauge.read(throttle, Benchmark::Quick).await.unwrap();
        reading.index
    };
    let normal = index(1.0).await;
    let slow = index(8.0).await;
    let fast = index(0.125).await;
    assert!(slow < normal / 2.0, "{slow} {normal}");
    assert!(fast > normal * 2.0, "{fast} {normal}");
    gauge.close().await;
}

#[tokio::test]
async fn the_clocks_of_a_page_agree_at_every_rate() {
    for rate in [0.5, 1.0, 4.0] {
        let (bed, site) = (bed(), Site::start().await);
        let plan = VisitPlan {
            throttle: by_clock(rate),
            ..plan(site.url("clocks.html"))
        };
        let bundle = bed.measure(&plan).await;
        assert!(bundle.warnings.is_empty(), "{:?}", bundle.warnings);
        let reports = site.reports();
        let clocks = &reports["clocks"];
        let ms = |name: &str| clocks[name].as_f64().unwrap();
        // Timers never end early, and both clocks are rounded.
        for (clock, least) in [("performance", 299.0), ("date", 298.0), ("frames", 1.0)] {
            assert!(ms(clock) >= least, "rate {rate}: {clocks}");
        }
        let difference = ms("performance") - ms("date");
        assert!(difference.abs() < 10.0, "rate {rate}: {clocks}");
    }
}

#[tokio::test]
async fn a_browser_without_a_clock_is_not_visited_by_the_clock() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let plan = VisitPlan {
        throttle: by_clock(2.0),
        ..plan(site.url("plain-text.html"))
    };
    let error = bed.visit(&plan).await.unwrap_err();
    assert!(error.to_string().contains("clock"), "{error}");
}
