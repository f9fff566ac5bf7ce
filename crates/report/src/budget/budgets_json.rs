//! Lighthouse's `budgets.json`: an array of budgets, each for the paths that it names.

use serde_json::Value;

use super::assertion::{Assertion, Level};
use super::lighthouserc::pattern;
use super::{BudgetError, Set};
use crate::lighthouse::BUDGET_TYPES;

/// Metrics that a timing may be about (@lhci/utils, src/budget.js), as far as they are still measured.
const METRICS: [&str; 6] = [
    "first-contentful-paint",
    "largest-contentful-paint",
    "interactive",
    "total-blocking-time",
    "speed-index",
    "cumulative-layout-shift",
];

pub(super) fn sets(value: &Value) -> Result<Vec<Set>, BudgetError> {
    value.as_array().into_iter().flatten().map(set).collect()
}

fn set(budget: &Value) -> Result<Set, BudgetError> {
    let Some(members) = budget.as_object() else {
        return Err(BudgetError::somewhere("a budget must be an object"));
    };
    let mut set = Set {
        url_pattern: None,
        assertions: Vec::new(),
    };
    for (name, value) in members {
        match name.as_str() {
            "path" => set.url_pattern = Some(path_pattern(value)?),
            // Which hosts are the page's own is known from the visit.
            "options" => {}
            "timings" => {
                for (what, max) in rows(name, value, "metric")? {
                    if !METRICS.contains(&what) {
                        let known = METRICS.join(", ");
                        return Err(BudgetError::somewhere(format!(
                            "no metric `{what}`; there are {known}"
                        )));
                    }
                    set.assertions.push(at_most(what, max));
                }
            }
            "resourceCounts" | "resourceSizes" => {
                for (what, max) in rows(name, value, "resourceType")? {
                    check_type(what)?;
                    // Sizes are in KiB there.
                    set.assertions.push(match name.as_str() {
                        "resourceSizes" => {
                            at_most(&format!("resource-summary:{what}:size"), max * 1024.0)
                        }
                        _ => at_most(&format!("resource-summary:{what}:count"), max),
                    });
                }
            }
            _ => {
                return Err(BudgetError::somewhere(format!(
                    "`{name}` is no part of a budget"
                )));
            }
        }
    }
    Ok(set)
}

pub(super) fn check_type(name: &str) -> Result<(), BudgetError> {
    match BUDGET_TYPES.iter().any(|(known, _)| *known == name) {
        true => Ok(()),
        false => {
            let known: Vec<&str> = BUDGET_TYPES.iter().map(|(name, _)| *name).collect();
            Err(BudgetError::somewhere(format!(
                "no resource type `{name}`; there are {}",
                known.join(", ")
            )))
        }
    }
}

pub(super) fn at_most(key: &str, max: f64) -> Assertion {
    Assertion {
        max_numeric_value: Some(max),
        ..Assertion::of(key, Level::Error)
    }
}

fn rows<'a>(name: &str, value: &'a Value, what: &str) -> Result<Vec<(&'a str, f64)>, BudgetError> {
    let row = |row: &'a Value| Some((row[what].as_str()?, row["budget"].as_f64()?));
    let rows = value
        .as_array()
        .and_then(|rows| rows.iter().map(row).collect());
    rows.ok_or_else(|| {
        BudgetError::somewhere(format!(
            "`{name}` must be an array of objects with {what} and a number as budget"
        ))
    })
}

/// As Lighthouse CI turns a path into a pattern (@lhci/utils, src/budgets-converter.js): `*` is anything, `$` the end.
fn path_pattern(value: &Value) -> Result<regex::Regex, BudgetError> {
    let path = value.as_str().filter(|path| path.starts_with('/'));
    let path =
        path.ok_or_else(|| BudgetError::somewhere("`path` must be a text that begins with /"))?;
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
