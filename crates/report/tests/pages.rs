//! Whole pages: hostile texts are escaped, pages of large sites stay small, missing data is
//! explained.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use plumbline_bundle::{
    BrowserIdentity, Failure, FailureCode, FlowRecords, InteractionRecords, MainDocument,
    ProfileRecords,
};
use plumbline_catalog::{FormFactor, Mode};
use plumbline_model::check::{Cell, Details, Findings, Row, SourceLocation, Unit};
use plumbline_model::field::{
    FieldData, FieldMetric, FieldMetrics, FieldReason, Period, RecordScope, Shares,
};
use plumbline_model::media::{self, Phases, ReportMedia, RequestEntry};
use plumbline_model::report::{
    Conditions, CpuConditions, CpuEmulationMethod, DeviceConditions, LocationConditions,
    LocationMode, Metric, Metrics, NetworkConditions, ReplayConditions, Report, Scores,
    TracedMetrics, View,
};
use plumbline_report::html::{self, PictureSource, ReportPage};
use serde_json::json;

const EVIL: &str = r#""><script>alert(1)</script><img src=x onerror=alert(1)>'"#;

fn conditions(name: &str) -> Conditions {
    Conditions {
        device: DeviceConditions {
            id: "mobile".to_owned(),
            name: name.to_owned(),
            mode: Mode::Mobile,
        },
        network: NetworkConditions {
            id: "cable".to_owned(),
            name: name.to_owned(),
            down_kbps: 5000.0,
            up_kbps: 1000.0,
            rtt_ms: 28.0,
            isolation: None,
        },
        location: LocationConditions {
            id: "eu".to_owned(),
            name: name.to_owned(),
            mode: LocationMode::Agent,
            added_rtt_ms: 0.0,
            is_stated: Some(true),
        },
        cpu: CpuConditions::default(),
        state: None,
        steps: Vec::new(),
        consent: None,
        view: View::First,
        session: None,
        replay: None,
    }
}

fn field_data(text: &str) -> FieldData {
    let metric = Some(FieldMetric {
        p75: 2400.0,
        shares: Some(Shares {
            good: 0.8,
            needs_improvement: 0.15,
            poor: 0.05,
        }),
    });
    FieldData {
        record: RecordScope::Url,
        subject: text.to_owned(),
        form_factor: FormFactor::Phone,
        percentile: 75,
        collection_period: Some(period(text)),
        metrics: FieldMetrics {
            lcp: metric,
            inp: metric,
            ..FieldMetrics::default()
        },
    }
}

fn period(text: &str) -> Period {
    Period {
        first_date: text.to_owned(),
        last_date: text.to_owned(),
    }
}

fn interactions(text: &str) -> InteractionRecords {
    let control = json!({ "kind": "menu", "name": text, "selector": text, "snippet": text });
    let (mut measured, mut left) = (control.clone(), control);
    measured["timing"] = json!({
        "input": "tap", "event": text, "target": text, "durationMs": 304.0, "inputDelayMs": 20.0,
        "processingMs": 250.0, "presentationDelayMs": 34.0,
        "scripts": [{
            "url": text, "function": text, "position": 12, "invoker": text, "durationMs": 240.0,
            "forcedLayoutMs": 9.0,
        }],
    });
    left["notMeasured"] = json!(text);
    let records = json!({ "controls": 9, "interactions": [measured, left], "error": text });
    serde_json::from_value(records).unwrap()
}

/// Two measured steps, of which the second failed.
fn flow(text: &str) -> FlowRecords {
    let step = json!({
        "title": text, "kind": "softNavigation", "url": text, "settledMs": 1234.0, "requests": 2,
        "transferBytes": 3000, "longTasks": 1, "tbtMs": 70.0, "cls": 0.3,
    });
    let (mut measured, mut failed) = (step.clone(), step);
    measured["interaction"] = json!(interactions(text).interactions[0].timing);
    measured["lcpMs"] = json!(900.0);
    failed["error"] = json!(text);
    serde_json::from_value(json!({ "steps": [measured, failed], "error": text })).unwrap()
}

