//! Reads budget files and reports their results.

use std::path::Path;

use plumbline_report::budget::{Budget, BudgetResult};
use serde_json::Value;

use crate::exit::Exit;
use crate::output::Outputs;
use crate::standard_output as out;
use crate::suggestion::unknown_id;

/// Reads a budget file.
pub fn read(path: &Path) -> Result<Budget, Exit> {
    let usage = |message: String| Exit::usage(format!("{}: {message}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Budget::read(&name, &text).map_err(|error| usage(error.to_string()))
}

/// Checks runs against a budget. An id that no report has is a usage error.
pub fn check(budget: &Budget, runs: &[Value]) -> Result<BudgetResult, Exit> {
    let result = budget.check(runs);
    if let Some(id) = result.unknown_audits.first() {
        let audits = runs.first().and_then(|run| run["audits"].as_object());
        let ids = audits.into_iter().flat_map(|audits| audits.keys());
        let message = unknown_id("audit", id, ids.map(String::as_str));
        return Err(Exit::usage(format!("the budget has an {message}")));
    }
    Ok(result)
}

/// Prints the result of a budget, on standard error if standard output is used for a report.
pub fn print(result: &BudgetResult, runs: usize, outputs: &Outputs) -> Result<Exit, Exit> {
    let table = result.table(runs);
    if outputs.use_standard_output() {
        eprint!("{table}");
    } else {
        out::text(format_args!("\n{table}"))?;
    }
    Ok(exit(result))
}

/// Returns the exit code of a budget's result.
pub fn exit(result: &BudgetResult) -> Exit {
    if result.is_exceeded() {
        Exit::OverBudget
    } else {
        Exit::Done
    }
}
