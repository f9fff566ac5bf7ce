//! The result of a visit: the evidence for the report, or the reason for a failure.
//!
//! The browser writes a [`Bundle`] and the engine reads it; neither depends on the other. It is
//! plain data: no IO, no clock.
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        clippy::disallowed_types
    )
)]

pub mod container;
mod failed_connections;
mod failure;
mod flow;
mod full_page;
pub mod gzip_json;
mod interactions;
mod pack_error;
mod packed;
mod profile;
mod record;
mod steps;
pub mod versioned_json;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use failed_connections::{FailedConnection, FailedConnections};
pub use failure::{Failure, FailureCode};
pub use flow::{FlowRecords, FlowStepKind, FlowStepRecord};
pub use full_page::FullPagePicture;
pub use interactions::{
    ControlKind, InputKind, InteractionRecord, InteractionRecords, InteractionScript,
    InteractionTiming,
};
pub use pack_error::PackError;
pub use packed::{BundleParts, Encoding};
pub use profile::{
    CodePlace, FunctionTime, OriginalPlace, ProfileRecords, ProfiledReflow, ProfiledTask,
};
pub use record::Record;
pub use steps::{StepRecord, StepRecords};

/// Format that this version writes. Readers accept every older one.
pub const FORMAT: u32 = 1;

/// All artifacts of one visit, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bundle {
    pub format: u32,
    /// The URL that was requested.
    pub requested_url: String,
    /// The URL of the measured document, after redirects.
    pub final_url: String,
    pub document: MainDocument,
    pub browser: BrowserIdentity,
    /// Chromium's trace in its JSON form, without the metadata that names the host.
    #[serde(with = "text")]
    pub trace: Vec<u8>,
    /// Protocol events of the network domain as a JSON array of `{method, params, sessionId}`.
    #[serde(with = "text")]
    pub log: Vec<u8>,
    /// The page at the end of the visit.
    pub screenshot: Option<Screenshot>,
    /// Other artifacts by name. A missing one only affects the checks that need it.
    #[serde(default)]
    pub artifacts: BTreeMap<String, Artifact>,
    /// Differences to a real visitor's experience, as sentences.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Duration of each phase of the visit, in order.
    #[serde(default)]
    pub timings: Vec<PhaseTiming>,
    /// The packed recording of the visit's traffic, if it was recorded. Gzipped JSON has none.
    #[serde(skip)]
    pub recording: Option<Vec<u8>>,
    /// The trace of a further load with a sampling profiler, in the form of `trace`, if there was
    /// one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_text"
    )]
    pub profile_trace: Option<Vec<u8>>,
}

/// The response with the page's main document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MainDocument {
    pub status: u16,
    pub mime_type: String,
}

impl MainDocument {
    /// Returns the status if it is that of an error.
    pub fn error_status(&self) -> Option<u16> {
        Some(self.status).filter(|status| *status >= 400)
    }
}

/// The browser that made the visit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowserIdentity {
    /// Product name of the protocol, e.g. `Chrome/156.0.8078.79`.
    pub product: String,
    /// User agent sent to the page.
    pub user_agent: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Screenshot {
    pub mime_type: String,
    pub width_px: u32,
    pub height_px: u32,
    /// Image in Base64, as the protocol delivers it.
    pub data: String,
}

/// One kind of evidence, or the reason why it could not be gathered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Artifact {
    Gathered(Box<RawValue>),
    Missing(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseTiming {
    pub phase: Phase,
    pub ms: f64,
}

/// The phases of a visit in order; they are also shown as progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Takes a browser and sets up the conditions.
    Preparing,
    /// Loads the page from the navigation until network and CPU are idle.
    Loading,
    /// Ends the trace and gathers evidence.
    Gathering,
    /// Computes the report from the evidence.
    Judging,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Loading => "loading",
            Self::Gathering => "gathering",
            Self::Judging => "judging",
        }
    }
}

/// Serializes trace and log as strings: they are JSON text already, and the bundle stays readable.
mod text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error, ser};

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(std::str::from_utf8(bytes).map_err(ser::Error::custom)?)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        String::deserialize(from)
            .map(String::into_bytes)
            .map_err(D::Error::custom)
    }
}

/// Serializes a trace like [`text`], if there is one.
mod optional_text {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => super::text::serialize(bytes, to),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        Ok(text.map(String::into_bytes))
    }
}
