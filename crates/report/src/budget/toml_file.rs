//! Plumbline's own budget format, in TOML.

use serde_json::Value as Json;
use toml::{Table, Value};

use super::assertion::{Aggregation, Assertion, Judge, Level};
use super::budgets_json::{at_most, check_type};
use super::lighthouserc::{aggregation, set};
use super::{AssertionSet, BudgetError};
use crate::lighthouse::CATEGORIES;

/// The keys of metrics, which include the unit, and the ids of their audits.
const METRICS: [(&str, &str); 6] = [
    ("fcp-ms", "first-contentful-paint"),
    ("lcp-ms", "largest-contentful-paint"),
    ("tbt-ms", "total-blocking-time"),
    ("si-ms", "speed-index"),
    ("tti-ms", "interactive"),
    ("cls", "cumulative-layout-shift"),
];

pub(super) fn read(text: &str) -> Result<Vec<AssertionSet>, BudgetError> {
    let table: Table = toml::from_str(text).map_err(|error| BudgetError {
        line: error
            .span()
            .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1),
        message: format!("invalid TOML: {}", error.message()),
    })?;
    sets(&table).map_err(|error| BudgetError {
        line: line_of(text, &error.section, &error.key),
        message: error.message,
    })
}

/// An error in an entry of a section.
struct EntryError {
    section: String,
    key: String,
    message: String,
}

fn sets(table: &Table) -> Result<Vec<AssertionSet>, EntryError> {
    let mut default = Aggregation::MedianRun;
    if let Some(name) = table.get("aggregate") {
        default = aggregation(name.as_str().unwrap_or_default()).map_err(at_top("aggregate"))?;
    }
    let judge = match table.get("judge") {
        None => Judge::default(),
        Some(name) => {
            let judge = name.as_str().and_then(Judge::from_name);
            judge.ok_or_else(|| entry_error("", "judge", "must be \"value\" or \"interval\""))?
        }
    };
    let mut own = AssertionSet {
        url_pattern: None,
        assertions: Vec::new(),
    };
    let mut sets: Vec<AssertionSet> = Vec::new();
    for (section, value) in table {
        match section.as_str() {
            "aggregate" | "judge" | "preset" => {}
            "scores" | "metrics" | "sizes" | "counts" | "checks" => {
                let entries = value
                    .as_table()
                    .ok_or_else(|| entry_error("", section, "must be a table"))?;
                for (key, value) in entries {
                    let entry = Entry {
                        section,
                        key,
                        value,
                        default,
                        judge,
                    };
                    own.assertions.push(entry.assertion()?);
                }
            }
            // Assertions in the syntax of Lighthouse CI.
            "assertions" => sets.push(lighthouse_set(table, value)?),
            _ => {
                let sections =
                    "scores, metrics, sizes, counts, checks, assertions, preset, aggregate, judge";
                return Err(entry_error(
                    "",
                    section,
                    &format!("is not a section of a budget; sections are {sections}"),
                ));
            }
        }
    }
    if table.contains_key("preset") && !table.contains_key("assertions") {
        sets.push(lighthouse_set(table, &Value::Table(Table::new()))?);
    }
    for assertion in sets.iter_mut().flat_map(|set| &mut set.assertions) {
        assertion.judge = judge;
    }
    sets.push(own);
    Ok(sets)
}

/// Parses `assertions` and `preset`, which have the syntax of Lighthouse CI.
fn lighthouse_set(table: &Table, assertions: &Value) -> Result<AssertionSet, EntryError> {
    let json = |value: &Value| serde_json::to_value(value).unwrap_or_default();
    let mut assert = serde_json::Map::new();
    assert.insert("assertions".to_owned(), json(assertions));
    if let Some(preset) = table.get("preset") {
        assert.insert("preset".to_owned(), json(preset));
    }
    if let Some(aggregate) = table.get("aggregate") {
        assert.insert("aggregationMethod".to_owned(), json(aggregate));
    }
    set(&assert).map_err(|error| {
        let key = error
            .message
            .split('`')
            .nth(1)
            .unwrap_or_default()
            .to_owned();
        let is_at_top = assert.get("preset").and_then(Json::as_str) == Some(key.as_str());
        let (section, key) = if is_at_top {
            (String::new(), "preset".to_owned())
        } else {
            ("assertions".to_owned(), key)
        };
        EntryError {
            section,
            key,
            message: error.message,
        }
    })
}

/// An entry of a section.
struct Entry<'a> {
    section: &'a str,
    key: &'a str,
    value: &'a Value,
    default: Aggregation,
    judge: Judge,
}

