//! Implements [`Store`]. The SQL is in the other modules of this directory.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::leaser::WaitingLease;
use super::notifier::Wakeup;
use super::queue::LeaseFence;
use super::{
    PostgresStore, accounts, audits, deliveries, lanes, lists, queue, retention, run_to_end,
};
use crate::types::ended_options_column;
use crate::{
    ACCOUNT_ID_LENGTH, Acceptance, Account, AccountSummary, AuditEntry, AuditFilter, AuditPage,
    AuditProgress, AuditState, AuditStatus, AuditSummary, Batch, Cancellation, ClaimedDeliveries,
    Delivery, DeliveryClaim, DeliveryDepth, DeliveryOutcome, FinishedAudit, IdempotencyRecord,
    KeyDigest, KeyRecord, Lease, LeaseScope, LeaseState, ListCursor, ProcessSet, PurgeResult,
    QueueDepth, QueuePosition, QueuedAudit, ReleaseReason, ReplayAudit, Retention, SharedLimits,
    Store, StoreError, StoreLatency, StoredReport, Submission, Timestamp, UnsummarizedAudit,
    WEBHOOK_SECRET_LENGTH, random,
};

#[async_trait]
impl Store for PostgresStore {
    async fn create_account(
        &self,
        name: &str,
        credits: u32,
        now: Timestamp,
    ) -> Result<Account, StoreError> {
        let account = Account {
            id: random(ACCOUNT_ID_LENGTH)?,
            name: name.to_owned(),
            credits: credits.into(),
            created_at: now,
        };
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                accounts::create(db, &account).await?;
                Ok(account)
            })
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
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                accounts::add_key(db, &account_id, &key_id, digest, expires_at, now).await
            })
        })
        .await
    }

    async fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.read(|db| Box::pin(accounts::keys(db))).await
    }

    async fn key(&self, key_id: &str) -> Result<Option<KeyRecord>, StoreError> {
        let key_id = key_id.to_owned();
        self.read(move |db| Box::pin(async move { accounts::key(db, &key_id).await }))
            .await
    }

    async fn revoke_key(&self, key_id: &str, now: Timestamp) -> Result<(), StoreError> {
        let key_id = key_id.to_owned();
        self.write(Wakeup::None, move |db| {
            Box::pin(async move { accounts::revoke_key(db, &key_id, now).await })
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
        self.write(Wakeup::None, move |db| {
            Box::pin(async move { accounts::add_credits(db, &account_id, amount, now).await })
        })
        .await
    }

    async fn submit(&self, submission: Submission) -> Result<Acceptance, StoreError> {
        self.submitter.submit(submission).await
    }

    async fn earlier_acceptance(
        &self,
        account_id: &str,
        record: &IdempotencyRecord,
        now: Timestamp,
    ) -> Result<Option<Acceptance>, StoreError> {
        let (account_id, record) = (account_id.to_owned(), record.clone());
        self.read(move |db| {
            Box::pin(async move { audits::earlier_acceptance(db, &account_id, &record, now).await })
        })
        .await
    }

    async fn status(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<AuditStatus>, StoreError> {
        let (account_id, tracking_id) = (account_id.to_owned(), tracking_id.to_owned());
        self.read(move |db| {
            Box::pin(async move { audits::status(db, &account_id, &tracking_id).await })
        })
        .await
    }

    async fn wait_for_completion(
        &self,
        account_id: &str,
        tracking_id: &str,
        max_wait: Duration,
    ) -> Result<Option<AuditStatus>, StoreError> {
        let deadline = Instant::now() + max_wait;
        let watch = self.notifier.watch(tracking_id);
        loop {
            let mut finish = pin!(watch.finish.notified());
            // Register first, then query, as in `wait_for_work`.
            finish.as_mut().enable();
            let status = self.status(account_id, tracking_id).await?;
            let is_completed = status
                .as_ref()
                .is_none_or(|status| status.state == AuditState::Completed);
            if is_completed || Instant::now() >= deadline {
                return Ok(status);
            }
            let next_poll = deadline.min(Instant::now() + self.notifier.poll_interval());
            let _ = timeout_at(next_poll, finish).await;
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
        self.read(move |db| {
            Box::pin(async move { lists::page(db, &account_id, &filter, after, limit).await })
        })
        .await
    }

    async fn audit(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<AuditEntry>, StoreError> {
        let (account_id, tracking_id) = (account_id.to_owned(), tracking_id.to_owned());
        self.read(move |db| {
            Box::pin(async move { lists::audit(db, &account_id, &tracking_id).await })
        })
        .await
    }

    async fn replays(
        &self,
        account_id: &str,
        audit_id: &str,
        limit: u32,
    ) -> Result<Vec<ReplayAudit>, StoreError> {
        let (account_id, audit_id) = (account_id.to_owned(), audit_id.to_owned());
        self.read(move |db| {
            Box::pin(async move { lists::replays(db, &account_id, &audit_id, limit).await })
        })
        .await
    }

    async fn batch(&self, account_id: &str, batch_id: &str) -> Result<Option<Batch>, StoreError> {
        let (account_id, batch_id) = (account_id.to_owned(), batch_id.to_owned());
        self.read(move |db| Box::pin(async move { lists::batch(db, &account_id, &batch_id).await }))
            .await
    }

    async fn delete_audit(&self, account_id: &str, audit_id: &str) -> Result<bool, StoreError> {
        let (account_id, audit_id) = (account_id.to_owned(), audit_id.to_owned());
        self.write(Wakeup::None, move |db| {
            Box::pin(async move { retention::delete(db, &account_id, &audit_id).await })
        })
        .await
    }

    async fn report(
        &self,
        account_id: &str,
        audit_id: &str,
    ) -> Result<Option<StoredReport>, StoreError> {
        let (account_id, audit_id) = (account_id.to_owned(), audit_id.to_owned());
        self.read(move |db| {
            Box::pin(async move { audits::report(db, &account_id, &audit_id).await })
        })
        .await
    }

    async fn lease(
        &self,
        scope: &LeaseScope,
        now: Timestamp,
        duration: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let (reply, result) = oneshot::channel();
        let request = WaitingLease {
            scope: scope.clone(),
            now,
            expires_at: now.plus(duration),
            reply,
        };
        let stopped = || StoreError::Backend("the leasing task has stopped".to_owned());
        self.leases.send(request).map_err(|_| stopped())?;
        result.await.map_err(|_| stopped())?
    }

    async fn wait_for_work(&self, scope: &LeaseScope, max_wait: Duration) {
        let wait = async {
            let mut must_query = false;
            loop {
                let mut arrival = pin!(self.notifier.arrivals.notified());
                // Register first, then query: the query finds what was committed before it, and the
                // notification reports what is committed later. In the other order, an audit
                // accepted in between would wake nobody.
                arrival.as_mut().enable();
                if self.may_have_work(scope, must_query).await {
                    return;
                }
                must_query = timeout(self.notifier.poll_interval(), arrival)
                    .await
                    .is_err();
            }
        };
        // A timeout is not reported: callers try to lease either way.
        let _ = timeout(max_wait, wait).await;
    }

    async fn heartbeat(&self, lease: &Lease, until: Timestamp) -> Result<LeaseState, StoreError> {
        let fence = LeaseFence::from(lease);
        self.write_statement(move |db| {
            Box::pin(async move { queue::heartbeat(db, &fence, until).await })
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
        let tracking_id = fence.tracking_id.clone();
        let and_leasers = self.running_per_account.is_some();
        let (connections, notifier) = (Arc::clone(&self.connections), Arc::clone(&self.notifier));
        run_to_end(async move {
            let result = connections
                .write_statement(move |db| {
                    Box::pin(async move {
                        queue::finish(db, &fence, &finished, options.as_deref()).await
                    })
                })
                .await?;
            let Some(result) = result else {
                return Ok(LeaseState::Lost);
            };
            notifier.notify(&Wakeup::Finished {
                tracking_id,
                and_leasers,
                and_deliverers: result.has_webhook,
            });
            Ok(LeaseState::Held)
        })
        .await
    }

    async fn cancel(&self, cancellation: Cancellation) -> Result<Vec<String>, StoreError> {
        let and_leasers = self.running_per_account.is_some();
        let (connections, notifier) = (Arc::clone(&self.connections), Arc::clone(&self.notifier));
        run_to_end(async move {
            let cancelled = connections
                .write_statement(move |db| {
                    Box::pin(async move { queue::cancel(db, &cancellation).await })
                })
                .await?;
            for tracking_id in &cancelled {
                notifier.notify(&Wakeup::Finished {
                    tracking_id: tracking_id.clone(),
                    and_leasers,
                    and_deliverers: true,
                });
            }
            Ok(cancelled)
        })
        .await
    }

    async fn unsummarized(&self, limit: u32) -> Result<Vec<UnsummarizedAudit>, StoreError> {
        self.read(move |db| Box::pin(async move { queue::unsummarized(db, limit).await }))
            .await
    }

    async fn store_summary(
        &self,
        tracking_id: &str,
        summary: AuditSummary,
    ) -> Result<(), StoreError> {
        let tracking_id = tracking_id.to_owned();
        self.write_statement(move |db| {
            Box::pin(async move { queue::store_summary(db, &tracking_id, &summary).await })
        })
        .await
    }

    async fn release(
        &self,
        lease: &Lease,
        reason: ReleaseReason,
    ) -> Result<LeaseState, StoreError> {
        let fence = LeaseFence::from(lease);
        self.write(Wakeup::Leasers, move |db| {
            Box::pin(async move { queue::release(db, &fence, reason).await })
        })
        .await
    }

    async fn recover(&self, processes: &ProcessSet) -> Result<u64, StoreError> {
        let processes = processes.clone();
        self.write(Wakeup::Leasers, move |db| {
            Box::pin(async move { queue::recover(db, &processes).await })
        })
        .await
    }

    async fn queue_depth(&self) -> Result<QueueDepth, StoreError> {
        self.read(|db| Box::pin(queue::depth(db))).await
    }

    async fn queue_position(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<QueuePosition>, StoreError> {
        let (account_id, tracking_id) = (account_id.to_owned(), tracking_id.to_owned());
        self.read(move |db| {
            Box::pin(async move { lanes::position_of(db, &account_id, &tracking_id).await })
        })
        .await
    }

    async fn waiting_since(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(|db| Box::pin(queue::waiting_since(db))).await
    }

    async fn queue(&self, limit: u32) -> Result<Vec<QueuedAudit>, StoreError> {
        self.read(move |db| Box::pin(queue::unfinished(db, limit)))
            .await
    }

    async fn accounts(&self) -> Result<Vec<AccountSummary>, StoreError> {
        self.read(|db| Box::pin(accounts::summaries(db))).await
    }

    async fn webhook_secret(&self, account_id: &str, rotate: bool) -> Result<String, StoreError> {
        let fresh = format!("whsec_{}", random(WEBHOOK_SECRET_LENGTH)?);
        let account_id = account_id.to_owned();
        self.write(Wakeup::None, move |db| {
            Box::pin(async move { accounts::webhook_secret(db, &account_id, rotate, &fresh).await })
        })
        .await
    }

    async fn claim_deliveries(
        &self,
        claim: DeliveryClaim,
        now: Timestamp,
    ) -> Result<ClaimedDeliveries, StoreError> {
        let mut claimed = self
            .write(Wakeup::None, move |db| {
                Box::pin(async move { deliveries::claim(db, &claim, now).await })
            })
            .await?;
        // The interval is shorter while notifications of other servers are not received.
        let next_poll = now.plus(self.notifier.poll_interval());
        let next = claimed.next_claim_at.unwrap_or(next_poll);
        claimed.next_claim_at = Some(next.min(next_poll));
        Ok(claimed)
    }

    async fn settle(
        &self,
        delivery: &Delivery,
        outcome: DeliveryOutcome,
    ) -> Result<LeaseState, StoreError> {
        let (tracking_id, attempt) = (delivery.audit.tracking_id.clone(), delivery.attempt);
        let is_batch = delivery.event.is_batch();
        self.write_statement(move |db| {
            Box::pin(async move {
                deliveries::settle(db, &tracking_id, is_batch, attempt, &outcome).await
            })
        })
        .await
    }

    fn delivery_notify(&self) -> &Notify {
        &self.notifier.deliveries
    }

    async fn delivery_depth(&self) -> Result<DeliveryDepth, StoreError> {
        self.read(|db| Box::pin(deliveries::depth(db))).await
    }

    async fn purge(
        &self,
        retention: Retention,
        now: Timestamp,
        limit: u32,
    ) -> Result<PurgeResult, StoreError> {
        self.write(Wakeup::None, move |db| {
            Box::pin(async move { retention::purge(db, &retention, now, limit).await })
        })
        .await
    }

    fn progress(&self) -> &AuditProgress {
        &self.notifier.progress
    }

    fn shared_limits(&self) -> Option<&dyn SharedLimits> {
        Some(self)
    }

    fn latency(&self) -> StoreLatency {
        StoreLatency {
            reads: self.connections.reads.counts(),
            writes: self.connections.writes.counts(),
        }
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.read(|db| {
            Box::pin(async move {
                db.batch_execute("SELECT 1").await?;
                Ok(())
            })
        })
        .await
    }
}
