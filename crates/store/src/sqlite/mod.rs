//! A store in one SQLite file, which several processes on one machine can use.

mod accounts;
mod agents;
mod audits;
mod deliveries;
mod lanes;
mod lists;
mod open;
mod pages;
mod queue;
mod readers;
mod retention;
mod secrets;
mod writer;

pub(crate) use self::open::writer as open_writer;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use self::queue::LeaseFence;
use self::readers::Readers;
use self::writer::{Wakeup, Writer};
use crate::types::ended_options_column;
use crate::{
    ACCOUNT_ID_LENGTH, Acceptance, Account, AccountSummary, AuditEntry, AuditFilter, AuditPage,
    AuditProgress, AuditState, AuditStatus, AuditSummary, Batch, Cancellation, ClaimedDeliveries,
    Delivery, DeliveryClaim, DeliveryDepth, DeliveryOutcome, FinishedAudit, IdempotencyRecord,
    KeyDigest, KeyRecord, Lease, LeaseScope, LeaseState, LedgerEntry, ListCursor, ProcessSet,
    PurgeResult, QueueDepth, QueuePosition, QueuedAudit, ReleaseReason, ReplayAudit, Retention,
    Store, StoreError, StoreLatency, StoredReport, Submission, Timestamp, UnsummarizedAudit,
    WEBHOOK_SECRET_LENGTH, random,
};

/// A store in a SQLite file in WAL mode, which syncs every commit to disk.
///
/// Other processes may open the same file at the same time. Dropping the store completes pending
/// writes, then closes the file.
pub struct SqliteStore {
    // Dropped before the writer: the last connection to close empties the write-ahead log.
    readers: Readers,
    writer: Writer,
    progress: AuditProgress,
    running_per_account: Option<u32>,
}

