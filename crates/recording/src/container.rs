//! Packs recordings as containers of two members: `recording.json` with everything but the bodies,
//! and `bodies` with all different bodies one after the other.
//!
//! A container has at most 512 members and a recording thousands of bodies, so that the bodies
//! share one. Recordings are imported by users and not trusted: sizes are limited before anything
//! is unpacked, and every recording is checked.

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use plumbline_bundle::container::{Container, ContainerWriter, Limits};
use plumbline_bundle::{PackError, versioned_json};
use serde::{Deserialize, Serialize};

use crate::validity::MAX_BODY_BYTES;
use crate::{InvalidRecording, RecordedEndpoint, RecordedExchange, Recording};

/// The format that this version writes. Readers accept every older one.
const FORMAT: u32 = 1;

/// The maximum size of the JSON: ten times that of 20,000 ordinary exchanges. Parsed, it takes
/// several times as much memory.
const MAX_JSON_BYTES: u64 = 64 << 20;

const LIMITS: Limits = Limits {
    member_bytes: MAX_BODY_BYTES,
    total_bytes: MAX_BODY_BYTES + MAX_JSON_BYTES,
};

const RECORDING: &str = "recording.json";
const BODIES: &str = "bodies";

/// An error while packing or unpacking a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("the recording cannot be read: {0}")]
    Container(#[from] PackError),
    #[error("the recording cannot be written: {0}")]
    Write(#[from] io::Error),
    #[error("this is not a recording of Plumbline")]
    NoRecording,
    #[error("the recording is invalid: its description has more than {MAX_JSON_BYTES} bytes")]
    DescriptionTooLarge,
    #[error("the recording is invalid: its bodies do not agree with its description")]
    Bodies,
    #[error("the recording is invalid: {0}")]
    Invalid(#[from] InvalidRecording),
}

/// Everything but the bodies.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    format: u32,
    url: String,
    recorded_at: String,
    endpoints: Vec<RecordedEndpoint>,
    exchanges: Vec<RecordedExchange>,
    /// The sizes of the different bodies, in their order.
    body_sizes: Vec<u64>,
    /// The position of each exchange's body among the different bodies; `None` if it is empty.
    exchange_bodies: Vec<Option<usize>>,
}

impl Recording {
    /// Packs the recording as one file. Equal bodies are stored once.
    pub fn pack(&self) -> Result<Vec<u8>, RecordingError> {
        self.check()?;
        let mut positions: BTreeMap<&[u8], usize> = BTreeMap::new();
        let mut bodies: Vec<&[u8]> = Vec::new();
        let exchange_bodies = self.exchanges.iter().map(|exchange| {
            let response = exchange.response.as_ref()?;
            let body = Some(&response.body[..]).filter(|body| !body.is_empty())?;
            let position = positions.entry(body).or_insert_with(|| {
                bodies.push(body);
                bodies.len() - 1
            });
            Some(*position)
        });
        let exchange_bodies = exchange_bodies.collect();
        let description = Description {
            format: FORMAT,
            url: self.url.clone(),
            recorded_at: self.recorded_at.clone(),
            endpoints: self.endpoints.clone(),
            exchanges: self.exchanges.clone(),
            body_sizes: bodies.iter().map(|body| body.len() as u64).collect(),
            exchange_bodies,
        };
        let description = serde_json::to_vec(&description).map_err(io::Error::from)?;
        if description.len() as u64 > MAX_JSON_BYTES {
            return Err(RecordingError::DescriptionTooLarge);
        }
        let mut container = ContainerWriter::new(Vec::new())?;
        container.add(BODIES, &bodies.concat())?;
        container.add(RECORDING, &description)?;
        Ok(container.finish()?)
    }

    /// Unpacks a recording, which may come from anywhere.
    pub fn unpack(bytes: &[u8]) -> Result<Self, RecordingError> {
        if !Container::is_container(bytes) {
            return Err(RecordingError::NoRecording);
        }
        let container = Container::open(bytes, LIMITS)?;
        let description = container.read(RECORDING)?;
        let description = description.ok_or(RecordingError::NoRecording)?;
        if description.len() as u64 > MAX_JSON_BYTES {
            return Err(RecordingError::DescriptionTooLarge);
        }
        let description: Description = versioned_json::parse(&description, FORMAT)?;
        if description.body_sizes.len() > description.exchanges.len() {
            return Err(RecordingError::Bodies);
        }
        let content = container.read(BODIES)?.ok_or(RecordingError::Bodies)?;
        let bodies = split(&Bytes::from(content), &description.body_sizes)?;
        let mut recording = Self {
            url: description.url,
            recorded_at: description.recorded_at,
            endpoints: description.endpoints,
            exchanges: description.exchanges,
        };
        if description.exchange_bodies.len() != recording.exchanges.len() {
            return Err(RecordingError::Bodies);
        }
        let positions = description.exchange_bodies;
        for (exchange, position) in recording.exchanges.iter_mut().zip(positions) {
            let Some(position) = position else {
                continue;
            };
            let body = bodies.get(position).ok_or(RecordingError::Bodies)?;
            let response = exchange.response.as_mut();
            response.ok_or(RecordingError::Bodies)?.body = body.clone();
        }
        recording.check()?;
        Ok(recording)
    }
}

/// Splits bodies that follow each other. Sizes that do not add up are an error.
fn split(content: &Bytes, sizes: &[u64]) -> Result<Vec<Bytes>, RecordingError> {
    let mut rest = content.clone();
    let mut bodies = Vec::new();
    for size in sizes {
        let size = usize::try_from(*size).unwrap_or(usize::MAX);
        if size > rest.len() {
            return Err(RecordingError::Bodies);
        }
        bodies.push(rest.split_to(size));
    }
    if !rest.is_empty() {
        return Err(RecordingError::Bodies);
    }
    Ok(bodies)
}

#[cfg(test)]
mod tests;
