//! Orders, jobs and the states of their leases.

use std::time::Duration;

use plumbline_bundle::Encoding;
use plumbline_catalog::Mode;
use plumbline_model::experiment::Subject;
use plumbline_model::report::{
    Conditions, Consent, CpuConditions, DeviceConditions, LocationConditions, LocationMode,
    NetworkConditions, View,
};
use plumbline_recording::Change;
use serde::{Deserialize, Serialize};

use crate::{Expectation, Interactions, Secret, SessionUse, Steps, VisitState};

/// An order of an audit: the page, the catalog ids of its conditions, and options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub url: String,
    pub device: String,
    pub network: String,
    pub location: String,
    #[serde(default, skip_serializing_if = "VisitOptions::is_default")]
    pub options: VisitOptions,
}

impl Order {
    /// Returns the conditions that the order asks for, with the ids as names and without what a
    /// catalog knows about them.
    pub fn conditions(&self) -> Conditions {
        let options = &self.options;
        Conditions {
            device: DeviceConditions {
                id: self.device.clone(),
                name: self.device.clone(),
                mode: Mode::Desktop,
            },
            network: NetworkConditions {
                id: self.network.clone(),
                name: self.network.clone(),
                down_kbps: 0.0,
                up_kbps: 0.0,
                rtt_ms: 0.0,
                isolation: None,
            },
            location: LocationConditions {
                id: self.location.clone(),
                name: self.location.clone(),
                // No agent has measured, so that its distance is not known.
                mode: LocationMode::Requested,
                added_rtt_ms: 0.0,
                is_stated: None,
            },
            cpu: CpuConditions {
                rate: 1.0,
                ..CpuConditions::default()
            },
            state: options.state.as_ref().map(|it| Box::new(it.names())),
            steps: options.steps.titles(),
            session: options.session.as_ref().map(|it| it.name.clone()),
            consent: options.consent.conditions(),
            view: options.view.clone(),
            replay: None,
        }
    }
}

/// Options of the visits of an audit. Members with default values are not written, so that earlier
/// versions read an order without options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VisitOptions {
    /// True if a main document with an error status is measured like any other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_error_status: bool,
    /// True if a run has exactly one visit, even if the host was busy or the score is uncertain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// The state that is seeded into the fresh profile of a visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<VisitState>>,
    /// Conditions that the page must meet to be scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Box<Expectation>>,
    /// Steps that are performed before each visit, in its profile.
    #[serde(default, skip_serializing_if = "Steps::is_empty")]
    pub steps: Steps,
    /// The choice in the consent dialog of the page, before each visit.
    #[serde(default, skip_serializing_if = "Consent::is_none")]
    pub consent: Consent,
    /// The content of the browser's cache before each visit.
    #[serde(default, skip_serializing_if = "View::is_first")]
    pub view: View,
    /// The saved session that the visit uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionUse>,
    /// The values that replaced the placeholders of stored secrets, to be removed from evidence.
    /// Only the options of a job have them: an order is stored with its placeholders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// The most controls that inputs are made on, once after all visits.
    #[serde(default, skip_serializing_if = "Interactions::is_none")]
    pub interactions: Interactions,
    /// Steps that are performed and measured, once after all visits.
    #[serde(
        default,
        deserialize_with = "Steps::deserialize_flow",
        skip_serializing_if = "Steps::is_empty"
    )]
    pub flow: Steps,
    /// True if the page is loaded once more with a profiler, after all visits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profile: bool,
    /// The URL of a second page that the page is compared with. The runs of the audit are then
    /// pairs of visits, of which there may be fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare_with: Option<String>,
    /// True if the traffic of the visits is recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record: bool,
    /// The recording that is visited in place of the servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<Replay>>,
    /// The recording for the second page of a comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_second: Option<Box<Replay>>,
}

/// A recording that visits are made of, and changes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replay {
    /// The id of the recording: that of the audit in whose evidence it is.
    pub recording: String,
    /// The attempt that finished that audit.
    #[serde(default)]
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Sentences about what the advice names and no change can follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The advice that the changes follow; `None` if they were chosen by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// True if dates begin at the time of the recording in every visit, and random numbers are the
    /// same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
}

