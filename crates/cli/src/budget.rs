//! Reads budget files and reports their results.

use std::path::Path;

use plumbline_report::budget::{Budget, BudgetResult};
use serde_json::Value;

use crate::exit::Exit;
use crate::output::Outputs;
use crate::standard_output as out;
use crate::suggestion::unknown_id;

/// Reads a budget file. `by_interval` judges all of its limits by intervals.
pub fn read(path: &Path, by_interval: bool) -> Result<Budget, Exit> {
    let usage = |message: String| Exit::usage(format!("{}: {message}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut budget = Budget::read(&name, &text).map_err(|error| usage(error.to_string()))?;
    if by_interval {
        budget.judge_by_intervals();
    }
    Ok(budget)
}

/// The result of a budget.
pub struct CheckedBudget {
    pub result: BudgetResult,
    /// An error for an id of the budget that no report has. It is reported last, so that the files
    /// of a finished audit are written all the same.
    unknown_id: Option<String>,
}

/// Checks runs against a budget.
pub fn check(budget: &Budget, runs: &[Value]) -> CheckedBudget {
    let result = budget.check(runs);
    let unknown_id = result.unknown_audits.first().map(|id| {
        let audits = runs.first().and_then(|run| run["audits"].as_object());
        let ids = audits.into_iter().flat_map(|audits| audits.keys());
        let message = unknown_id("audit", id, ids.map(String::as_str));
        format!("the budget has an {message}")
    });
    CheckedBudget { result, unknown_id }
}

impl CheckedBudget {
    /// Prints the result, on standard error if standard output is used for a report, and returns
    /// the exit code.
    pub fn print(self, runs: usize, outputs: &Outputs) -> Result<Exit, Exit> {
        let table = self.result.table(runs);
        if outputs.use_standard_output() {
            eprint!("{table}");
        } else {
            out::text(format_args!("\n{table}"))?;
        }
        self.exit()
    }

    /// Returns the exit code. An id that no report has is a usage error.
    pub fn exit(self) -> Result<Exit, Exit> {
        match self.unknown_id {
            Some(message) => Err(Exit::usage(message)),
            None if self.result.is_exceeded() => Ok(Exit::OverBudget),
            None => Ok(Exit::Done),
        }
    }
}
