//! Stores the evidence of attempts, and removes what no report refers to.

use std::path::Path;
use std::sync::Arc;

use plumbline_seam::{Evidence, LeaseState, Replay};
use plumbline_store::{AttemptBlob, AttemptState, Blobs, Lease};

use super::Dispatcher;
use crate::evidence_part::read_recording;

impl Dispatcher {
    /// Stores evidence. Called before [`Dispatcher::finish`], so that a report's evidence exists
    /// when the report does.
    ///
    /// The lease may be lost while the evidence is written, and the agent that finished the audit
    /// may already have removed other attempts' evidence, so the lease is checked again afterwards.
    /// What remains after a crash in between is removed with the audit.
    pub async fn store_evidence(
        &self,
        lease: &Lease,
        kind: Evidence,
        bytes: Vec<u8>,
    ) -> std::io::Result<LeaseState> {
        let blobs = self.blobs(kind);
        AttemptBlob::from(lease).put(blobs, bytes).await?;
        self.remove_if_lost(lease, blobs).await
    }

    /// Stores evidence from a file, like [`Dispatcher::store_evidence`]. The file may be moved.
    pub(crate) async fn store_evidence_file(
        &self,
        lease: &Lease,
        kind: Evidence,
        file: &Path,
    ) -> std::io::Result<LeaseState> {
        let blobs = self.blobs(kind);
        AttemptBlob::from(lease).put_file(blobs, file).await?;
        self.remove_if_lost(lease, blobs).await
    }

    /// Returns the packed recording that is replayed; `None` if the evidence has none or was
    /// deleted.
    pub(crate) async fn recording(&self, replay: &Replay) -> std::io::Result<Option<Vec<u8>>> {
        let blob = AttemptBlob {
            audit_id: &replay.recording,
            attempt: replay.attempt,
        };
        read_recording(blob, &*self.parts.bundles).await
    }

    fn blobs(&self, kind: Evidence) -> &dyn Blobs {
        match kind {
            Evidence::Bundle => &*self.parts.bundles,
            Evidence::ReportMedia => &*self.parts.media,
        }
    }

    async fn remove_if_lost(
        &self,
        lease: &Lease,
        blobs: &dyn Blobs,
    ) -> std::io::Result<LeaseState> {
        if !self.is_lost(lease).await {
            return Ok(LeaseState::Held);
        }
        AttemptBlob::from(lease).remove(blobs).await?;
        Ok(LeaseState::Lost)
    }

    /// Whether another attempt has replaced this one, or the audit has ended. False if the store
    /// cannot tell.
    async fn is_lost(&self, lease: &Lease) -> bool {
        let state = self
            .parts
            .agents
            .attempt_state(&lease.tracking_id, lease.attempt);
        matches!(state.await, Ok(AttemptState::Lost))
    }

    /// Removes evidence that no report refers to, in the background: that of attempts before the
    /// one that finished, or that of an attempt that was too late.
    pub(super) async fn remove_unused_evidence(&self, lease: &Lease, state: LeaseState) {
        let may_exist = match state {
            LeaseState::Held => lease.attempt > 1,
            // A lease that is not held is not necessarily lost: the same attempt may have finished
            // a moment ago.
            LeaseState::Lost => self.is_lost(lease).await,
        };
        if !may_exist {
            return;
        }
        for blobs in [&self.parts.bundles, &self.parts.media] {
            let (blobs, lease) = (Arc::clone(blobs), lease.clone());
            tokio::spawn(async move {
                let blob = AttemptBlob::from(&lease);
                let removed = match state {
                    LeaseState::Held => blob.remove_earlier(&*blobs).await,
                    LeaseState::Lost => blob.remove(&*blobs).await,
                };
                if let Err(error) = removed {
                    let audit = &lease.tracking_id;
                    tracing::warn!(audit, %error, "failed to remove evidence of another attempt");
                }
            });
        }
    }
}
