//! `experiment`: compares a recording with a changed one.

use std::path::Path;

use plumbline_agent::Auditor;
use plumbline_model::experiment::Subject;
use plumbline_recording::{Advised, Change};
use plumbline_seam::{Order, VisitOptions};

use super::compare::compare;
use crate::args::ExperimentArgs;
use crate::exit::Exit;
use crate::local_auditor::prepare;
use crate::recording_files::RecordingFile;

/// Runs `plumbline experiment`.
pub async fn run(args: ExperimentArgs) -> Result<Exit, Exit> {
    let check = args.check.map(Subject::Check);
    let subject = check.or(args.third_party.map(Subject::ThirdParty));
    let changes = changes(&args.changes, args.changes_file.as_deref())?;
    let file = RecordingFile::read(&args.recording)?;
    let url = file.recording.url.clone();
    let options = VisitOptions {
        quick: args.comparison.quick,
        replay: file.replay(Vec::new(), args.repeatable),
        ..VisitOptions::default()
    };
    let (auditor, [mut order], _) = prepare(args.conditions, [url.clone()], options)?;
    file.provide_to(&auditor);
    let advised = match subject {
        Some(subject) => advised(&auditor, &file, &order, &subject).await?,
        None => {
            file.recording.with_changes(&changes).map_err(Exit::usage)?;
            let left_out = Vec::new();
            Advised {
                url,
                changes,
                left_out,
            }
        }
    };
    order.options.compare_with = Some(advised.url);
    let second = file.replay(advised.changes, args.repeatable);
    order.options.replay_second = second.map(|mut replay| {
        replay.left_out = advised.left_out;
        replay
    });
    compare(&auditor, &order, &args.comparison).await
}

/// Returns the changes that follow the advice of a report, for which the recording is audited.
async fn advised(
    auditor: &Auditor,
    file: &RecordingFile,
    order: &Order,
    subject: &Subject,
) -> Result<Advised, Exit> {
    let output = auditor.audit(order, &|_| {}).await.map_err(Exit::failed)?;
    let device = auditor.catalog.device(&order.device);
    let pixel_ratio = device.map_or(1.0, |device| device.scale);
    let advised = file.recording.advised(subject, &output.report, pixel_ratio);
    advised.map_err(Exit::usage)
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
