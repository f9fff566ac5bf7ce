//! The report of an audit: plain data that is stored and from which every output is made.

use std::collections::BTreeMap;

use plumbline_bundle::{
    BrowserIdentity, Failure, FlowRecords, MainDocument, PhaseTiming, ProfileRecords, Record,
};
use plumbline_catalog::Mode;
use serde::{Deserialize, Serialize};

use crate::cache_use::CacheUse;
use crate::category::CategoryResult;
use crate::comparison::ComparedPages;
use crate::document_urls::{DocumentUrls, redirected_to};
use crate::field::{FieldData, FieldReason};
use crate::interval::Intervals;
use crate::responsiveness::Responsiveness;
use crate::runs::Runs;

/// The format that this version writes. Readers accept every older one.
pub const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub format: u32,
    pub requested_url: String,
    /// The URL that the measured document had in the end, after redirects and changes by its
    /// scripts; `None` if there was no document.
    pub final_url: Option<String>,
    /// The URLs of the requests for the document; `None` without their evidence, and in reports of
    /// versions that did not record them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_urls: Option<DocumentUrls>,
    pub conditions: Conditions,
    pub scores: Scores,
    /// The metrics; `None` if the page could not be measured, with the reason in `error`.
    pub metrics: Option<Metrics>,
    /// The intervals of the performance score and of the metrics by their short names; empty in
    /// reports of versions that computed none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: Intervals,
    pub error: Option<Failure>,
    /// The result of every check by category; empty if the page could not be measured.
    #[serde(default)]
    pub categories: Vec<CategoryResult>,
    #[serde(default)]
    pub warnings: Vec<String>,
    pub document: Option<MainDocument>,
    pub browser: Option<BrowserIdentity>,
    #[serde(default)]
    pub timings: Vec<PhaseTiming>,
    /// The part that the cache had in the visit; `None` if it began with an empty cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheUse>,
    /// The figures of every run, if the page was audited several times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<Runs>,
    /// Field data of the page's visitors, which is added after the evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_data: Option<FieldData>,
    /// The reason why there is no field data; `None` as well if it was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_data_reason: Option<FieldReason>,
    /// The inputs that were made on the page after its load; `None` if none were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responsiveness: Option<Box<Responsiveness>>,
    /// The steps that were measured after the visit, without their screenshots; `None` if none were
    /// requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Box<FlowRecords>>,
    /// The functions that a further load with a profiler spent its time in; `None` if it was not
    /// requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Box<ProfileRecords>>,
    /// The comparison with a second page; `None` if the audit is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Box<ComparedPages>>,
}

impl Report {
    /// Reads a stored report. All crates use this function, so that the code that reads the types
    /// of a report is compiled once.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns the report as it is stored.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Creates the report of a page before anything is measured.
    pub fn unmeasured(requested_url: &str, conditions: Conditions) -> Self {
        Self {
            format: FORMAT,
            requested_url: requested_url.to_owned(),
            final_url: None,
            document_urls: None,
            conditions,
            scores: Scores::default(),
            metrics: None,
            intervals: Intervals::new(),
            error: None,
            categories: Vec::new(),
            warnings: Vec::new(),
            document: None,
            browser: None,
            timings: Vec::new(),
            cache: None,
            runs: None,
            field_data: None,
            field_data_reason: None,
            responsiveness: None,
            flow: None,
            profile: None,
            comparison: None,
        }
    }

    /// Returns the URL of the measured document if the request was redirected to another page.
    pub fn redirected_to(&self) -> Option<&str> {
        let urls = self.document_urls.as_ref();
        redirected_to(urls, &self.requested_url, self.final_url.as_deref())
    }

    /// Creates the report of a page that could not be measured.
    pub fn failed(requested_url: &str, conditions: Conditions, failure: Failure) -> Self {
        Self {
            error: Some(failure),
            ..Self::unmeasured(requested_url, conditions)
        }
    }
}

/// The conditions under which the page was loaded. Names are stored with ids because a report
/// outlives its catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conditions {
    pub device: DeviceConditions,
    pub network: NetworkConditions,
    pub location: LocationConditions,
    pub cpu: CpuConditions,
    /// The names of the state that the visit began with; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<StateNames>>,
    /// The titles of the steps before the visit, without the values that they filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// The name of the saved session that the visit was signed in with; `None` if it used none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The answer to the page's consent dialog; `None` if it was left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentConditions>,
    /// The content of the browser's cache before the visit.
    #[serde(default, skip_serializing_if = "View::is_first")]
    pub view: View,
    /// The recording that was visited in place of the servers; `None` if these were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<ReplayConditions>>,
}