/// A profile with a function, a long task and a forced reflow.
fn profile(text: &str) -> ProfileRecords {
    let place = |line: u32| {
        json!({
            "function": text, "url": text, "line": 0, "column": 58,
            "original": { "function": text, "source": text, "line": line, "column": 4 },
        })
    };
    let time = json!({
        "function": place(2), "selfMs": 201.0, "totalMs": 210.0, "hottest": place(6),
    });
    let task = json!({
        "startMs": 350.0, "durationMs": 212.0, "functions": [time], "path": [time, time],
    });
    let records = json!({
        "tasks": [task], "taskCount": 3, "functions": [time], "scriptMs": 402.0, "endMs": 900.0,
        "reflows": [{ "place": place(22), "count": 38, "totalMs": 148.0 }], "error": text,
    });
    serde_json::from_value(records).unwrap()
}

/// A measured report in which every text from the audited page is `text`.
fn report(text: &str) -> Report {
    let failure = Failure::new(FailureCode::NoPaint, text);
    let metric = Some(Metric {
        value: 1234.0,
        score: 0.8,
    });
    let check = |id: &str, details: serde_json::Value| {
        json!({"id": id, "title": text, "verdict": "fail", "score": 0.0, "weight": 3.0,
               "group": "a11y-aria", "summary": text, "why": text, "fix": text, "details": details,
               "warnings": [text]})
    };
    let node = json!({"selector": text, "snippet": text, "label": text,
                      "rect": {"left": 10.0, "top": 10.0, "width": 50.0, "height": 20.0}});
    let far = json!({"selector": text, "snippet": text, "label": text,
                     "rect": {"left": 10.0, "top": 2000.0, "width": 50.0, "height": 20.0}});
    let categories = json!([{"id": "accessibility", "title": "Accessibility", "score": 40, "checks": [
        check("a", json!({"kind": "elements", "items": [{"node": node, "note": text}, {"node": far}]})),
        check("b", json!({"kind": "urls", "items": [{"url": text, "note": text}]})),
        check("c", json!({"kind": "console", "items": [{"text": text, "source": text, "url": text, "line": 1, "column": 1}]})),
        check("d", json!({"kind": "values", "items": [{"name": text, "value": text}]})),
        check("e", json!({"kind": "table", "columns": [text], "rows": [[text]]})),
        check("f", json!(findings(text, &node))),
        check("g", json!({"kind": "parts", "items": [findings(text, &node)]})),
        check("h", json!({"kind": "checklist", "items": [{"id": text, "label": text, "is_met": false}]})),
    ]}]);
    Report {
        error: None,
        final_url: Some(format!("https://example.com/{text}")),
        scores: Scores {
            performance: Some(87),
            accessibility: Some(40),
            ..Scores::default()
        },
        metrics: Some(Metrics {
            fcp: metric,
            lcp: metric,
            tbt: metric,
            cls: metric,
            si: metric,
            tti: None,
            missing: Default::default(),
            as_traced: TracedMetrics::default(),
        }),
        field_data: Some(field_data(text)),
        responsiveness: Some(Box::new(interactions(text).into())),
        flow: Some(Box::new(flow(text))),
        profile: Some(Box::new(profile(text))),
        categories: serde_json::from_value(categories).unwrap(),
        warnings: vec![text.to_owned()],
        document: Some(MainDocument {
            status: 200,
            mime_type: text.to_owned(),
        }),
        browser: Some(BrowserIdentity {
            product: text.to_owned(),
            user_agent: text.to_owned(),
        }),
        ..Report::failed(text, conditions(text), failure)
    }
}

fn findings(text: &str, node: &serde_json::Value) -> Details {
    let columns = [
        (text, text, Unit::Text),
        (text, text, Unit::Url),
        (text, text, Unit::Source),
        (text, text, Unit::Element),
    ];
    let row = || {
        let place = SourceLocation {
            url: text.to_owned(),
            function: text.to_owned(),
            ..SourceLocation::default()
        };
        Row::new([
            Cell::text(text),
            Cell::url(text),
            Cell::Source(place),
            Cell::Element(Box::new(serde_json::from_value(node.clone()).unwrap())),
        ])
    };
    Details::Findings(Findings::new(columns).rows([row().with([row()])]))
}

