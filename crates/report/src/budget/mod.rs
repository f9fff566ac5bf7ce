//! Budgets: limits for a page, read from a file and checked against the runs of an audit, which are
//! given as Lighthouse results.
//!
//! Every limit becomes an assertion with the rules of Lighthouse CI (@lhci/utils 0.15.1,
//! src/assertions.js). Four file formats are supported: Plumbline's own and three of Lighthouse CI.

mod assertion;
mod budgets_json;
mod lighthouserc;
mod median;
mod presets;
mod table;
mod toml_file;

use serde_json::Value;

pub use assertion::{AssertionResult, Judge, Kind, Level};
pub use median::median_run;

use assertion::Assertion;

/// A budget: sets of assertions, each for some or all URLs.
#[derive(Debug)]
pub struct Budget {
    sets: Vec<AssertionSet>,
}

/// Assertions for the same URLs.
#[derive(Debug)]
struct AssertionSet {
    /// The URLs that the set is for; `None` for all URLs.
    url_pattern: Option<regex::Regex>,
    assertions: Vec<Assertion>,
}

/// An error in a budget file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct BudgetError {
    /// The line of the error, if known.
    pub line: Option<usize>,
    /// The description of the error.
    pub message: String,
}

/// The result of checking an audit against a budget.
#[derive(Debug)]
pub struct BudgetResult {
    pub results: Vec<AssertionResult>,
    /// The number of audits of a preset that no run has: newer versions of Lighthouse removed many.
    pub missing_audits: usize,
}

impl Budget {
    /// Parses a budget file. Files named `*.json` or `*lighthouserc` are in a format of Lighthouse
    /// CI (a `lighthouserc`, its `assert` object, or a `budgets.json`), all others in Plumbline's
    /// TOML format.
    pub fn read(file_name: &str, text: &str) -> Result<Self, BudgetError> {
        let is_json = file_name.ends_with(".json") || file_name.ends_with("lighthouserc");
        let sets = if is_json {
            lighthouserc::read(text)?
        } else {
            toml_file::read(text)?
        };
        if sets.iter().all(|set| set.assertions.is_empty()) {
            return Err(BudgetError::without_line("the budget has no limits"));
        }
        Ok(Self { sets })
    }

    /// Judges all limits by intervals, so that only a limit that is surely exceeded fails.
    pub fn judge_by_intervals(&mut self) {
        for set in &mut self.sets {
            for assertion in &mut set.assertions {
                assertion.judge = Judge::Interval;
            }
        }
    }

    /// Returns the first limit, by its name in the file, of an audit or category that no report
    /// has, given the ids of all checks. Limits of a preset and those that are off need no audit.
    pub fn unknown_audit<'a>(&'a self, checks: &[&str]) -> Option<&'a str> {
        let assertions = self.sets.iter().flat_map(|set| &set.assertions);
        let mut required = assertions.filter(|it| !it.from_preset && it.level != Level::Off);
        let unknown = required.find(|assertion| !assertion.can_be_known(checks));
        unknown.map(|assertion| &*assertion.name)
    }

    /// Checks runs of one URL, given as Lighthouse results.
    pub fn check(&self, runs: &[Value]) -> BudgetResult {
        let url = runs
            .first()
            .and_then(|run| run["finalUrl"].as_str())
            .unwrap_or_default();
        let mut result = BudgetResult {
            results: Vec::new(),
            missing_audits: 0,
        };
        let median = median_run(runs).and_then(|index| runs.get(index));
        for set in &self.sets {
            let applies = set
                .url_pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(url));
            for assertion in set.assertions.iter().filter(|_| applies) {
                if assertion.from_preset && !assertion.is_known(runs) {
                    result.missing_audits += 1;
                    continue;
                }
                result.results.extend(assertion.check(runs, median));
            }
        }
        result
    }
}

impl BudgetResult {
    /// Whether an assertion of level `error` failed.
    pub fn is_exceeded(&self) -> bool {
        let fails = |finding: &AssertionResult| !finding.passed && finding.level == Level::Error;
        self.results.iter().any(fails)
    }

    /// Returns a sentence about the result, and a table of the failed assertions.
    pub fn table(&self, runs: usize) -> String {
        table::render(self, runs)
    }
}

impl BudgetError {
    fn without_line(message: impl Into<String>) -> Self {
        Self {
            line: None,
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests;
