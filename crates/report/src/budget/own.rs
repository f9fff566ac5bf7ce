//! Our own file, in TOML: what a page may cost, in words and units that need no manual.

use serde_json::Value as Json;
use toml::{Table, Value};

use super::assertion::{Aggregation, Assertion, Level};
use super::budgets_json::{at_most, check_type};
use super::lighthouserc::{aggregation, set};
use super::{BudgetError, Set};
use crate::lighthouse::CATEGORIES;

/// With the unit in the name where there is one.
const METRICS: [(&str, &str); 6] = [
    ("fcp-ms", "first-contentful-paint"),
    ("lcp-ms", "largest-contentful-paint"),
    ("tbt-ms", "total-blocking-time"),
    ("si-ms", "speed-index"),
    ("tti-ms", "interactive"),
    ("cls", "cumulative-layout-shift"),
];

pub(super) fn read(text: &str) -> Result<Vec<Set>, BudgetError> {
    let table: Table = toml::from_str(text).map_err(|error| BudgetError {
        line: error
            .span()
            .map(|span| text[..span.start.min(text.len())].lines().count().max(1)),
        what: format!("not TOML: {}", error.message()),
    })?;
    sets(&table).map_err(|Wrong { section, key, what }| BudgetError {
        line: line_of(text, &section, &key),
        what,
    })
}

/// What is wrong, and under which heading to look for it.
struct Wrong {
    section: String,
    key: String,
    what: String,
}

fn sets(table: &Table) -> Result<Vec<Set>, Wrong> {
    let mut default = Aggregation::MedianRun;
    if let Some(name) = table.get("aggregate") {
        default = aggregation(name.as_str().unwrap_or_default()).map_err(at_top("aggregate"))?;
    }
    let mut own = Set {
        url_pattern: None,
        assertions: Vec::new(),
    };
    let mut sets = Vec::new();
    for (section, value) in table {
        match section.as_str() {
            "aggregate" | "preset" => {}
            "scores" | "metrics" | "sizes" | "counts" | "checks" => {
                let entries = value
                    .as_table()
                    .ok_or_else(|| wrong("", section, "must be a table"))?;
                for (key, value) in entries {
                    let entry = Entry {
                        section,
                        key,
                        value,
                        default,
                    };
                    own.assertions.push(entry.assertion()?);
                }
            }
            // Lighthouse CI's words, for who has them already.
            "assertions" => sets.push(foreign(table, value)?),
            _ => {
                let known = "scores, metrics, sizes, counts, checks, assertions, preset, aggregate";
                return Err(wrong(
                    "",
                    section,
                    &format!("is no part of a budget; there are {known}"),
                ));
            }
        }
    }
    if table.contains_key("preset") && !table.contains_key("assertions") {
        sets.push(foreign(table, &Value::Table(Table::new()))?);
    }
    sets.push(own);
    Ok(sets)
}

fn foreign(table: &Table, assertions: &Value) -> Result<Set, Wrong> {
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
        let key = error.what.split('`').nth(1).unwrap_or_default().to_owned();
        let is_at_top = assert.get("preset").and_then(Json::as_str) == Some(key.as_str());
        let (section, key) = if is_at_top {
            (String::new(), "preset".to_owned())
        } else {
            ("assertions".to_owned(), key)
        };
        Wrong {
            section,
            key,
            what: error.what,
        }
    })
}

/// One line of a section.
struct Entry<'a> {
    section: &'a str,
    key: &'a str,
    value: &'a Value,
    default: Aggregation,
}

