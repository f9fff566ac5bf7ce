use std::time::Duration;

use plumbline_bundle::Phase;
use plumbline_seam::VisitNumber;
use plumbline_store::{AuditProgress, Store, Timestamp};
use serde::{Deserialize, Serialize};

/// The phases of running audits, as their agents report them to any server on the store.
#[derive(Clone, Default)]
pub struct AuditPhases(AuditProgress);

/// The phase that a running audit is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CurrentPhase {
    /// The phase of the visit.
    pub phase: Phase,
    /// The position of the visit within the audit; `None` if an earlier version reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<VisitNumber>,
    /// When the first phase of this attempt was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

impl AuditPhases {
    /// Returns the phases that all servers on this store share.
    pub fn of_store(store: &dyn Store) -> Self {
        Self(store.progress().clone())
    }

    /// Records that an audit has entered a phase.
    pub fn record(
        &self,
        tracking_id: &str,
        phase: Phase,
        visit: Option<VisitNumber>,
        now: Timestamp,
    ) {
        let earlier = self.current(tracking_id);
        let current = CurrentPhase {
            phase,
            visit,
            started_at: earlier.and_then(|phase| phase.started_at).or(Some(now)),
        };
        match serde_json::to_string(&current) {
            Ok(text) => self.0.record_phase(tracking_id, &text),
            Err(error) => tracing::error!(%error, "failed to record a phase"),
        }
    }

    /// Removes an audit that is finished or went back into the queue.
    pub fn remove(&self, tracking_id: &str) {
        self.0.remove(tracking_id);
    }

    /// Returns the current phase of an audit, or `None` if it is not running or in a phase that
    /// only another version knows.
    pub(crate) fn current(&self, tracking_id: &str) -> Option<CurrentPhase> {
        parse(&self.0.phase(tracking_id)?)
    }

    /// Returns when any audit has entered another phase, or after `at_most`.
    pub(crate) async fn changed(&self, at_most: Duration) {
        self.0.wait_for_change(at_most).await;
    }
}

/// Parses a phase. A server of an earlier version on the same store sends only its name.
fn parse(text: &str) -> Option<CurrentPhase> {
    serde_json::from_str(text).ok().or_else(|| {
        let phase = serde_json::from_value(text.into()).ok()?;
        Some(CurrentPhase {
            phase,
            visit: None,
            started_at: None,
        })
    })
}

#[cfg(test)]
mod tests {
    use plumbline_seam::VisitReason;

    use super::*;

    #[test]
    fn the_time_of_the_first_phase_is_kept_until_the_audit_is_removed() {
        let phases = AuditPhases::default();
        let visit = VisitNumber {
            run: 1,
            number: 2,
            max: 3,
            reason: VisitReason::Uncertain,
        };
        phases.record("trk_1", Phase::Preparing, None, Timestamp(5));
        phases.record("trk_1", Phase::Loading, Some(visit), Timestamp(9));
        let current = phases.current("trk_1").unwrap();
        assert_eq!(
            (current.phase, current.visit),
            (Phase::Loading, Some(visit))
        );
        assert_eq!(current.started_at, Some(Timestamp(5)));
        phases.remove("trk_1");
        assert_eq!(phases.current("trk_1"), None);
        phases.record("trk_1", Phase::Preparing, None, Timestamp(20));
        let again = phases.current("trk_1").unwrap();
        assert_eq!(again.started_at, Some(Timestamp(20)));
    }

    #[test]
    fn the_phase_of_an_earlier_version_is_a_name() {
        let named = parse("gathering").unwrap();
        assert_eq!((named.phase, named.visit), (Phase::Gathering, None));
        assert_eq!(parse("polishing"), None);
    }
}
