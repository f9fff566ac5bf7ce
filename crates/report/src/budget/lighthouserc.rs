//! Lighthouse CI's configuration in JSON: `{"ci": {"assert": …}}`, or what is under `assert` alone. What it says
//! about collecting and uploading is not for us.

use serde_json::{Map, Value};

use super::assertion::{Aggregation, Assertion, Level, kebab_case};
use super::{BudgetError, Set, budgets_json, presets};

pub(super) fn read(text: &str) -> Result<Vec<Set>, BudgetError> {
    let value: Value = serde_json::from_str(text).map_err(|error| BudgetError {
        line: Some(error.line()),
        what: format!("not JSON: {error}"),
    })?;
    let sets = if value.is_array() {
        budgets_json::sets(&value)
    } else {
        sets(&value)
    };
    sets.map_err(|mut error| {
        error.line = error.line.or_else(|| line_naming(text, &error.what));
        error
    })
}

/// The line with the first name in quotes that the message has between backticks.
fn line_naming(text: &str, what: &str) -> Option<usize> {
    let name = what.split('`').nth(1)?;
    let quoted = format!("\"{name}\"");
    text.lines()
        .position(|line| line.contains(&quoted))
        .map(|at| at + 1)
}

fn sets(value: &Value) -> Result<Vec<Set>, BudgetError> {
    let assert = match (value.pointer("/ci/assert"), value.get("assert")) {
        (Some(assert), _) | (None, Some(assert)) => assert,
        (None, None) if value.get("ci").is_some() => {
            return Err(BudgetError::somewhere("`ci` has no `assert`"));
        }
        (None, None) => value,
    };
    let Some(assert) = assert.as_object() else {
        return Err(BudgetError::somewhere("`assert` must be an object"));
    };
    let Some(matrix) = assert.get("assertMatrix") else {
        return Ok(vec![set(assert)?]);
    };
    if ["assertions", "preset", "budgetsFile", "aggregationMethod"]
        .iter()
        .any(|name| assert.contains_key(*name))
    {
        return Err(BudgetError::somewhere(
            "`assertMatrix` stands alone: what it is used with belongs inside it",
        ));
    }
    let sets = matrix.as_array().into_iter().flatten();
    sets.map(|entry| match entry.as_object() {
        Some(entry) => set(entry),
        None => Err(BudgetError::somewhere(
            "`assertMatrix` must be an array of objects",
        )),
    })
    .collect()
}

/// One object with `assertions`, `preset`, `aggregationMethod`, `matchingUrlPattern`.
pub(super) fn set(assert: &Map<String, Value>) -> Result<Set, BudgetError> {
    for (name, value) in assert {
        let is_known = match name.as_str() {
            "assertions" => value.is_object(),
            "preset" | "aggregationMethod" | "matchingUrlPattern" => value.is_string(),
            "includePassedAssertions" | "lhr" => true,
            "budgetsFile" => {
                return Err(BudgetError::somewhere(
                    "`budgetsFile` names another file: give that one to --budget",
                ));
            }
            _ => {
                return Err(BudgetError::somewhere(format!(
                    "`{name}` is no option of `assert`"
                )));
            }
        };
        if !is_known {
            return Err(BudgetError::somewhere(format!(
                "`{name}` has a value of the wrong type"
            )));
        }
    }
    let text = |name: &str| assert.get(name).and_then(Value::as_str);
    let url_pattern = text("matchingUrlPattern").map(pattern).transpose()?;
    let default = match text("aggregationMethod") {
        Some(name) => aggregation(name)?,
        None => Aggregation::default(),
    };
    let mut assertions = match text("preset") {
        Some(name) => presets::named(name).ok_or_else(|| {
            BudgetError::somewhere(format!(
                "no preset `{name}`; there are {}",
                presets::NAMES.join(", ")
            ))
        })?,
        None => Vec::new(),
    };
    for assertion in &mut assertions {
        assertion.aggregation = default;
    }
    let given = assert.get("assertions").and_then(Value::as_object);
    for (key, value) in given.into_iter().flatten() {
        let key = kebab_case(key);
        let preset = assertions
            .iter()
            .position(|known| known.key() == key.replace('.', ":"));
        let preset = preset.map(|at| assertions.remove(at));
        assertions.push(assertion(&key, value, default, preset)?);
    }
    Ok(Set {
        url_pattern,
        assertions,
    })
}

