//! Pages as a whole: what a hostile site says is text, a large site stays small, what is gone is said.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use plumbline_bundle::{BrowserIdentity, Failure, FailureCode, MainDocument};
use plumbline_catalog::{FormFactor, Mode};
use plumbline_engine::checks::{Cell, Details, Findings, Row, SourcePlace, Unit};
use plumbline_engine::exhibits::{self, Exhibits, Phases, RequestEntry};
use plumbline_engine::field::{
    FieldData, FieldHistory, FieldKind, FieldMetric, FieldMetrics, FieldReason, Period, RecordOf,
    Shares,
};
use plumbline_engine::not_measured;
use plumbline_engine::report::{
    AsTraced, Conditions, CpuConditions, DeviceConditions, LocationConditions, LocationMode,
    Metric, Metrics, NetworkConditions, Report, Scores,
};
use plumbline_report::html::{
    self, Chrome, Compared, FieldPast, Past, Problem, Progress, ReportPage, Sharing, StartPage,
};
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
        },
        cpu: CpuConditions::default(),
    }
}

fn field_data(said: &str) -> FieldData {
    let metric = Some(FieldMetric {
        p75: 2400.0,
        shares: Some(Shares {
            good: 0.8,
            needs_improvement: 0.15,
            poor: 0.05,
        }),
    });
    FieldData {
        record: RecordOf::Url,
        subject: said.to_owned(),
        form_factor: FormFactor::Phone,
        percentile: 75,
        collection_period: Some(period(said)),
        metrics: FieldMetrics {
            lcp: metric,
            inp: metric,
            ..FieldMetrics::default()
        },
    }
}

fn period(said: &str) -> Period {
    Period {
        first_date: said.to_owned(),
        last_date: said.to_owned(),
    }
}

fn field_past(said: &str) -> FieldPast {
    FieldPast {
        form_factor: FormFactor::Tablet,
        history: Ok(FieldHistory {
            record: RecordOf::Origin,
            subject: said.to_owned(),
            form_factor: FormFactor::Tablet,
            periods: vec![period(said)],
            p75s: vec![(FieldKind::Cls, vec![Some(0.2)])],
        }),
    }
}

/// A measured report in which every word that comes from a page is `said`.
fn report(said: &str) -> Report {
    let failure = Failure::new(FailureCode::NoPaint, said);
    let metric = Some(Metric {
        value: 1234.0,
        score: 0.8,
    });
    let check = |id: &str, details: serde_json::Value| {
        json!({"id": id, "title": said, "verdict": "fail", "score": 0.0, "weight": 3.0,
               "group": "a11y-aria", "summary": said, "why": said, "fix": said, "details": details,
               "warnings": [said]})
    };
    let node = json!({"selector": said, "snippet": said, "label": said,
                      "rect": {"left": 10.0, "top": 10.0, "width": 50.0, "height": 20.0}});
    let far = json!({"selector": said, "snippet": said, "label": said,
                     "rect": {"left": 10.0, "top": 2000.0, "width": 50.0, "height": 20.0}});
    let categories = json!([{"id": "accessibility", "title": "Accessibility", "score": 40, "checks": [
        check("a", json!({"kind": "elements", "items": [{"node": node, "note": said}, {"node": far}]})),
        check("b", json!({"kind": "urls", "items": [{"url": said, "note": said}]})),
        check("c", json!({"kind": "console", "items": [{"text": said, "source": said, "url": said, "line": 1, "column": 1}]})),
        check("d", json!({"kind": "values", "items": [{"name": said, "value": said}]})),
        check("e", json!({"kind": "table", "columns": [said], "rows": [[said]]})),
        check("f", json!(findings(said, &node))),
        check("g", json!({"kind": "parts", "items": [findings(said, &node)]})),
        check("h", json!({"kind": "checklist", "items": [{"id": said, "label": said, "is_met": false}]})),
    ]}]);
    Report {
        error: None,
        final_url: Some(format!("https://example.com/{said}")),
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
            as_traced: AsTraced::default(),
        }),
        field_data: Some(field_data(said)),
        categories: serde_json::from_value(categories).unwrap(),
        warnings: vec![said.to_owned()],
        document: Some(MainDocument {
            status: 200,
            mime_type: said.to_owned(),
        }),
        browser: Some(BrowserIdentity {
            product: said.to_owned(),
            user_agent: said.to_owned(),
        }),
        ..not_measured(said, conditions(said), failure)
    }
}

