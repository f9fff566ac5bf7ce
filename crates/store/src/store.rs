use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::{
    Acceptance, Account, AccountSummary, AuditFilter, AuditPage, AuditProgress, AuditStatus,
    AuditSummary, Batch, ClaimedDeliveries, Delivery, DeliveryClaim, DeliveryDepth,
    DeliveryOutcome, FinishedAudit, Hold, KeyDigest, KeyRecord, Lease, LeaseScope, ListCursor,
    PurgeResult, QueueDepth, QueuedAudit, ReleaseReason, Retention, SharedLimits, StoreLatency,
    StoredReport, Submission, Timestamp, UnsummarizedAudit,
};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("no such {0}")]
    NotFound(&'static str),
    #[error("this {0} is in use already")]
    InUse(&'static str),
    /// Nothing was leased: see [`crate::SlotLimit`].
    #[error("all {0} slots are in use")]
    SlotsInUse(u32),
    #[error("the store was written by a newer version (schema {found}, this one knows {known})")]
    NewerSchema { found: i64, known: i64 },
    /// Nothing was done, or nothing of it counts.
    #[error("{0}")]
    Refused(String),
    #[error("the store failed: {0}")]
    Backend(String),
}

/// Accounts, keys, credits, audits and the queue, kept so that a crash at any moment loses nothing.
///
/// Every method is one transaction, and an answer means that it is on disk. A write whose future is
/// dropped may still happen: await what must be known, above all a [`Store::lease`], which otherwise
/// is held by nobody until it expires. Times are passed in. Implementations must pass the conformance
/// suite in `tests/conformance.rs`.
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

    /// Idempotent: a second revocation keeps the first's time.
    async fn revoke_key(&self, key_id: &str, now: Timestamp) -> Result<(), StoreError>;

    /// Returns the new balance. A negative amount takes what is there and never brings a balance
    /// below zero; zero only asks.
    async fn add_credits(
        &self,
        account_id: &str,
        amount: i64,
        now: Timestamp,
    ) -> Result<i64, StoreError>;

    /// Takes the credits and queues the audits, all of them, or does nothing. An idempotency key that
    /// is remembered is answered first, whatever the balance; then the number of failed and of unfinished
    /// audits is looked at, then the credits. An id that is already in use is a [`StoreError::Backend`].
    async fn submit(&self, submission: Submission) -> Result<Acceptance, StoreError>;

    /// By tracking id; another account's audit is not found.
    async fn status(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<AuditStatus>, StoreError>;

    /// As [`Store::status`], but waits up to `at_most` for the audit to be completed. One that another
    /// process completes meanwhile may be noticed no earlier than after `at_most`.
    async fn wait_for_completion(
        &self,
        account_id: &str,
        tracking_id: &str,
        at_most: Duration,
    ) -> Result<Option<AuditStatus>, StoreError>;

    /// The account's audits, newest first, `limit` at most, beginning after a [`ListCursor`]. Audits
    /// accepted or deleted between two pages neither repeat nor hide another.
    async fn audits(
        &self,
        account_id: &str,
        filter: AuditFilter,
        after: Option<ListCursor>,
        limit: u32,
    ) -> Result<AuditPage, StoreError>;

    /// Another account's batch is not found.
    async fn batch(&self, account_id: &str, batch_id: &str) -> Result<Option<Batch>, StoreError>;

    /// Deletes a completed audit with its report; whether there was one. What it cost stays in the
    /// ledger.
    async fn delete_audit(&self, account_id: &str, audit_id: &str) -> Result<bool, StoreError>;

    /// By audit id, once completed; another account's report is not found.
    async fn report(
        &self,
        account_id: &str,
        audit_id: &str,
    ) -> Result<Option<StoredReport>, StoreError>;

    /// Takes an audit whose lease has expired (`expires_at <= now`), which counts as a fault of its
    /// last attempt; else one that waits. Single starts go before the audits of batches (but see
    /// [`crate::MAX_INTERACTIVE_IN_A_ROW`]), of those the account that was served longest ago, and of
    /// an account those with the fewest faults, of them the oldest by order of acceptance. Every lease is a new attempt, and only the
    /// newest attempt can still change the audit.
    ///
    /// Only audits of the seat's locations are taken. Where the seat's slots are all in use, whether or
    /// not an audit waits, that is a [`StoreError::SlotsInUse`]: of two servers that lease at once,
    /// neither exceeds the bound. Check [`Lease::is_exhausted`] before any work.
    async fn lease(
        &self,
        seat: &LeaseScope,
        now: Timestamp,
        lasting: Duration,
    ) -> Result<Option<Lease>, StoreError>;

    /// Returns when an audit may be waiting for the seat, or after `at_most`: callers then try to
    /// lease again.
    ///
    /// An audit accepted, handed back or recovered through this store wakes every waiter. One that
    /// came between a caller's empty-handed `lease` and this call is not missed: it returns at once
    /// while any audit waits that the seat may take. What happens in other processes after that, and leases that expire,
    /// are found by asking again after `at_most`.
    async fn wait_for_work(&self, seat: &LeaseScope, at_most: Duration);

    /// Prolongs a lease that is still held; also one that has expired, if nobody has taken over. An `until` that is not the
    /// lease's own says that somebody has it: see [`ReleaseReason::Unconfirmed`].
    async fn heartbeat(&self, lease: &Lease, until: Timestamp) -> Result<Hold, StoreError>;

    /// Keeps the report, completes the audit, ends the lease and, where there are no measurements,
    /// gives the credit back: all or nothing, and only for the newest attempt.
    async fn finish(&self, lease: &Lease, finished: FinishedAudit) -> Result<Hold, StoreError>;

    /// Returns completed audits that have a report and no summary, `at_most` of them.
    async fn unsummarized(&self, at_most: u32) -> Result<Vec<UnsummarizedAudit>, StoreError>;

    /// Adds the summary of a completed audit, unless it has one.
    async fn store_summary(
        &self,
        tracking_id: &str,
        summary: AuditSummary,
    ) -> Result<(), StoreError>;

    /// Puts the audit back where it stood among those of its account. [`ReleaseReason::Fault`] counts towards
    /// [`crate::MAX_FAULTS`], and lets those go first that have fewer.
    async fn release(&self, lease: &Lease, why: ReleaseReason) -> Result<Hold, StoreError>;

    /// Puts back every audit leased by an owner whose name starts with `owner_prefix`: for a
    /// process that starts and knows that its predecessor is dead. Counts as a fault of each, as whoever
    /// is stopped in order hands back what it holds. Returns how many there were.
    async fn recover(&self, owner_prefix: &str) -> Result<u64, StoreError>;

    async fn queue_depth(&self) -> Result<QueueDepth, StoreError>;

    /// When the audit that has waited longest was accepted.
    async fn waiting_since(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Unfinished audits by order of acceptance, `at_most` of them.
    async fn queue(&self, at_most: u32) -> Result<Vec<QueuedAudit>, StoreError>;

    async fn accounts(&self) -> Result<Vec<AccountSummary>, StoreError>;

    /// The secret that the account's webhooks are signed with; drawn when first asked for, and anew
    /// with `rotate`.
    async fn webhook_secret(&self, account_id: &str, rotate: bool) -> Result<String, StoreError>;

    /// Claims webhooks that are due. Each claim is a new attempt; unless it is settled, the webhook is
    /// due again when `hold` has passed.
    ///
    /// Accounts take turns; of one account the webhook that is due longest comes first. An account,
    /// and a receiver (host and port), never has more than
    /// [`MAX_CONCURRENT_DELIVERIES`](crate::MAX_CONCURRENT_DELIVERIES) attempts under way at all servers on this
    /// store together, and never more than [`MAX_CONCURRENT_RETRIES`](crate::MAX_CONCURRENT_RETRIES) of these are
    /// retries.
    ///
    /// A webhook is due from the moment its audit is finished, in the same transaction.
    async fn claim_deliveries(
        &self,
        claim: DeliveryClaim,
        now: Timestamp,
    ) -> Result<ClaimedDeliveries, StoreError>;

    /// Says what became of an attempt; [`Hold::Lost`] when there has been another since.
    async fn settle(
        &self,
        delivery: &Delivery,
        settled: DeliveryOutcome,
    ) -> Result<Hold, StoreError>;

    /// Notifies its waiters when a webhook falls due because its audit was finished, at this server or
    /// another, and when that may have gone unnoticed. To miss none, enable the waiter before claiming.
    fn delivery_notify(&self) -> &Notify;

    async fn delivery_depth(&self) -> Result<DeliveryDepth, StoreError>;

    /// Deletes finished audits that need not be kept, `at_most` of them, with their reports and
    /// webhooks; also remembered replies and shared links that are over. To be repeated while anything is
    /// forgotten.
    async fn purge(
        &self,
        retention: Retention,
        now: Timestamp,
        at_most: u32,
    ) -> Result<PurgeResult, StoreError>;

    /// How far running audits are, wherever on this store they run.
    fn progress(&self) -> &AuditProgress;

    /// The limits that other servers on this store keep as well. `None` where one server has the store for itself, which
    /// then counts in memory.
    fn shared_limits(&self) -> Option<&dyn SharedLimits> {
        None
    }

    /// How long reads and writes have taken since the store was opened.
    fn latency(&self) -> StoreLatency;

    /// Fails when the store cannot answer; for readiness probes.
    async fn ping(&self) -> Result<(), StoreError>;
}