fn media_of(text: &str, requests: usize) -> ReportMedia {
    let request = |index: usize| RequestEntry {
        url: format!("https://example.com/assets/{index}/{text}-{index}.js?v={index}"),
        host: text.to_owned(),
        method: text.to_owned(),
        kind: text.to_owned(),
        status: Some(200),
        error: Some(text.to_owned()),
        mime_type: text.to_owned(),
        protocol: text.to_owned(),
        priority: text.to_owned(),
        third_party: true,
        render_blocking: true,
        transfer_bytes: 1000 + index as u64 * 37,
        resource_bytes: 3000 + index as u64 * 101,
        start_ms: index as f64 * 13.7,
        end_ms: Some(index as f64 * 13.7 + 321.5),
        phases: Phases {
            queue_ms: 1.5,
            dns_ms: Some(20.3),
            connect_ms: Some(51.2),
            tls_ms: Some(70.8),
            wait_ms: Some(90.1),
            receive_ms: Some(87.6 + index as f64),
        },
        initiator: Some(text.to_owned()),
        headers: vec![("server".to_owned(), text.to_owned())],
        ..RequestEntry::default()
    };
    let share = media::RequestTotals {
        name: text.to_owned(),
        requests,
        bytes: 1000,
        third_party: true,
    };
    ReportMedia {
        format: media::FORMAT,
        end_ms: requests as f64 * 13.7 + 500.0,
        requests: (0..requests).map(request).collect(),
        screenshot: Some(media::Picture {
            mime_type: text.to_owned(),
            width_px: 400,
            height_px: 800,
            data: text.to_owned(),
        }),
        screenshot_css_width: 400.0,
        full_page: Some(media::FullPageScreenshot {
            picture: media::Picture {
                mime_type: text.to_owned(),
                width_px: 400,
                height_px: 3000,
                data: text.to_owned(),
            },
            ..media::FullPageScreenshot::default()
        }),
        by_type: vec![share.clone()],
        by_host: vec![share],
        ..ReportMedia::default()
    }
}

fn page(report: &Report, media: Option<&ReportMedia>) -> String {
    let page = ReportPage {
        report,
        media,
        is_unreachable: false,
        pictures: PictureSource::Linked("/reports/aud_1".to_owned()),
        made_at_ms: Some(0),
        logo: None,
        actions: "",
        failure_note: EVIL,
        replays: plumbline_report::html::Replays::default(),
    };
    page.main().unwrap()
}

#[track_caller]
fn assert_text_only(page: &str) {
    // Trusted scripts are linked or hashed, and never contain these patterns.
    for pattern in ["<script>alert", "<img src=x", "alert(1)</script>"] {
        assert!(
            !page.contains(pattern),
            "the page contains {pattern} as markup"
        );
    }
    assert!(page.contains("alert(1)"), "the text is shown");
}

#[test]
fn texts_from_an_audited_page_are_escaped() {
    let (report, media) = (report(EVIL), media_of(EVIL, 3));
    assert_text_only(&page(&report, Some(&media)));
    assert_text_only(&html::standalone(&report, Some(&media), None, None).unwrap());
}

#[test]
fn the_page_of_three_hundred_requests_is_small() {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    let page = page(&report("something"), Some(&media_of("bundle", 300)));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(page.as_bytes()).unwrap();
    let bytes = gzip.finish().unwrap().len();
    assert!(bytes < 250_000, "{bytes} bytes compressed");
    assert_eq!(page.matches("<li data-n=").count(), 300);
}

#[test]
fn the_initiator_of_a_request_is_a_link_without_the_origin_of_the_page() {
    let mut media = media_of("app", 1);
    media.requests[0].initiator = Some("https://example.com/js/app.js".to_owned());
    let page = page(&report("something"), Some(&media));
    let link = r#"<dt>Initiator</dt><dd><a href="https://example.com/js/app.js" rel="noreferrer">/js/app.js</a></dd>"#;
    assert!(page.contains(link));
}

#[test]
fn a_report_without_media_says_so_and_shows_the_rest() {
    let page = page(&report("something"), None);
    assert!(page.contains("are no longer stored"));
    assert!(page.contains("What to fix first"));
    assert!(!page.contains("class=\"waterfall\""));
}

