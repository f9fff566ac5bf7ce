//! The vocabulary of agents and servers: orders, jobs and leases, the trait [`Work`] through which
//! an agent gets jobs, and the messages that carry it over HTTPS. Routes, statuses and the order of
//! messages are described in `docs/agents.md`.
//!
//! Fields may be added to a message and are ignored by peers that do not know them; any other
//! change requires a new [`PROTOCOL`].
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        clippy::disallowed_types
    )
)]

mod interactions;
mod job;
mod page_url;
mod placeholder;
mod plain_error;
mod progress;
mod secret;
mod session;
mod state;
mod steps;
mod validate;
mod work;

use plumbline_bundle::Phase;
use serde::{Deserialize, Serialize};

pub use plumbline_model::report::{Consent, View};

pub use interactions::Interactions;
pub use job::{Attempt, Job, LeaseState, Order, Replay, ReturnReason, VisitOptions};
pub use page_url::with_scheme;
pub use placeholder::{
    MAX_NAME_BYTES, MAX_SECRET_BYTES, MIN_MASKED_BYTES, ReplacementError, check_secret_value,
    is_name,
};
pub use plain_error::{json_error, read_json, without_value};
pub use progress::{ASSUMED_RUN, VisitNumber, VisitReason, times_text};
pub use secret::{REDACTED, Secret};
pub use session::{
    MAX_SAVED_STATE_BYTES, MadeSession, OriginStorage, SavedState, SessionDefinition, SessionUse,
    SignIn,
};
pub use state::{BasicAuth, Cookie, Expectation, Header, SameSite, VisitState};
pub use steps::{
    Action, AssertedEvent, Assertion, Click, Condition, Decimal, Entry, KeyDefinition, KeyPress,
    MouseButton, NetworkThrottle, Operator, Scroll, Selector, Selectors, Step, Steps, Viewport,
};
pub use validate::{InvalidOption, has_nul};
pub use work::{AuditOutput, NextJob, Work, WorkError};

/// Protocol version, sent in a header of every request and response.
pub const PROTOCOL: u32 = 1;
pub const PROTOCOL_HEADER: &str = "x-plumbline-protocol";

/// Maximum time that a request for work is held open.
pub const MAX_LEASE_WAIT_MS: u64 = 30_000;

pub const LEASE: &str = "/agent/v1/lease";
pub const HEARTBEAT: &str = "/agent/v1/heartbeat";
pub const PROGRESS: &str = "/agent/v1/progress";
pub const FINISH: &str = "/agent/v1/finish";
pub const RECORDING: &str = "/agent/v1/recording";
pub const RETURN: &str = "/agent/v1/return";
/// Path of uploads, followed by `/{tracking id}/{attempt}/{kind}`.
pub const EVIDENCE: &str = "/agent/v1/evidence";

/// Description of a running agent, sent by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announcement {
    /// Random id of the process, which distinguishes agents that share a token.
    pub process: String,
    /// Id of the location where the agent really is.
    pub location: String,
    /// Version of the browser, e.g. `Chrome/156.0.8078.79`.
    pub chromium: String,
    /// Speed of its host without throttling, on Lighthouse's BenchmarkIndex scale.
    pub host_index: Option<f64>,
    pub slots: u32,
    /// Version of the agent program.
    pub version: String,
}

/// Requests work for a slot. Any audit that the slot held before is released.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseRequest {
    pub agent: Announcement,
    /// Index of the agent's slot, starting at 0.
    pub slot: u32,
    /// Maximum time to wait for work, up to [`MAX_LEASE_WAIT_MS`].
    pub wait_ms: u64,
    /// True if the agent is leaving: it requests no work and only releases what it held.
    #[serde(default)]
    pub leaving: bool,
    /// True if the agent confirms the arrival of an audit with an immediate heartbeat, see
    /// [`Job::confirm_within_ms`].
    #[serde(default)]
    pub confirms: bool,
    /// True if the agent seeds the state of [`VisitOptions`] and checks its expectations. Others
    /// would measure a login page instead, and get no such audits.
    #[serde(default)]
    pub seeds_state: bool,
    /// True if the agent performs the steps of [`VisitOptions`]. Others get no such audits.
    #[serde(default)]
    pub runs_steps: bool,
    /// True if the agent measures with a warm cache. Others get no such audits.
    #[serde(default)]
    pub warms_cache: bool,
    /// True if the agent removes the values of [`VisitOptions::secrets`] from evidence, and fails
    /// audits with a [`Job::precondition_failure`]. Others get no audits with stored secrets.
    #[serde(default)]
    pub masks_secrets: bool,
    /// True if the agent signs in for the session of [`VisitOptions`] and returns its state. Others
    /// get no such audits.
    #[serde(default)]
    pub keeps_sessions: bool,
    /// True if the agent measures the steps of a flow. Others get no such audits.
    #[serde(default)]
    pub measures_flows: bool,
    /// True if the agent profiles pages. Others get no such audits.
    #[serde(default)]
    pub profiles: bool,
    /// True if the agent compares pages. Others get no such audits.
    #[serde(default)]
    pub compares: bool,
    /// True if the agent records and replays traffic. Others get no such audits.
    #[serde(default)]
    pub replays: bool,
}

/// Requests the recording that an audit replays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordingRequest {
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The id of the recording.
    pub recording: String,
}

/// Response to a [`LeaseRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseResponse {
    /// The audit; `None` if there was no work.
    pub job: Option<Job>,
    /// True if there will be no more work: the agent finishes running audits and leaves.
    pub drain: bool,
}

