use plumbline_model::check::{ElementDetail, Rect, Unit, Verdict};
use serde_json::json;

use super::*;
use crate::testing::{exchange, recording_of};

const HTML: &str = "<!doctype html><html><head><script src='js/app.js'></script>\
    <link rel=stylesheet href=/site.css><script src=https://ads.test/ad.js async></script></head>\
    <body><img src=hero.jpg loading=lazy></body></html>";

fn recording() -> Recording {
    recording_of(vec![
        exchange("https://a.test/shop/", "text/html", HTML),
        exchange(
            "https://a.test/shop/js/app.js",
            "text/javascript",
            "let a = 1; // one",
        ),
        exchange(
            "https://a.test/site.css",
            "text/css",
            "@font-face { font-family: A; src: url(a.woff2) }",
        ),
        exchange("https://a.test/shop/hero.jpg", "image/jpeg", ""),
        exchange("https://ads.test/ad.js", "text/javascript", "ad()"),
        exchange("https://pixel.ads.test/1", "image/gif", ""),
    ])
}

fn report(check: serde_json::Value) -> Report {
    let conditions = json!({
        "device": { "id": "mobile", "name": "Mobile", "mode": "mobile" },
        "network": { "id": "n", "name": "N", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0 },
        "location": { "id": "l", "name": "L", "mode": "simulated", "addedRttMs": 0.0 },
        "cpu": { "rate": 1.0 },
    });
    let conditions = serde_json::from_value(conditions).unwrap();
    let mut report = Report::unmeasured("https://a.test/shop/", conditions);
    report.final_url = Some("https://a.test/shop/".to_owned());
    report.categories = serde_json::from_value(json!([{
        "id": "performance", "title": "Performance", "score": 50, "checks": [check],
    }]))
    .unwrap();
    report
}

fn failed(id: &str, details: impl Into<Details>) -> Report {
    let details: Details = details.into();
    report(json!({
        "id": id, "title": id, "verdict": Verdict::Fail, "weight": 0.0, "score": 0.0,
        "group": "insights", "why": "", "fix": "", "details": details,
    }))
}

fn advised(id: &str, details: impl Into<Details>) -> Result<Advised, AdviceError> {
    let subject = Subject::Check(id.to_owned());
    recording().advised(&subject, &failed(id, details), 2.0)
}

/// Returns a table of URLs.
fn table(urls: &[&str]) -> Findings {
    let rows = urls.iter().map(|url| Row::new([Cell::url(*url)]));
    Findings::new([("url", "URL", Unit::Url)]).rows(rows)
}

