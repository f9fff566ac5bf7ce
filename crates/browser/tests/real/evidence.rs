//! Tests of the artifacts that a visit gathers.

use std::time::{Duration, Instant};

use plumbline_bundle::{Artifact, Bundle};
use serde_json::Value;

use crate::site::Site;
use crate::{TestBed, plan};

fn artifact(bundle: &Bundle, name: &str) -> Value {
    match &bundle.artifacts[name] {
        Artifact::Gathered(raw) => serde_json::from_str(raw.get()).unwrap(),
        Artifact::Missing(reason) => panic!("{name}: {reason}"),
    }
}

#[tokio::test]
async fn elements_in_the_trace_are_described() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("costs-time.html"))).await;
    let trace: Value = serde_json::from_slice(&bundle.trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let node_of = |name: &str| {
        let mut events = events.iter().filter(|event| event["name"] == name);
        events.find_map(|event| event["args"]["data"]["nodeId"].as_i64())
    };
    let elements = artifact(&bundle, "trace-elements");
    let selector = |name: &str| {
        let node = node_of(name).unwrap();
        let all = elements.as_array().unwrap();
        let element = all
            .iter()
            .find(|element| element["nodeId"] == node)
            .unwrap();
        element["node"]["selector"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        selector("largestContentfulPaint::Candidate"),
        "body > h1#largest"
    );
    assert_eq!(selector("Animation"), "body > div#growing");
}

#[tokio::test]
async fn places_that_forced_layout_have_their_originals() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("slow-functions.html"))).await;
    let places = artifact(&bundle, "original-places");
    let lines: Vec<(&str, u64)> = places
        .as_array()
        .unwrap()
        .iter()
        .map(|place| {
            assert_eq!(place["url"], site.url("slow-functions.min.js"));
            assert_eq!(place["line"], 0);
            let original = &place["original"];
            let source = original["source"].as_str().unwrap();
            (source, original["line"].as_u64().unwrap())
        })
        .collect();
    // The script has one place that reads a size after a change.
    assert_eq!(lines, [("slow-functions.js", 22)]);
}

#[tokio::test]
async fn images_have_the_rules_that_set_their_size() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("costs-time.html"))).await;
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
    let rules_of = |selector: &str| {
        let mut rules = rules.iter();
        &rules.find(|(image, _)| image == selector).unwrap().1
    };
    assert_eq!(rules_of("body > img#bare")["width"], Value::Null);
    assert!(rules_of("body > img#bare").is_object());
    // The attributes are sufficient, so no rules were read.
    assert!(rules_of("body > img#by-attributes").is_null());
    assert_eq!(rules_of("body > img#by-style")["height"], "40px");
    assert_eq!(rules_of("body > img#by-ratio")["aspectRatio"], "1 / 1");
}

/// The height of a line is a whole number of pixels of the screen, which are smaller on this one.
#[tokio::test]
async fn artifacts_are_gathered_with_a_layout_in_css_pixels() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("lines-of-text.html"))).await;
    assert_eq!(artifact(&bundle, "page")["devicePixelRatio"], 1.75);
    let images = artifact(&bundle, "images");
    let tops = images.as_array().unwrap().iter();
    let tops: Vec<f64> = tops
        .map(|image| image["rect"]["top"].as_f64().unwrap())
        .collect();
    assert_eq!(tops.len(), 8);
    assert!(tops.iter().all(|top| top.fract() == 0.0), "{tops:?}");
}

/// Phones lay such pages out 980 pixels wide, with margins of 8.
#[tokio::test]
async fn a_page_without_a_viewport_element_keeps_its_width_while_it_is_read() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("no-viewport.html"))).await;
    let images = artifact(&bundle, "images");
    assert_eq!(images[0]["rect"]["width"], 964.0, "{images}");
}

#[tokio::test]
async fn a_page_is_restored_from_the_back_forward_cache_or_there_are_reasons() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let restored = bed.measure(&plan(site.url("plain-text.html"))).await;
    assert_eq!(
        artifact(&restored, "back-forward-cache")["wasRestored"],
        true
    );
    assert_eq!(restored.final_url, site.url("plain-text.html"));
    assert!(restored.warnings.is_empty(), "{:?}", restored.warnings);

    let reloaded = bed.measure(&plan(site.url("costs-time.html"))).await;
    let result = artifact(&reloaded, "back-forward-cache");
    assert_eq!(result["wasRestored"], false, "{result}");
    let reasons = result["reasons"].as_array().unwrap();
    assert!(!reasons.is_empty());
    assert_eq!(
        reasons[0]["frameUrl"],
        site.url("costs-time.html"),
        "{result}"
    );
    assert_eq!(reloaded.final_url, site.url("costs-time.html"));
    // Navigating back loaded it again, which is not part of the visit.
    let log: Value = serde_json::from_slice(&reloaded.log).unwrap();
    let events = log.as_array().unwrap().iter();
    let documents = events.filter(|event| {
        event["method"] == "Network.requestWillBeSent" && event["params"]["type"] == "Document"
    });
    assert_eq!(documents.count(), 1);
}