/// Extends a lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    #[serde(flatten)]
    pub attempt: Attempt,
    pub agent: Announcement,
}

/// Reports the phase of a running audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressUpdate {
    #[serde(flatten)]
    pub attempt: Attempt,
    pub phase: Phase,
    /// Position of the visit within the audit; agents of earlier versions do not send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<VisitNumber>,
    /// URL of the page's document after redirects, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived_at: Option<String>,
}

/// Submits a report, after its evidence was uploaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finish<R> {
    #[serde(flatten)]
    pub attempt: Attempt,
    pub report: R,
    /// The state of the audit's saved session, if the agent has made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<MadeSession>,
}

/// Returns an audit before its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    #[serde(flatten)]
    pub attempt: Attempt,
    #[serde(rename = "why")]
    pub reason: ReturnReason,
}

/// Response to every message about an audit: the state of its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseStatus {
    #[serde(rename = "hold")]
    pub state: LeaseState,
}

/// State of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadStatus {
    #[serde(rename = "hold")]
    pub lease: LeaseState,
    /// Bytes received from the beginning, which is the offset to continue at.
    pub received: u64,
    /// True if the upload is complete, verified and stored.
    pub complete: bool,
}

/// Kinds of evidence that are uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// The packed bundle from which the report was computed.
    Bundle,
    /// Packed report media, shown on pages with the report.
    ReportMedia,
}

impl Evidence {
    /// Returns the name that paths contain.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::ReportMedia => "exhibits",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Bundle, Self::ReportMedia]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::Encoding;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_fields_of_an_attempt_are_part_of_its_message() {
        let progress = ProgressUpdate {
            attempt: Attempt {
                tracking_id: "trk_1".to_owned(),
                number: 2,
            },
            phase: Phase::Loading,
            visit: None,
            arrived_at: None,
        };
        let message = json!({ "trackingId": "trk_1", "attempt": 2, "phase": "loading" });
        assert_eq!(serde_json::to_value(&progress).unwrap(), message);
        assert_eq!(
            serde_json::from_value::<ProgressUpdate>(message).unwrap(),
            progress
        );
    }

    #[test]
    fn a_lease_request_without_optional_fields_neither_confirms_nor_leaves() {
        let message = json!({
            "agent": {
                "process": "p", "location": "eu", "chromium": "c", "hostIndex": null, "slots": 1,
                "version": "0.1.0",
            },
            "slot": 0, "waitMs": 1,
        });
        let parsed: LeaseRequest = serde_json::from_value(message).unwrap();
        assert!(!parsed.confirms && !parsed.leaving);
        assert!(!parsed.seeds_state && !parsed.runs_steps && !parsed.warms_cache);
        assert!(!parsed.masks_secrets && !parsed.keeps_sessions && !parsed.compares);
        assert!(!parsed.replays && !parsed.measures_flows && !parsed.profiles);
    }

    #[test]
    fn a_job_is_one_flat_object_and_names_its_confirmation_only_if_there_is_one() {
        let mut job = Job {
            attempt: Attempt {
                tracking_id: "trk_1".to_owned(),
                number: 2,
            },
            order: Order {
                url: "https://example.com/".to_owned(),
                device: "mobile".to_owned(),
                network: "cable".to_owned(),
                location: "eu".to_owned(),
                options: crate::VisitOptions::default(),
            },
            runs: 3,
            exhausted: false,
            heartbeat_ms: 7_500,
            lease_ms: 30_000,
            confirm_within_ms: None,
            containers: false,
            precondition_failure: None,
        };
        let text = concat!(
            r#"{"trackingId":"trk_1","attempt":2,"url":"https://example.com/","device":"mobile","#,
            r#""network":"cable","location":"eu","runs":3,"exhausted":false,"heartbeatMs":7500,"#,
            r#""leaseMs":30000"#,
        );
        assert_eq!(serde_json::to_string(&job).unwrap(), format!("{text}}}"));
        job.confirm_within_ms = Some(5_000);
        let confirmed = format!(r#"{text},"confirmWithinMs":5000}}"#);
        assert_eq!(serde_json::to_string(&job).unwrap(), confirmed);
        assert_eq!(serde_json::from_str::<Job>(&confirmed).unwrap(), job);
        // Servers of earlier versions do not say that they read containers.
        assert_eq!(job.encoding(), Encoding::GzipJson);
        job.containers = true;
        let containers = format!(r#"{text},"confirmWithinMs":5000,"containers":true}}"#);
        assert_eq!(serde_json::to_string(&job).unwrap(), containers);
        let parsed = serde_json::from_str::<Job>(&containers).unwrap();
        assert_eq!(parsed.encoding(), Encoding::Container);
        job.precondition_failure = Some("no".to_owned());
        let failed = format!(
            r#"{text},"confirmWithinMs":5000,"containers":true,"preconditionFailure":"no"}}"#
        );
        assert_eq!(serde_json::to_string(&job).unwrap(), failed);
    }

    #[test]
    fn a_returned_audit_names_its_reason() {
        let message = Return {
            attempt: Attempt {
                tracking_id: "trk_1".to_owned(),
                number: 1,
            },
            reason: ReturnReason::Drained,
        };
        assert_eq!(
            serde_json::to_string(&message).unwrap(),
            r#"{"trackingId":"trk_1","attempt":1,"why":"drained"}"#
        );
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let message = json!({ "hold": "lost", "since": "yesterday" });
        let parsed: LeaseStatus = serde_json::from_value(message).unwrap();
        assert_eq!(parsed.state, LeaseState::Lost);
    }
}
