//! Makes jobs from leases, with the values of stored secrets.

use plumbline_seam::{Attempt, Job, ReturnReason, VisitOptions};
use plumbline_store::{Lease, ReleaseReason, StoreError};

use super::{Dispatcher, whole_ms};
use crate::vault::VaultError;

impl Dispatcher {
    /// Returns the job of a lease, whose options have values in place of placeholders. The audit of
    /// a secret that was deleted meanwhile must be failed. If the secrets cannot be read, the audit
    /// is returned as a fault, and there is no job.
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
        if job.exhausted || lease.order.options.secret_names().is_empty() {
            return Ok(Some(job));
        }
        match self.with_secrets(lease).await {
            Ok(options) => job.order.options = options,
            Err(VaultError::Store(error)) => return Err(error),
            Err(VaultError::Replacement(error)) => {
                job.order.options = job.order.options.without_values();
                job.precondition_failure =
                    Some(format!("The stored secrets cannot be used: {error}."));
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

    async fn with_secrets(&self, lease: &Lease) -> Result<VisitOptions, VaultError> {
        let Some(vault) = &self.parts.vault else {
            return Err(VaultError::Key("the server has none".to_owned()));
        };
        let (id, options) = (&lease.tracking_id, &lease.order.options);
        vault.replace_for_audit(id, options).await
    }
}