pub(super) fn pattern(text: &str) -> Result<regex::Regex, BudgetError> {
    regex::Regex::new(text).map_err(|error| {
        BudgetError::somewhere(format!("`{text}` is no pattern that can be used: {error}"))
    })
}

pub(super) fn aggregation(name: &str) -> Result<Aggregation, BudgetError> {
    Aggregation::named(name).ok_or_else(|| {
        let ways = "median, optimistic, pessimistic, median-run";
        BudgetError::somewhere(format!("`{name}` is no way to aggregate; there are {ways}"))
    })
}

/// `"error"`, or `["error", {…}]`.
fn assertion(
    key: &str,
    value: &Value,
    default: Aggregation,
    preset: Option<Assertion>,
) -> Result<Assertion, BudgetError> {
    let (level, options) = match value {
        Value::String(_) => (value, &Value::Null),
        Value::Array(both) => match &both[..] {
            [level] => (level, &Value::Null),
            [level, options @ Value::Object(_)] => (level, options),
            _ => {
                return Err(BudgetError::somewhere(format!(
                    "`{key}` must be a level, or a level and an object"
                )));
            }
        },
        _ => {
            return Err(BudgetError::somewhere(format!(
                "`{key}` must be a level, or a level and an object"
            )));
        }
    };
    let level = level.as_str().and_then(Level::named).ok_or_else(|| {
        BudgetError::somewhere(format!(
            "`{key}` has level {level}; there are error, warn, off"
        ))
    })?;
    // A level alone replaces what a preset asks for; a level with options adds to it.
    let mut assertion = match preset.filter(|_| value.is_array()) {
        Some(preset) => Assertion {
            level,
            from_preset: false,
            ..preset
        },
        None => Assertion {
            aggregation: default,
            ..Assertion::of(key, level)
        },
    };
    check_property(&assertion, key)?;
    for (name, value) in options.as_object().into_iter().flatten() {
        let number = || {
            value.as_f64().ok_or_else(|| {
                BudgetError::somewhere(format!("`{name}` of {key} must be a number, not {value}"))
            })
        };
        match name.as_str() {
            "minScore" => assertion.min_score = Some(number()?),
            "maxLength" => assertion.max_length = Some(number()?),
            "maxNumericValue" => assertion.max_numeric_value = Some(number()?),
            "aggregationMethod" => {
                assertion.aggregation = aggregation(value.as_str().unwrap_or_default())?;
            }
            _ => {
                return Err(BudgetError::somewhere(format!(
                    "`{name}` of {key} is no option; there are minScore, maxLength, maxNumericValue, aggregationMethod"
                )));
            }
        }
    }
    if assertion
        .min_score
        .is_some_and(|score| !(0.0..=1.0).contains(&score))
    {
        return Err(BudgetError::somewhere(format!(
            "`minScore` of {key} must be from 0 to 1"
        )));
    }
    Ok(assertion)
}

/// Properties make sense where Lighthouse CI knows them.
fn check_property(assertion: &Assertion, key: &str) -> Result<(), BudgetError> {
    let properties: Vec<&str> = assertion.properties.iter().map(String::as_str).collect();
    let fits = matches!(
        (assertion.audit.as_str(), &properties[..]),
        ("categories", [_])
            | ("resource-summary", [_, "size" | "count"])
            | ("user-timings", _)
            | (_, [])
    );
    match fits {
        true => Ok(()),
        false => Err(BudgetError::somewhere(format!(
            "`{key}` is no assertion; with properties there are categories:NAME, \
             resource-summary:TYPE:size, resource-summary:TYPE:count, user-timings:NAME"
        ))),
    }
}
