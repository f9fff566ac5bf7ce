use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::{
    Acceptance, Account, AccountSummary, AuditEntry, AuditFilter, AuditPage, AuditProgress,
    AuditStatus, AuditSummary, Batch, Cancellation, ClaimedDeliveries, Delivery, DeliveryClaim,
    DeliveryDepth, DeliveryOutcome, FinishedAudit, IdempotencyRecord, KeyDigest, KeyRecord, Lease,
    LeaseScope, LeaseState, ListCursor, ProcessSet, PurgeResult, QueueDepth, QueuePosition,
    QueuedAudit, ReleaseReason, ReplayAudit, Retention, SharedLimits, StoreLatency, StoredReport,
    Submission, Timestamp, UnsummarizedAudit,
};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{0} not found")]
    NotFound(&'static str),
    #[error("{0} is already in use")]
    InUse(&'static str),
    /// Nothing was leased because the [`crate::SlotLimit`] is reached.
    #[error("all {0} slots are in use")]
    SlotsInUse(u32),
    #[error(
        "the store was written by a newer version (its schema is {found}, \
         this version supports up to {supported})"
    )]
    NewerSchema { found: i64, supported: i64 },
    /// The operation was refused and changed nothing.
    #[error("{0}")]
    Refused(String),
    #[error("store error: {0}")]
    Backend(String),
}

