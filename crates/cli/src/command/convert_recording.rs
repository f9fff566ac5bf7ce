//! `convert-recording`: converts a recording from or to HAR, or removes secrets from it.

use crate::args::ConvertRecordingArgs;
use crate::exit::Exit;
use crate::recording_files;

/// Runs `plumbline convert-recording`.
pub fn run(args: &ConvertRecordingArgs) -> Result<Exit, Exit> {
    let mut recording = recording_files::read(&args.input)?;
    if args.redact {
        recording.redact();
    }
    recording_files::write(&recording, &args.output)?;
    Ok(Exit::Done)
}
