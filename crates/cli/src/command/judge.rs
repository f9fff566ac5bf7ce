//! `judge`: kept evidence, judged by this version.

use std::fs;

use plumbline_bundle::Bundle;
use plumbline_engine::{evaluate, stored_conditions};
use plumbline_report::lighthouse::result;
use plumbline_report::{ExportSource, Format, visited_at_ms};

use crate::args::JudgeArgs;
use crate::budget;
use crate::clock::now;
use crate::exit::Exit;
use crate::output::Outputs;

pub fn run(args: &JudgeArgs) -> Result<Exit, Exit> {
    let budget = args.budget.as_deref().map(budget::read).transpose()?;
    let path = args.bundle.display();
    let named = |error: String| Exit::failed(format!("{path}: {error}"));
    let bytes = fs::read(&args.bundle).map_err(|error| named(error.to_string()))?;
    let bundle = Bundle::unpack(&bytes).map_err(|error| named(error.to_string()))?;
    let conditions = stored_conditions(&bundle)
        .ok_or_else(|| named("the bundle does not say what it was gathered under".to_owned()))?;
    let report = evaluate(&bundle, conditions);
    let subject = ExportSource {
        report: &report,
        bundle: Some(&bundle),
        made_at_ms: visited_at_ms(&bundle).unwrap_or_else(|| now().0),
    };
    let outputs = Outputs::resolve(args.output.clone(), &[Format::Json])?;
    outputs.write(&subject)?;
    Ok(match (&report.error, budget) {
        (Some(_), _) => Exit::Failed(None),
        (None, None) => Exit::Done,
        (None, Some(budget)) => budget::hold(&budget, &[result(&subject)], &outputs)?,
    })
}
