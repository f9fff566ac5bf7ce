//! Reads budget files and reports their results.

use std::path::Path;

use plumbline_report::budget::Budget;
use serde_json::Value;

use crate::exit::Exit;
use crate::output::Outputs;
use crate::standard_output as out;

/// Reads a budget file.
pub fn read(path: &Path) -> Result<Budget, Exit> {
    let usage = |message: String| Exit::usage(format!("{}: {message}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Budget::read(&name, &text).map_err(|error| usage(error.to_string()))
}

/// Checks runs against a budget and prints the result, on standard error if standard output is used
/// for a report.
pub fn check(budget: &Budget, runs: &[Value], outputs: &Outputs) -> Result<Exit, Exit> {
    let result = budget.check(runs);
    let table = result.table(runs.len());
    if outputs.use_standard_output() {
        eprint!("{table}");
    } else {
        out::text(format_args!("\n{table}"))?;
    }
    Ok(if result.is_exceeded() {
        Exit::OverBudget
    } else {
        Exit::Done
    })
}
