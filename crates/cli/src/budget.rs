//! Reads budget files and reports their results.

use std::path::Path;

use plumbline_engine::registry;
use plumbline_report::budget::{Budget, BudgetResult};
use serde_json::Value;

use crate::exit::Exit;
use crate::output::Outputs;
use crate::standard_output as out;
use crate::suggestion::unknown_check;

/// Reads a budget file, and refuses ids that no report has. `by_interval` judges all of its limits
/// by intervals.
pub fn read(path: &Path, by_interval: bool) -> Result<Budget, Exit> {
    let usage = |message: String| Exit::usage(format!("{}: {message}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut budget = Budget::read(&name, &text).map_err(|error| usage(error.to_string()))?;
    let categories = registry::categories();
    let entries = categories.iter().flat_map(|category| &category.entries);
    let checks: Vec<&str> = entries.map(|entry| entry.check.id).collect();
    if let Some(id) = budget.unknown_audit(&checks) {
        return Err(usage(unknown_check(id, &checks)));
    }
    if by_interval {
        budget.judge_by_intervals();
    }
    Ok(budget)
}

/// The result of a budget.
pub struct CheckedBudget {
    pub result: BudgetResult,
}

/// Checks runs against a budget.
pub fn check(budget: &Budget, runs: &[Value]) -> CheckedBudget {
    CheckedBudget {
        result: budget.check(runs),
    }
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

    /// Returns the exit code.
    pub fn exit(self) -> Result<Exit, Exit> {
        if self.result.is_exceeded() {
            Ok(Exit::OverBudget)
        } else {
            Ok(Exit::Done)
        }
    }
}