/// Returns the content of a response after changes.
fn changed_body(advised: &Advised, path: &str) -> String {
    let changed = recording().with_changes(&advised.changes).unwrap();
    let mut exchanges = changed.recording.exchanges.iter();
    let exchange = exchanges.find(|it| it.path == path).unwrap();
    let body = exchange.response.as_ref().unwrap().decoded_body().unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

#[test]
fn blocking_scripts_are_deferred_and_style_sheets_apply_later() {
    let urls = ["https://a.test/shop/js/app.js", "https://a.test/site.css"];
    let advised = advised("render-blocking-insight", table(&urls)).unwrap();
    let html = changed_body(&advised, "/shop/");
    assert!(html.contains("<script defer"), "{html}");
    let link = html.split("<link").nth(1).unwrap();
    let link = link.split('>').next().unwrap();
    assert!(link.contains("media=\"print\""), "{link}");
    assert!(link.contains("onload=\"this.media='all'\""), "{link}");
    assert!(html.contains("<script src=https://ads.test/ad.js async>"));
}

#[test]
fn a_file_that_is_listed_twice_is_changed_once() {
    let urls = ["https://a.test/site.css", "https://a.test/shop/js/app.js"];
    let urls = [urls, urls].concat();
    let advised = advised("render-blocking-insight", table(&urls)).unwrap();
    assert_eq!(advised.changes.len(), 3, "{:?}", advised.changes);
    assert!(recording().with_changes(&advised.changes).is_ok());
}

#[test]
fn changes_beyond_the_limit_of_an_experiment_are_named() {
    // Two changes for each style sheet.
    let sheets = MAX_CHANGES / 2 + 3;
    let url = |at: usize| format!("https://a.test/{at}.css");
    let links = (0..sheets).map(|at| format!("<link rel=stylesheet href={}>", url(at)));
    let html = format!("<html><head>{}</head></html>", links.collect::<String>());
    let recording = recording_of(vec![exchange("https://a.test/shop/", "text/html", &html)]);
    let urls: Vec<String> = (0..sheets).map(url).collect();
    let listed = table(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    let subject = Subject::Check("render-blocking-insight".to_owned());
    let report = failed("render-blocking-insight", listed);
    let advised = recording.advised(&subject, &report, 2.0).unwrap();
    assert_eq!(advised.changes.len(), MAX_CHANGES);
    assert_eq!(
        advised.left_out,
        ["6 more changes follow the advice; an experiment has at most 200."]
    );
}

#[test]
fn a_file_that_the_document_does_not_name_cannot_be_deferred() {
    let advised = advised(
        "render-blocking-insight",
        table(&["https://a.test/other.js"]),
    );
    assert_eq!(advised, Err(AdviceError::NothingToChange));
}

#[test]
fn text_is_shown_before_its_font() {
    let advised = advised("font-display-insight", table(&[])).unwrap();
    let css = changed_body(&advised, "/site.css");
    assert!(css.starts_with("@font-face {font-display:swap;"), "{css}");
}

#[test]
fn the_largest_picture_is_preloaded_and_not_lazy() {
    let node = Node::default();
    let element = ElementDetail::with_note(&node, "https://a.test/shop/hero.jpg");
    let details = Details::elements([element]);
    let advised = advised("lcp-discovery-insight", details).unwrap();
    let html = changed_body(&advised, "/shop/");
    let preload = r#"<link rel="preload" as="image" href="https://a.test/shop/hero.jpg" fetchpriority="high">"#;
    assert!(html.contains(preload), "{html}");
    assert!(!html.contains("loading"), "{html}");
}

#[test]
fn a_document_is_answered_faster_only_if_it_was_late() {
    let items = |is_fast| Details::checklist([("serverResponseIsFast", String::new(), is_fast)]);
    // The recorded server took 20 ms.
    let result = advised("document-latency-insight", items(false));
    assert_eq!(result, Err(AdviceError::NothingToChange));
    let mut late = recording();
    if let Some(response) = &mut late.exchanges[0].response {
        response.wait_ms = 900.0;
    }
    let subject = Subject::Check("document-latency-insight".to_owned());
    let report = failed("document-latency-insight", items(false));
    let advised = late.advised(&subject, &report, 1.0).unwrap();
    let changed = late.with_changes(&advised.changes).unwrap();
    let response = changed.recording.exchanges[0].response.as_ref().unwrap();
    assert_eq!(response.wait_ms, f64::from(FAST_RESPONSE_MS));
}

#[test]
fn without_redirects_the_last_url_is_visited() {
    let mut report = failed("redirects", table(&[]));
    report.final_url = Some("https://a.test/shop/en/".to_owned());
    let subject = Subject::Check("redirects".to_owned());
    let advised = recording().advised(&subject, &report, 1.0).unwrap();
    assert_eq!(advised.url, "https://a.test/shop/en/");
    assert!(advised.changes.is_empty());
}

#[test]
fn files_are_minified_by_their_urls() {
    let advised = advised(
        "unminified-javascript",
        table(&["https://a.test/shop/js/app.js"]),
    );
    let advised = advised.unwrap();
    assert!(!changed_body(&advised, "/shop/js/app.js").contains("one"));
}

#[test]
fn only_the_document_is_answered_earlier_and_compressed() {
    let text = "<p>Many words.</p>".repeat(200);
    let mut recording = recording_of(vec![
        exchange("https://a.test/shop", "text/html", &text),
        exchange("https://a.test/shop/frame", "text/html", &text),
        exchange("https://b.test/?https://a.test/shop", "text/html", &text),
    ]);
    for exchange in &mut recording.exchanges {
        exchange.response.as_mut().unwrap().wait_ms = 500.0;
    }
    let unmet = ["serverResponseIsFast", "usesCompression"].map(|id| ChecklistItem {
        id: id.to_owned(),
        label: String::new(),
        is_met: false,
    });
    let report = failed(
        "document-latency-insight",
        Details::Checklist {
            items: unmet.to_vec(),
        },
    );
    let subject = Subject::Check("document-latency-insight".to_owned());
    let advised = recording.advised(&subject, &report, 1.0).unwrap();
    let changed = recording.with_changes(&advised.changes).unwrap().recording;
    let responses = changed
        .exchanges
        .iter()
        .filter_map(|it| it.response.as_ref());
    let responses = responses.map(|it| (it.wait_ms, it.header("content-encoding")));
    let same = (500.0, None);
    let expected = [(100.0, Some("br")), same, same];
    assert_eq!(responses.collect::<Vec<_>>(), expected);
}

#[test]
fn pictures_are_as_wide_as_they_are_shown() {
    let node = Node {
        rect: Some(Rect {
            width: 180.0,
            ..Rect::default()
        }),
        ..Node::default()
    };
    let columns = [
        ("node", "Element", Unit::Element),
        ("url", "URL", Unit::Url),
    ];
    let row = Row::new([
        Cell::element(&node),
        Cell::url("https://a.test/shop/hero.jpg"),
    ]);
    let report = failed("image-delivery-insight", Findings::new(columns).rows([row]));
    let check = report.check("image-delivery-insight").unwrap();
    let changes = smaller_pictures(check, 2.0);
    let pattern = Some(Pattern::exact("https://a.test/shop/hero.jpg"));
    let expected = [
        Change::ResizeImages {
            max_width: 360,
            pattern: pattern.clone(),
        },
        Change::RecompressImages {
            quality: PICTURE_QUALITY,
            pattern,
        },
    ];
    assert_eq!(changes, expected);
}

#[test]
fn pictures_that_cannot_be_changed_are_left_out_with_a_reason() {
    let mut recording = recording();
    let mut set_body = |index: usize, body: Vec<u8>| {
        let response = recording.exchanges[index].response.as_mut().unwrap();
        response.set_body(body.into());
    };
    set_body(3, picture::testing::photograph(40, 20));
    set_body(
        5,
        b"RIFF....WEBPVP8 ....\0\0\0\x9d\x01\x2a\x02\x01\x10\0".to_vec(),
    );
    let subject = Subject::Check("image-delivery-insight".to_owned());
    let follow = |urls: &[&str]| {
        let report = failed("image-delivery-insight", table(urls));
        recording.advised(&subject, &report, 1.0)
    };
    let (hero, pixel) = ("https://a.test/shop/hero.jpg", "https://pixel.ads.test/1");
    let advised = follow(&[hero, pixel]).unwrap();
    assert_eq!(advised.changes.len(), 1);
    let sentence = "https://pixel.ads.test/1 is not changed, since only JPEG and PNG are encoded \
                    again, and it is WebP";
    assert_eq!(advised.left_out, [format!("{sentence}.")]);
    let error = follow(&[pixel]).unwrap_err();
    let expected = format!("the advice cannot be followed: {sentence}");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn pictures_without_a_size_get_that_of_their_files() {
    let mut recording = recording();
    if let Some(response) = &mut recording.exchanges[3].response {
        response.set_body(bytes::Bytes::from_static(b"GIF89a\x02\x01\x10\0"));
    }
    let report = failed("unsized-images", table(&["https://a.test/shop/hero.jpg"]));
    let subject = Subject::Check("unsized-images".to_owned());
    let advised = recording.advised(&subject, &report, 1.0).unwrap();
    let changed = recording.with_changes(&advised.changes).unwrap();
    let document = changed.recording.exchanges[0].response.as_ref().unwrap();
    let html = String::from_utf8(document.decoded_body().unwrap().to_vec()).unwrap();
    let image = html.split("<img").nth(1).unwrap();
    assert!(
        image.contains("width=\"258\"") && image.contains("height=\"16\""),
        "{html}"
    );
    assert!(html.contains("height: auto"), "{html}");
}

#[test]
fn a_third_party_is_left_out_with_all_its_hosts() {
    let row = |url: &str| Row::new([Cell::url(url)]);
    let party = Row::new([Cell::text("Ads")]).with([
        row("https://ads.test/ad.js"),
        row("https://pixel.ads.test/1"),
    ]);
    let columns = [("entity", "Third party", Unit::Text)];
    let report = failed(
        "third-parties-insight",
        Findings::new(columns).rows([party]),
    );
    let subject = |name: &str| Subject::ThirdParty(name.to_owned());
    let advised = recording().advised(&subject("Ads"), &report, 1.0).unwrap();
    let pattern = Pattern::hosts(&["ads.test", "pixel.ads.test"]);
    assert_eq!(advised.changes, [Change::Block { pattern }]);
    let error = recording().advised(&subject("Other"), &report, 1.0);
    assert_eq!(
        error,
        Err(AdviceError::UnknownThirdParty("Other".to_owned()))
    );
}

#[test]
fn advice_that_cannot_be_followed_is_refused() {
    let refused = advised("bootup-time", table(&[]));
    let expected = AdviceError::NotMeasurable("bootup-time".to_owned());
    assert_eq!(refused, Err(expected));
    let report = failed("bootup-time", table(&[]));
    let unknown = recording().advised(&Subject::Check("none".to_owned()), &report, 1.0);
    assert_eq!(unknown, Err(AdviceError::UnknownCheck("none".to_owned())));
}

#[test]
fn every_measurable_check_is_known() {
    for id in MEASURABLE_CHECKS {
        let result = advised(id, table(&[]));
        assert!(
            !matches!(result, Err(AdviceError::NotMeasurable(_))),
            "{id}"
        );
    }
}