#[test]
fn a_page_shows_the_intervals_of_its_figures_and_what_they_come_from() {
    let mut report = report("text");
    let page_of = |report: &Report| page(report, None);
    assert!(!page_of(&report).contains("A range is an interval"));
    report.intervals = serde_json::from_value(serde_json::json!({
        "fcp": { "low": 1100.0, "high": 1300.0, "level": 0.9, "basis": "similar pages" },
    }))
    .unwrap();
    let page = page_of(&report);
    assert!(
        page.contains("1.10\u{a0}s to\u{a0}1.30\u{a0}s</p>"),
        "{page}"
    );
    let caption = "A range is an interval (90\u{a0}%, from visits of similar pages)";
    assert!(page.contains(caption), "{page}");
}

#[test]
fn a_replay_names_its_recording_and_warns_of_requests_that_were_not_in_it() {
    let page_of = |missing_requests: u64| {
        let mut report = report("text");
        report.conditions.replay = Some(Box::new(ReplayConditions {
            recorded_at: "2027-01-15T08:00:00Z".to_owned(),
            missing_requests,
            missing: vec![EVIL.to_owned()],
        }));
        page(&report, None)
    };
    let warning = "5 requests were not in the recording that was visited, such as ";
    assert!(!page(&report("text"), None).contains("recording of"));
    let complete = page_of(0);
    assert!(complete.contains("<li>recording of 15 Jan 2027, 08:00 UTC</li>"));
    assert!(!complete.contains("not in the recording"));
    let incomplete = page_of(5);
    let position = incomplete.find(warning).unwrap();
    assert!(position < incomplete.find("class=\"lead\"").unwrap());
    assert!(incomplete.contains("<dt>Recording</dt><dd>of 15 Jan 2027, 08:00 UTC; 5 requests"));
    assert_text_only(&incomplete);
}

#[test]
fn a_report_without_field_data_gives_the_reason() {
    for reason in FieldReason::ALL {
        let report = Report {
            field_data: None,
            field_data_reason: Some(reason),
            ..report("something")
        };
        let page = page(&report, None);
        assert!(page.contains("No field data. "), "{reason:?}");
        assert!(!page.contains("class=\"distribution\""));
    }
    let old = Report {
        field_data: None,
        ..report("something")
    };
    assert!(page(&old, None).contains("not requested when this report was made"));
}

#[test]
fn a_page_that_could_not_be_measured_has_an_error_and_advice() {
    let failure = Failure::new(FailureCode::DnsFailure, "The host was not found.");
    let report = Report::failed("https://nowhere.test/", conditions("some"), failure);
    let page = page(&report, None);
    assert!(page.contains("The host was not found."));
    assert!(page.contains("Check the spelling of the host"));
    assert!(page.contains("DNS_FAILURE"));
    assert!(!page.contains("class=\"ring"));
}

/// Returns media with a filmstrip of one picture.
fn media_with_film() -> ReportMedia {
    ReportMedia {
        film: vec![media::Frame {
            at_ms: 100.0,
            picture: Some(0),
        }],
        pictures: vec![media::Picture {
            mime_type: "image/jpeg".to_owned(),
            width_px: 231,
            height_px: 500,
            data: "AAAA".to_owned(),
        }],
        ..media_of("app", 2)
    }
}

#[test]
fn a_filmstrip_can_be_played_as_a_video_which_is_loaded_when_it_is_opened() {
    let page = page(&report("something"), Some(&media_with_film()));
    let video = r#"<details class="video"><summary>Play as a video</summary><img src="/reports/aud_1/export/video" width="231" height="522" alt="Video of the load, in page time" loading="lazy""#;
    assert!(page.contains(video));
}

