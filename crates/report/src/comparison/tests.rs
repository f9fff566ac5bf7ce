use plumbline_model::comparison::{Comparison, evidence};
use plumbline_model::interval::Interval;
use plumbline_model::media::ReportMedia;
use plumbline_model::report::{LocationMode, ReplayConditions};

use super::*;

fn figure(name: &str, medians: [f64; 2], shift: f64, answer: Answer) -> ComparedFigure {
    ComparedFigure {
        name: name.to_owned(),
        medians,
        shift,
        is_relative: name != "tbt" && name != "performance",
        interval: Interval {
            low: shift - 0.01,
            high: shift + 0.01,
            level: 0.98,
            basis: "pairs of visits".to_owned(),
        },
        answer,
        is_surely_small: false,
    }
}

fn compared() -> ComparedPages {
    ComparedPages {
        urls: [
            "https://a.test/".to_owned(),
            "https://b.test/?x=<&|>".to_owned(),
        ],
        redirected_to: [None, None],
        replays: [None, None],
        changes: Vec::new(),
        left_out: Vec::new(),
        comparison: Comparison {
            pairs: 6,
            figures: vec![
                figure("lcp", [2000.0, 2200.0], 0.1, Answer::Slower),
                figure("tbt", [0.0, 0.0], 0.0, Answer::NoDifferenceShown),
                figure("performance", [80.0, 90.0], 10.0, Answer::Faster),
            ],
        },
        evidence: evidence([&ReportMedia::default(), &ReportMedia::default()]),
        requests: vec![DifferentRequest {
            url: "/app.js?a|b".to_owned(),
            bytes: [Some(2_000), None],
        }],
    }
}

fn render(compared: &ComparedPages, format: ComparisonFormat) -> String {
    let report = ComparisonReport {
        conditions: "Mobile, Slow 4G, Texas".to_owned(),
        made_at: "2026-11-17T10:00:00.000Z".to_owned(),
        compared,
    };
    report.render(format)
}

#[test]
fn the_text_has_a_line_for_each_figure_and_an_answer() {
    let text = render(&compared(), ComparisonFormat::Text);
    let lcp = text.lines().find(|line| line.contains("Largest")).unwrap();
    let words: Vec<&str> = lcp.split_whitespace().collect();
    let expected = "Largest Contentful Paint 2.00 s 2.20 s +10.0 % +9.0 % to +11.0 % slower";
    assert_eq!(words.join(" "), expected);
    assert!(text.contains("6 pairs of visits"), "{text}");
    let headline = "The second page is faster in score, and slower in LCP.";
    assert!(text.trim_end().ends_with(headline), "{text}");
    assert!(text.lines().all(|line| line == line.trim_end()));
}

#[test]
fn a_comparison_without_differences_says_so() {
    let mut compared = compared();
    compared.comparison.figures.truncate(2);
    compared.comparison.figures.remove(0);
    assert_eq!(headline(&compared), "No difference shown.");
}

#[test]
fn markdown_has_tables_that_a_url_cannot_break() {
    let text = render(&compared(), ComparisonFormat::Markdown);
    // Numbers and units do not break.
    let text = text.replace('\u{a0}', " ");
    let row = "| Largest Contentful Paint | 2.00 s | 2.20 s |";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("x=<&%7C>"), "{text}");
    let row = "| /app.js?a%7Cb | 2.0 KiB | not requested |";
    assert!(text.contains(row), "{text}");
}

#[test]
fn advice_that_is_not_followed_is_listed() {
    let sentence = "a.webp is not changed.";
    let compared = ComparedPages {
        left_out: vec![sentence.to_owned()],
        ..compared()
    };
    for format in [
        ComparisonFormat::Text,
        ComparisonFormat::Markdown,
        ComparisonFormat::Json,
    ] {
        let text = render(&compared, format);
        assert!(text.contains(sentence), "{text}");
    }
}

#[test]
fn a_page_that_redirects_to_another_one_is_named() {
    let compared = ComparedPages {
        redirected_to: [None, Some("https://b.test/login".to_owned())],
        ..compared()
    };
    for format in [ComparisonFormat::Text, ComparisonFormat::Markdown] {
        let text = render(&compared, format);
        let note = "redirects to https://b.test/login, which was measured";
        assert_eq!(text.matches(note).count(), 1, "{text}");
    }
    let json = render(&compared, ComparisonFormat::Json);
    assert!(json.contains("redirectedTo"), "{json}");
}

#[test]
fn recordings_are_named_with_the_requests_that_were_not_in_them() {
    let replay = |missing_requests: u64| {
        Some(ReplayConditions {
            recorded_at: "2027-01-15T08:00:00Z".to_owned(),
            missing_requests,
            missing: vec!["https://b.test/|".to_owned()],
        })
    };
    let compared = ComparedPages {
        replays: [replay(0), replay(2)],
        ..compared()
    };
    let text = render(&compared, ComparisonFormat::Text);
    let recording = "recording of 15 Jan 2027, 08:00 UTC";
    let first = format!("A  https://a.test/\n   {recording}\n");
    assert!(text.starts_with(&first), "{text}");
    let second = format!("   {recording}; 2 requests were not in it, such as https://b.test/|");
    assert!(text.contains(&second), "{text}");
    let markdown = render(&compared, ComparisonFormat::Markdown);
    assert!(markdown.contains("  - recording of 15 Jan 2027, 08:00 UTC; 2 requests"));
    assert!(!markdown.contains("/|"), "{markdown}");
    let json = render(&compared, ComparisonFormat::Json);
    assert!(json.contains(r#""missingRequests": 2"#), "{json}");
}

#[test]
fn an_interval_has_one_place_at_which_a_narrow_column_breaks_it() {
    let figures = compared().comparison.figures;
    for figure in figures {
        let [_, _, _, shift, interval, _] = figure_cells(&figure);
        assert_eq!(shift.split(' ').count(), 1, "{shift}");
        assert_eq!(interval.split(' ').count(), 2, "{interval}");
    }
}

#[test]
fn the_location_of_this_machine_is_not_a_stated_place() {
    let mut report = crate::testing::report();
    let location = &mut report.conditions.location;
    location.mode = LocationMode::Agent;
    location.is_stated = Some(false);
    report.comparison = Some(Box::new(compared()));
    let compared = ComparisonReport::of(&report, 0).unwrap();
    let place = "this machine, place not stated";
    assert!(
        compared.conditions.ends_with(place),
        "{}",
        compared.conditions
    );
}

#[test]
fn only_a_slower_figure_fails_in_junit() {
    let text = render(&compared(), ComparisonFormat::Junit);
    assert!(text.contains(r#"tests="3" failures="1""#), "{text}");
    assert!(text.contains("https://b.test/?x=&lt;&amp;|&gt;"), "{text}");
}

#[test]
fn json_has_the_figures_with_their_intervals() {
    let json: serde_json::Value =
        serde_json::from_str(&render(&compared(), ComparisonFormat::Json)).unwrap();
    assert_eq!(json["pairs"], 6);
    assert_eq!(json["figures"][0]["answer"], "slower");
    assert_eq!(json["figures"][0]["interval"]["level"], 0.98);
    assert_eq!(json["evidence"][0]["name"], "Requests");
    assert_eq!(
        json["requests"][0]["bytes"],
        serde_json::json!([2_000, null])
    );
    assert_eq!(json["conditions"], "Mobile, Slow 4G, Texas");
}