impl Entry<'_> {
    fn assertion(&self) -> Result<Assertion, EntryError> {
        let mut assertion = match self.section {
            "scores" => self.score()?,
            "metrics" => self.metric()?,
            "sizes" => self.size()?,
            "counts" => {
                check_type(self.key).map_err(|error| self.invalid(&error.message))?;
                at_most(
                    &format!("resource-summary:{}:count", self.key),
                    self.limit("max")?,
                )
            }
            _ => self.check()?,
        };
        assertion.name = self.key.to_owned();
        assertion.aggregation = self.default;
        assertion.judge = self.judge;
        if let Some(table) = self.value.as_table() {
            self.read_options(table, &mut assertion)?;
        }
        Ok(assertion)
    }

    fn score(&self) -> Result<Assertion, EntryError> {
        if !CATEGORIES.contains(&self.key) {
            return Err(self.error(&format!(
                "is not a category; categories are {}",
                CATEGORIES.join(", ")
            )));
        }
        let min = self.limit("min")?;
        if !(0.0..=100.0).contains(&min) {
            return Err(self.error("must be from 0 to 100"));
        }
        Ok(Assertion {
            min_score: Some(min / 100.0),
            ..Assertion::of(&format!("categories:{}", self.key), Level::Error)
        })
    }

    fn metric(&self) -> Result<Assertion, EntryError> {
        let metric = METRICS.iter().find(|(name, _)| *name == self.key);
        let (_, id) = metric.ok_or_else(|| {
            let names = METRICS.map(|(name, _)| name).join(", ");
            self.error(&format!("is not a metric; metrics are {names}"))
        })?;
        Ok(at_most(id, self.limit("max")?))
    }

    fn size(&self) -> Result<Assertion, EntryError> {
        let kind = self.key.strip_suffix("-kib");
        let kind = kind.ok_or_else(|| self.error("must end in -kib, as in script-kib"))?;
        check_type(kind).map_err(|error| self.invalid(&error.message))?;
        Ok(at_most(
            &format!("resource-summary:{kind}:size"),
            self.limit("max")? * 1024.0,
        ))
    }

    /// Parses `"error"`, `"warn"` or `"off"`, or a table.
    fn check(&self) -> Result<Assertion, EntryError> {
        let level = match self.value {
            Value::String(name) => Level::from_name(name),
            Value::Table(_) => Some(Level::Error),
            _ => None,
        };
        let level =
            level.ok_or_else(|| self.error("must be \"error\", \"warn\", \"off\", or a table"))?;
        Ok(Assertion::of(self.key, level))
    }

    fn limit(&self, name: &str) -> Result<f64, EntryError> {
        let limit = match self.value {
            Value::Table(table) => table.get(name),
            value => Some(value),
        };
        let number =
            limit.and_then(|value| value.as_float().or(value.as_integer().map(|n| n as f64)));
        let number = number.filter(|number| *number >= 0.0 && number.is_finite());
        number.ok_or_else(|| {
            self.error(&format!(
                "must be a number, or a table with a number as `{name}`"
            ))
        })
    }

    fn read_options(&self, table: &Table, assertion: &mut Assertion) -> Result<(), EntryError> {
        for (name, value) in table {
            let text = value.as_str().unwrap_or_default();
            match (self.section, name.as_str()) {
                ("scores", "min") | ("metrics" | "sizes" | "counts", "max") => {}
                ("checks", "max-items") => {
                    let max = value.as_integer().filter(|max| *max >= 0);
                    let max =
                        max.ok_or_else(|| self.error("must have a whole number as `max-items`"))?;
                    assertion.max_length = Some(max as f64);
                }
                (_, "level") => {
                    assertion.level = Level::from_name(text)
                        .ok_or_else(|| self.error("must have error, warn or off as `level`"))?;
                }
                (_, "aggregate") => {
                    assertion.aggregation =
                        aggregation(text).map_err(|error| self.invalid(&error.message))?;
                }
                ("scores" | "metrics", "judge") => {
                    assertion.judge = Judge::from_name(text)
                        .ok_or_else(|| self.error("must have value or interval as `judge`"))?;
                }
                _ => return Err(self.error(&format!("has no option `{name}`"))),
            }
        }
        Ok(())
    }

    fn error(&self, problem: &str) -> EntryError {
        entry_error(self.section, self.key, problem)
    }

    fn invalid(&self, message: &str) -> EntryError {
        entry_error(self.section, self.key, &format!("is invalid: {message}"))
    }
}

fn entry_error(section: &str, key: &str, problem: &str) -> EntryError {
    let location = if section.is_empty() {
        String::new()
    } else {
        format!(" in [{section}]")
    };
    EntryError {
        section: section.to_owned(),
        key: key.to_owned(),
        message: format!("`{key}`{location} {problem}"),
    }
}

/// Converts an error of a top-level key.
fn at_top(key: &'static str) -> impl Fn(BudgetError) -> EntryError {
    move |error| EntryError {
        section: String::new(),
        key: key.to_owned(),
        message: error.message,
    }
}

/// Returns the line of a key, or else of its section.
fn line_of(text: &str, section: &str, key: &str) -> Option<usize> {
    let mut current = "";
    let mut heading = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next())
        {
            current = name.trim();
            if current == section || section.is_empty() && current == key {
                heading = Some(index + 1);
            }
            continue;
        }
        let name = line
            .split('=')
            .next()
            .unwrap_or_default()
            .trim()
            .trim_matches(['"', '\'']);
        if current == section && name == key {
            return Some(index + 1);
        }
    }
    heading
}
