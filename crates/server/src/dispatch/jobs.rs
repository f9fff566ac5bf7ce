//! Makes jobs from leases, with the values of stored secrets and the states of saved sessions.

use plumbline_seam::{Attempt, Job, MadeSession, ReturnReason, VisitOptions};
use plumbline_store::{Lease, ReleaseReason, StoreError};

use super::{Dispatcher, whole_ms};
use crate::vault::{self, VaultError};

impl Dispatcher {
    /// Returns the job of a lease, whose options have values in place of placeholders, and the
    /// session that they use. The audit of a secret or session that was deleted meanwhile must be
    /// failed. If the secrets cannot be read, the audit is returned as a fault, and there is no
    /// job.
    pub(crate) async fn job(&self, lease: &Lease) -> Result<Option<Job>, StoreError> {
        let mut job = Job {
            attempt: Attempt {
                tracking_id: lease.tracking_id.clone(),
                number: lease.attempt,
            },
            order: lease.order.clone(),
            runs: lease.runs,
            exhausted: lease.is_exhausted(),
            heartbeat_ms: whole_ms(self.heartbeat_interval()),
            lease_ms: whole_ms(self.lease_duration()),
            confirm_within_ms: None,
            containers: true,
            precondition_failure: None,
        };
        if job.exhausted || !vault::is_needed_by(&lease.order.options) {
            return Ok(Some(job));
        }
        match self.prepared_options(lease).await {
            Ok(options) => job.order.options = options,
            Err(VaultError::Store(error)) => return Err(error),
            Err(error @ (VaultError::Replacement(_) | VaultError::UnknownSession(_))) => {
                job.order.options = job.order.options.without_values();
                job.precondition_failure = Some(format!(
                    "The stored secrets and the session of the audit cannot be used: {error}."
                ));
            }
            Err(error @ (VaultError::Key(_) | VaultError::OtherKey(_))) => {
                tracing::error!(
                    audit = lease.tracking_id,
                    %error,
                    "failed to read stored secrets; check --secrets-key"
                );
                let fault = ReleaseReason::Returned(ReturnReason::Fault);
                self.release(lease, fault).await?;
                return Ok(None);
            }
        }
        Ok(Some(job))
    }

    async fn prepared_options(&self, lease: &Lease) -> Result<VisitOptions, VaultError> {
        let Some(vault) = &self.parts.vault else {
            return Err(VaultError::Key("the server has none".to_owned()));
        };
        let (id, options) = (&lease.tracking_id, &lease.order.options);
        vault.prepare_for_audit(id, options).await
    }

    /// Stores the state of a saved session that the agent has made for a finished audit. If that
    /// fails, the next audit signs in again.
    pub(super) async fn keep_session(&self, lease: &Lease, made: &MadeSession) {
        let (Some(vault), Some(session)) = (&self.parts.vault, &lease.order.options.session) else {
            return;
        };
        let (id, name) = (&lease.tracking_id, &session.name);
        match vault.keep_session(id, name, made, self.now()).await {
            Ok(true) => {}
            Ok(false) => tracing::info!(audit = id, "a session was changed while it was made"),
            Err(error) => tracing::error!(audit = id, %error, "failed to store a session"),
        }
    }
}