/// Accounts, keys, credits, audits and the queue, durable against a crash at any moment.
///
/// Every method is one transaction, and when it returns the change is on disk. A write whose future
/// is dropped may still happen. Therefore await every method whose result matters, above all
/// [`Store::lease`]: a lease whose result is dropped blocks its audit until it expires. Times are
/// arguments. Implementations must pass the conformance suite in `tests/store/conformance.rs`.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    async fn create_account(
        &self,
        name: &str,
        credits: u32,
        now: Timestamp,
    ) -> Result<Account, StoreError>;

    async fn add_key(
        &self,
        account_id: &str,
        key_id: &str,
        digest: KeyDigest,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    async fn keys(&self) -> Result<Vec<KeyRecord>, StoreError>;

    async fn key(&self, key_id: &str) -> Result<Option<KeyRecord>, StoreError>;

    /// Revokes a key. Revoking it again changes nothing, not even the time.
    async fn revoke_key(&self, key_id: &str, now: Timestamp) -> Result<(), StoreError>;

    /// Adds credits and returns the new balance. A negative amount subtracts, down to zero at most;
    /// zero only reads the balance.
    async fn add_credits(
        &self,
        account_id: &str,
        amount: i64,
        now: Timestamp,
    ) -> Result<i64, StoreError>;

    /// Takes the credits and queues all audits of a submission, or changes nothing. A stored
    /// idempotency key is checked first, regardless of the balance; then the number of failed and
    /// of unfinished audits, then the credits. An id that is already in use is a
    /// [`StoreError::Backend`].
    async fn submit(&self, submission: Submission) -> Result<Acceptance, StoreError>;

    /// Returns how a submission with this idempotency record was decided before:
    /// [`Acceptance::Replayed`] or [`Acceptance::KeyReused`]; `None` if there was none.
    async fn earlier_acceptance(
        &self,
        account_id: &str,
        record: &IdempotencyRecord,
        now: Timestamp,
    ) -> Result<Option<Acceptance>, StoreError>;

    /// Returns the status of an audit of this account by its tracking id.
    async fn status(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<AuditStatus>, StoreError>;

    /// Like [`Store::status`], but waits up to `max_wait` for the audit to be completed. Completion
    /// by another process may be noticed only after `max_wait`.
    async fn wait_for_completion(
        &self,
        account_id: &str,
        tracking_id: &str,
        max_wait: Duration,
    ) -> Result<Option<AuditStatus>, StoreError>;

    /// Lists up to `limit` audits of the account, newest first, beginning after a [`ListCursor`].
    /// Audits accepted or deleted between two pages do not make others appear twice or not at all.
    async fn audits(
        &self,
        account_id: &str,
        filter: AuditFilter,
        after: Option<ListCursor>,
        limit: u32,
    ) -> Result<AuditPage, StoreError>;

    /// Returns an audit of this account by its tracking id, as a list shows it.
    async fn audit(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<AuditEntry>, StoreError>;

    /// Returns up to `limit` audits of this account that visited the recording of an audit, the
    /// newest first: matrices and experiments.
    async fn replays(
        &self,
        account_id: &str,
        audit_id: &str,
        limit: u32,
    ) -> Result<Vec<ReplayAudit>, StoreError>;

    /// Returns a batch of this account.
    async fn batch(&self, account_id: &str, batch_id: &str) -> Result<Option<Batch>, StoreError>;

    /// Deletes a completed audit with its report, and returns whether there was one. Its cost stays
    /// in the ledger. A webhook of its batch that is still to be delivered is kept, unless no other
    /// audit of the batch is left.
    async fn delete_audit(&self, account_id: &str, audit_id: &str) -> Result<bool, StoreError>;

    /// Returns the report of a completed audit of this account by its audit id.
    async fn report(
        &self,
        account_id: &str,
        audit_id: &str,
    ) -> Result<Option<StoredReport>, StoreError>;

    /// Leases an audit whose lease has expired (`expires_at <= now`), which counts as a fault of
    /// its last attempt, or else a waiting one. Single audits are leased before audits of batches
    /// (but see [`crate::MAX_INTERACTIVE_IN_A_ROW`]); among these, the account that was served
    /// longest ago is next; and of an account the audit with the fewest faults, then the oldest by
    /// order of acceptance. Every lease is a new attempt, and only the newest attempt can change
    /// the audit.
    ///
    /// Only audits of the scope's locations are leased. When all slots of the scope are in use, the
    /// result is [`StoreError::SlotsInUse`], whether or not an audit waits; the limit holds across
    /// servers that lease at the same time. Check [`Lease::is_exhausted`] before any work.
    async fn lease(
        &self,
        scope: &LeaseScope,
        now: Timestamp,
        duration: Duration,
    ) -> Result<Option<Lease>, StoreError>;

    /// Returns when an audit may be waiting that the scope may lease, or after `max_wait`. Callers
    /// then try to lease again.
    ///
    /// An audit that is accepted, released or recovered through this store wakes every waiter. One
    /// that came between a caller's unsuccessful `lease` and this call is not missed: the method
    /// returns at once while there is an audit that the scope may lease. Later changes by other
    /// processes, and leases that expire, are found by trying again after `max_wait`.
    async fn wait_for_work(&self, scope: &LeaseScope, max_wait: Duration);

    /// Extends a lease that is still held, also one that has expired if no other attempt has taken
    /// over. An `until` other than the lease's own expiry confirms the lease: see
    /// [`ReleaseReason::Unconfirmed`].
    async fn heartbeat(&self, lease: &Lease, until: Timestamp) -> Result<LeaseState, StoreError>;

    /// Stores the report, completes the audit, ends the lease and, if there are no measurements,
    /// refunds the credits: in one transaction, and only for the newest attempt.
    async fn finish(
        &self,
        lease: &Lease,
        finished: FinishedAudit,
    ) -> Result<LeaseState, StoreError>;

    /// Completes audits without measurements, in one transaction, and returns the tracking ids of
    /// those that were not completed before. A waiting audit is never leased; a lease of a running
    /// one is lost. Credits are refunded and webhooks become due as in [`Store::finish`]. Audits of
    /// other accounts are not changed.
    async fn cancel(&self, cancellation: Cancellation) -> Result<Vec<String>, StoreError>;

    /// Returns up to `limit` completed audits that have a report and no summary.
    async fn unsummarized(&self, limit: u32) -> Result<Vec<UnsummarizedAudit>, StoreError>;

    /// Adds the summary of a completed audit, unless it has one.
    async fn store_summary(
        &self,
        tracking_id: &str,
        summary: AuditSummary,
    ) -> Result<(), StoreError>;

    /// Ends the lease and returns the audit to its position in the queue of its account.
    /// A fault counts towards [`crate::MAX_FAULTS`], and audits with fewer faults are leased first.
    async fn release(&self, lease: &Lease, reason: ReleaseReason)
    -> Result<LeaseState, StoreError>;

    /// Returns every audit to the queue that is leased to one of these processes, and returns their
    /// number: for a process that starts and knows that its predecessor is dead. It counts as a
    /// fault of each audit, because a process that stops in an orderly way releases its leases.
    async fn recover(&self, processes: &ProcessSet) -> Result<u64, StoreError>;

    async fn queue_depth(&self) -> Result<QueueDepth, StoreError>;

    /// Returns the place of an audit of this account in the queue, if it waits: the number of
    /// audits that are leased before it, as far as that is known, plus one.
    async fn queue_position(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<QueuePosition>, StoreError>;

    /// Returns when the audit that has waited longest was accepted.
    async fn waiting_since(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Returns up to `limit` unfinished audits in order of acceptance.
    async fn queue(&self, limit: u32) -> Result<Vec<QueuedAudit>, StoreError>;

    async fn accounts(&self) -> Result<Vec<AccountSummary>, StoreError>;

    /// Returns the secret that signs the account's webhooks. It is generated on first use, and
    /// replaced with `rotate`.
    async fn webhook_secret(&self, account_id: &str, rotate: bool) -> Result<String, StoreError>;

    /// Claims webhooks that are due. Each claim is a new attempt; unless it is settled, the webhook
    /// is due again when `hold` has passed.
    ///
    /// Accounts take turns; of one account the webhook that is due longest comes first. An account,
    /// and a receiver (host and port), never has more than
    /// [`MAX_CONCURRENT_DELIVERIES`](crate::MAX_CONCURRENT_DELIVERIES) active attempts on all
    /// servers of this store together, of which at most
    /// [`MAX_CONCURRENT_RETRIES`](crate::MAX_CONCURRENT_RETRIES) are retries.
    ///
    /// A webhook is due from the moment its audit is finished, in the same transaction. When all
    /// audits of a batch have ended, the last of them has two webhooks, one after the other: see
    /// [`DeliveryEvent`](crate::DeliveryEvent).
    async fn claim_deliveries(
        &self,
        claim: DeliveryClaim,
        now: Timestamp,
    ) -> Result<ClaimedDeliveries, StoreError>;

    /// Records the outcome of an attempt; [`LeaseState::Lost`] if there has been a newer one.
    async fn settle(
        &self,
        delivery: &Delivery,
        outcome: DeliveryOutcome,
    ) -> Result<LeaseState, StoreError>;

    /// Notifies its waiters when a webhook becomes due because its audit was finished, on this
    /// server or another, and when such an event may have been missed. To miss none, enable the
    /// waiter before claiming.
    fn delivery_notify(&self) -> &Notify;

    async fn delivery_depth(&self) -> Result<DeliveryDepth, StoreError>;

    /// Deletes up to `limit` finished audits beyond their retention, with their reports and
    /// webhooks, and expired idempotency records and shared links. Repeat it while the result is
    /// not empty: the last call also deletes batches without audits.
    async fn purge(
        &self,
        retention: Retention,
        now: Timestamp,
        limit: u32,
    ) -> Result<PurgeResult, StoreError>;

    /// The progress of the running audits of all servers on this store.
    fn progress(&self) -> &AuditProgress;

    /// The rate limits shared by all servers on this store. `None` if only one server can use the
    /// store; it then counts in memory.
    fn shared_limits(&self) -> Option<&dyn SharedLimits> {
        None
    }

    /// The latency of reads and writes since the store was opened.
    fn latency(&self) -> StoreLatency;

    /// Fails when the store is unavailable; for readiness probes.
    async fn ping(&self) -> Result<(), StoreError>;
}
