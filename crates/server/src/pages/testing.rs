//! Texts and reports that try to break out of a page.

use plumbline_bundle::{Failure, FailureCode};
use plumbline_catalog::Mode;
use plumbline_model::report::{
    Conditions, CpuConditions, DeviceConditions, LocationConditions, LocationMode, Metric, Metrics,
    NetworkConditions, Report, Scores, TracedMetrics, View,
};
use plumbline_seam::{Order, VisitOptions};
use plumbline_store::{AuditEntry, AuditState, Timestamp};
use serde_json::json;

use super::frame::{Page, PageFrame};

/// A text that runs a script on a page that does not escape it.
pub(super) const EVIL: &str = r#""><script>alert(1)</script><img src=x onerror=alert(1)>'"#;

/// Asserts that a page, for an account with the name [`EVIL`], shows that text and does not contain
/// it as markup.
#[track_caller]
pub(super) fn assert_text_only(page: &impl Page) {
    let frame = PageFrame::SignedIn(EVIL.to_owned());
    let page = frame.render(page).unwrap();
    for pattern in ["<script>alert", "<img src=x", "alert(1)</script>"] {
        assert!(
            !page.contains(pattern),
            "the page contains {pattern} as markup"
        );
    }
    let main = page.split("<main").nth(1).unwrap();
    assert!(main.contains("alert(1)"), "the text is shown");
}

/// Returns a measured report in which every text from the audited page is `text`.
pub(super) fn report(text: &str) -> Report {
    let metric = Some(Metric {
        value: 1234.0,
        score: 0.8,
    });
    let categories = json!([{
        "id": "accessibility", "title": "Accessibility", "score": 40,
        "checks": [{
            "id": "a", "title": text, "verdict": "fail", "score": 0.0, "weight": 3.0,
            "group": "a11y-aria", "summary": text, "why": text, "fix": text,
        }],
    }]);
    let conditions = Conditions {
        device: DeviceConditions {
            id: "mobile".to_owned(),
            name: text.to_owned(),
            mode: Mode::Mobile,
        },
        network: NetworkConditions {
            id: "cable".to_owned(),
            name: text.to_owned(),
            down_kbps: 5000.0,
            up_kbps: 1000.0,
            rtt_ms: 28.0,
            isolation: None,
        },
        location: LocationConditions {
            id: "eu".to_owned(),
            name: text.to_owned(),
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
    };
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
        categories: serde_json::from_value(categories).unwrap(),
        ..Report::failed(text, conditions, Failure::new(FailureCode::NoPaint, text))
    }
}

/// Returns a completed audit as lists have it, with `text` wherever a user has chosen a text.
pub(super) fn listed_audit(text: &str, options: VisitOptions) -> AuditEntry {
    AuditEntry {
        tracking_id: "trk_1".to_owned(),
        audit_id: "aud_1".to_owned(),
        batch_id: None,
        order: Order {
            url: text.to_owned(),
            device: text.to_owned(),
            network: text.to_owned(),
            location: text.to_owned(),
            options,
        },
        runs: 1,
        labels: vec![text.to_owned()],
        state: AuditState::Completed,
        error: None,
        accepted_at: Timestamp(0),
        finished_at: Some(Timestamp(0)),
        number: 1,
        lab_data: None,
        final_url: Some(text.to_owned()),
    }
}
