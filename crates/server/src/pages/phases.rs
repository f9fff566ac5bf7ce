use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plumbline_report::html::Phase;
use tokio::sync::Notify;

/// How far each running audit is, as its agent says it. In memory: after a restart every running audit begins
/// again.
#[derive(Clone, Default)]
pub struct Phases(Arc<Inner>);

#[derive(Default)]
struct Inner {
    by_tracking_id: Mutex<HashMap<String, Phase>>,
    changed: Notify,
}

impl Phases {
    pub fn reached(&self, tracking_id: &str, phase: Phase) {
        self.all().insert(tracking_id.to_owned(), phase);
        self.0.changed.notify_waiters();
    }

    /// The audit is finished, or went back into the queue.
    pub fn ended(&self, tracking_id: &str) {
        self.all().remove(tracking_id);
        self.0.changed.notify_waiters();
    }

    pub(crate) fn of(&self, tracking_id: &str) -> Option<Phase> {
        self.all().get(tracking_id).copied()
    }

    /// Returns when any audit got further, or after `at_most`.
    pub(crate) async fn change(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.0.changed.notified()).await;
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Phase>> {
        let all = self.0.by_tracking_id.lock();
        all.unwrap_or_else(PoisonError::into_inner)
    }
}
