//! What a visit gathers for the checks that say what costs time.

use std::time::{Duration, Instant};

use plumbline_bundle::{Artifact, Bundle};
use serde_json::Value;

use crate::site::Site;
use crate::{Bench, plan};

fn artifact(bundle: &Bundle, name: &str) -> Value {
    match &bundle.artifacts[name] {
        Artifact::Gathered(raw) => serde_json::from_str(raw.get()).unwrap(),
        Artifact::Missing(reason) => panic!("{name}: {reason}"),
    }
}

#[tokio::test]
async fn elements_that_the_trace_names_by_number_are_looked_up() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let bundle = bench.measured(&plan(site.url("costs-time.html"))).await;
    let trace: Value = serde_json::from_slice(&bundle.trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let node_of = |name: &str| {
        let mut named = events.iter().filter(|event| event["name"] == name);
        named.find_map(|event| event["args"]["data"]["nodeId"].as_i64())
    };
    let elements = artifact(&bundle, "trace-elements");
    let selector = |name: &str| {
        let node = node_of(name).unwrap();
        let all = elements.as_array().unwrap();
        let found = all
            .iter()
            .find(|element| element["nodeId"] == node)
            .unwrap();
        found["node"]["selector"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        selector("largestContentfulPaint::Candidate"),
        "body > h1#largest"
    );
    assert_eq!(selector("Animation"), "body > div#growing");
}

#[tokio::test]
async fn images_come_with_what_gives_them_a_size() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let bundle = bench.measured(&plan(site.url("costs-time.html"))).await;
    let images = artifact(&bundle, "image-sizing");
    let rules: Vec<(String, Value)> = images
        .as_array()
        .unwrap()
        .iter()
        .map(|image| {
            let selector = image["node"]["selector"].as_str().unwrap();
            (selector.to_owned(), image["rules"].clone())
        })
        .collect();
    let of = |selector: &str| &rules.iter().find(|(known, _)| known == selector).unwrap().1;
    assert_eq!(of("body > img#bare")["width"], Value::Null);
    assert!(of("body > img#bare").is_object());
    // Its attributes say it all: nobody was asked.
    assert!(of("body > img#by-attributes").is_null());
    assert_eq!(of("body > img#by-style")["height"], "40px");
    assert_eq!(of("body > img#by-ratio")["aspectRatio"], "1 / 1");
}

/// On a screen whose own pixels are finer, each line is as high as a whole number of those.
#[tokio::test]
async fn text_is_looked_at_where_css_pixels_put_it() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let bundle = bench.measured(&plan(site.url("lines-of-text.html"))).await;
    assert_eq!(artifact(&bundle, "page")["devicePixelRatio"], 1.75);
    let images = artifact(&bundle, "images");
    let tops = images.as_array().unwrap().iter();
    let tops: Vec<f64> = tops
        .map(|image| image["rect"]["top"].as_f64().unwrap())
        .collect();
    assert_eq!(tops.len(), 8);
    assert!(tops.iter().all(|top| top.fract() == 0.0), "{tops:?}");
}

#[tokio::test]
async fn a_page_that_was_left_is_kept_or_says_why_not() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let kept = bench.measured(&plan(site.url("plain-text.html"))).await;
    assert_eq!(artifact(&kept, "back-forward-cache")["wasRestored"], true);
    assert_eq!(kept.final_url, site.url("plain-text.html"));
    assert!(kept.warnings.is_empty(), "{:?}", kept.warnings);

    let lost = bench.measured(&plan(site.url("costs-time.html"))).await;
    let told = artifact(&lost, "back-forward-cache");
    assert_eq!(told["wasRestored"], false, "{told}");
    let reasons = told["reasons"].as_array().unwrap();
    assert!(!reasons.is_empty());
    assert_eq!(
        reasons[0]["frameUrl"],
        site.url("costs-time.html"),
        "{told}"
    );
    assert_eq!(lost.final_url, site.url("costs-time.html"));
    // Coming back loaded it again; that is not the visit's.
    let log: Value = serde_json::from_slice(&lost.log).unwrap();
    let sent = log.as_array().unwrap().iter();
    let documents = sent.filter(|event| {
        event["method"] == "Network.requestWillBeSent" && event["params"]["type"] == "Document"
    });
    assert_eq!(documents.count(), 1);
}

