use std::time::Duration;

use plumbline_report::html::Phase;
use plumbline_store::{AuditProgress, Store};

/// How far each running audit is, as its agent says it, to whichever server.
#[derive(Clone, Default)]
pub struct Phases(AuditProgress);

impl Phases {
    /// With all servers on this store.
    pub fn on(store: &dyn Store) -> Self {
        Self(store.progress().clone())
    }

    pub fn reached(&self, tracking_id: &str, phase: Phase) {
        self.0.record_phase(tracking_id, phase.as_str());
    }

    /// The audit is finished, or went back into the queue.
    pub fn ended(&self, tracking_id: &str) {
        self.0.remove(tracking_id);
    }

    /// None also for a phase that only another version knows.
    pub(crate) fn of(&self, tracking_id: &str) -> Option<Phase> {
        let said = self.0.phase(tracking_id)?;
        [
            Phase::Preparing,
            Phase::Loading,
            Phase::Gathering,
            Phase::Judging,
        ]
        .into_iter()
        .find(|phase| phase.as_str() == said)
    }

    /// Returns when any audit got further, or after `at_most`.
    pub(crate) async fn change(&self, at_most: Duration) {
        self.0.wait_for_change(at_most).await;
    }
}
