//! The JSON configuration of Lighthouse CI: `{"ci": {"assert": …}}`, or the value of `assert`
//! alone. The parts about collecting and uploading are ignored.

use serde_json::{Map, Value};

use super::assertion::{Aggregation, Assertion, Level, kebab_case};
use super::{AssertionSet, BudgetError, budgets_json, presets};

pub(super) fn read(text: &str) -> Result<Vec<AssertionSet>, BudgetError> {
    let value: Value = serde_json::from_str(text).map_err(|error| BudgetError {
        line: Some(error.line()),
        message: format!("invalid JSON: {error}"),
    })?;
    let sets = if value.is_array() {
        budgets_json::sets(&value)
    } else {
        sets(&value)
    };
    sets.map_err(|mut error| {
        error.line = error.line.or_else(|| line_of_name(text, &error.message));
        error
    })
}

/// Returns the line that contains the first name between backticks of the message in quotes.
fn line_of_name(text: &str, message: &str) -> Option<usize> {
    let name = message.split('`').nth(1)?;
    let quoted = format!("\"{name}\"");
    text.lines()
        .position(|line| line.contains(&quoted))
        .map(|index| index + 1)
}

fn sets(value: &Value) -> Result<Vec<AssertionSet>, BudgetError> {
    let assert = match (value.pointer("/ci/assert"), value.get("assert")) {
        (Some(assert), _) | (None, Some(assert)) => assert,
        (None, None) if value.get("ci").is_some() => {
            return Err(BudgetError::without_line("`ci` has no `assert`"));
        }
        (None, None) => value,
    };
    let Some(assert) = assert.as_object() else {
        return Err(BudgetError::without_line("`assert` must be an object"));
    };
    let Some(matrix) = assert.get("assertMatrix") else {
        return Ok(vec![set(assert)?]);
    };
    if ["assertions", "preset", "budgetsFile", "aggregationMethod"]
        .iter()
        .any(|name| assert.contains_key(*name))
    {
        return Err(BudgetError::without_line(
            "`assertMatrix` cannot be combined with other options; move them into it",
        ));
    }
    let sets = matrix.as_array().into_iter().flatten();
    sets.map(|entry| match entry.as_object() {
        Some(entry) => set(entry),
        None => Err(BudgetError::without_line(
            "`assertMatrix` must be an array of objects",
        )),
    })
    .collect()
}

/// Parses an object with `assertions`, `preset`, `aggregationMethod` and `matchingUrlPattern`.
pub(super) fn set(assert: &Map<String, Value>) -> Result<AssertionSet, BudgetError> {
    for (name, value) in assert {
        let is_valid = match name.as_str() {
            "assertions" => value.is_object(),
            "preset" | "aggregationMethod" | "matchingUrlPattern" => value.is_string(),
            "includePassedAssertions" | "lhr" => true,
            "budgetsFile" => {
                return Err(BudgetError::without_line(
                    "`budgetsFile` is another file: pass that file to --budget",
                ));
            }
            _ => {
                return Err(BudgetError::without_line(format!(
                    "`{name}` is not an option of `assert`"
                )));
            }
        };
        if !is_valid {
            return Err(BudgetError::without_line(format!(
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
        Some(name) => presets::from_name(name).ok_or_else(|| {
            BudgetError::without_line(format!(
                "unknown preset `{name}`; presets are {}",
                presets::NAMES.join(", ")
            ))
        })?,
        None => Vec::new(),
    };
    for assertion in &mut assertions {
        assertion.aggregation = default;
    }
    let entries = assert.get("assertions").and_then(Value::as_object);
    for (name, value) in entries.into_iter().flatten() {
        let key = kebab_case(name);
        let preset = assertions
            .iter()
            .position(|assertion| assertion.key() == key.replace('.', ":"));
        let preset = preset.map(|index| assertions.remove(index));
        assertions.push(Assertion {
            name: name.clone(),
            ..assertion(&key, value, default, preset)?
        });
    }
    Ok(AssertionSet {
        url_pattern,
        assertions,
    })
}

pub(super) fn pattern(text: &str) -> Result<regex::Regex, BudgetError> {
    regex::Regex::new(text).map_err(|error| {
        BudgetError::without_line(format!("`{text}` is not a valid pattern: {error}"))
    })
}

pub(super) fn aggregation(name: &str) -> Result<Aggregation, BudgetError> {
    Aggregation::from_name(name).ok_or_else(|| {
        let methods = "median, optimistic, pessimistic, median-run";
        BudgetError::without_line(format!(
            "unknown aggregation method `{name}`; methods are {methods}"
        ))
    })
}

/// Parses `"error"` or `["error", {…}]`.
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
                return Err(BudgetError::without_line(format!(
                    "`{key}` must be a level, or a level and an object"
                )));
            }
        },
        _ => {
            return Err(BudgetError::without_line(format!(
                "`{key}` must be a level, or a level and an object"
            )));
        }
    };
    let level = level.as_str().and_then(Level::from_name).ok_or_else(|| {
        BudgetError::without_line(format!(
            "`{key}` has level {level}; levels are error, warn, off"
        ))
    })?;
    // A level alone replaces the assertion of a preset; a level with options extends it.
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
                BudgetError::without_line(format!(
                    "`{name}` of {key} must be a number, not {value}"
                ))
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
                return Err(BudgetError::without_line(format!(
                    "`{name}` of {key} is not an option; options are minScore, maxLength, maxNumericValue, \
                     aggregationMethod"
                )));
            }
        }
    }
    if assertion
        .min_score
        .is_some_and(|score| !(0.0..=1.0).contains(&score))
    {
        return Err(BudgetError::without_line(format!(
            "`minScore` of {key} must be from 0 to 1"
        )));
    }
    Ok(assertion)
}

/// Checks that the audit has the properties of the key.
fn check_property(assertion: &Assertion, key: &str) -> Result<(), BudgetError> {
    let properties: Vec<&str> = assertion.properties.iter().map(String::as_str).collect();
    let fits = matches!(
        (assertion.audit.as_str(), &properties[..]),
        ("categories", [_])
            | ("resource-summary", [_, "size" | "count"])
            | ("user-timings", _)
            | (_, [])
    );
    if fits {
        return Ok(());
    }
    Err(BudgetError::without_line(format!(
        "`{key}` is not an assertion; assertions with properties are categories:NAME, \
         resource-summary:TYPE:size, resource-summary:TYPE:count, user-timings:NAME"
    )))
}
