//! What a page may cost, and what it does: a budget is read from a file and held against the runs of
//! an audit, each in the form of a Lighthouse result.
//!
//! Everything becomes an assertion of Lighthouse CI, whose rules are the only ones here (@lhci/utils
//! 0.15.1, src/assertions.js): one file format of ours and three of its own are read into them.

mod assertion;
mod budgets_json;
mod lighthouserc;
mod median;
mod own;
mod presets;
mod table;

use serde_json::Value;

pub use assertion::{Finding, Level};
pub use median::median_run;

use assertion::Assertion;

/// What is asserted, in sets that may be for some addresses only.
#[derive(Debug)]
pub struct Budget {
    sets: Vec<Set>,
}

#[derive(Debug)]
struct Set {
    /// None is for every address.
    url_pattern: Option<regex::Regex>,
    assertions: Vec<Assertion>,
}

/// Why a file is no budget: where, and what is wrong there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct BudgetError {
    pub line: Option<usize>,
    pub what: String,
}

/// What came of holding a budget against an audit.
#[derive(Debug)]
pub struct Verdicts {
    pub findings: Vec<Finding>,
    /// Audits that a preset names and no run has: presets name many that newer versions dropped.
    pub not_there: usize,
}

impl Budget {
    /// By the file's name: JSON is Lighthouse CI's (a `lighthouserc`, its `assert` part alone, or a
    /// `budgets.json`), anything else is TOML of ours.
    pub fn read(file_name: &str, text: &str) -> Result<Self, BudgetError> {
        let is_json = file_name.ends_with(".json") || file_name.ends_with("lighthouserc");
        let sets = if is_json {
            lighthouserc::read(text)?
        } else {
            own::read(text)?
        };
        match sets.iter().all(|set| set.assertions.is_empty()) {
            true => Err(BudgetError::somewhere("nothing is asserted")),
            false => Ok(Self { sets }),
        }
    }

    /// The runs are of one address, in the form of Lighthouse results.
    pub fn check(&self, runs: &[Value]) -> Verdicts {
        let url = runs
            .first()
            .and_then(|run| run["finalUrl"].as_str())
            .unwrap_or_default();
        let mut verdicts = Verdicts {
            findings: Vec::new(),
            not_there: 0,
        };
        let median = median_run(runs).and_then(|at| runs.get(at));
        for set in &self.sets {
            let applies = set
                .url_pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(url));
            for assertion in set.assertions.iter().filter(|_| applies) {
                if assertion.from_preset && !assertion.names_what_is_there(runs) {
                    verdicts.not_there += 1;
                } else {
                    verdicts.findings.extend(assertion.check(runs, median));
                }
            }
        }
        verdicts
    }
}

impl Verdicts {
    /// Whether something failed that may not.
    pub fn is_exceeded(&self) -> bool {
        let fails = |finding: &Finding| !finding.passed && finding.level == Level::Error;
        self.findings.iter().any(fails)
    }

    /// What failed and by how much, as lines of text.
    pub fn table(&self, runs: usize) -> String {
        table::render(self, runs)
    }
}

impl BudgetError {
    fn somewhere(what: impl Into<String>) -> Self {
        Self {
            line: None,
            what: what.into(),
        }
    }
}

#[cfg(test)]
mod tests;
