//! Takes back audits whose lease was not confirmed.
//!
//! An agent that was killed or cut off while it waited for work looks like one that is still
//! waiting. So agents that support it confirm a lease at once with a first heartbeat, and an audit
//! that is not confirmed goes back as if it had never been leased.
//!
//! Nearly always the confirmation reaches the server that made the lease, which then needs no store
//! access. Any other server moves the expiry of the lease, which has the same effect.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plumbline_store::{AttemptState, Lease, LeaseState, ProcessSet, StoreError};
use tokio::time::sleep;

use super::Dispatcher;

/// The leases of this server that are not confirmed yet, by audit and attempt.
#[derive(Default)]
pub(super) struct Unconfirmed(Mutex<HashMap<(String, u32), Lease>>);

impl Unconfirmed {
    fn insert(&self, lease: &Lease) {
        self.0.lock().insert(key(lease), lease.clone());
    }

    /// Removes a lease, and returns whether it was still unconfirmed.
    pub(super) fn remove(&self, lease: &Lease) -> bool {
        self.0.lock().remove(&key(lease)).is_some()
    }
}

fn key(lease: &Lease) -> (String, u32) {
    (lease.tracking_id.clone(), lease.attempt)
}

impl Dispatcher {
    /// How soon a lease must be confirmed: a few round trips over a bad connection, and a small
    /// part of a lease.
    pub(crate) fn confirmation_timeout(&self) -> Duration {
        self.lease_duration() / 6
    }

    /// Hands the audit back unless the lease is confirmed in time. If this server ends first, the
    /// lease expires instead.
    pub(crate) fn expect_confirmation(self: &Arc<Self>, lease: Lease) {
        self.unconfirmed.insert(&lease);
        let dispatcher = Arc::clone(self);
        tokio::spawn(async move {
            sleep(dispatcher.confirmation_timeout()).await;
            if !dispatcher.unconfirmed.remove(&lease) {
                return;
            }
            let (audit, owner) = (&lease.tracking_id, &lease.owner);
            match dispatcher.release_unless_confirmed(&lease).await {
                Ok(LeaseState::Held) => {
                    tracing::warn!(
                        audit,
                        %owner,
                        "audit returned to the queue: the lease was not confirmed"
                    );
                }
                Ok(LeaseState::Lost) => {}
                Err(error) => {
                    tracing::warn!(audit, %owner, %error, "failed to check for a confirmation");
                }
            }
        });
    }

    /// Confirms the lease of an attempt that one of these processes holds.
    ///
    /// Returns false if there is nothing to confirm: this server did not make the lease, or it is
    /// confirmed already. No other agent can hold the attempt before the lease expires, so the
    /// store is not needed.
    pub(crate) fn confirm(&self, processes: &ProcessSet, tracking_id: &str, attempt: u32) -> bool {
        let mut unconfirmed = self.unconfirmed.0.lock();
        let key = (tracking_id.to_owned(), attempt);
        let is_holder = unconfirmed.get(&key).is_some_and(|lease| {
            processes.contains(&lease.owner.process) && self.now() < lease.expires_at
        });
        is_holder && unconfirmed.remove(&key).is_some()
    }

