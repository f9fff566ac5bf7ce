//! The report in the format of the public API: rounded, with every member present.

use plumbline_bundle::{Failure, MainDocument};
use plumbline_model::field::{FieldData, FieldKind, FieldReason};
use plumbline_model::report::{Conditions, Metric, Metrics, Scores};
use plumbline_model::responsiveness::Responsiveness;
use serde::Deserialize;
use serde_json::{Value, json};

/// Returns the `data` member of the report operation for a stored report.
pub fn audit_data(
    audit_id: &str,
    created_at_ms: i64,
    url: &str,
    report_json: &str,
) -> Result<Value, serde_json::Error> {
    let report: ContractReport = serde_json::from_str(report_json)?;
    let mut data = json!({
        "auditId": audit_id,
        "url": url,
        "device": report.conditions.device.name,
        "network": report.conditions.network.name,
        "location": report.conditions.location.name,
        "createdAt": iso8601_ms(created_at_ms),
        "labData": figures(&report.scores, report.metrics.as_ref(), report.document.as_ref()),
        "fieldData": report.field_data.as_ref().map(field_figures),
    });
    if let Some(field) = &report.field_data {
        data["fieldDataSource"] = json!({
            "record": field.record,
            "subject": field.subject,
            "formFactor": field.form_factor,
            "collectionPeriod": field.collection_period,
        });
    } else if let Some(reason) = report.field_data_reason {
        data["fieldDataReason"] = json!(reason);
    }
    if let Some(responsiveness) = &report.responsiveness {
        data["responsiveness"] = json!({
            "inp": responsiveness.inp_ms.map(|ms| ms.round() as i64),
            "rating": responsiveness.rating,
            "interactions": responsiveness.measured(),
        });
    }
    if let Some(error) = &report.error {
        data["error"] = json!({ "code": error.code, "message": error.message });
    }
    Ok(data)
}

/// The part of a report that the API shows. The rest is skipped: parsing all of a report of 200 kB
/// would take most of the time of a response.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContractReport {
    conditions: Conditions,
    scores: Scores,
    metrics: Option<Metrics>,
    document: Option<MainDocument>,
    error: Option<Failure>,
    field_data: Option<FieldData>,
    field_data_reason: Option<FieldReason>,
    responsiveness: Option<Responsiveness>,
}

/// Returns milliseconds as whole numbers and layout shift with up to four decimals; null if the
/// dataset has no value.
fn field_figures(field: &FieldData) -> Value {
    let p75 = |kind| field.metrics.get(kind).map(|metric| metric.p75);
    let whole = |kind| p75(kind).map(|value| value.round() as i64);
    json!({
        "fcp": whole(FieldKind::Fcp),
        "lcp": whole(FieldKind::Lcp),
        "fid": whole(FieldKind::Fid),
        "cls": p75(FieldKind::Cls).map(four_decimals),
        "inp": whole(FieldKind::Inp),
        "ttfb": whole(FieldKind::Ttfb),
        "percentile": field.percentile,
    })
}

fn four_decimals(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// Returns scores and milliseconds as whole numbers and layout shift with up to four decimals; null
/// if not measured. The figures of an error page have its status.
pub fn figures(
    scores: &Scores,
    metrics: Option<&Metrics>,
    document: Option<&MainDocument>,
) -> Value {
    let whole = |metric: Option<&Metric>| metric.map(|metric| metric.value.round() as i64);
    let mut figures = json!({
        "performance": scores.performance,
        "accessibility": scores.accessibility,
        "seo": scores.seo,
        "bestPractices": scores.best_practices,
        "pwa": scores.pwa,
        "fcp": whole(metrics.and_then(|m| m.fcp.as_ref())),
        "lcp": whole(metrics.and_then(|m| m.lcp.as_ref())),
        "tbt": whole(metrics.and_then(|m| m.tbt.as_ref())),
        "cls": metrics.and_then(|m| m.cls).map(|cls| four_decimals(cls.value)),
        "si": whole(metrics.and_then(|m| m.si.as_ref())),
        "tti": whole(metrics.and_then(|m| m.tti.as_ref())),
    });
    if let Some(status) = document.and_then(MainDocument::error_status) {
        figures["errorStatus"] = json!(status);
    }
    figures
}

/// Formats a time in UTC with milliseconds and `Z`.
pub fn iso8601_ms(ms_since_epoch: i64) -> String {
    // Only times some 9,000 years away are out of range: they become the epoch instead of a panic.
    let time =
        jiff::Timestamp::from_millisecond(ms_since_epoch).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_an_error_page_have_its_status() {
        let report = crate::testing::report();
        let status_of = |status: u16| {
            let document = MainDocument {
                status,
                ..MainDocument::default()
            };
            let figures = figures(&report.scores, report.metrics.as_ref(), Some(&document));
            figures.get("errorStatus").and_then(Value::as_u64)
        };
        assert_eq!(status_of(500), Some(500));
        assert_eq!(status_of(200), None);
    }

    #[test]
    fn times_have_milliseconds_and_end_with_z() {
        assert_eq!(iso8601_ms(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso8601_ms(1_794_708_582_007), "2026-11-15T02:09:42.007Z");
        assert_eq!(iso8601_ms(i64::MAX), "1970-01-01T00:00:00.000Z");
    }
}
