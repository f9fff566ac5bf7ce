//! A budget's file, and what the command says about it.

use std::path::Path;

use plumbline_report::budget::Budget;
use serde_json::Value;

use crate::exit::Exit;
use crate::output::Outputs;
use crate::standard_output as out;

pub fn read(path: &Path) -> Result<Budget, Exit> {
    let wrong = |what: String| Exit::usage(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Budget::read(&name, &text).map_err(|error| wrong(error.to_string()))
}

/// Prints what failed by how much; beside what a program reads from standard output, on standard
/// error.
pub fn hold(budget: &Budget, runs: &[Value], outputs: &Outputs) -> Result<Exit, Exit> {
    let verdicts = budget.check(runs);
    let table = verdicts.table(runs.len());
    match outputs.takes_standard_output() {
        true => eprint!("{table}"),
        false => out::text(format_args!("\n{table}"))?,
    }
    Ok(match verdicts.is_exceeded() {
        true => Exit::OverBudget,
        false => Exit::Done,
    })
}
