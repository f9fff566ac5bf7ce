//! Lighthouse's `budgets.json`: an array of budgets, each for the paths that it names.

use serde_json::Value;

use super::assertion::{Assertion, Level};
use super::lighthouserc::pattern;
use super::{AssertionSet, BudgetError};
use crate::lighthouse::BUDGET_TYPES;

/// The metrics of timings (@lhci/utils, src/budget.js) that are still measured.
const METRICS: [&str; 6] = [
    "first-contentful-paint",
    "largest-contentful-paint",
    "interactive",
    "total-blocking-time",
    "speed-index",
    "cumulative-layout-shift",
];

pub(super) fn sets(value: &Value) -> Result<Vec<AssertionSet>, BudgetError> {
    value.as_array().into_iter().flatten().map(set).collect()
}

fn set(budget: &Value) -> Result<AssertionSet, BudgetError> {
    let Some(members) = budget.as_object() else {
        return Err(BudgetError::without_line("a budget must be an object"));
    };
    let mut set = AssertionSet {
        url_pattern: None,
        assertions: Vec::new(),
    };
    for (name, value) in members {
        match name.as_str() {
            "path" => set.url_pattern = Some(path_pattern(value)?),
            // First-party hosts are known from the visit.
            "options" => {}
            "timings" => {
                for (metric, max) in rows(name, value, "metric")? {
                    if !METRICS.contains(&metric) {
                        let metrics = METRICS.join(", ");
                        return Err(BudgetError::without_line(format!(
                            "unknown metric `{metric}`; metrics are {metrics}"
                        )));
                    }
                    set.assertions.push(at_most(metric, max));
                }
            }
            "resourceCounts" | "resourceSizes" => {
                for (kind, max) in rows(name, value, "resourceType")? {
                    check_type(kind)?;
                    // Sizes are in KiB.
                    set.assertions.push(match name.as_str() {
                        "resourceSizes" => {
                            at_most(&format!("resource-summary:{kind}:size"), max * 1024.0)
                        }
                        _ => at_most(&format!("resource-summary:{kind}:count"), max),
                    });
                }
            }
            _ => {
                return Err(BudgetError::without_line(format!(
                    "`{name}` is not a member of a budget"
                )));
            }
        }
    }
    Ok(set)
}

/// Checks that a resource type is known.
pub(super) fn check_type(name: &str) -> Result<(), BudgetError> {
    let types = BUDGET_TYPES.map(|(name, _)| name);
    if types.contains(&name) {
        return Ok(());
    }
    Err(BudgetError::without_line(format!(
        "unknown resource type `{name}`; resource types are {}",
        types.join(", ")
    )))
}

/// Returns an assertion with a maximum.
pub(super) fn at_most(key: &str, max: f64) -> Assertion {
    Assertion {
        max_numeric_value: Some(max),
        ..Assertion::of(key, Level::Error)
    }
}

fn rows<'a>(
    name: &str,
    value: &'a Value,
    member: &str,
) -> Result<Vec<(&'a str, f64)>, BudgetError> {
    let row = |row: &'a Value| Some((row[member].as_str()?, row["budget"].as_f64()?));
    let rows = value
        .as_array()
        .and_then(|rows| rows.iter().map(row).collect());
    rows.ok_or_else(|| {
        BudgetError::without_line(format!(
            "`{name}` must be an array of objects with `{member}` and a number as `budget`"
        ))
    })
}

/// Converts a path to a pattern like Lighthouse CI (@lhci/utils, src/budgets-converter.js): `*`
/// matches anything, `$` the end.
fn path_pattern(value: &Value) -> Result<regex::Regex, BudgetError> {
    let path = value.as_str().filter(|path| path.starts_with('/'));
    let path = path
        .ok_or_else(|| BudgetError::without_line("`path` must be a string that begins with /"))?;
    if path == "/" {
        return pattern(".*");
    }
    let escaped: Vec<String> = path
        .split('*')
        .map(|part| {
            part.split('$')
                .map(regex::escape)
                .collect::<Vec<_>>()
                .join("$")
        })
        .collect();
    pattern(&format!("https?://[^/]+{}", escaped.join(".*")))
}
