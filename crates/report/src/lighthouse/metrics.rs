//! The metrics as audits.

use plumbline_model::report::{Metric, Metrics, Report};
use plumbline_model::scoring::{MetricKind, PERFORMANCE_WEIGHTS};
use serde_json::{Value, json};

use super::{INTERVAL, plain};
use crate::html::summary::sentence;

/// A metric and how it is presented as an audit.
pub(super) struct MetricAudit {
    pub(super) id: &'static str,
    pub(super) acronym: &'static str,
    pub(super) weight: f64,
    title: &'static str,
    description: &'static str,
    kind: MetricKind,
    of: fn(&Metrics) -> Option<Metric>,
    display: fn(f64) -> String,
}

pub(super) const METRICS: [MetricAudit; 6] = [
    MetricAudit {
        id: "first-contentful-paint",
        acronym: "FCP",
        weight: weight(MetricKind::Fcp),
        title: "First Contentful Paint",
        description: "When the first text or image was painted.",
        kind: MetricKind::Fcp,
        of: |metrics| metrics.fcp,
        display: seconds,
    },
    MetricAudit {
        id: "largest-contentful-paint",
        acronym: "LCP",
        weight: weight(MetricKind::Lcp),
        title: "Largest Contentful Paint",
        description: "When the largest text or image was painted.",
        kind: MetricKind::Lcp,
        of: |metrics| metrics.lcp,
        display: seconds,
    },
    MetricAudit {
        id: "total-blocking-time",
        acronym: "TBT",
        weight: weight(MetricKind::Tbt),
        title: "Total Blocking Time",
        description: "The sum of the time of each long task above 50 ms, in which the page could not respond.",
        kind: MetricKind::Tbt,
        of: |metrics| metrics.tbt,
        display: tens_of_ms,
    },
    MetricAudit {
        id: "cumulative-layout-shift",
        acronym: "CLS",
        weight: weight(MetricKind::Cls),
        title: "Cumulative Layout Shift",
        description: "How much visible content moved unexpectedly.",
        kind: MetricKind::Cls,
        of: |metrics| metrics.cls,
        display: thousandths,
    },
    MetricAudit {
        id: "speed-index",
        acronym: "SI",
        weight: weight(MetricKind::Si),
        title: "Speed Index",
        description: "How quickly the visible part of the page was filled.",
        kind: MetricKind::Si,
        of: |metrics| metrics.si,
        display: seconds,
    },
    MetricAudit {
        id: "interactive",
        acronym: "TTI",
        weight: weight(MetricKind::Tti),
        title: "Time to Interactive",
        description: "When the page was able to respond quickly at all times.",
        kind: MetricKind::Tti,
        of: |metrics| metrics.tti,
        display: seconds,
    },
];

const fn weight(kind: MetricKind) -> f64 {
    let mut index = 0;
    while index < PERFORMANCE_WEIGHTS.len() {
        if PERFORMANCE_WEIGHTS[index].0 as u8 == kind as u8 {
            return PERFORMANCE_WEIGHTS[index].1;
        }
        index += 1;
    }
    0.0
}

pub(super) fn audit(metric_audit: &MetricAudit, report: &Report) -> Value {
    let mode = report.conditions.device.mode;
    let curve = metric_audit.kind.curve(mode);
    let mut audit = json!({
        "id": metric_audit.id,
        "title": metric_audit.title,
        "description": metric_audit.description,
        "score": null,
        "scoreDisplayMode": "error",
        "scoringOptions": { "p10": curve.p10, "median": curve.median },
    });
    match report.metrics.as_ref().and_then(metric_audit.of) {
        Some(metric) => {
            let unit = if metric_audit.kind == MetricKind::Cls {
                "unitless"
            } else {
                "millisecond"
            };
            audit["score"] = json!(metric.score);
            audit["scoreDisplayMode"] = json!("numeric");
            audit["numericValue"] = json!(metric.value);
            audit["numericUnit"] = json!(unit);
            audit["displayValue"] = json!((metric_audit.display)(metric.value));
            if let Some(interval) = report.intervals.get(metric_audit.kind.as_str()) {
                audit[INTERVAL] = json!(interval);
            }
        }
        None => {
            let reason = report.error.as_ref().map(|error| plain(&error.message));
            let missing = report.metrics.as_ref().map(|metrics| &metrics.missing);
            let own = missing.and_then(|missing| missing.get(metric_audit.kind.as_str()));
            let reason = reason.or_else(|| own.map(|own| plain(&sentence(own))));
            let reason = reason.unwrap_or_else(|| "This metric could not be measured.".to_owned());
            audit["errorMessage"] = json!(reason);
        }
    }
    audit
}

/// Returns one audit with all metrics, for programs (core/audits/metrics.js).
pub(super) fn observed(report: &Report) -> Option<Value> {
    let metrics = report.metrics.as_ref()?;
    let whole = |metric: Option<Metric>| metric.map(|metric| metric.value.round());
    let items = json!([{
        "firstContentfulPaint": whole(metrics.fcp),
        "largestContentfulPaint": whole(metrics.lcp),
        "interactive": whole(metrics.tti),
        "speedIndex": whole(metrics.si),
        "totalBlockingTime": whole(metrics.tbt),
        "cumulativeLayoutShift": metrics.cls.map(|cls| cls.value),
        "observedFirstContentfulPaint": whole(metrics.fcp),
        "observedLargestContentfulPaint": whole(metrics.lcp),
        "observedSpeedIndex": whole(metrics.si),
        "observedCumulativeLayoutShift": metrics.cls.map(|cls| cls.value),
    }]);
    let mut audit = json!({
        "id": "metrics",
        "title": "Metrics",
        "description": "All metrics in one place.",
        "score": 1,
        "scoreDisplayMode": "informative",
        "details": { "type": "debugdata", "items": items },
    });
    if let Some(tti) = metrics.tti {
        audit["numericValue"] = json!(tti.value.round());
        audit["numericUnit"] = json!("millisecond");
    }
    Some(audit)
}

/// Formats seconds, with a no-break space before the unit as in Lighthouse.
fn seconds(ms: f64) -> String {
    format!("{:.1}\u{a0}s", ms / 1000.0)
}

fn tens_of_ms(ms: f64) -> String {
    let rounded = (ms / 10.0).round() as i64 * 10;
    format!("{}\u{a0}ms", thousands(rounded))
}

fn thousandths(value: f64) -> String {
    format!("{}", (value * 1000.0).round() / 1000.0)
}

fn thousands(number: i64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_displayed_as_lighthouse_displays_them() {
        assert_eq!(seconds(1909.422), "1.9\u{a0}s");
        assert_eq!(tens_of_ms(8138.552), "8,140\u{a0}ms");
        assert_eq!(tens_of_ms(4.0), "0\u{a0}ms");
        assert_eq!(tens_of_ms(1_234_567.0), "1,234,570\u{a0}ms");
        assert_eq!(thousandths(0.002_731), "0.003");
        assert_eq!(thousandths(0.0), "0");
    }

    #[test]
    fn weights_are_those_of_the_score() {
        let weights = METRICS.map(|metric| (metric.acronym, metric.weight));
        let expected = [
            ("FCP", 10.0),
            ("LCP", 25.0),
            ("TBT", 30.0),
            ("CLS", 25.0),
            ("SI", 10.0),
            ("TTI", 0.0),
        ];
        assert_eq!(weights, expected);
    }
}
