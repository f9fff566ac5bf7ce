//! Recordings in files.

use std::path::Path;
use std::sync::Arc;

use plumbline_agent::Auditor;
use plumbline_recording::{Change, Recording};
use plumbline_seam::Replay;
use serde_json::Value;

use crate::exit::Exit;

/// A recording that a command replays.
pub struct RecordingFile {
    /// The id of the recording in orders, which is the path of its file.
    id: String,
    pub recording: Arc<Recording>,
}

/// Reads a recording from a file, which is a HAR file if its name ends with `.har`.
pub fn read(path: &Path) -> Result<Recording, Exit> {
    let invalid =
        |reason: &dyn std::fmt::Display| Exit::usage(format!("{}: {reason}", path.display()));
    let bytes = std::fs::read(path).map_err(|e| invalid(&e))?;
    if !is_har(path) {
        return Recording::unpack(&bytes).map_err(|e| invalid(&e));
    }
    let har: Value = serde_json::from_slice(&bytes).map_err(|e| invalid(&e))?;
    Recording::from_har(&har).map_err(|e| invalid(&e))
}

/// Writes a recording to a file, as HAR if its name ends with `.har`. Returns the number of bytes.
pub fn write(recording: &Recording, path: &Path) -> Result<usize, Exit> {
    let bytes = if is_har(path) {
        serde_json::to_vec(&recording.to_har()).map_err(Exit::failed)?
    } else {
        recording.pack().map_err(Exit::failed)?
    };
    std::fs::write(path, &bytes)
        .map_err(|error| Exit::failed(format!("{}: {error}", path.display())))?;
    Ok(bytes.len())
}

fn is_har(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "har")
}

impl RecordingFile {
    /// Reads a recording from a file.
    pub fn read(path: &Path) -> Result<Self, Exit> {
        let recording = read(path)?;
        Ok(Self {
            id: path.display().to_string(),
            recording: Arc::new(recording),
        })
    }

    /// Returns the option of an order that replays the recording with changes. If it is repeatable,
    /// dates and random numbers are the same in every visit.
    pub fn replay(&self, changes: Vec<Change>, repeatable: bool) -> Option<Box<Replay>> {
        Some(Box::new(Replay {
            recording: self.id.clone(),
            attempt: 0,
            changes,
            left_out: Vec::new(),
            subject: None,
            repeatable,
        }))
    }

    /// Makes the recording available to an auditor, for as long as this is kept.
    pub fn provide_to(&self, auditor: &Auditor) {
        auditor.interception.provide(&self.id, &self.recording);
    }
}
