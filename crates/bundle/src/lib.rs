//! What a visit leaves behind: the evidence that is judged, or the reason there is none.
//!
//! The browser writes a [`Bundle`], the engine reads it, and neither knows the other. It is plain
//! data: no IO, no clock.

mod failure;
mod packed;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use failure::{Failure, FailureCode};
pub use packed::BundleError;

/// The format that this version writes. Readers accept every older one.
pub const FORMAT: u32 = 1;

/// All artifacts of one visit, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bundle {
    pub format: u32,
    /// The URL that was asked for.
    pub requested_url: String,
    /// The URL of the document that was measured, after redirects.
    pub final_url: String,
    pub document: MainDocument,
    pub browser: BrowserIdentity,
    /// Chromium's trace in its JSON form, without the metadata that names the host.
    #[serde(with = "text")]
    pub trace: Vec<u8>,
    /// Protocol events of the network domain as a JSON array of `{method, params, sessionId}`.
    #[serde(with = "text")]
    pub log: Vec<u8>,
    /// The page as it stood at the end of the visit, and how large the picture is.
    pub screenshot: Option<Screenshot>,
    /// Everything else that was gathered, by artifact name. A missing one spoils one check.
    #[serde(default)]
    pub artifacts: BTreeMap<String, Artifact>,
    /// What went differently than a visitor would see it, in sentences.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// How long each phase of the visit took, in order.
    #[serde(default)]
    pub timings: Vec<PhaseTiming>,
}

/// The answer that became the page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MainDocument {
    pub status: u16,
    pub mime_type: String,
}

/// The browser that made the visit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowserIdentity {
    /// As the protocol names it, e.g. `Chrome/156.0.8078.79`.
    pub product: String,
    /// The user agent that the page saw.
    pub user_agent: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Screenshot {
    pub mime_type: String,
    pub width_px: u32,
    pub height_px: u32,
    /// Base64, as the protocol gives it.
    pub data: String,
}

/// One kind of evidence, or why it could not be gathered.
#[derive(Debug, Serialize, Deserialize)]
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

/// The steps of a visit, in order; also what a waiting person is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Taking a browser and setting up the conditions.
    Preparing,
    /// From navigation until the page is quiet.
    Loading,
    /// Ending the trace and collecting evidence.
    Gathering,
    /// Turning evidence into a report.
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

/// Trace and log are JSON texts already: kept as strings, so that a bundle stays readable.
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
