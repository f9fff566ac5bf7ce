//! `experiment`: compares a recording with a changed one.

use std::path::Path;

use plumbline_recording::Change;
use plumbline_seam::VisitOptions;

use super::compare::compare;
use crate::args::ExperimentArgs;
use crate::exit::Exit;
use crate::local_auditor::prepare;
use crate::recording_files::RecordingFile;

/// Runs `plumbline experiment`.
pub async fn run(args: ExperimentArgs) -> Result<Exit, Exit> {
    let changes = changes(&args.changes, args.changes_file.as_deref())?;
    let file = RecordingFile::read(&args.recording)?;
    file.recording.with_changes(&changes).map_err(Exit::usage)?;
    let url = file.recording.url.clone();
    let options = VisitOptions {
        quick: args.comparison.quick,
        compare_with: Some(url.clone()),
        replay: file.replay(Vec::new(), args.repeatable),
        replay_second: file.replay(changes, args.repeatable),
        ..VisitOptions::default()
    };
    let (auditor, [order], _) = prepare(args.conditions, [url], options)?;
    file.provide_to(&auditor);
    compare(&auditor, &order, &args.comparison).await
}

/// Returns the changes of the arguments, followed by those of a file.
fn changes(texts: &[String], file: Option<&Path>) -> Result<Vec<Change>, Exit> {
    let mut changes = Vec::new();
    for text in texts {
        let change = serde_json::from_str(text);
        changes.push(change.map_err(|error| Exit::usage(format!("--change {text}: {error}")))?);
    }
    if let Some(path) = file {
        let invalid =
            |reason: &dyn std::fmt::Display| Exit::usage(format!("{}: {reason}", path.display()));
        let text = std::fs::read(path).map_err(|e| invalid(&e))?;
        let listed: Vec<Change> = serde_json::from_slice(&text).map_err(|e| invalid(&e))?;
        changes.extend(listed);
    }
    Ok(changes)
}
