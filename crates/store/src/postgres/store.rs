//! The store's methods: what each of them asks is in the files beside this one.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::bells::Rings;
use super::leaser::Request;
use super::queue::Attempt;
use super::{PostgresStore, accounts, audits, deliveries, lists, queue, retention, to_its_end};
use crate::{
    ACCOUNT_ID_LENGTH, Acceptance, Account, AccountSummary, AuditFilter, AuditPage, AuditProgress,
    AuditState, AuditStatus, AuditSummary, Batch, ClaimedDeliveries, Delivery, DeliveryClaim,
    DeliveryDepth, DeliveryOutcome, FinishedAudit, Hold, KeyDigest, KeyRecord, Lease, LeaseScope,
    ListCursor, PurgeResult, QueueDepth, QueuedAudit, ReleaseReason, Retention, SharedLimits,
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
        self.write(Rings::Nobody, move |db| {
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
        self.write(Rings::Nobody, move |db| {
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
        self.write(Rings::Nobody, move |db| {
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
        self.write(Rings::Nobody, move |db| {
            Box::pin(async move { accounts::add_credits(db, &account_id, amount, now).await })
        })
        .await
    }

    async fn submit(&self, submission: Submission) -> Result<Acceptance, StoreError> {
        self.submitter.submit(submission).await
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
        at_most: Duration,
    ) -> Result<Option<AuditStatus>, StoreError> {
        let deadline = Instant::now() + at_most;
        let watch = self.bells.watch(tracking_id);
        loop {
            let mut finish = pin!(watch.finish.notified());
            // First listen, then look, as in `wait_for_work`.
            finish.as_mut().enable();
            let status = self.status(account_id, tracking_id).await?;
            let is_over = status
                .as_ref()
                .is_none_or(|status| status.state == AuditState::Completed);
            if is_over || Instant::now() >= deadline {
                return Ok(status);
            }
            let next_look = deadline.min(Instant::now() + self.bells.look_every());
            let _ = timeout_at(next_look, finish).await;
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

    async fn batch(&self, account_id: &str, batch_id: &str) -> Result<Option<Batch>, StoreError> {
        let (account_id, batch_id) = (account_id.to_owned(), batch_id.to_owned());
        self.read(move |db| Box::pin(async move { lists::batch(db, &account_id, &batch_id).await }))
            .await
    }

    async fn delete_audit(&self, account_id: &str, audit_id: &str) -> Result<bool, StoreError> {
        let (account_id, audit_id) = (account_id.to_owned(), audit_id.to_owned());
        self.write(Rings::Nobody, move |db| {
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
        seat: &LeaseScope,
        now: Timestamp,
        lasting: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let request = Request {
            seat: seat.clone(),
            now,
            expires_at: now.plus(lasting),
            reply,
        };
        let stopped = || StoreError::Backend("leasing has stopped".to_owned());
        self.leases.send(request).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    async fn wait_for_work(&self, seat: &LeaseScope, at_most: Duration) {
        let arrives = async {
            let mut is_due = false;
            loop {
                let mut arrival = pin!(self.bells.arrivals.notified());
                // First listen, then look: what is committed before the look is seen by it, what is
                // committed after it is heard. The other way round, an audit accepted in between would
                // wake nobody.
                arrival.as_mut().enable();
                if self.waits_for(seat, is_due).await {
                    return;
                }
                is_due = timeout(self.bells.look_every(), arrival).await.is_err();
            }
        };
        // Past `at_most` there is nothing to report: callers try to lease either way.
        let _ = timeout(at_most, arrives).await;
    }

    async fn heartbeat(&self, lease: &Lease, until: Timestamp) -> Result<Hold, StoreError> {
        let held = Attempt::from(lease);
        self.write_at_once(move |db| {
            Box::pin(async move { queue::heartbeat(db, &held, until).await })
        })
        .await
    }

    async fn finish(&self, lease: &Lease, finished: FinishedAudit) -> Result<Hold, StoreError> {
        let held = Attempt::from(lease);
        let tracking_id = held.tracking_id.clone();
        let and_leasers = self.running_per_account.is_some();
        let (connections, bells) = (Arc::clone(&self.connections), Arc::clone(&self.bells));
        to_its_end(async move {
            let done = connections.write_at_once(move |db| {
                Box::pin(async move { queue::finish(db, &held, &finished).await })
            });
            let Some(done) = done.await? else {
                return Ok(Hold::Lost);
            };
            bells.ring(&Rings::Finished {
                tracking_id,
                and_leasers,
                and_deliverers: done.has_webhook,
            });
            Ok(Hold::Held)
        })
        .await
    }

    async fn unsummarized(&self, at_most: u32) -> Result<Vec<UnsummarizedAudit>, StoreError> {
        self.read(move |db| Box::pin(async move { queue::unsummarized(db, at_most).await }))
            .await
    }

    async fn store_summary(
        &self,
        tracking_id: &str,
        summary: AuditSummary,
    ) -> Result<(), StoreError> {
        let tracking_id = tracking_id.to_owned();
        self.write_at_once(move |db| {
            Box::pin(async move { queue::store_summary(db, &tracking_id, &summary).await })
        })
        .await
    }

    async fn release(&self, lease: &Lease, why: ReleaseReason) -> Result<Hold, StoreError> {
        let held = Attempt::from(lease);
        self.write(Rings::Leasers, move |db| {
            Box::pin(async move { queue::release(db, &held, why).await })
        })
        .await
    }

    async fn recover(&self, owner_prefix: &str) -> Result<u64, StoreError> {
        let owner_prefix = owner_prefix.to_owned();
        self.write(Rings::Leasers, move |db| {
            Box::pin(async move { queue::recover(db, &owner_prefix).await })
        })
        .await
    }

    async fn queue_depth(&self) -> Result<QueueDepth, StoreError> {
        self.read(|db| Box::pin(queue::depth(db))).await
    }

    async fn waiting_since(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(|db| Box::pin(queue::waiting_since(db))).await
    }

    async fn queue(&self, at_most: u32) -> Result<Vec<QueuedAudit>, StoreError> {
        self.read(move |db| Box::pin(queue::unfinished(db, at_most)))
            .await
    }

    async fn accounts(&self) -> Result<Vec<AccountSummary>, StoreError> {
        self.read(|db| Box::pin(accounts::summaries(db))).await
    }

    async fn webhook_secret(&self, account_id: &str, rotate: bool) -> Result<String, StoreError> {
        let fresh = format!("whsec_{}", random(WEBHOOK_SECRET_LENGTH)?);
        let account_id = account_id.to_owned();
        self.write(Rings::Nobody, move |db| {
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
            .write(Rings::Nobody, move |db| {
                Box::pin(async move { deliveries::claim(db, &claim, now).await })
            })
            .await?;
        // While nothing is heard of other servers, what they finish is looked for more often.
        let look_by = now.plus(self.bells.look_every());
        let next = claimed.next_claim_at.unwrap_or(look_by);
        claimed.next_claim_at = Some(next.min(look_by));
        Ok(claimed)
    }

    async fn settle(
        &self,
        delivery: &Delivery,
        settled: DeliveryOutcome,
    ) -> Result<Hold, StoreError> {
        let (tracking_id, attempt) = (delivery.audit.tracking_id.clone(), delivery.attempt);
        self.write_at_once(move |db| {
            Box::pin(async move { deliveries::settle(db, &tracking_id, attempt, &settled).await })
        })
        .await
    }

    fn delivery_notify(&self) -> &Notify {
        &self.bells.deliveries
    }

    async fn delivery_depth(&self) -> Result<DeliveryDepth, StoreError> {
        self.read(|db| Box::pin(deliveries::depth(db))).await
    }

    async fn purge(
        &self,
        retention: Retention,
        now: Timestamp,
        at_most: u32,
    ) -> Result<PurgeResult, StoreError> {
        self.write(Rings::Nobody, move |db| {
            Box::pin(async move { retention::purge(db, &retention, now, at_most).await })
        })
        .await
    }

    fn progress(&self) -> &AuditProgress {
        &self.bells.progress
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