#[test]
fn a_standalone_page_loads_nothing() {
    let media = media_with_film();
    let page = html::standalone(&report("something"), Some(&media), Some(0), None).unwrap();
    for pattern in ["src=\"/", "href=\"/", "url(", "@import"] {
        assert!(!page.contains(pattern), "{pattern}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("1 Jan 1970, 00:00 UTC"));
    assert!(page.contains(concat!("Plumbline ", env!("CARGO_PKG_VERSION"))));
    assert!(page.contains(r#"<link rel="icon" href="data:image/svg+xml;base64,"#));
}

#[test]
fn elements_below_the_first_screen_are_cropped_from_the_full_page_which_a_file_contains_once() {
    let media = media_of("app", 2);
    let report = report("something");
    let served = page(&report, Some(&media));
    let fixes = served.split("What to fix first").nth(1).unwrap();
    assert!(fixes.contains(
        r#"<img src="/reports/aud_1/whole" width="400" height="3000" alt="" loading="lazy""#
    ));
    assert!(fixes.contains(
        r#"<img src="/reports/aud_1/final" width="400" height="800" alt="" loading="lazy""#
    ));
    assert!(!served.contains("<image"), "images are loaded lazily");
    let file = html::standalone(&report, Some(&media), None, None).unwrap();
    assert_eq!(file.matches(r#"<image id="whole""#).count(), 1);
    assert_eq!(
        file.matches(r##"<use href="#whole"/>"##).count(),
        2,
        "in the list of fixes, and in its check"
    );
}

#[test]
fn a_standalone_page_contains_the_operators_logo() {
    let logo = html::LogoFile {
        bytes: b"Man!",
        media_type: "image/png",
    };
    let page = html::standalone(&report("something"), None, None, Some(logo)).unwrap();
    assert!(page.contains(r#"<p class="letterhead"><img src="data:image/png;base64,TWFuIQ==""#));
}

#[test]
fn the_printed_summary_has_the_version_and_the_number_of_fixes_that_it_leaves_out() {
    let of_categories = |count: usize| {
        let mut report = report("something");
        let mut category = report.categories[0].clone();
        category.checks.truncate(2);
        let ids = ["accessibility", "best-practices", "seo", "pwa"];
        let categories = ids.into_iter().take(count).map(|id| {
            let mut category = category.clone();
            category.id = serde_json::from_value(json!(id)).unwrap();
            for check in &mut category.checks {
                check.id = format!("{}-of-{id}", check.id);
            }
            category
        });
        report.categories = categories.collect();
        page(&report, None)
    };
    let eight = of_categories(4);
    let version = concat!(
        "<li class=\"printed\">Plumbline ",
        env!("CARGO_PKG_VERSION")
    );
    assert!(eight.contains(version));
    let listed = eight.split("What to fix first").nth(1).unwrap();
    let (listed, _) = listed.split_once("</section>").unwrap();
    assert_eq!(listed.matches("<li class=\"rest\">").count(), 2);
    let more = "<p class=\"printed muted\">and 2 more in the whole report</p>";
    assert!(listed.contains(more), "{listed}");
    let six = of_categories(3);
    assert!(!six.contains("class=\"rest\"") && !six.contains("in the whole report"));
}

#[test]
fn pages_have_no_inline_styles_or_handlers() {
    let page = page(&report("something"), Some(&media_of("app", 2)));
    for pattern in [" style=", " onclick=", "<style", "javascript:"] {
        assert!(!page.contains(pattern), "{pattern}");
    }
}

#[test]
fn the_failed_check_with_the_largest_weight_comes_first() {
    let mut report = report("something");
    let checks = &mut report.categories[0].checks;
    checks[4].weight = 10.0;
    checks[4].title = "The heaviest of them".to_owned();
    let page = page(&report, None);
    let fixes = page.split("What to fix first").nth(1).unwrap();
    let first = fixes.find("The heaviest of them").unwrap();
    assert!(first < fixes.find("something").unwrap());
    assert!(fixes.contains("+32 points"), "10 of 31");
}

/// A report whose performance category has these checks.
fn report_with_performance(checks: serde_json::Value) -> Report {
    let category =
        json!([{"id": "performance", "title": "Performance", "score": 50, "checks": checks}]);
    Report {
        categories: serde_json::from_value(category).unwrap(),
        ..report("something")
    }
}

fn performance_check(
    id: &str,
    verdict: &str,
    group: &str,
    savings: serde_json::Value,
) -> serde_json::Value {
    json!({"id": id, "title": format!("Title of {id}"), "verdict": verdict, "weight": 0.0,
           "score": null, "group": group, "why": format!("Why {id} hurts."),
           "fix": format!("How {id} is fixed."), "savings": savings,
           "learnMore": format!("https://developer.chrome.com/docs/{id}")})
}

#[test]
fn a_passed_check_neither_argues_the_failure_nor_gives_advice() {
    let report = report_with_performance(json!([
        performance_check("bad", "fail", "insights", json!({})),
        performance_check("good", "pass", "insights", json!({})),
        performance_check("absent", "notApplicable", "insights", json!({})),
    ]));
    let page = page(&report, None);
    assert!(page.contains("Why bad hurts.") && page.contains("How bad is fixed."));
    for id in ["good", "absent"] {
        assert!(page.contains(&format!("Title of {id}")));
        assert!(!page.contains(&format!("Why {id} hurts.")), "{id}");
        assert!(!page.contains(&format!("How {id} is fixed.")), "{id}");
    }
    assert!(page.contains(
        r#"<a href="https://developer.chrome.com/docs/bad" rel="noreferrer">Learn more about “Title of bad” on developer.chrome.com</a>"#
    ));
}

#[test]
fn the_chains_of_requests_are_complete_and_other_lists_say_what_they_leave_out() {
    let rows = |count: usize| {
        let parts = (0..count).map(|index| Row::new([Cell::text(format!("part {index}."))]));
        let row = Row::new([Cell::text("whole")]).with(parts);
        Details::from(Findings::new([("a", "A", Unit::Text)]).rows([row]))
    };
    let page_of = |id: &str| {
        let mut check = performance_check(id, "fail", "insights", json!({}));
        check["details"] = json!(Details::parts([rows(35)]));
        page(&report_with_performance(json!([check])), None)
    };
    let chains = page_of("network-dependency-tree-insight");
    assert!(chains.contains("part 34.") && !chains.contains("and 15 more"));
    let others = page_of("other");
    assert!(others.contains("part 19.") && !others.contains("part 20."));
    assert!(others.contains(r#"<tr class="sub d1"><td>and 15 more</td></tr>"#));
}

#[test]
fn the_longest_chain_of_requests_is_named_where_it_is_marked() {
    let tree = |is_marked: bool| {
        let mut check = performance_check("tree", "fail", "insights", json!({}));
        check["details"] = json!({"kind": "findings",
            "columns": [{"key": "url", "label": "Request", "unit": "url"}],
            "rows": [{"cells": [{"url": "https://a.test/"}], "isMarked": is_marked}]});
        page(&report_with_performance(json!([check])), None)
    };
    let legend = "The longest chain is in bold type.";
    let table = r#"<table class="details chains">"#;
    let marked = tree(true);
    assert!(marked.contains(legend) && marked.contains(table));
    let unmarked = tree(false);
    assert!(unmarked.contains("a.test") && !unmarked.contains(legend));
    assert!(!unmarked.contains(table));
}

#[test]
fn failed_checks_of_performance_are_ordered_by_their_saving_and_name_their_metrics() {
    let report = report_with_performance(json!([
        performance_check("none", "fail", "insights", json!({})),
        performance_check("small", "fail", "diagnostics", json!({"lcpMs": 120.0})),
        performance_check("hidden", "fail", "hidden", json!({"lcpMs": 700.0})),
        performance_check(
            "large",
            "fail",
            "insights",
            json!({"lcpMs": 600.0, "fcpMs": 0.0})
        ),
    ]));
    let page = page(&report, None);
    let category = page.split(r#"id="performance""#).nth(1).unwrap();
    let at = |id: &str| category.find(&format!(r#"id="performance-{id}""#)).unwrap();
    assert!(at("large") < at("small") && at("small") < at("none"));
    assert!(at("none") < at("hidden"), "experimental checks are last");
    assert!(category.contains(r#"id="performance-large" data-m="fcp lcp""#));
    assert!(category.contains("LCP −600\u{a0}ms"));
    for (metric, is_offered) in [("fcp", true), ("lcp", true), ("cls", false)] {
        let filter = format!(r#"name="metric" value="{metric}""#);
        assert_eq!(category.contains(&filter), is_offered, "{metric}");
    }
}

#[test]
fn a_link_of_a_report_that_is_not_https_is_left_out() {
    let mut report = report_with_performance(json!([performance_check(
        "bad",
        "fail",
        "insights",
        json!({})
    )]));
    report.categories[0].checks[0].learn_more = Some("javascript:alert(1)".to_owned());
    assert!(!page(&report, None).contains("javascript:"));
}

#[test]
fn a_place_that_the_operator_did_not_state_is_not_claimed() {
    let mut unstated = report("something");
    unstated.conditions.location.name = "Dallas, Texas, USA".to_owned();
    unstated.conditions.location.is_stated = Some(false);
    let heading = |report: &Report| {
        let page = page(report, None);
        let facts = page.split(r#"<ul class="plain facts">"#).nth(1).unwrap();
        facts.split("</ul>").next().unwrap().to_owned()
    };
    assert!(heading(&unstated).contains("this machine, place not stated"));
    assert!(!heading(&unstated).contains("Dallas"));
    assert!(!page(&unstated, None).contains("measured there"));
    unstated.conditions.location.is_stated = Some(true);
    assert!(heading(&unstated).contains("Dallas, Texas, USA"));
    assert!(page(&unstated, None).contains("Dallas, Texas, USA (measured there)"));
}

#[test]
fn the_page_says_how_the_processor_was_emulated() {
    let mut report = report("something");
    report.conditions.cpu.rate = 4.2;
    for (emulation, text) in [
        (
            CpuEmulationMethod::Clock,
            "clock ran at 4.20 times real time",
        ),
        (
            CpuEmulationMethod::Chromium,
            "slowed down 4.2 times by Chromium",
        ),
        (CpuEmulationMethod::Pacer, "slowed down 4.2 times<"),
    ] {
        report.conditions.cpu.emulation = Some(emulation);
        let page = page(&report, None);
        assert!(page.contains(text), "{emulation:?}");
    }
}

#[test]
fn the_main_thread_is_described_on_one_basis_and_as_traced_behind_it() {
    let mut media = media_of("app", 1);
    media.main_thread.total_ms = [900.0, 50.0, 30.0, 20.0, 0.0];
    media.main_thread.long_tasks = vec![(10.0, 120.0)];
    media.main_thread.long_task_count = 1;
    let report = report("something");
    let old = page(&report, Some(&media));
    assert!(old.contains("As traced: Busy for 1.00\u{a0}s. 1\u{a0}task took 50 ms or longer"));
    media.main_thread.as_traced = Some(media::TracedMainThread {
        total_ms: [1900.0, 50.0, 30.0, 20.0, 0.0],
        long_task_count: 3,
        longest_task_ms: 400.0,
    });
    let page = page(&report, Some(&media));
    assert!(page.contains("<p>Busy for 1.00\u{a0}s. 1\u{a0}task took 50 ms or longer"));
    let traced = page.split("<summary>As traced</summary>").nth(1).unwrap();
    assert!(traced.contains("Busy for 2.00\u{a0}s. 3\u{a0}tasks took 50 ms or longer"));
}

#[test]
fn responsiveness_is_shown_with_the_parts_of_each_interaction_and_without_a_weight() {
    let report = report("something");
    let page = page(&report, None);
    let section = page.split(r#"id="responsiveness""#).nth(1).unwrap();
    let section = section.split("</section>").next().unwrap();
    for part in [
        "<span class=\"value middling\">304\u{a0}ms</span> Interaction to Next Paint",
        "needs improvement</span> · no weight in the score",
        "1\u{a0}input measured, on 9\u{a0}visible controls",
        "Input delay 20\u{a0}ms · Processing 250\u{a0}ms · Presentation delay 34\u{a0}ms",
        "forced layout 9\u{a0}ms",
        "Not measured. Something.",
        "Interactions could not be measured completely. something",
    ] {
        assert!(section.contains(part), "{part} in {section}");
    }
    let without = Report {
        responsiveness: None,
        comparison: None,
        ..report
    };
    assert!(!self::page(&without, None).contains("responsiveness"));
}

#[test]
fn a_profile_is_shown_with_functions_lines_and_times_of_another_load() {
    let report = report("something");
    let page = page(&report, None);
    let section = page.split(r#"id="functions""#).nth(1).unwrap();
    let section = section.split("</section>").next().unwrap();
    for part in [
        "Scripts ran for 402\u{a0}ms on the main thread in a further load with a profiler.",
        "these times differ from those of the report, and have no part in any score",
        "<code>something</code>",
        "something:3 <span class=\"muted small\">mostly in line 7</span>",
        "<h3>Long tasks (3, the longest 1 are shown)</h3>",
        "<span class=\"path\">something › something</span>",
        "something:23",
        "38\u{a0}times",
        "148\u{a0}ms",
        "The profile is not complete. something",
    ] {
        assert!(section.contains(part), "{part} in {section}");
    }
    let without = Report {
        profile: None,
        ..report
    };
    assert!(!self::page(&without, None).contains(r#"id="functions""#));
}