#[tokio::test]
async fn elements_say_how_much_of_them_the_scrollers_around_them_leave_to_be_seen() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let bundle = bench.measured(&plan(site.url("scrolls-inside.html"))).await;
    let anchors = artifact(&bundle, "anchors");
    let seen = |id: &str| {
        let mut links = anchors.as_array().unwrap().iter();
        let link = links.find(|link| link["id"] == id).unwrap();
        link["node"].get("seen").cloned()
    };
    // The inner scroller begins at 150 of 200, and what is in it is 60 high.
    let part = serde_json::json!({"left": 0, "top": 150, "width": 120, "height": 50});
    assert_eq!(seen("part"), Some(part));
    assert_eq!(seen("none").unwrap()["height"], 0);
    for whole in ["absolute", "fixed", "whole"] {
        assert_eq!(seen(whole), None, "{whole}");
    }
}

#[tokio::test]
async fn a_page_that_stops_whoever_debugs_it_is_looked_at_all_the_same() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let bundle = bench
        .measured(&plan(site.url("stops-debuggers.html")))
        .await;
    let scripts = artifact(&bundle, "scripts");
    assert!(scripts[0]["tokenLength"].as_f64() > Some(0.0), "{scripts}");
    assert!(artifact(&bundle, "axe")["version"].is_string());
}

/// Width and height out of the frame header of a baseline JPEG, in base64 (ITU T.81, B.2.2).
fn jpeg_size(base64: &str) -> (u16, u16) {
    let sextet = |symbol: u8| {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        alphabet.iter().position(|of| *of == symbol).unwrap_or(0) as u32
    };
    let bytes: Vec<u8> = base64
        .as_bytes()
        .chunks(4)
        .flat_map(|group| {
            let bits = group.iter().fold(0, |bits, of| bits << 6 | sextet(*of));
            [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8]
        })
        .collect();
    let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    assert_eq!(number(0), 0xffd8);
    let mut at = 2;
    while number(at) != 0xffc0 {
        at += 2 + usize::from(number(at + 2));
    }
    (number(at + 7), number(at + 5))
}

#[tokio::test]
async fn a_picture_shows_the_whole_page_in_css_pixels() {
    let started = Instant::now();
    let (bench, site) = (Bench::new(), Site::start().await);
    // A host that is busy may be too slow for it once, but not for ever.
    let picture = loop {
        let bundle = bench.measured(&plan(site.url("tall.html"))).await;
        if let Artifact::Gathered(_) = &bundle.artifacts["full-page-picture"] {
            break artifact(&bundle, "full-page-picture");
        }
        assert!(started.elapsed() < Duration::from_secs(240), "never");
    };
    assert_eq!(picture["width"].as_f64(), Some(412.0));
    assert_eq!(picture["height"].as_f64(), Some(3000.0));
    assert_eq!(jpeg_size(picture["data"].as_str().unwrap()), (412, 3000));
}

#[tokio::test]
async fn one_screen_needs_no_second_picture() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let bundle = bench.measured(&plan(site.url("plain-text.html"))).await;
    if let Artifact::Gathered(picture) = &bundle.artifacts["full-page-picture"] {
        assert_eq!(picture.get(), "null");
    }
}

#[tokio::test]
async fn libraries_are_known_by_what_they_leave_with_or_without_a_version() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let bundle = bench
        .measured(&plan(site.url("leaves-marks-of-libraries.html")))
        .await;
    let mut found: Vec<(String, Value)> = artifact(&bundle, "libraries")
        .as_array()
        .unwrap()
        .iter()
        .map(|library| {
            let name = library["name"].as_str().unwrap();
            (name.to_owned(), library["version"].clone())
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        ("D3", Value::Null),
        ("Fuse", "7.1.0".into()),
        ("Preact", Value::Null),
        ("React", Value::Null),
        ("Socket.IO", Value::Null),
        ("Underscore", "1.13.6".into()),
        ("core-js", Value::Null),
    ];
    let expected = expected.map(|(name, version)| (name.to_owned(), version));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn elements_in_a_frame_of_the_same_site_are_looked_up_too() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let bundle = bench.measured(&plan(site.url("frames.html"))).await;
    let elements = artifact(&bundle, "trace-elements");
    let mut elements = elements.as_array().unwrap().iter();
    // Only the frames hold a paragraph: painted largest there, and moved when a bar comes in above it.
    assert!(elements.any(|element| element["node"]["selector"] == "body > p"));
}
