//! Field data in the API and on pages.

use std::sync::Arc;

use async_trait::async_trait;
use plumbline_catalog::FormFactor;
use plumbline_model::field::{FieldHistory, FieldKind, FieldReason, Period, RecordScope};
use plumbline_server::FieldSource;
use serde_json::{Value, json};

use crate::contract::report;
use crate::rig::{Rig, get};
use crate::visitor::sign_in;

fn with_field() -> Value {
    let metric = |p75: f64| json!({ "p75": p75, "shares": { "good": 0.7, "needsImprovement": 0.2, "poor": 0.1 } });
    let mut report = report(Value::Null);
    report["fieldData"] = json!({
        "record": "origin", "subject": "https://example.com", "formFactor": "phone", "percentile": 75,
        "collectionPeriod": { "firstDate": "2026-10-15", "lastDate": "2026-11-11" },
        "metrics": {
            "fcp": metric(1801.4), "lcp": metric(2504.5), "fid": null, "cls": metric(0.123_449),
            "inp": metric(190.0), "ttfb": metric(812.0),
        },
    });
    report
}

/// Completes an audit with this report, and returns its id.
async fn completed(rig: &Rig, report: Value) -> String {
    rig.start().await;
    let lease = rig.lease().await;
    rig.finish(&lease, report, None).await;
    lease.audit_id
}

#[tokio::test]
async fn field_data_has_the_contracts_members_and_its_source() {
    let rig = Rig::new().await;
    let id = completed(&rig, with_field()).await;
    let reply = rig
        .send(&get(&format!("/v1/audit/data/{id}")).key(&rig.key))
        .await;
    let data = reply.json()["data"].take();
    assert_eq!(
        data["fieldData"],
        json!({ "fcp": 1801, "lcp": 2505, "fid": null, "cls": 0.1234, "inp": 190, "ttfb": 812,
                "percentile": 75 })
    );
    assert_eq!(
        data["fieldDataSource"],
        json!({ "record": "origin", "subject": "https://example.com", "formFactor": "phone",
                "collectionPeriod": { "firstDate": "2026-10-15", "lastDate": "2026-11-11" } })
    );
    assert_eq!(data.get("fieldDataReason"), None);
}

#[tokio::test]
async fn absent_field_data_has_a_reason() {
    let rig = Rig::new().await;
    let mut report = report(Value::Null);
    report["fieldDataReason"] = json!("NO_KEY");
    let id = completed(&rig, report).await;
    let reply = rig
        .send(&get(&format!("/v1/audit/data/{id}")).key(&rig.key))
        .await;
    let data = reply.json()["data"].take();
    assert_eq!(data["fieldData"], Value::Null);
    assert_eq!(data["fieldDataReason"], "NO_KEY");
    assert_eq!(data.get("fieldDataSource"), None);
}

struct Source(Result<(), FieldReason>);

#[async_trait]
impl FieldSource for Source {
    async fn history(
        &self,
        url: &str,
        form_factor: FormFactor,
    ) -> Result<FieldHistory, FieldReason> {
        assert_eq!(url, "https://example.com/");
        self.0?;
        Ok(history(form_factor))
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("found", 2), ("NOT_IN_DATASET", 3)]
    }
}

fn history(form_factor: FormFactor) -> FieldHistory {
    let period = |day: u32| Period {
        first_date: "2026-10-01".to_owned(),
        last_date: format!("2026-11-{day:02}"),
    };
    FieldHistory {
        record: RecordScope::Origin,
        subject: "https://example.com".to_owned(),
        form_factor,
        periods: vec![period(1), period(8), period(15)],
        p75s: vec![(FieldKind::Lcp, vec![Some(2700.0), None, Some(2400.0)])],
    }
}

#[tokio::test]
async fn the_history_of_a_url_has_its_field_data_or_the_reason_why_not() {
    for (source, expected) in [
        (
            Ok(()),
            "Largest Contentful Paint, 75th percentile of 2 periods: newest 2.40\u{a0}s",
        ),
        (
            Err(FieldReason::Unavailable),
            "The Chrome UX Report API could not be reached.",
        ),
    ] {
        let rig = Rig::with_pages_and(|app| app.field = Some(Arc::new(Source(source)))).await;
        let id = completed(&rig, with_field()).await;
        let cookie = sign_in(&rig, &rig.key).await;
        let request = get(&format!("/history?audit={id}")).header("Cookie", &cookie);
        let page = rig.browse(&request).await;
        assert_eq!(page.status, 200);
        assert!(page.text().contains(expected), "{}", page.text());
        assert!(page.text().contains("visitors on phones"));
    }
}

#[tokio::test]
async fn a_report_shows_field_data_beside_lab_data() {
    let rig = Rig::with_pages().await;
    let id = completed(&rig, with_field()).await;
    let cookie = sign_in(&rig, &rig.key).await;
    let request = get(&format!("/reports/{id}")).header("Cookie", &cookie);
    let page = rig.browse(&request).await.text().to_owned();
    for expected in [
        "All pages of this origin",
        "15 Oct to 11 Nov 2026",
        "2.50\u{a0}s",
        "2.35\u{a0}s in this audit",
        "Largest Contentful Paint, visits: 70\u{a0}% good, 20\u{a0}% needs improvement, 10\u{a0}% poor",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    assert!(!page.contains("First Input Delay"), "there is none");
}

#[tokio::test]
async fn queries_are_counted_by_outcome() {
    let rig = Rig::with(|app| app.field = Some(Arc::new(Source(Ok(()))))).await;
    let text = rig.fetch(&get("/metrics")).await.text().to_owned();
    for line in [
        "plumbline_field_questions_total{outcome=\"found\"} 2",
        "plumbline_field_questions_total{outcome=\"not_in_dataset\"} 3",
    ] {
        assert!(text.lines().any(|other| other == line), "{text}");
    }
}
