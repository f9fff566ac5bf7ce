//! What is given over a line that nobody may be reading any more: an agent that was killed, or cut off, while it waited for
//! work looks like one that waits on. Who can do so says at once that it has got something, with a first heartbeat; what is
//! not confirmed goes back as if it had never been given.
//!
//! Nearly always the server that hears of it is the one that gave it, and needs no store for that; any other moves the
//! lease's expiry, which says the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plumbline_store::{AttemptState, Hold, Lease, StoreError};
use tokio::time::sleep;

use super::Desk;

/// What this server has given and not heard of since, by audit and attempt.
#[derive(Default)]
pub(super) struct Unconfirmed(Mutex<HashMap<(String, u32), Lease>>);

impl Unconfirmed {
    fn expect(&self, lease: &Lease) {
        self.locked().insert(named(lease), lease.clone());
    }

    /// Whether it was still expected.
    pub(super) fn forget(&self, lease: &Lease) -> bool {
        self.locked().remove(&named(lease)).is_some()
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<(String, u32), Lease>> {
        // What is kept is whole after every statement.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(lease: &Lease) -> (String, u32) {
    (lease.tracking_id.clone(), lease.attempt)
}

impl Desk {
    /// A few round trips over a bad line, and a small part of a lease.
    pub(super) fn confirm_within(&self) -> Duration {
        self.lease_for() / 6
    }

    /// Takes the audit back unless somebody says in time that they have it. Should this server end before, the lease's own
    /// expiry does.
    pub(super) fn expect_confirmation(self: &Arc<Self>, lease: Lease) {
        self.unconfirmed.expect(&lease);
        let desk = Arc::clone(self);
        tokio::spawn(async move {
            sleep(desk.confirm_within()).await;
            if !desk.unconfirmed.forget(&lease) {
                return;
            }
            let (audit, owner) = (&lease.tracking_id, &lease.owner);
            match desk.take_back_unless_confirmed(&lease).await {
                Ok(Hold::Held) => tracing::warn!(audit, owner, "put back: it was not confirmed"),
                Ok(Hold::Lost) => {}
                Err(error) => tracing::warn!(audit, owner, %error, "not known whether confirmed"),
            }
        });
    }

    /// One of these processes says that it has the attempt. False where that confirms nothing: this server did not give it, or
    /// has heard of it before. Nobody else can have it before the lease expires, so the store need not be asked.
    pub(super) fn confirm(&self, processes: &str, tracking_id: &str, attempt: u32) -> bool {
        let mut unconfirmed = self.unconfirmed.locked();
        let name = (tracking_id.to_owned(), attempt);
        let is_its = unconfirmed.get(&name).is_some_and(|lease| {
            lease.owner.starts_with(processes) && self.now() < lease.expires_at
        });
        is_its && unconfirmed.remove(&name).is_some()
    }

    /// Whether it was taken back is whether it was still held.
    async fn take_back_unless_confirmed(&self, lease: &Lease) -> Result<Hold, StoreError> {
        // Perhaps at another server; looking takes no lock.
        let standing = self.standing(&lease.owner, &lease.tracking_id, lease.attempt);
        match standing.await? {
            AttemptState::Held(held) if held.expires_at == lease.expires_at => {
                self.take_back_unheard(lease).await
            }
            _ => Ok(Hold::Lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use plumbline_store::{
        AgentPresence, AuditOptions, AuditOrder, FileBlobs, NewAudit, ReleaseReason, SqliteStore,
        Store, Submission, Timestamp,
    };

    use super::*;
    use crate::{Asker, DeskParts, Metrics, Phases};

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    /// Whose clock stands still, with one audit.
    async fn desk(dir: &std::path::Path) -> Desk {
        let store = Arc::new(SqliteStore::open(&dir.join("store.db")).unwrap());
        let account = store.create_account("tests", 1, NOW).await.unwrap();
        let audit = NewAudit {
            account_id: account.id,
            tracking_id: "trk_1".to_owned(),
            audit_id: "aud_1".to_owned(),
            order: AuditOrder {
                url: "https://example.com/".to_owned(),
                device: "mobile".to_owned(),
                network: "cable".to_owned(),
                location: "eu".to_owned(),
            },
            options: AuditOptions::default(),
            accepted_at: NOW,
        };
        store.submit(Submission::single(audit)).await.unwrap();
        let blobs = Arc::new(FileBlobs::open(&dir.join("blobs")).unwrap());
        Desk::new(DeskParts {
            store: store.clone(),
            agents: store,
            bundles: blobs.clone(),
            media: blobs,
            phases: Phases::default(),
            metrics: Arc::new(Metrics::default()),
            clock: Arc::new(|| NOW),
            lease: Duration::from_secs(30),
            locations: vec!["eu".to_owned()],
            simulate: true,
            beside: Vec::new(),
        })
    }

    fn asker(process: &str, slot: u32) -> Asker {
        Asker {
            agent: AgentPresence {
                process: process.to_owned(),
                agent_id: None,
                location: "eu".to_owned(),
                chromium: "none".to_owned(),
                host_index: None,
                slots: 2,
                version: "0".to_owned(),
                seen_at: NOW,
            },
            slot,
            scope: None,
        }
    }

    async fn leased(desk: &Desk, process: &str) -> Lease {
        let lease = desk.lease(&asker(process, 0), Duration::ZERO).await;
        lease.unwrap().unwrap()
    }

    #[tokio::test]
    async fn what_is_not_confirmed_goes_back_and_who_was_silent_gets_nothing_more() {
        let dir = tempfile::tempdir().unwrap();
        let desk = desk(dir.path()).await;
        let (silent, other) = (asker("silent", 0), asker("other", 0));
        let (beside, others) = (desk.poll(&asker("silent", 1)), desk.poll(&other));
        let lease = desk.lease(&silent, Duration::ZERO).await.unwrap().unwrap();
        let back = desk.take_back_unless_confirmed(&lease).await;
        assert_eq!(back.unwrap(), Hold::Held);
        assert!(!beside.is_newest() && others.is_newest());
        assert_eq!(desk.heartbeat(&lease).await.unwrap(), Hold::Lost);

        let again = desk.lease(&other, Duration::ZERO).await.unwrap().unwrap();
        assert_eq!((again.attempt, again.faults), (2, 0));
        // The first is long over.
        let late = desk.take_back_unless_confirmed(&lease).await;
        assert_eq!(late.unwrap(), Hold::Lost);
    }

    #[tokio::test]
    async fn what_was_confirmed_stays_even_where_no_time_has_passed() {
        let dir = tempfile::tempdir().unwrap();
        let desk = desk(dir.path()).await;
        let lease = leased(&desk, "lives").await;
        assert_eq!(desk.heartbeat(&lease).await.unwrap(), Hold::Held);
        let back = desk.take_back_unless_confirmed(&lease).await;
        assert_eq!(back.unwrap(), Hold::Lost);
        assert_eq!(desk.heartbeat(&lease).await.unwrap(), Hold::Held);
    }

    #[tokio::test]
    async fn who_was_given_an_audit_confirms_it_once_and_nobody_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let desk = desk(dir.path()).await;
        let lease = leased(&desk, "lives").await;
        assert!(
            !desk.confirm("lives/", "trk_1", 1),
            "given by another server"
        );
        desk.unconfirmed.expect(&lease);
        assert!(!desk.confirm("other/", "trk_1", 1));
        assert!(!desk.confirm("lives/", "trk_1", 2));
        assert!(desk.confirm("lives/", "trk_1", 1));
        assert!(
            !desk.confirm("lives/", "trk_1", 1),
            "a heartbeat like any other"
        );
        assert!(!desk.unconfirmed.forget(&lease), "nobody takes it back");
    }

    #[tokio::test]
    async fn what_went_back_or_is_over_is_not_confirmed_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let desk = desk(dir.path()).await;
        let lease = leased(&desk, "slow").await;
        let over = Lease {
            expires_at: NOW,
            ..lease.clone()
        };
        desk.unconfirmed.expect(&over);
        assert!(!desk.confirm("slow/", "trk_1", 1));
        desk.unconfirmed.expect(&lease);
        desk.hand_back(&lease, ReleaseReason::Drained)
            .await
            .unwrap();
        assert!(!desk.confirm("slow/", "trk_1", 1));
    }
}
