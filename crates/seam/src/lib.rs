//! What agents and servers say to each other, as plain data. The words around it (routes, statuses,
//! who may say what when) are in `docs/agents.md`.
//!
//! Members may be added to a message and are ignored by who does not know them; anything else is a
//! new [`PROTOCOL`].

use plumbline_bundle::Phase;
use serde::{Deserialize, Serialize};

/// The version of all this. Stands in a header of every request and of every answer.
pub const PROTOCOL: u32 = 1;
pub const PROTOCOL_HEADER: &str = "x-plumbline-protocol";

/// The longest that a request for work is held.
pub const LEASE_WAIT_AT_MOST_MS: u64 = 30_000;

pub const LEASE: &str = "/agent/v1/lease";
pub const HEARTBEAT: &str = "/agent/v1/heartbeat";
pub const PROGRESS: &str = "/agent/v1/progress";
pub const FINISH: &str = "/agent/v1/finish";
pub const RETURN: &str = "/agent/v1/return";
/// Then `/{tracking id}/{attempt}/{kind}`.
pub const EVIDENCE: &str = "/agent/v1/evidence";

/// What a running agent says about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announcement {
    /// Drawn when the process started: tells apart those that share a token.
    pub process: String,
    /// The id of the location where it really stands.
    pub location: String,
    /// As the browser names itself, e.g. `Chrome/156.0.8078.79`.
    pub chromium: String,
    /// Its host's speed, unthrottled, on Lighthouse's BenchmarkIndex scale.
    pub host_index: Option<f64>,
    pub slots: u32,
    /// Of the program.
    pub version: String,
}

/// Asks for work. What this slot held before, it no longer works on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseRequest {
    pub agent: Announcement,
    /// Which of the agent's slots asks, from 0.
    pub slot: u32,
    /// How long to wait for work; [`LEASE_WAIT_AT_MOST_MS`] at most.
    pub wait_ms: u64,
    /// Asks for nothing any more: only what it held before is at stake.
    #[serde(default)]
    pub leaving: bool,
    /// Whoever asks says with a heartbeat that an audit has arrived, before anything else: see [`Offer::confirm_within_ms`].
    #[serde(default)]
    pub confirms: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseAnswer {
    /// None when there was no work.
    pub job: Option<Offer>,
    /// There will be no more work: finish what runs, and leave.
    pub drain: bool,
}

/// One audit, held by this agent from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    #[serde(flatten)]
    pub attempt: Attempt,
    pub url: String,
    pub device: String,
    pub network: String,
    pub location: String,
    pub runs: u32,
    /// Tried too often already: it must be ended, not visited.
    pub exhausted: bool,
    /// How often to confirm that it is worked on.
    pub heartbeat_ms: u64,
    /// How long silence may last before the audit is given to another.
    pub lease_ms: u64,
    /// How soon the first heartbeat is expected from who confirms; without it the audit is given to another, as if it had
    /// never been given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within_ms: Option<u64>,
}

/// What every step is fenced by: only an audit's newest attempt can change it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    pub tracking_id: String,
    pub attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    #[serde(flatten)]
    pub attempt: Attempt,
    pub agent: Announcement,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    #[serde(flatten)]
    pub attempt: Attempt,
    pub phase: Phase,
    /// Where the page's document stands, redirects behind it; said once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived_at: Option<String>,
}

/// Hands in a report, after its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finish<R> {
    #[serde(flatten)]
    pub attempt: Attempt,
    pub report: R,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    #[serde(flatten)]
    pub attempt: Attempt,
    pub why: Why,
}

/// Why an audit is given back before it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// A fault of ours: counted, and tried again a few times.
    Fault,
    /// The agent is being stopped: counts against nothing.
    Drained,
}

/// The answer to every step: whether the audit is still the asker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    pub hold: Hold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    Held,
    /// Taken over, finished or handed back: stop, and keep the result to yourself.
    Lost,
}

/// What there is of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    pub hold: Hold,
    /// Bytes from the beginning: where to go on.
    pub received: u64,
    /// All of it arrived as it was sent, and is kept.
    pub complete: bool,
}

/// Kinds of evidence that are uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// A packed bundle: what the report was judged from.
    Bundle,
    /// Packed exhibits: what pages show beside the report.
    Exhibits,
}

impl Evidence {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::Exhibits => "exhibits",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::Bundle, Self::Exhibits]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_attempt_stands_beside_what_is_said_of_it() {
        let progress = Progress {
            attempt: Attempt {
                tracking_id: "trk_1".to_owned(),
                attempt: 2,
            },
            phase: Phase::Loading,
            arrived_at: None,
        };
        let said = json!({ "trackingId": "trk_1", "attempt": 2, "phase": "loading" });
        assert_eq!(serde_json::to_value(&progress).unwrap(), said);
        assert_eq!(serde_json::from_value::<Progress>(said).unwrap(), progress);
    }

    #[test]
    fn who_says_nothing_of_confirming_does_not_confirm() {
        let asked = json!({
            "agent": {
                "process": "p", "location": "eu", "chromium": "c", "hostIndex": null, "slots": 1,
                "version": "0.1.0",
            },
            "slot": 0, "waitMs": 1,
        });
        let read: LeaseRequest = serde_json::from_value(asked).unwrap();
        assert!(!read.confirms && !read.leaving);
    }

    #[test]
    fn members_that_nobody_knows_are_ignored() {
        let said = json!({ "hold": "lost", "since": "yesterday" });
        let read: Standing = serde_json::from_value(said).unwrap();
        assert_eq!(read.hold, Hold::Lost);
    }
}