#[tokio::test]
async fn elements_have_their_visible_part_within_scroll_containers() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("scrolls-inside.html"))).await;
    let anchors = artifact(&bundle, "anchors");
    let visible_part = |id: &str| {
        let mut links = anchors.as_array().unwrap().iter();
        let link = links.find(|link| link["id"] == id).unwrap();
        link["node"].get("seen").cloned()
    };
    // The inner scroll container begins at 150 of 200, and its content is 60 high.
    let part = serde_json::json!({"left": 0, "top": 150, "width": 120, "height": 50});
    assert_eq!(visible_part("part"), Some(part));
    assert_eq!(visible_part("none").unwrap()["height"], 0);
    for whole in ["absolute", "fixed", "whole"] {
        assert_eq!(visible_part(whole), None, "{whole}");
    }
}

#[tokio::test]
async fn a_page_with_debugger_statements_is_measured() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("stops-debuggers.html"))).await;
    let scripts = artifact(&bundle, "scripts");
    assert!(scripts[0]["tokenLength"].as_f64() > Some(0.0), "{scripts}");
    assert!(artifact(&bundle, "axe")["version"].is_string());
}

/// Returns width and height from the frame header of a baseline JPEG in base64 (ITU T.81, B.2.2).
fn jpeg_size(base64: &str) -> (u16, u16) {
    let sextet = |symbol: u8| {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        alphabet
            .iter()
            .position(|other| *other == symbol)
            .unwrap_or(0) as u32
    };
    let bytes: Vec<u8> = base64
        .as_bytes()
        .chunks(4)
        .flat_map(|group| {
            let bits = group
                .iter()
                .fold(0, |bits, symbol| bits << 6 | sextet(*symbol));
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
async fn the_full_page_screenshot_has_the_size_of_the_page_in_css_pixels() {
    let started = Instant::now();
    let (bed, site) = (TestBed::new(), Site::start().await);
    // A busy host may be too slow once, but not every time.
    let screenshot = loop {
        let bundle = bed.measure(&plan(site.url("tall.html"))).await;
        if let Artifact::Gathered(_) = &bundle.artifacts["full-page-picture"] {
            break artifact(&bundle, "full-page-picture");
        }
        assert!(
            started.elapsed() < Duration::from_secs(240),
            "no screenshot"
        );
    };
    assert_eq!(screenshot["width"].as_f64(), Some(412.0));
    assert_eq!(screenshot["height"].as_f64(), Some(3000.0));
    assert_eq!(jpeg_size(screenshot["data"].as_str().unwrap()), (412, 3000));
}

#[tokio::test]
async fn a_page_of_one_screen_has_no_full_page_screenshot() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("plain-text.html"))).await;
    if let Artifact::Gathered(screenshot) = &bundle.artifacts["full-page-picture"] {
        assert_eq!(screenshot.get(), "null");
    }
}

#[tokio::test]
async fn libraries_are_detected_with_or_without_a_version() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed
        .measure(&plan(site.url("leaves-marks-of-libraries.html")))
        .await;
    let mut libraries: Vec<(String, Value)> = artifact(&bundle, "libraries")
        .as_array()
        .unwrap()
        .iter()
        .map(|library| {
            let name = library["name"].as_str().unwrap();
            (name.to_owned(), library["version"].clone())
        })
        .collect();
    libraries.sort_by(|a, b| a.0.cmp(&b.0));
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
    assert_eq!(libraries, expected);
}

#[tokio::test]
async fn elements_in_a_frame_of_the_same_site_are_described_too() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("frames.html"))).await;
    let elements = artifact(&bundle, "trace-elements");
    let mut elements = elements.as_array().unwrap().iter();
    // Only the frames contain a paragraph, which is their largest paint and is shifted when a bar
    // is inserted above it.
    assert!(elements.any(|element| element["node"]["selector"] == "body > p"));
}