impl Entry<'_> {
    fn assertion(&self) -> Result<Assertion, Wrong> {
        let mut assertion = match self.section {
            "scores" => self.score()?,
            "metrics" => self.metric()?,
            "sizes" => self.size()?,
            "counts" => {
                check_type(self.key).map_err(|error| self.says(&error.what))?;
                at_most(
                    &format!("resource-summary:{}:count", self.key),
                    self.limit("max")?,
                )
            }
            _ => self.check()?,
        };
        assertion.aggregation = self.default;
        if let Some(table) = self.value.as_table() {
            self.read_options(table, &mut assertion)?;
        }
        Ok(assertion)
    }

    fn score(&self) -> Result<Assertion, Wrong> {
        if !CATEGORIES.contains(&self.key) {
            return Err(self.is(&format!(
                "is no category; there are {}",
                CATEGORIES.join(", ")
            )));
        }
        let min = self.limit("min")?;
        if !(0.0..=100.0).contains(&min) {
            return Err(self.is("must be from 0 to 100"));
        }
        Ok(Assertion {
            min_score: Some(min / 100.0),
            ..Assertion::of(&format!("categories:{}", self.key), Level::Error)
        })
    }

    fn metric(&self) -> Result<Assertion, Wrong> {
        let known = METRICS.iter().find(|(name, _)| *name == self.key);
        let (_, id) = known.ok_or_else(|| {
            let names = METRICS.map(|(name, _)| name).join(", ");
            self.is(&format!("is no metric; there are {names}"))
        })?;
        Ok(at_most(id, self.limit("max")?))
    }

    fn size(&self) -> Result<Assertion, Wrong> {
        let kind = self.key.strip_suffix("-kib");
        let kind = kind.ok_or_else(|| self.is("must end in -kib, as in script-kib"))?;
        check_type(kind).map_err(|error| self.says(&error.what))?;
        Ok(at_most(
            &format!("resource-summary:{kind}:size"),
            self.limit("max")? * 1024.0,
        ))
    }

    /// `"error"`, `"warn"` and `"off"`, or a table.
    fn check(&self) -> Result<Assertion, Wrong> {
        let level = match self.value {
            Value::String(name) => Level::named(name),
            Value::Table(_) => Some(Level::Error),
            _ => None,
        };
        let level =
            level.ok_or_else(|| self.is("must be \"error\", \"warn\", \"off\", or a table"))?;
        Ok(Assertion::of(self.key, level))
    }

    fn limit(&self, name: &str) -> Result<f64, Wrong> {
        let given = match self.value {
            Value::Table(table) => table.get(name),
            value => Some(value),
        };
        let number =
            given.and_then(|value| value.as_float().or(value.as_integer().map(|n| n as f64)));
        let number = number.filter(|number| *number >= 0.0 && number.is_finite());
        number.ok_or_else(|| {
            self.is(&format!(
                "must be a number, or a table with a number as `{name}`"
            ))
        })
    }

    fn read_options(&self, table: &Table, assertion: &mut Assertion) -> Result<(), Wrong> {
        for (name, value) in table {
            let text = value.as_str().unwrap_or_default();
            match (self.section, name.as_str()) {
                ("scores", "min") | ("metrics" | "sizes" | "counts", "max") => {}
                ("checks", "max-items") => {
                    let max = value.as_integer().filter(|max| *max >= 0);
                    let max =
                        max.ok_or_else(|| self.is("has a `max-items` that is no whole number"))?;
                    assertion.max_length = Some(max as f64);
                }
                (_, "level") => {
                    assertion.level = Level::named(text)
                        .ok_or_else(|| self.is("has a `level` that is none of error, warn, off"))?;
                }
                (_, "aggregate") => {
                    assertion.aggregation =
                        aggregation(text).map_err(|error| self.says(&error.what))?;
                }
                _ => return Err(self.is(&format!("has no option `{name}`"))),
            }
        }
        Ok(())
    }

    fn is(&self, what: &str) -> Wrong {
        wrong(self.section, self.key, what)
    }

    fn says(&self, what: &str) -> Wrong {
        wrong(self.section, self.key, &format!("is wrong: {what}"))
    }
}

fn wrong(section: &str, key: &str, what: &str) -> Wrong {
    let place = if section.is_empty() {
        String::new()
    } else {
        format!(" in [{section}]")
    };
    Wrong {
        section: section.to_owned(),
        key: key.to_owned(),
        what: format!("`{key}`{place} {what}"),
    }
}

fn at_top(key: &'static str) -> impl Fn(BudgetError) -> Wrong {
    move |error| Wrong {
        section: String::new(),
        key: key.to_owned(),
        what: error.what,
    }
}

/// Where a key stands, or else its section.
fn line_of(text: &str, section: &str, key: &str) -> Option<usize> {
    let mut current = "";
    let mut heading = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next())
        {
            current = name.trim();
            if current == section || section.is_empty() && current == key {
                heading = Some(at + 1);
            }
            continue;
        }
        let given = line
            .split('=')
            .next()
            .unwrap_or_default()
            .trim()
            .trim_matches(['"', '\'']);
        if current == section && given == key {
            return Some(at + 1);
        }
    }
    heading
}
