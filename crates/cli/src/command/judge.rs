//! `judge`: evaluates stored evidence with this version.

use std::fs;

use plumbline_bundle::{Bundle, Record};
use plumbline_engine::evaluate;
use plumbline_model::report::Conditions;
use plumbline_report::lighthouse::result;
use plumbline_report::{ExportSource, Format, JunitOptions, visited_at_ms};

use crate::args::JudgeArgs;
use crate::budget;
use crate::clock::now;
use crate::exit::Exit;
use crate::output::Outputs;

/// Runs `plumbline judge`.
pub fn run(args: &JudgeArgs) -> Result<Exit, Exit> {
    let budget = args.budget.as_deref();
    let budget = budget.map(|path| budget::read(path, args.budget_by_interval));
    let budget = budget.transpose()?;
    let path = args.bundle.display();
    let failed = |error: String| Exit::failed(format!("{path}: {error}"));
    let bytes = fs::read(&args.bundle).map_err(|error| failed(error.to_string()))?;
    let bundle = Bundle::unpack(&bytes).map_err(|error| failed(error.to_string()))?;
    let conditions = Conditions::stored_in(&bundle).ok_or_else(|| {
        failed("the bundle does not contain the conditions of its visit".to_owned())
    })?;
    let report = evaluate(&bundle, conditions);
    let source = ExportSource {
        report: &report,
        bundle: Some(&bundle),
        media: None,
        made_at_ms: visited_at_ms(&bundle).unwrap_or_else(|| now().0),
        logo: None,
        junit: JunitOptions::default(),
    };
    let outputs = Outputs::resolve(args.output.clone(), &[Format::Json])?;
    let budget = budget.filter(|_| report.error.is_none());
    let budget = budget.map(|budget| budget::check(&budget, &[result(&source)]));
    outputs.write(&source, budget.as_ref().map(|budget| &budget.result))?;
    match (&report.error, budget) {
        (Some(_), _) => Ok(Exit::Failed(None)),
        (None, None) => Ok(Exit::Done),
        (None, Some(budget)) => budget.print(1, &outputs),
    }
}