fn findings(said: &str, node: &serde_json::Value) -> Details {
    let columns = [
        (said, said, Unit::Text),
        (said, said, Unit::Url),
        (said, said, Unit::Source),
        (said, said, Unit::Element),
    ];
    let row = || {
        let place = SourcePlace {
            url: said.to_owned(),
            function: said.to_owned(),
            ..SourcePlace::default()
        };
        Row::new([
            Cell::text(said),
            Cell::url(said),
            Cell::Source(place),
            Cell::Element(Box::new(serde_json::from_value(node.clone()).unwrap())),
        ])
    };
    Details::Findings(Findings::new(columns).rows([row().with([row()])]))
}

fn shown(said: &str, requests: usize) -> Exhibits {
    let request = |index: usize| RequestEntry {
        url: format!("https://example.com/assets/{index}/{said}-{index}.js?v={index}"),
        host: said.to_owned(),
        method: said.to_owned(),
        kind: said.to_owned(),
        status: Some(200),
        error: Some(said.to_owned()),
        mime_type: said.to_owned(),
        protocol: said.to_owned(),
        priority: said.to_owned(),
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
        initiator: Some(said.to_owned()),
        headers: vec![("server".to_owned(), said.to_owned())],
        ..RequestEntry::default()
    };
    let share = exhibits::Share {
        name: said.to_owned(),
        requests,
        bytes: 1000,
        third_party: true,
    };
    Exhibits {
        format: exhibits::FORMAT,
        end_ms: requests as f64 * 13.7 + 500.0,
        requests: (0..requests).map(request).collect(),
        screenshot: Some(exhibits::Picture {
            mime_type: said.to_owned(),
            width_px: 400,
            height_px: 800,
            data: said.to_owned(),
        }),
        screenshot_css_width: 400.0,
        whole_page: Some(exhibits::WholePage {
            picture: exhibits::Picture {
                mime_type: said.to_owned(),
                width_px: 400,
                height_px: 3000,
                data: said.to_owned(),
            },
            ..exhibits::WholePage::default()
        }),
        by_type: vec![share.clone()],
        by_host: vec![share],
        ..Exhibits::default()
    }
}

fn page(report: &Report, exhibits: Option<&[u8]>) -> String {
    html::report_page(&ReportPage {
        chrome: Chrome::signed_in(EVIL),
        audit_id: "aud_1",
        created_at_ms: 0,
        report: &serde_json::to_string(report).unwrap(),
        exhibits,
        is_unreachable: false,
        path: "/reports/aud_1",
        sharing: Sharing::Off,
    })
    .unwrap()
}

#[track_caller]
fn is_text_only(page: &str) {
    // Our own scripts are linked or hashed and never hold these words.
    for sign in ["<script>alert", "<img src=x", "alert(1)</script>"] {
        assert!(!page.contains(sign), "{sign} stands in the page as markup");
    }
    assert!(page.contains("alert(1)"), "what was said is shown");
}

