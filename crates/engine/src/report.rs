//! The report: what an audit says, as it is kept. Plain data that every output is made from.

use plumbline_bundle::{BrowserIdentity, Failure, MainDocument, PhaseTiming};
use plumbline_catalog::Mode;
use serde::{Deserialize, Serialize};

use crate::category::CategoryResult;
use crate::field::{FieldData, FieldReason};
use crate::runs::Runs;

/// The format that this version writes. Readers accept every older one.
pub const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub format: u32,
    pub requested_url: String,
    /// The document that was measured, after redirects; none when there was no document.
    pub final_url: Option<String>,
    pub conditions: Conditions,
    pub scores: Scores,
    /// None when the page could not be measured: `error` then says why.
    pub metrics: Option<Metrics>,
    pub error: Option<Failure>,
    /// Every check's outcome, by category; empty when the page could not be measured.
    #[serde(default)]
    pub categories: Vec<CategoryResult>,
    #[serde(default)]
    pub warnings: Vec<String>,
    pub document: Option<MainDocument>,
    pub browser: Option<BrowserIdentity>,
    #[serde(default)]
    pub timings: Vec<PhaseTiming>,
    /// Where the page was audited several times: the figures of every run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<Runs>,
    /// What visitors met in the field. Added after judging, never a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_data: Option<FieldData>,
    /// Why there is none; none as well where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_data_reason: Option<FieldReason>,
}

/// What the page was loaded under. Names are kept beside ids: a report outlives its catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conditions {
    pub device: DeviceUsed,
    pub network: NetworkUsed,
    pub location: LocationUsed,
    pub cpu: CpuUsed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceUsed {
    pub id: String,
    pub name: String,
    pub mode: Mode,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkUsed {
    pub id: String,
    pub name: String,
    pub down_kbps: f64,
    pub up_kbps: f64,
    /// The round trip that was emulated, a simulated location's share included.
    pub rtt_ms: f64,
    /// How the browser was kept from reaching anything but this network; none in reports of
    /// versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<NetworkIsolation>,
}

/// How a browser is kept from getting around the emulated network and its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkIsolation {
    /// The browser has a network namespace of its own.
    Namespace,
    /// Only Chromium's flags keep it in: the machine's network is shared with the browser.
    Shared,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocationUsed {
    pub id: String,
    pub name: String,
    pub mode: LocationMode,
    /// What the place adds to the round trip; zero where the agent really stands.
    pub added_rtt_ms: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LocationMode {
    /// The agent stood there.
    Agent,
    /// The agent stood elsewhere; the distance was added to the round trip.
    Simulated,
}

/// How fast the page's processor was, and how we know. Speeds are on Lighthouse's BenchmarkIndex
/// scale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuUsed {
    /// How many times slower than the nominal speed the page was held; 1 is not at all.
    pub rate: f64,
    /// The device's speed; none where it is never slowed down.
    pub device_index: Option<u32>,
    /// The host's speed when it was calibrated, unthrottled: what the rate counts from.
    #[serde(default)]
    pub nominal_index: Option<f64>,
    /// The speed that the page's core had during the load, unthrottled, on the average.
    pub host_index: Option<f64>,
    /// And right after it.
    pub host_index_after: Option<f64>,
    /// The host is slower than the device: the page ran as fast as it could here.
    #[serde(default)]
    pub limited_by_host: bool,
    /// What the main thread waited for a core; none where the host does not tell.
    #[serde(default)]
    pub contention: Option<Contention>,
    /// By how many points the performance score of this visit may be off, up or down, because the core's speed is not
    /// known better; none where nobody read it.
    #[serde(default)]
    pub score_doubt: Option<f64>,
    /// How often the page was visited; more than once where the host spoiled a visit, or left doubt about the score.
    #[serde(default)]
    pub visits: u32,
}

/// How long the page's main thread stood ready and had no core, until the page was interactive.
/// Blocking time and Time to Interactive are judged without it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contention {
    pub waited_ms: f64,
    /// Of all the time in which it wanted to run, 0 to 1.
    pub share: f64,
    /// The time that was looked at: from the navigation until the page was interactive.
    pub until_ms: f64,
}

/// Whole numbers from 0 to 100; none where there is nothing to judge by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scores {
    pub performance: Option<u8>,
    pub accessibility: Option<u8>,
    pub seo: Option<u8>,
    pub best_practices: Option<u8>,
    pub pwa: Option<u8>,
}

/// The lab metrics, unrounded; times in milliseconds since the navigation began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    pub fcp: Option<Metric>,
    pub lcp: Option<Metric>,
    pub tbt: Option<Metric>,
    pub cls: Option<Metric>,
    pub si: Option<Metric>,
    pub tti: Option<Metric>,
    /// The two that depend on task lengths, with the waiting for a core left in.
    #[serde(default)]
    pub as_traced: AsTraced,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AsTraced {
    pub tbt_ms: Option<f64>,
    pub tti_ms: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub value: f64,
    /// 0 to 1 on the metric's curve.
    pub score: f64,
}