/// A recording that was visited in place of the servers of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayConditions {
    /// The time at which the recording was made.
    pub recorded_at: String,
    /// The number of requests and connections that are not in the recording.
    pub missing_requests: u64,
    /// The URLs of some of them, or their hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// The content of the browser's cache before a visit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum View {
    /// The cache is empty.
    #[default]
    First,
    /// The same page was loaded before.
    Repeat,
    /// The page with this URL was loaded before.
    After(String),
}

impl View {
    pub fn is_first(&self) -> bool {
        *self == Self::First
    }

    /// Returns the URL of the page that is loaded before a page, if there is one.
    pub fn earlier_url<'a>(&'a self, url: &'a str) -> Option<&'a str> {
        match self {
            Self::First => None,
            Self::Repeat => Some(url),
            Self::After(earlier) => Some(earlier),
        }
    }
}

/// The answer to a page's consent dialog before the visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentConditions {
    pub choice: Consent,
    /// The consent manager whose dialog was answered; `None` if there was no dialog of a known one.
    #[serde(default)]
    pub manager: Option<String>,
}

/// A choice in the consent dialog of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consent {
    /// The dialog is left alone.
    #[default]
    None,
    Accept,
    Reject,
}

impl Consent {
    pub const ALL: [Self; 3] = [Self::None, Self::Accept, Self::Reject];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Accept => "accept",
            Self::Reject => "reject",
        }
    }

    /// Returns the choice with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.as_str() == name)
    }

    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// Returns the conditions of a visit with this choice, before its dialog is looked for.
    pub fn conditions(self) -> Option<ConsentConditions> {
        (!self.is_none()).then_some(ConsentConditions {
            choice: self,
            manager: None,
        })
    }
}

/// The names of what was seeded into the profile of a visit. Values are never part of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StateNames {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cookies: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub local_storage: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session_storage: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// True if requests had credentials of HTTP basic authentication.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub basic_auth: bool,
    /// True if a script ran before those of the page.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub script: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent_suffix: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_hosts: Vec<String>,
}