#[test]
fn whatever_a_page_calls_itself_is_shown_as_text_everywhere() {
    let (report, exhibits) = (report(EVIL), shown(EVIL, 3));
    let packed = exhibits.pack().unwrap();
    is_text_only(&page(&report, Some(&packed)));
    is_text_only(&html::standalone(&report, Some(&exhibits)).unwrap());

    let text = serde_json::to_string(&report).unwrap();
    let side = || Compared {
        audit_id: "aud_1",
        created_at_ms: 0,
        report: &text,
        exhibits: Some(&packed),
    };
    is_text_only(&html::compare_page(&Chrome::signed_in(EVIL), &side(), &side()).unwrap());

    let past = Past {
        tracking_id: "trk_1".to_owned(),
        audit_id: Some("aud_1".to_owned()),
        url: EVIL.to_owned(),
        at_ms: 0,
        report: Some(text.clone()),
    };
    let twice = [past.clone(), past.clone()];
    is_text_only(
        &html::history_page(&Chrome::signed_in(EVIL), EVIL, &twice, &[field_past(EVIL)]).unwrap(),
    );
    is_text_only(
        &html::progress_page(&Progress {
            chrome: Chrome::signed_in(EVIL),
            url: EVIL,
            conditions: [EVIL; 3],
            phase: None,
            events: "/audits/trk_1/events",
        })
        .unwrap(),
    );
    is_text_only(
        &html::start_page(&StartPage {
            chrome: Chrome::signed_in(EVIL),
            devices: Vec::new(),
            networks: Vec::new(),
            locations: Vec::new(),
            chosen: html::Chosen {
                url: EVIL.to_owned(),
                ..html::Chosen::default()
            },
            to: "",
            credits: Some(1),
            past: vec![past],
            problem: Some(EVIL),
        })
        .unwrap(),
    );
    is_text_only(
        &html::problem_page(&Problem {
            chrome: Chrome::signed_in(EVIL),
            status: 404,
            request_id: Some(EVIL),
        })
        .unwrap(),
    );
}

#[test]
fn the_page_of_three_hundred_requests_is_small() {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    let packed = shown("bundle", 300).pack().unwrap();
    let page = page(&report("something"), Some(&packed));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(page.as_bytes()).unwrap();
    let bytes = gzip.finish().unwrap().len();
    assert!(bytes < 250_000, "{bytes} bytes compressed");
    assert_eq!(page.matches("<li data-n=").count(), 300);
}

#[test]
fn a_report_whose_exhibits_are_gone_says_so_and_still_reads() {
    let page = page(&report("something"), None);
    assert!(page.contains("is no longer kept"));
    assert!(page.contains("What to fix first"));
    assert!(!page.contains("class=\"waterfall\""));
}

#[test]
fn a_report_without_field_data_says_why() {
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
    assert!(page(&old, None).contains("not asked for when this report was made"));
}

#[test]
fn a_page_that_could_not_be_measured_says_what_happened_and_what_to_do() {
    let failure = Failure::new(FailureCode::DnsFailure, "The host was not found.");
    let report = not_measured("https://nowhere.test/", conditions("some"), failure);
    let page = page(&report, None);
    assert!(page.contains("The host was not found."));
    assert!(page.contains("Check the spelling of the host"));
    assert!(page.contains("DNS_FAILURE"));
    assert!(!page.contains("class=\"ring"));
}

#[test]
fn a_standalone_page_asks_for_nothing() {
    let exhibits = shown("app", 2);
    let page = html::standalone(&report("something"), Some(&exhibits)).unwrap();
    for sign in ["src=\"/", "href=\"/", "url(", "@import"] {
        assert!(!page.contains(sign), "{sign}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn elements_below_the_first_screen_are_cut_from_the_whole_page_which_a_file_holds_once() {
    let exhibits = shown("app", 2);
    let report = report("something");
    let served = page(&report, Some(&exhibits.pack().unwrap()));
    let fixes = served.split("What to fix first").nth(1).unwrap();
    assert!(fixes.contains(
        r#"<img src="/reports/aud_1/whole" width="400" height="3000" alt="" loading="lazy""#
    ));
    assert!(fixes.contains(
        r#"<img src="/reports/aud_1/final" width="400" height="800" alt="" loading="lazy""#
    ));
    assert!(
        !served.contains("<image"),
        "nothing is loaded before it comes near"
    );
    let file = html::standalone(&report, Some(&exhibits)).unwrap();
    assert_eq!(file.matches(r#"<image id="whole""#).count(), 1);
    assert_eq!(
        file.matches(r##"<use href="#whole"/>"##).count(),
        2,
        "among the fixes, and in its check"
    );
}

#[test]
fn no_page_of_ours_has_inline_style_or_handlers() {
    let packed = shown("app", 2).pack().unwrap();
    let page = page(&report("something"), Some(&packed));
    for sign in [" style=", " onclick=", "<style", "javascript:"] {
        assert!(!page.contains(sign), "{sign}");
    }
}

#[test]
fn the_heaviest_failed_check_is_fixed_first() {
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
