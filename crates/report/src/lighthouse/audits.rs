//! Converts checks to audits, and categories to categories.

use plumbline_model::category::CategoryResult;
use plumbline_model::check::{CheckResult, Unit, Verdict};
use plumbline_model::interval::Interval;
use plumbline_model::report::{Report, Scores};
use serde_json::{Map, Value, json};

use super::details::of_check;
use super::metrics::{self, METRICS};
use super::pictures::Pictures;
use super::{CATEGORIES, INTERVAL, manual, plain, requests, vitals};
use crate::export::ExportSource;
use crate::network::Network;

/// The audits, categories and groups of a result.
pub(super) struct Audits {
    pub(super) audits: Map<String, Value>,
    pub(super) categories: Map<String, Value>,
    pub(super) groups: Map<String, Value>,
}

/// The ids of the audits that are only meant for programs, unless there is a check with the same
/// id.
const HIDDEN: [&str; 10] = [
    "diagnostics",
    "final-screenshot",
    "max-potential-fid",
    "metrics",
    "network-requests",
    "network-rtt",
    "network-server-latency",
    "resource-summary",
    "screenshot-thumbnails",
    "total-byte-weight",
];

/// Returns whether a result can have an audit with this id that is no check.
pub(crate) fn is_audit_besides_checks(id: &str) -> bool {
    HIDDEN.contains(&id) || METRICS.iter().any(|it| it.id == id) || manual::contains(id)
}

const PERFORMANCE: &str = CATEGORIES[0];
const AGENTIC_BROWSING: &str = CATEGORIES[5];

/// Returns the title and score of a category, whether or not the report has checks for it. A
/// category that is shown as a fraction has a score only with its checks.
fn heading(id: &str, scores: &Scores) -> (&'static str, Option<u8>) {
    match id {
        "performance" => ("Performance", scores.performance),
        "accessibility" => ("Accessibility", scores.accessibility),
        "best-practices" => ("Best practices", scores.best_practices),
        "seo" => ("SEO", scores.seo),
        AGENTIC_BROWSING => ("Agentic browsing", None),
        _ => ("PWA", scores.pwa),
    }
}

/// Converts all metrics and checks.
pub(super) fn all(
    source: &ExportSource,
    network: Option<&Network>,
    pictures: &mut Pictures,
) -> Audits {
    let report = source.report;
    let mut all = Audits {
        audits: Map::new(),
        categories: Map::new(),
        groups: Map::new(),
    };
    all.name_group("metrics", "Metrics");
    all.name_group("hidden", "");
    for id in CATEGORIES {
        let category = report
            .categories
            .iter()
            .find(|category| category.id.as_str() == id);
        // Reports of earlier versions do not have this category.
        if id == AGENTIC_BROWSING && category.is_none() {
            continue;
        }
        let (title, score) = heading(id, &report.scores);
        let mut refs = Vec::new();
        if id == PERFORMANCE {
            refs.extend(all.add_metrics(report));
        }
        if let Some(category) = category {
            refs.extend(all.add_checks(category, pictures));
            refs.extend(all.add_manual(id));
        }
        if id == PERFORMANCE {
            let extra = metrics::observed(report)
                .into_iter()
                .chain(
                    network
                        .into_iter()
                        .flat_map(|network| requests::audits(network, report)),
                )
                .chain(
                    pictures
                        .trace()
                        .into_iter()
                        .flat_map(|trace| vitals::audits(trace, report)),
                )
                .chain(pictures.audits());
            refs.extend(all.add_hidden(extra));
        }
        let fraction = category.filter(|category| category.fraction.is_some());
        let score = fraction.map_or(score, |category| category.score);
        let mut category = json!({
            "id": id,
            "title": title,
            "score": score.map(|score| f64::from(score) / 100.0),
            "auditRefs": refs,
            "supportedModes": ["navigation"],
        });
        if id == PERFORMANCE
            && let Some(interval) = report.intervals.get(PERFORMANCE)
        {
            // Scores of Lighthouse are fractions.
            let fraction = |points: f64| (points * 10.0).round() / 1000.0;
            category[INTERVAL] = json!(Interval {
                low: fraction(interval.low),
                high: fraction(interval.high),
                ..interval.clone()
            });
        }
        if fraction.is_some() {
            category["categoryScoreDisplayMode"] = json!("fraction");
        }
        all.categories.insert(id.to_owned(), category);
    }
    all
}

impl Audits {
    fn name_group(&mut self, id: &str, title: &str) {
        let entry = || json!({ "title": title });
        self.groups.entry(id).or_insert_with(entry);
    }