/// Stored in the bundle of a visit, so that it can be evaluated again later.
impl Record for Conditions {
    const ARTIFACT: &'static str = "conditions";
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceConditions {
    pub id: String,
    pub name: String,
    pub mode: Mode,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkConditions {
    pub id: String,
    pub name: String,
    pub down_kbps: f64,
    pub up_kbps: f64,
    /// The emulated round-trip time, including that of a simulated location.
    pub rtt_ms: f64,
    /// The isolation of the browser from other networks; `None` in reports of versions that did not
    /// record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<NetworkIsolation>,
}

/// The mechanism that prevents a browser from bypassing the emulated network and its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkIsolation {
    /// The browser has its own network namespace.
    Namespace,
    /// The browser shares the machine's network and is restricted by Chromium's flags only.
    Shared,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocationConditions {
    pub id: String,
    pub name: String,
    pub mode: LocationMode,
    /// The round-trip time that the location adds; 0 if the agent is at the location.
    pub added_rtt_ms: f64,
    /// Whether the operator stated where the agent is; if not, a default was assumed. `None` in
    /// reports of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_stated: Option<bool>,
}

impl LocationConditions {
    /// Returns the location for people. It names a place only if the operator stated that the agent
    /// is there, or if the place was simulated or only requested.
    pub fn label(&self) -> String {
        match (self.mode, self.is_stated) {
            (LocationMode::Agent, Some(false)) => "this machine, place not stated".to_owned(),
            (LocationMode::Agent, _) => self.name.clone(),
            (LocationMode::Simulated, _) => format!("{}, simulated", self.name),
            (LocationMode::Requested, _) => format!("{} requested", self.name),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LocationMode {
    /// The agent was at the location.
    Agent,
    /// The agent was elsewhere; the distance was added to the round-trip time.
    Simulated,
    /// There was no visit; the conditions are those that were requested.
    Requested,
}

/// The speed of the page's CPU, and how it was measured. Speeds are on the scale of Lighthouse's
/// BenchmarkIndex.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuConditions {
    /// The slowdown rate relative to the nominal speed; 1 means no slowdown. With a page clock it
    /// is the rate of that clock, below 1 for a device that is faster than the host.
    pub rate: f64,
    /// The method by which the speed of the device was emulated; `None` in older reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<CpuEmulationMethod>,
    /// The speed of the device; `None` if it is never slowed down.
    pub device_index: Option<u32>,
    /// The unthrottled speed of the host at calibration, to which the rate refers.
    #[serde(default)]
    pub nominal_index: Option<f64>,
    /// The mean unthrottled speed of the page's core during the load.
    pub host_index: Option<f64>,
    /// The mean unthrottled speed of the page's core right after the load.
    pub host_index_after: Option<f64>,
    /// True if the host is slower than the device, so that the page ran as fast as the host allows.
    #[serde(default)]
    pub limited_by_host: bool,
    /// The CPU contention of the main thread; `None` if the host does not report it.
    #[serde(default)]
    pub contention: Option<Contention>,
    /// The uncertainty of this visit's performance score in points, up or down, due to the core's
    /// speed; `None` if the speed was not measured.
    #[serde(default, rename = "scoreDoubt")]
    pub score_uncertainty: Option<f64>,
    /// The number of visits to the page; more than one if the host disturbed a visit or the score
    /// was too uncertain.
    #[serde(default)]
    pub visits: u32,
}

/// A method of emulating the speed of a device's processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuEmulationMethod {
    /// The page ran at the speed of the host, and its clock as much faster as the device is slower.
    Clock,
    /// A thread on the page's core slowed the page down, in reports of earlier versions.
    Pacer,
    /// Chromium slowed the page down, because its browser saw no clock of its own.
    Chromium,
}

impl CpuEmulationMethod {
    /// Returns the name in reports and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Pacer => "pacer",
            Self::Chromium => "chromium",
        }
    }
}

/// CPU contention: the time that the page's main thread was runnable without a core until the page
/// was interactive. Total Blocking Time and Time to Interactive exclude it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contention {
    pub waited_ms: f64,
    /// The fraction of all runnable time, from 0 to 1.
    pub share: f64,
    /// The end of the observed time, which starts with the navigation and ends when the page is
    /// interactive.
    pub until_ms: f64,
}

/// The scores by category, from 0 to 100; `None` for a category without a score.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scores {
    pub performance: Option<u8>,
    pub accessibility: Option<u8>,
    pub seo: Option<u8>,
    pub best_practices: Option<u8>,
    pub pwa: Option<u8>,
}

/// The unrounded lab metrics; times are in milliseconds since the navigation started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    pub fcp: Option<Metric>,
    pub lcp: Option<Metric>,
    pub tbt: Option<Metric>,
    pub cls: Option<Metric>,
    pub si: Option<Metric>,
    pub tti: Option<Metric>,
    /// The reason why a metric has no value, by its short name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
    /// The two metrics that depend on task durations, including CPU contention.
    #[serde(default)]
    pub as_traced: TracedMetrics,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TracedMetrics {
    pub tbt_ms: Option<f64>,
    pub tti_ms: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub value: f64,
    /// The score on the metric's curve, from 0 to 1.
    pub score: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_place_is_named_only_if_it_was_stated_or_simulated() {
        let label = |mode: &str, is_stated: Option<bool>| {
            let stored = json!({
                "id": "eu", "name": "Frankfurt, Germany", "mode": mode, "addedRttMs": 0.0,
                "isStated": is_stated,
            });
            let location: LocationConditions = serde_json::from_value(stored).unwrap();
            location.label()
        };
        assert_eq!(label("agent", Some(true)), "Frankfurt, Germany");
        assert_eq!(label("agent", None), "Frankfurt, Germany");
        assert_eq!(
            label("agent", Some(false)),
            "this machine, place not stated"
        );
        assert_eq!(
            label("simulated", Some(false)),
            "Frankfurt, Germany, simulated"
        );
    }

    #[test]
    fn the_uncertainty_of_a_score_keeps_its_name_in_stored_reports() {
        let stored = json!({ "rate": 1.0, "scoreDoubt": 0.5 });
        let cpu: CpuConditions = serde_json::from_value(stored).unwrap();
        assert_eq!(cpu.score_uncertainty, Some(0.5));
        assert_eq!(json!(cpu)["scoreDoubt"], 0.5);
    }
}
