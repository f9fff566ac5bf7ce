//! Tests of the pictures of a load.

use std::time::Duration;

use plumbline_browser::VisitPlan;
use serde_json::Value;

use crate::site::Site;
use crate::{TestBed, plan};

#[tokio::test]
async fn the_last_picture_of_a_long_animation_shows_the_page_as_it_is_at_the_end() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    // The page has a long task each second until the end of its animation.
    let plan = VisitPlan {
        idle: Duration::from_millis(1500),
        ..plan(site.url("draws-on-a-canvas-past-the-last-screenshot.html"))
    };
    let bundle = bed.measure(&plan).await;
    let trace: Value = serde_json::from_slice(&bundle.trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let mut pictures: Vec<(f64, &str)> = events
        .iter()
        .filter(|event| event["name"] == "Screenshot")
        .filter_map(|event| Some((event["ts"].as_f64()?, event["args"]["snapshot"].as_str()?)))
        .collect();
    pictures.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(pictures.len() > 450, "{}", pictures.len());
    // A picture of noise is large, and one of a word is small.
    let animated = pictures[pictures.len() / 2].1.len();
    let last = pictures[pictures.len() - 1].1.len();
    assert!(last < animated / 2, "{last} of {animated} characters");
}