    fn add_metrics(&mut self, report: &Report) -> Vec<Value> {
        METRICS
            .iter()
            .map(|metric| {
                let audit = metrics::audit(metric, report);
                self.audits.insert(metric.id.to_owned(), audit);
                let group = if metric.weight > 0.0 { "metrics" } else { "hidden" };
                json!({ "id": metric.id, "weight": metric.weight, "group": group, "acronym": metric.acronym })
            })
            .collect()
    }

    fn add_checks(&mut self, category: &CategoryResult, pictures: &mut Pictures) -> Vec<Value> {
        category
            .checks
            .iter()
            .map(|check| {
                let is_performance = category.id.as_str() == PERFORMANCE;
                let audit = audit_of(check, is_performance, pictures);
                // An audit may be in two categories, and is then the same in both.
                self.audits.entry(check.id.as_str()).or_insert(audit);
                if let Some(metric) = METRICS.iter().find(|metric| metric.id == check.id) {
                    return json!({ "id": check.id, "weight": check.weight, "acronym": metric.acronym });
                }
                // The group's id is its name in the report.
                let group = serde_json::to_value(check.group).unwrap_or_default();
                let group = group.as_str().unwrap_or("hidden");
                self.name_group(group, check.group.title());
                json!({ "id": check.id, "weight": check.weight, "group": group })
            })
            .collect()
    }

    /// Adds the audits of a category that a person has to perform.
    fn add_manual(&mut self, category: &str) -> Vec<Value> {
        manual::audits(category)
            .map(|(id, audit)| {
                self.audits.insert(id.to_owned(), audit);
                json!({ "id": id, "weight": 0 })
            })
            .collect()
    }

    /// Adds audits that are only meant for programs. If there is a check with the same id, it is
    /// kept and gets the number that it lacks.
    fn add_hidden(&mut self, audits: impl Iterator<Item = Value>) -> Vec<Value> {
        let mut refs = Vec::new();
        for audit in audits {
            let id = audit["id"].as_str().unwrap_or_default().to_owned();
            match self.audits.get_mut(&id) {
                Some(check) => {
                    for member in ["numericValue", "numericUnit"] {
                        if check.get(member).is_none() && audit[member] != Value::Null {
                            check[member] = audit[member].clone();
                        }
                    }
                }
                None => {
                    refs.push(json!({ "id": id, "weight": 0, "group": "hidden" }));
                    self.audits.insert(id, audit);
                }
            }
        }
        refs
    }
}

/// Converts a check to an audit. Its summary is the display value if there are details, else the
/// explanation.
fn audit_of(check: &CheckResult, is_performance: bool, pictures: &mut Pictures) -> Value {
    let mode = match check.verdict {
        Verdict::Pass | Verdict::Fail if is_performance => "metricSavings",
        Verdict::Pass | Verdict::Fail => "binary",
        Verdict::NotApplicable => "notApplicable",
        Verdict::Informative => "informative",
        Verdict::CouldNotMeasure => "error",
    };
    let details = of_check(check, pictures);
    // Lighthouse scores an informative audit 1, and a failed performance audit without savings one
    // half (core/audits/audit.js).
    let has_savings = details.as_ref().and_then(|details| details.has_savings());
    let score = match check.verdict {
        Verdict::Informative => Some(1.0),
        Verdict::Fail if is_performance && has_savings == Some(false) => Some(0.5),
        _ => check.score,
    };
    let mut description = format!("{} {}", check.why, check.fix);
    if let Some(url) = &check.learn_more {
        description.push_str(&format!(" [Learn more]({url})."));
    }
    let mut audit = json!({
        "id": check.id,
        "title": check.title,
        "description": description,
        "score": score,
        "scoreDisplayMode": mode,
    });
    if let Some(figure) = check.figure {
        audit["numericValue"] = json!(figure.value);
        audit["numericUnit"] = json!(numeric_unit(figure.unit));
    }
    if let Some(summary) = &check.summary {
        let member = match check.verdict {
            Verdict::CouldNotMeasure => "errorMessage",
            Verdict::Fail if details.is_none() => "explanation",
            _ => "displayValue",
        };
        audit[member] = json!(plain(summary));
    }
    if !check.warnings.is_empty() {
        audit["warnings"] = check
            .warnings
            .iter()
            .map(|warning| plain(warning))
            .collect();
    }
    if let Some(converted) = details {
        if let Some(savings) = converted.metric_savings {
            audit["metricSavings"] = savings;
        }
        audit["details"] = converted.details;
    }
    audit
}

/// Returns Lighthouse's name of a unit. Numbers are numbers of elements.
fn numeric_unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "byte",
        Unit::Ms => "millisecond",
        Unit::Number => "element",
        _ => "unitless",
    }
}
