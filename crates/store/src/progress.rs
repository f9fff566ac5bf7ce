//! The progress of running audits, shared by all servers on a store and kept in memory only.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

/// The current phase of each running audit, by tracking id.
///
/// The store does not interpret the names of phases. After a restart this is empty: a running audit
/// starts again, or the server that its agent talks to reports its phase again.
#[derive(Clone, Default)]
pub struct AuditProgress(Arc<Inner>);

#[derive(Default)]
struct Inner {
    phases: Mutex<PhaseTable>,
    changed: Notify,
    /// Notified when there are changes to send to other servers.
    has_unsent: Notify,
}

#[derive(Default)]
struct PhaseTable {
    by_audit: HashMap<String, Phase>,
    /// Changes that other servers have not been sent yet; `None` as a value means that the audit
    /// ended. The map itself is `None` where there cannot be other servers.
    unsent: Option<HashMap<String, Option<String>>>,
}

struct Phase {
    name: String,
    /// Whether the phase was reported to this server rather than received from another.
    is_local: bool,
}

impl AuditProgress {
    /// Records that an audit has entered a phase.
    pub fn record_phase(&self, tracking_id: &str, name: &str) {
        let phase = Phase {
            name: name.to_owned(),
            is_local: true,
        };
        let mut phases = self.0.phases.lock();
        phases.by_audit.insert(tracking_id.to_owned(), phase);
        self.queue_change(&mut phases, tracking_id, Some(name));
        drop(phases);
        self.0.changed.notify_waiters();
    }

    /// Removes an audit that is finished or went back into the queue.
    pub fn remove(&self, tracking_id: &str) {
        let mut phases = self.0.phases.lock();
        if phases.by_audit.remove(tracking_id).is_none() {
            return;
        }
        self.queue_change(&mut phases, tracking_id, None);
        drop(phases);
        self.0.changed.notify_waiters();
    }

    /// Returns the phase that an audit is in.
    pub fn phase(&self, tracking_id: &str) -> Option<String> {
        let phases = self.0.phases.lock();
        phases
            .by_audit
            .get(tracking_id)
            .map(|phase| phase.name.clone())
    }

    /// Returns when the phase of any audit changes, or after `max_wait`.
    pub async fn wait_for_change(&self, max_wait: Duration) {
        let _ = timeout(max_wait, self.0.changed.notified()).await;
    }

    fn queue_change(&self, phases: &mut PhaseTable, tracking_id: &str, phase: Option<&str>) {
        if let Some(unsent) = &mut phases.unsent {
            unsent.insert(tracking_id.to_owned(), phase.map(str::to_owned));
            self.0.has_unsent.notify_one();
        }
    }
}

/// Methods for a store that carries progress from server to server.
impl AuditProgress {
    pub(crate) fn shared() -> Self {
        let progress = Self::default();
        progress.0.phases.lock().unsent = Some(HashMap::new());
        progress
    }

    /// Returns when there are changes to send.
    pub(crate) async fn wait_for_unsent(&self) {
        self.0.has_unsent.notified().await;
    }

    /// Takes the changes to send, only the newest of each audit.
    pub(crate) fn take_unsent(&self) -> HashMap<String, Option<String>> {
        let mut phases = self.0.phases.lock();
        phases
            .unsent
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Applies a change received from another server, unless this server has a newer one that the
    /// other has not received yet.
    pub(crate) fn receive(&self, tracking_id: &str, phase: Option<&str>) {
        let mut phases = self.0.phases.lock();
        if phases
            .unsent
            .as_ref()
            .is_some_and(|unsent| unsent.contains_key(tracking_id))
        {
            return;
        }
        match phase {
            Some(name) => {
                let phase = Phase {
                    name: name.to_owned(),
                    is_local: false,
                };
                phases.by_audit.insert(tracking_id.to_owned(), phase);
            }
            None => drop(phases.by_audit.remove(tracking_id)),
        }
        drop(phases);
        self.0.changed.notify_waiters();
    }

    /// Discards what other servers sent, because messages may have been missed. The caller then
    /// requests their state again.
    pub(crate) fn discard_remote(&self) {
        self.0
            .phases
            .lock()
            .by_audit
            .retain(|_, phase| phase.is_local);
        self.0.changed.notify_waiters();
    }

    /// Queues all local phases again, because another server requested them.
    pub(crate) fn resend(&self) {
        let mut phases = self.0.phases.lock();
        let PhaseTable { by_audit, unsent } = &mut *phases;
        if let Some(unsent) = unsent {
            for (tracking_id, phase) in by_audit.iter().filter(|(_, phase)| phase.is_local) {
                let change = unsent.entry(tracking_id.clone());
                change.or_insert_with(|| Some(phase.name.clone()));
            }
            self.0.has_unsent.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_change_is_sent_and_only_once() {
        let progress = AuditProgress::shared();
        progress.record_phase("trk_1", "loading");
        progress.record_phase("trk_1", "judging");
        progress.record_phase("trk_2", "loading");
        progress.remove("trk_2");
        progress.remove("trk_3");
        let unsent = progress.take_unsent();
        assert_eq!(unsent.len(), 2);
        assert_eq!(unsent["trk_1"].as_deref(), Some("judging"));
        assert_eq!(unsent["trk_2"], None);
        assert!(progress.take_unsent().is_empty());
        progress.resend();
        assert_eq!(progress.take_unsent().len(), 1);
    }

    #[test]
    fn received_phases_are_not_sent_on_and_can_be_discarded() {
        let progress = AuditProgress::shared();
        progress.receive("trk_1", Some("loading"));
        progress.receive("trk_2", Some("loading"));
        progress.receive("trk_2", None);
        assert_eq!(progress.phase("trk_1").as_deref(), Some("loading"));
        assert_eq!(progress.phase("trk_2"), None);
        progress.resend();
        assert!(progress.take_unsent().is_empty());
        progress.record_phase("trk_3", "loading");
        progress.discard_remote();
        assert_eq!(progress.phase("trk_1"), None);
        assert!(progress.phase("trk_3").is_some());
    }

    #[test]
    fn a_received_change_does_not_undo_a_newer_local_one() {
        let progress = AuditProgress::shared();
        progress.record_phase("trk_1", "loading");
        progress.receive("trk_1", None);
        assert!(progress.phase("trk_1").is_some());
    }

    #[test]
    fn nothing_is_queued_where_there_are_no_other_servers() {
        let progress = AuditProgress::default();
        progress.record_phase("trk_1", "loading");
        progress.resend();
        assert!(progress.take_unsent().is_empty());
        assert!(progress.phase("trk_1").is_some());
    }
}