impl VisitOptions {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether an agent that does not know these options would measure another page.
    pub fn need_seeding(&self) -> bool {
        self.state.is_some() || self.expect.is_some()
    }

    /// Returns whether the visit is preceded by steps or by an answer to a consent dialog. An agent
    /// that does not know them would measure another page.
    pub fn need_steps(&self) -> bool {
        !self.steps.is_empty() || !self.consent.is_none()
    }

    /// Returns whether another page is loaded before the visit, to fill the cache. An agent that
    /// does not know this would measure a first view.
    pub fn need_warm_cache(&self) -> bool {
        !self.view.is_first()
    }

    /// Returns whether steps are measured after the visits. An agent that does not know this would
    /// leave them out.
    pub fn need_flow(&self) -> bool {
        !self.flow.is_empty()
    }

    /// Returns whether the audit is a comparison. An agent that does not know comparisons would
    /// only visit the first page.
    pub fn need_comparison(&self) -> bool {
        self.compare_with.is_some()
    }

    /// Returns whether traffic is recorded or replayed. An agent that does not know this would
    /// visit the servers, and record nothing.
    pub fn need_interception(&self) -> bool {
        self.record || self.replay.is_some() || self.replay_second.is_some()
    }

    /// Returns the recordings that are replayed.
    pub fn replays(&self) -> impl Iterator<Item = &Replay> {
        [&self.replay, &self.replay_second]
            .into_iter()
            .flatten()
            .map(|replay| &**replay)
    }

    /// Returns whether a value of the state or of a step is an empty text, as all are in
    /// [`VisitOptions::without_values`].
    pub fn lacks_values(&self) -> bool {
        let of_state = self.state.iter().flat_map(|state| state.values());
        let of_steps = self.steps.secrets().chain(self.flow.secrets());
        let mut values = of_state.chain(of_steps);
        values.any(|value| value.expose().is_empty())
    }

    /// Returns the options with names only, as they are stored when the audit has ended.
    pub fn without_values(&self) -> Self {
        let mut options = self.clone();
        if let Some(state) = &mut options.state {
            state.erase_values();
        }
        options.steps.erase_values();
        options.flow.erase_values();
        options.secrets.clear();
        if let Some(session) = &mut options.session {
            session.sign_in = None;
        }
        options
    }
}

/// Identifies an attempt at an audit: only an audit's newest attempt can change it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    pub tracking_id: String,
    /// The fencing token: results of an attempt with a lower number are refused.
    #[serde(rename = "attempt")]
    pub number: u32,
}

/// An audit that is leased to a slot of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    #[serde(flatten)]
    pub attempt: Attempt,
    #[serde(flatten)]
    pub order: Order,
    /// Number of runs; the median run is reported.
    pub runs: u32,
    /// True if the audit was attempted too often and must be failed without a visit.
    pub exhausted: bool,
    /// Interval of heartbeats.
    pub heartbeat_ms: u64,
    /// Time without a heartbeat after which the audit is given to another agent.
    pub lease_ms: u64,
    /// Deadline of the first heartbeat of an agent that confirms; without it the audit is given to
    /// another agent, and this attempt is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within_ms: Option<u64>,
    /// True if the server reads evidence in containers. Servers of earlier versions do not send it:
    /// they only read gzipped JSON.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub containers: bool,
    /// The reason why the audit must be failed with `PRECONDITION_FAILED`, without a visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition_failure: Option<String>,
}

impl Job {
    /// Returns the interval of heartbeats, which is never zero.
    pub fn heartbeat_interval(&self) -> Duration {
        Duration::from_millis(self.heartbeat_ms.max(1))
    }

    /// Returns the encoding in which the server reads evidence.
    pub fn encoding(&self) -> Encoding {
        if self.containers {
            Encoding::Container
        } else {
            Encoding::GzipJson
        }
    }
}

/// State of a lease, as its holder sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseState {
    /// The agent still holds the lease.
    Held,
    /// The audit was taken over, finished or returned: the agent stops and discards its result. An
    /// expired lease is not lost until another attempt has leased the audit.
    Lost,
}

/// Reason for returning an audit before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReturnReason {
    /// An internal error; counted, and retried a few times.
    Fault,
    /// The agent is shutting down; not counted.
    Drained,
}
