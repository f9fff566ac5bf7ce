//! The metrics that the advice of a check concerns.

use plumbline_model::check::CheckResult;
use plumbline_model::scoring::MetricKind;

/// Returns the metrics that the advice of a check concerns, by their abbreviations in lower case:
/// those that it always concerns, and those with an estimate on this page.
pub(super) fn concerned_metrics(check: &CheckResult) -> Vec<&'static str> {
    let savings = check.savings.unwrap_or_default();
    let always = metrics_of(&check.id);
    [
        ("fcp", savings.fcp_ms),
        ("lcp", savings.lcp_ms),
        ("tbt", savings.tbt_ms),
        ("cls", savings.cls),
        ("inp", savings.inp_ms),
    ]
    .into_iter()
    .filter(|(name, saved)| saved.is_some() || always.contains(name))
    .map(|(name, _)| name)
    .collect()
}

/// Returns whether the advice of a check concerns a metric.
pub(super) fn concerns(check: &CheckResult, metric: MetricKind) -> bool {
    concerned_metrics(check).contains(&metric.as_str())
}

fn metrics_of(id: &str) -> &'static [&'static str] {
    match id {
        "font-display-insight"
        | "unminified-css"
        | "unminified-javascript"
        | "unused-css-rules" => &["fcp"],
        "document-latency-insight"
        | "duplicated-javascript-insight"
        | "legacy-javascript-insight"
        | "modern-http-insight"
        | "network-dependency-tree-insight"
        | "redirects"
        | "render-blocking-insight"
        | "server-response-time"
        | "unused-javascript" => &["fcp", "lcp"],
        "image-delivery-insight" | "lcp-breakdown-insight" | "lcp-discovery-insight" => &["lcp"],
        "bootup-time"
        | "forced-reflow-insight"
        | "long-tasks"
        | "main-thread-tasks"
        | "mainthread-work-breakdown"
        | "third-parties-insight" => &["tbt", "inp"],
        "dom-size-insight" | "inp-breakdown-insight" | "viewport-insight" => &["inp"],
        "cls-culprits-insight"
        | "layout-shifts"
        | "non-composited-animations"
        | "unsized-images" => &["cls"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Savings;
    use serde_json::json;

    use super::*;

    fn check(id: &str, savings: Savings) -> CheckResult {
        serde_json::from_value(json!({
            "id": id, "title": id, "verdict": "fail", "weight": 0.0, "score": 0.0,
            "group": "insights", "why": "", "fix": "", "savings": savings,
        }))
        .unwrap()
    }

    #[test]
    fn estimates_add_metrics_to_those_that_a_check_always_concerns() {
        let reflow = check("forced-reflow-insight", Savings::default());
        assert_eq!(concerned_metrics(&reflow), ["tbt", "inp"]);
        let styles = check("unused-css-rules", Savings::bytes(9000.0));
        assert_eq!(concerned_metrics(&styles), ["fcp"]);
        let other = check("other", Savings::first_paint(10.0));
        assert_eq!(concerned_metrics(&other), ["fcp"]);
    }

    #[test]
    fn an_estimate_for_a_metric_concerns_no_other_one() {
        let other = check("other", Savings::first_paint(10.0));
        assert!(concerns(&other, MetricKind::Fcp));
        assert!(!concerns(&other, MetricKind::Lcp));
    }
}
