use std::time::Duration;

use plumbline_bundle::Phase;
use plumbline_store::{AuditProgress, Store};

/// The phases of running audits, as their agents report them to any server on the store.
#[derive(Clone, Default)]
pub struct AuditPhases(AuditProgress);

impl AuditPhases {
    /// Returns the phases that all servers on this store share.
    pub fn of_store(store: &dyn Store) -> Self {
        Self(store.progress().clone())
    }

    /// Records that an audit has entered a phase.
    pub fn record(&self, tracking_id: &str, phase: Phase) {
        self.0.record_phase(tracking_id, phase.as_str());
    }

    /// Removes an audit that is finished or went back into the queue.
    pub fn remove(&self, tracking_id: &str) {
        self.0.remove(tracking_id);
    }

    /// Returns the current phase of an audit, or `None` if it is not running or in a phase that
    /// only another version knows.
    pub(crate) fn current(&self, tracking_id: &str) -> Option<Phase> {
        let name = self.0.phase(tracking_id)?;
        [
            Phase::Preparing,
            Phase::Loading,
            Phase::Gathering,
            Phase::Judging,
        ]
        .into_iter()
        .find(|phase| phase.as_str() == name)
    }

    /// Returns when any audit has entered another phase, or after `at_most`.
    pub(crate) async fn changed(&self, at_most: Duration) {
        self.0.wait_for_change(at_most).await;
    }
}
