//! Converts recordings to and from HAR 1.2.
//!
//! A recording that is written and read again is the same: members that begin with an underscore,
//! which the format reserves for tools, have what it has no place for. Files of other tools, such
//! as the Network panel of Chrome, are read as well, with what they tell about the exchanges.

mod foreign;
mod read;
mod write;

use serde::{Deserialize, Serialize};

use crate::{BodyChunk, Endpoint, Handling, InvalidRecording, RecordedEndpoint};

/// The reason why a HAR file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HarError {
    #[error("this is not a HAR file: it has no list `log.entries`")]
    NoEntries,
    #[error("the HAR file has no request over HTTP or HTTPS")]
    NoRequests,
    #[error("the HAR file is invalid: entry {number}: {reason}")]
    Entry { number: usize, reason: String },
    #[error("the HAR file is invalid: {0}")]
    Log(String),
    #[error("the HAR file cannot be replayed: {0}")]
    Invalid(#[from] InvalidRecording),
}

/// The member `_recording` of the log: what HAR has no place for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordingExtra {
    url: String,
    recorded_at: String,
    endpoints: Vec<RecordedEndpoint>,
}

/// The member `_recorded` of an entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryExtra {
    endpoint: Endpoint,
    path: String,
    started_ms: f64,
    request_bytes: u64,
    #[serde(default, skip_serializing_if = "Handling::is_answered")]
    handling: Handling,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_open: bool,
    /// Missing if there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<ResponseExtra>,
}

/// The part of [`EntryExtra`] about the response.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseExtra {
    wait_ms: f64,
    chunks: Vec<BodyChunk>,
    is_cut_off: bool,
    /// The body as it was transferred, in Base64, if that differs from the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transferred_body: Option<String>,
}

#[cfg(test)]
mod tests;
