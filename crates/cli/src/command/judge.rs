//! `judge`: kept evidence, judged by this version.

use std::fs;

use plumbline_bundle::Bundle;
use plumbline_engine::{evaluate, remembered_conditions};

use crate::args::JudgeArgs;
use crate::exit::Exit;
use crate::out;

pub fn run(args: &JudgeArgs) -> Result<Exit, Exit> {
    let path = args.bundle.display();
    let named = |error: String| Exit::failed(format!("{path}: {error}"));
    let bytes = fs::read(&args.bundle).map_err(|error| named(error.to_string()))?;
    let bundle = Bundle::unpack(&bytes).map_err(|error| named(error.to_string()))?;
    let conditions = remembered_conditions(&bundle)
        .ok_or_else(|| named("the bundle does not say what it was gathered under".to_owned()))?;
    let report = evaluate(&bundle, conditions);
    let text = serde_json::to_string_pretty(&report).map_err(Exit::failed)?;
    out::line(text)?;
    Ok(match report.error {
        None => Exit::Done,
        Some(_) => Exit::Failed(None),
    })
}