impl SqliteStore {
    /// Opens the file. If it is missing, it is created with its directory, private to the owner.
    ///
    /// Blocks the thread, for use at start-up.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open::writer(path)?;
        Ok(Self {
            readers: Readers::open(path)?,
            writer: Writer::start(connection)?,
            progress: AuditProgress::default(),
            running_per_account: None,
        })
    }

    /// Sets the maximum number of leases of an account at a time.
    pub fn running_per_account(mut self, limit: Option<u32>) -> Self {
        self.running_per_account = limit;
        self
    }

    /// Returns the tasks to wake after the end of an audit: an account at its limit may get its
    /// next lease.
    fn wakeup_after_end(&self) -> Wakeup {
        match self.running_per_account {
            None => Wakeup::Watchers,
            Some(_) => Wakeup::All,
        }
    }

    /// Returns every change of an account's balance, oldest first. Their sum is the balance.
    pub async fn ledger(&self, account_id: &str) -> Result<Vec<LedgerEntry>, StoreError> {
        let account_id = account_id.to_owned();
        self.readers
            .blocking(move |connection| accounts::ledger(connection, &account_id))
            .await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create_account(
        &self,
        name: &str,
        credits: u32,
        now: Timestamp,
    ) -> Result<Account, StoreError> {
        let id = random(ACCOUNT_ID_LENGTH)?;
        let account = Account {
            id,
            name: name.to_owned(),
            credits: credits.into(),
            created_at: now,
        };
        self.writer
            .write(Wakeup::None, move |connection| {
                accounts::create(connection, &account)?;
                Ok(account)
            })
            .await
    }

    async fn add_key(
        &self,
        account_id: &str,
        key_id: &str,
        digest: KeyDigest,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (account_id, key_id) = (account_id.to_owned(), key_id.to_owned());
        self.writer
            .write(Wakeup::None, move |connection| {
                accounts::add_key(connection, &account_id, &key_id, digest, expires_at, now)
            })
            .await
    }

    async fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.readers.blocking(accounts::keys).await
    }

    async fn key(&self, key_id: &str) -> Result<Option<KeyRecord>, StoreError> {
        let key_id = key_id.to_owned();
        self.readers
            .quick(move |connection| accounts::key(connection, &key_id))
            .await
    }

    async fn revoke_key(&self, key_id: &str, now: Timestamp) -> Result<(), StoreError> {
        let key_id = key_id.to_owned();
        self.writer
            .write(Wakeup::None, move |connection| {
                accounts::revoke_key(connection, &key_id, now)
            })
            .await
    }

    async fn add_credits(
        &self,
        account_id: &str,
        amount: i64,
        now: Timestamp,
    ) -> Result<i64, StoreError> {
        let account_id = account_id.to_owned();
        self.writer
            .write(Wakeup::None, move |connection| {
                accounts::add_credits(connection, &account_id, amount, now)
            })
            .await
    }

    async fn submit(&self, submission: Submission) -> Result<Acceptance, StoreError> {
        self.writer
            .write(Wakeup::Leasers, move |connection| {
                audits::submit(connection, &submission)
            })
            .await
    }

    async fn earlier_acceptance(
        &self,
        account_id: &str,
        record: &IdempotencyRecord,
        now: Timestamp,
    ) -> Result<Option<Acceptance>, StoreError> {
        let (account_id, record) = (account_id.to_owned(), record.clone());
        self.readers
            .quick(move |connection| {
                audits::earlier_acceptance(connection, &account_id, &record, now)
            })
            .await
    }

    async fn status(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<AuditStatus>, StoreError> {
        let (account_id, tracking_id) = (account_id.to_owned(), tracking_id.to_owned());
        self.readers
            .quick(move |connection| audits::status(connection, &account_id, &tracking_id))
            .await
    }

    async fn wait_for_completion(
        &self,
        account_id: &str,
        tracking_id: &str,
        max_wait: Duration,
    ) -> Result<Option<AuditStatus>, StoreError> {
        let deadline = Instant::now() + max_wait;
        loop {
            let mut finish = std::pin::pin!(self.writer.notifier().finishes.notified());
            // Register first, then query, as in `wait_for_work`.
            finish.as_mut().enable();
            let status = self.status(account_id, tracking_id).await?;
            let is_completed = status
                .as_ref()
                .is_none_or(|status| status.state == AuditState::Completed);
            if is_completed || timeout_at(deadline, finish).await.is_err() {
                return Ok(status);
            }
        }
    }

    async fn audits(
        &self,
        account_id: &str,
        filter: AuditFilter,
        after: Option<ListCursor>,
        limit: u32,
    ) -> Result<AuditPage, StoreError> {
        let account_id = account_id.to_owned();
        let is_quick = lists::is_quick(&filter);
        let page = move |connection: &rusqlite::Connection| {
            lists::page(connection, &account_id, &filter, after, limit)
        };
        if is_quick {
            self.readers.quick(page).await
        } else {
            let page = move |connection: &rusqlite::Connection| Ok(page(connection)?);
            self.readers.blocking(page).await
        }
    }

    async fn audit(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<AuditEntry>, StoreError> {
        let (account_id, tracking_id) = (account_id.to_owned(), tracking_id.to_owned());
        self.readers
            .quick(move |connection| lists::audit(connection, &account_id, &tracking_id))
            .await
    }

    async fn replays(
        &self,
        account_id: &str,
        audit_id: &str,
        limit: u32,
    ) -> Result<Vec<ReplayAudit>, StoreError> {
        let (account_id, audit_id) = (account_id.to_owned(), audit_id.to_owned());
        self.readers
            .blocking(move |connection| lists::replays(connection, &account_id, &audit_id, limit))
            .await
    }

    async fn batch(&self, account_id: &str, batch_id: &str) -> Result<Option<Batch>, StoreError> {
        let (account_id, batch_id) = (account_id.to_owned(), batch_id.to_owned());
        self.readers
            .blocking(move |connection| lists::batch(connection, &account_id, &batch_id))
            .await
    }

    async fn delete_audit(&self, account_id: &str, audit_id: &str) -> Result<bool, StoreError> {
        let (account_id, audit_id) = (account_id.to_owned(), audit_id.to_owned());
        self.writer
            .write(Wakeup::None, move |connection| {
                retention::delete(connection, &account_id, &audit_id)
            })
            .await
    }

    async fn report(
        &self,
        account_id: &str,
        audit_id: &str,
    ) -> Result<Option<StoredReport>, StoreError> {
        let (account_id, audit_id) = (account_id.to_owned(), audit_id.to_owned());
        self.readers
            .blocking(move |connection| audits::report(connection, &account_id, &audit_id))
            .await
    }

    async fn lease(
        &self,
        scope: &LeaseScope,
        now: Timestamp,
        duration: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let (scope, per_account) = (scope.clone(), self.running_per_account);
        self.writer
            .write(Wakeup::None, move |connection| {
                queue::lease(connection, &scope, per_account, now, now.plus(duration))
            })
            .await
    }

    async fn wait_for_work(&self, scope: &LeaseScope, max_wait: Duration) {
        let (scope, per_account) = (scope.clone(), self.running_per_account);
        let wait = async {
            let mut arrival = std::pin::pin!(self.writer.notifier().arrivals.notified());
            // Register first, then query: the query finds what was committed before it, and the
            // notification reports what is committed later. In the other order, an audit accepted
            // in between would wake nobody.
            arrival.as_mut().enable();
            let query = move |connection: &_| lanes::has_waiting(connection, &scope, per_account);
            if !matches!(self.readers.quick(query).await, Ok(true)) {
                arrival.await;
            }
        };
        // A timeout is not reported: callers try to lease either way.
        let _ = timeout(max_wait, wait).await;
    }

    async fn heartbeat(&self, lease: &Lease, until: Timestamp) -> Result<LeaseState, StoreError> {
        let fence = LeaseFence::from(lease);
        self.writer
            .write(Wakeup::None, move |connection| {
                queue::heartbeat(connection, &fence, until)
            })
            .await
    }

    async fn finish(
        &self,
        lease: &Lease,
        finished: FinishedAudit,
    ) -> Result<LeaseState, StoreError> {
        let fence = LeaseFence::from(lease);
        let options = ended_options_column(&lease.order)?;
        self.writer
            .write(self.wakeup_after_end(), move |connection| {
                queue::finish(connection, &fence, &finished, options.as_deref())
            })
            .await
    }

    async fn cancel(&self, cancellation: Cancellation) -> Result<Vec<String>, StoreError> {
        self.writer
            .write(self.wakeup_after_end(), move |connection| {
                queue::cancel(connection, &cancellation)
            })
            .await
    }

    async fn unsummarized(&self, limit: u32) -> Result<Vec<UnsummarizedAudit>, StoreError> {
        self.readers
            .blocking(move |connection| queue::unsummarized(connection, limit))
            .await
    }

    async fn store_summary(
        &self,
        tracking_id: &str,
        summary: AuditSummary,
    ) -> Result<(), StoreError> {
        let tracking_id = tracking_id.to_owned();
        self.writer
            .write(Wakeup::None, move |connection| {
                queue::store_summary(connection, &tracking_id, &summary)
            })
            .await
    }

    async fn release(
        &self,
        lease: &Lease,
        reason: ReleaseReason,
    ) -> Result<LeaseState, StoreError> {
        let fence = LeaseFence::from(lease);
        self.writer
            .write(Wakeup::Leasers, move |connection| {
                queue::release(connection, &fence, reason)
            })
            .await
    }

    async fn recover(&self, processes: &ProcessSet) -> Result<u64, StoreError> {
        let processes = processes.clone();
        self.writer
            .write(Wakeup::Leasers, move |connection| {
                queue::recover(connection, &processes)
            })
            .await
    }

    async fn queue_depth(&self) -> Result<QueueDepth, StoreError> {
        self.readers.blocking(queue::depth).await
    }

    async fn queue_position(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<QueuePosition>, StoreError> {
        let (account_id, tracking_id) = (account_id.to_owned(), tracking_id.to_owned());
        self.readers
            .blocking(move |connection| lanes::position_of(connection, &account_id, &tracking_id))
            .await
    }

    async fn waiting_since(&self) -> Result<Option<Timestamp>, StoreError> {
        self.readers.blocking(queue::waiting_since).await
    }

    async fn queue(&self, limit: u32) -> Result<Vec<QueuedAudit>, StoreError> {
        self.readers
            .blocking(move |connection| queue::unfinished(connection, limit))
            .await
    }

    async fn accounts(&self) -> Result<Vec<AccountSummary>, StoreError> {
        self.readers.blocking(accounts::summaries).await
    }

    async fn webhook_secret(&self, account_id: &str, rotate: bool) -> Result<String, StoreError> {
        let fresh = format!("whsec_{}", random(WEBHOOK_SECRET_LENGTH)?);
        let account_id = account_id.to_owned();
        self.writer
            .write(Wakeup::None, move |connection| {
                accounts::webhook_secret(connection, &account_id, rotate, &fresh)
            })
            .await
    }

    async fn claim_deliveries(
        &self,
        claim: DeliveryClaim,
        now: Timestamp,
    ) -> Result<ClaimedDeliveries, StoreError> {
        self.writer
            .write(Wakeup::None, move |connection| {
                deliveries::claim(connection, &claim, now)
            })
            .await
    }

    async fn settle(
        &self,
        delivery: &Delivery,
        outcome: DeliveryOutcome,
    ) -> Result<LeaseState, StoreError> {
        let (tracking_id, attempt) = (delivery.audit.tracking_id.clone(), delivery.attempt);
        let is_batch = delivery.event.is_batch();
        self.writer
            .write(Wakeup::None, move |connection| {
                deliveries::settle(connection, &tracking_id, is_batch, attempt, &outcome)
            })
            .await
    }

    fn delivery_notify(&self) -> &Notify {
        &self.writer.notifier().finishes
    }

    async fn delivery_depth(&self) -> Result<DeliveryDepth, StoreError> {
        self.readers.blocking(deliveries::depth).await
    }

    async fn purge(
        &self,
        retention: Retention,
        now: Timestamp,
        limit: u32,
    ) -> Result<PurgeResult, StoreError> {
        self.writer
            .write(Wakeup::None, move |connection| {
                retention::purge(connection, &retention, now, limit)
            })
            .await
    }

    fn progress(&self) -> &AuditProgress {
        &self.progress
    }

    fn latency(&self) -> StoreLatency {
        StoreLatency {
            reads: self.readers.latency.counts(),
            writes: self.writer.latency.counts(),
        }
    }

    async fn ping(&self) -> Result<(), StoreError> {
        // An empty transaction shows that the writer runs and can lock the file; it syncs nothing.
        self.writer.write(Wakeup::None, |_| Ok(())).await
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Backend(error.to_string())
    }
}
