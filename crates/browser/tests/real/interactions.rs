//! Tests of inputs on controls after a visit.

use plumbline_browser::{LaunchOptions, Throttle, VisitPlan, interact};
use plumbline_bundle::{InputKind, InteractionRecord, InteractionRecords, InteractionTiming};
use serde_json::Value;

use crate::page_time::by_clock;
use crate::site::Site;
use crate::{TestBed, device, plan};

async fn records_of(bed: &TestBed, plan: &VisitPlan) -> InteractionRecords {
    interact(bed.browser().await, plan, &|_| {}).await
}

fn plan_for(site: &Site, page: &str) -> VisitPlan {
    VisitPlan {
        interactions: 8,
        ..plan(site.url(page))
    }
}

fn find<'r>(records: &'r InteractionRecords, name: &str) -> &'r InteractionRecord {
    let mut all = records.interactions.iter();
    let found = all.find(|interaction| interaction.name == name);
    found.unwrap_or_else(|| panic!("no `{name}` in {records:#?}"))
}

fn timing<'r>(records: &'r InteractionRecords, name: &str) -> &'r InteractionTiming {
    let interaction = find(records, name);
    let timing = interaction.timing.as_ref();
    timing.unwrap_or_else(|| panic!("{interaction:#?}"))
}

/// Checks a part of an interaction against the time that the page measured itself, or one of
/// several such times. A paint follows up to one frame after its script, and Chromium rounds
/// durations to 8 ms.
fn assert_close(part: &str, ms: f64, site: &Site, place: &str, key: &str, frame_ms: f64) {
    let reports = site.reports();
    let times: Vec<f64> = match &reports[place][key] {
        Value::Array(times) => times.iter().filter_map(Value::as_f64).collect(),
        time => time.as_f64().into_iter().collect(),
    };
    let is_close = |time: &f64| (ms - time).abs() <= (time * 0.1).max(8.0) + frame_ms;
    assert!(
        times.iter().any(is_close),
        "{part}: {ms} ms instead of one of {times:?} ms in {reports:?}"
    );
}

/// Checks the known delays of `answers-late.html`.
fn assert_known_delays(records: &InteractionRecords, site: &Site, input: InputKind) {
    assert_eq!(records.error, None);
    let waits = timing(records, "Waits");
    assert_close(
        "input delay",
        waits.input_delay_ms,
        site,
        "waits",
        "inputDelays",
        0.0,
    );
    assert_eq!(waits.scripts[0].function, "runsTooLong");
    let works = timing(records, "Works");
    assert_close(
        "processing",
        works.processing_ms,
        site,
        "works",
        "processing",
        0.0,
    );
    assert_eq!(works.scripts[0].function, "worksTooLong");
    assert!(works.scripts[0].url.ends_with("/answers-late.js"));
    assert!(works.scripts[0].position.is_some());
    assert_eq!(works.input, input);
    assert!(works.target.as_ref().unwrap().contains("button#works"));
    let paints = timing(records, "Paints");
    assert_close(
        "presentation",
        paints.presentation_delay_ms,
        site,
        "paints",
        "presentation",
        17.0,
    );
    assert_eq!(paints.scripts[0].function, "paintsTooLong");
    for timing in [waits, works, paints] {
        let parts = timing.input_delay_ms + timing.processing_ms + timing.presentation_delay_ms;
        assert!((parts - timing.duration_ms).abs() < 0.5, "{timing:?}");
    }
    // Letters are typed, and the control that removes the others was used before some of them.
    assert_eq!(timing(records, "Find").input, InputKind::Key);
    assert_eq!(site.reports()["finds"]["keys"], "sho");
    assert!(timing(records, "Removes the others").duration_ms > 0.0);
    assert!(timing(records, "More").duration_ms > 0.0);
}

#[tokio::test]
async fn the_parts_of_taps_are_those_that_the_page_measures() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let records = records_of(&bed, &plan_for(&site, "answers-late.html")).await;
    assert_known_delays(&records, &site, InputKind::Tap);
}

#[tokio::test]
async fn the_parts_of_clicks_are_those_that_the_page_measures() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let plan = VisitPlan {
        device: device("desktop"),
        ..plan_for(&site, "answers-late.html")
    };
    let records = records_of(&bed, &plan).await;
    assert_known_delays(&records, &site, InputKind::Click);
}

#[tokio::test]
async fn the_times_of_a_slower_device_are_those_of_its_clock() {
    let options = LaunchOptions {
        page_clock: true,
        ..LaunchOptions::default()
    };
    let (bed, site) = (TestBed::with(options), Site::start().await);
    let plan = VisitPlan {
        throttle: by_clock(4.0),
        ..plan_for(&site, "answers-late.html")
    };
    let records = records_of(&bed, &plan).await;
    assert_known_delays(&records, &site, InputKind::Tap);
}

#[tokio::test]
async fn no_input_leaves_the_page_or_changes_anything_on_a_server() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let records = records_of(&bed, &plan_for(&site, "leaves-by-button.html")).await;
    assert_eq!(records.error, None);
    let paths = site.paths();
    let left: Vec<_> = paths.iter().filter(|path| path.contains("left")).collect();
    assert!(left.is_empty(), "{left:?}");
    for (name, reason) in [
        ("Navigate", "leaves the page"),
        ("Send by script", "leaves the page"),
        ("Products menu", "leaves the page"),
        ("Open a window", "opens another window"),
        ("Download", "starts a download"),
    ] {
        let interaction = find(&records, name);
        assert_eq!(interaction.not_measured.as_deref(), Some(reason), "{name}");
        assert_eq!(interaction.timing, None);
    }
    assert!(timing(&records, "Save").duration_ms > 0.0);
    assert!(timing(&records, "Stay").duration_ms > 0.0);
    let names: Vec<_> = records.interactions.iter().map(|it| &it.name).collect();
    for name in ["Elsewhere", "Other tab", "Log out", "Send"] {
        assert!(!names.iter().any(|other| *other == name), "{names:?}");
    }
}

#[tokio::test]
async fn a_handler_that_never_ends_does_not_prevent_the_next_input() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let plan = VisitPlan {
        throttle: Throttle::NONE,
        ..plan_for(&site, "never-answers-a-click.html")
    };
    let records = records_of(&bed, &plan).await;
    assert_eq!(records.error, None);
    let forever = find(&records, "Run forever");
    let reason = forever.not_measured.as_deref().unwrap();
    assert!(reason.contains("did not respond"), "{reason}");
    assert!(timing(&records, "Answer").duration_ms > 0.0);
    assert_eq!(bed.leftover_files(), 0);
}

#[tokio::test]
async fn a_page_that_does_not_load_has_a_reason_instead_of_interactions() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let records = records_of(&bed, &plan_for(&site, "broken")).await;
    assert!(records.interactions.is_empty());
    let error = records.error.unwrap();
    assert!(error.contains("connection"), "{error}");
    let records = records_of(&bed, &plan_for(&site, "missing-page")).await;
    assert!(records.error.unwrap().contains("404"));
}

#[tokio::test]
async fn taps_hit_their_controls_on_a_page_that_is_shown_zoomed_out() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let plan = VisitPlan {
        device: device("mobile"),
        ..plan_for(&site, "no-viewport.html")
    };
    let records = records_of(&bed, &plan).await;
    for name in ["Near", "Far"] {
        timing(&records, name);
    }
}