    /// Hands the audit back if its lease is unconfirmed, and returns whether it was still held.
    async fn release_unless_confirmed(&self, lease: &Lease) -> Result<LeaseState, StoreError> {
        // Another server may have received the confirmation; reading takes no lock.
        let holder = ProcessSet::Single(lease.owner.process.clone());
        let state = self.attempt_state(&holder, &lease.tracking_id, lease.attempt);
        match state.await? {
            AttemptState::Held(current) if current.expires_at == lease.expires_at => {
                self.release_unconfirmed(lease).await
            }
            _ => Ok(LeaseState::Lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use plumbline_store::{
        AgentPresence, AuditOptions, FileBlobs, NewAudit, Order, ReleaseReason, ReturnReason,
        SqliteStore, Store, Submission, Timestamp,
    };

    use super::*;
    use crate::{AgentSlot, AuditPhases, DispatcherParts, Metrics};

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    /// Returns a dispatcher with one audit and a clock that does not move.
    async fn dispatcher(dir: &std::path::Path) -> Dispatcher {
        let store = Arc::new(SqliteStore::open(&dir.join("store.db")).unwrap());
        let account = store.create_account("tests", 1, NOW).await.unwrap();
        let audit = NewAudit {
            account_id: account.id,
            tracking_id: "trk_1".to_owned(),
            audit_id: "aud_1".to_owned(),
            order: Order {
                url: "https://example.com/".to_owned(),
                device: "mobile".to_owned(),
                network: "cable".to_owned(),
                location: "eu".to_owned(),
                options: plumbline_store::VisitOptions::default(),
            },
            options: AuditOptions::default(),
            accepted_at: NOW,
        };
        store.submit(Submission::single(audit)).await.unwrap();
        let blobs = Arc::new(FileBlobs::open(&dir.join("blobs")).unwrap());
        Dispatcher::new(DispatcherParts {
            store: store.clone(),
            agents: store,
            bundles: blobs.clone(),
            media: blobs,
            phases: AuditPhases::default(),
            metrics: Arc::new(Metrics::default()),
            clock: Arc::new(|| NOW),
            lease: Duration::from_secs(30),
            locations: vec!["eu".to_owned()],
            simulate: true,
            vault: None,
            observers: Vec::new(),
        })
    }

    fn single(process: &str) -> ProcessSet {
        ProcessSet::Single(process.into())
    }

    fn agent_slot(process: &str, index: u32) -> AgentSlot {
        AgentSlot {
            agent: AgentPresence {
                process: process.into(),
                agent_id: None,
                location: "eu".to_owned(),
                chromium: "none".to_owned(),
                host_index: None,
                slots: 2,
                version: "0".to_owned(),
                seen_at: NOW,
            },
            index,
            scope: None,
        }
    }

    async fn leased(dispatcher: &Dispatcher, process: &str) -> Lease {
        let lease = dispatcher
            .lease(&agent_slot(process, 0), Duration::ZERO)
            .await;
        lease.unwrap().unwrap()
    }

    #[tokio::test]
    async fn an_unconfirmed_audit_goes_back_and_the_silent_process_gets_no_more_work() {
        let dir = tempfile::tempdir().unwrap();
        let dispatcher = dispatcher(dir.path()).await;
        let (silent, other) = (agent_slot("silent", 0), agent_slot("other", 0));
        let (same_process, others) = (
            dispatcher.begin_poll(&agent_slot("silent", 1)),
            dispatcher.begin_poll(&other),
        );
        let lease = dispatcher
            .lease(&silent, Duration::ZERO)
            .await
            .unwrap()
            .unwrap();
        let handed_back = dispatcher.release_unless_confirmed(&lease).await;
        assert_eq!(handed_back.unwrap(), LeaseState::Held);
        assert!(!same_process.is_newest() && others.is_newest());
        assert_eq!(
            dispatcher.heartbeat(&lease).await.unwrap(),
            LeaseState::Lost
        );

        let again = dispatcher
            .lease(&other, Duration::ZERO)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((again.attempt, again.faults), (2, 0));
        // The first lease has ended long ago.
        let late = dispatcher.release_unless_confirmed(&lease).await;
        assert_eq!(late.unwrap(), LeaseState::Lost);
    }

    #[tokio::test]
    async fn a_confirmed_audit_stays_even_if_the_clock_has_not_moved() {
        let dir = tempfile::tempdir().unwrap();
        let dispatcher = dispatcher(dir.path()).await;
        let lease = leased(&dispatcher, "active").await;
        assert_eq!(
            dispatcher.heartbeat(&lease).await.unwrap(),
            LeaseState::Held
        );
        let handed_back = dispatcher.release_unless_confirmed(&lease).await;
        assert_eq!(handed_back.unwrap(), LeaseState::Lost);
        assert_eq!(
            dispatcher.heartbeat(&lease).await.unwrap(),
            LeaseState::Held
        );
    }

    #[tokio::test]
    async fn a_lease_is_confirmed_once_and_only_by_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let dispatcher = dispatcher(dir.path()).await;
        let lease = leased(&dispatcher, "active").await;
        assert!(
            !dispatcher.confirm(&single("active"), "trk_1", 1),
            "leased by another server"
        );
        dispatcher.unconfirmed.insert(&lease);
        assert!(!dispatcher.confirm(&single("other"), "trk_1", 1));
        assert!(!dispatcher.confirm(&single("active"), "trk_1", 2));
        assert!(dispatcher.confirm(&single("active"), "trk_1", 1));
        assert!(
            !dispatcher.confirm(&single("active"), "trk_1", 1),
            "an ordinary heartbeat"
        );
        assert!(
            !dispatcher.unconfirmed.remove(&lease),
            "it is not handed back"
        );
    }

    #[tokio::test]
    async fn a_lease_that_was_handed_back_or_has_expired_cannot_be_confirmed() {
        let dir = tempfile::tempdir().unwrap();
        let dispatcher = dispatcher(dir.path()).await;
        let lease = leased(&dispatcher, "slow").await;
        let expired = Lease {
            expires_at: NOW,
            ..lease.clone()
        };
        dispatcher.unconfirmed.insert(&expired);
        assert!(!dispatcher.confirm(&single("slow"), "trk_1", 1));
        dispatcher.unconfirmed.insert(&lease);
        dispatcher
            .release(&lease, ReleaseReason::Returned(ReturnReason::Drained))
            .await
            .unwrap();
        assert!(!dispatcher.confirm(&single("slow"), "trk_1", 1));
    }
}
