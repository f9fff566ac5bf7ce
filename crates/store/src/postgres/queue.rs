//! Audits from the view of agents: heartbeat, finish, release. Leasing is in `leaser`.

use std::collections::BTreeSet;

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;

use super::connect::{change, row, rows};
use super::{accounts, count, hold, lanes, read_u32};
use crate::types::ended_options_column;
use crate::{
    AuditSummary, Cancellation, CancelledAudit, FinishedAudit, Lease, LeaseOwner, LeaseState,
    ProcessSet, QueueDepth, QueuedAudit, ReleaseReason, ReturnReason, StoreError, Timestamp,
    UnsummarizedAudit,
};

pub(super) async fn heartbeat(
    db: &Object,
    fence: &LeaseFence,
    until: Timestamp,
) -> Result<LeaseState, StoreError> {
    let changed = change(
        db,
        "UPDATE audits SET lease_expires_at = $1
         WHERE tracking_id = $2 AND attempt = $3 AND state = 'running'",
        &[&until.0, &fence.tracking_id, &fence.attempt],
    )
    .await?;
    Ok(hold(changed))
}

/// The result of finishing an audit.
pub(super) struct FinishResult {
    /// Whether a webhook is due.
    pub(super) has_webhook: bool,
}

/// Finishes an audit; `None` if the lease is lost.
pub(super) async fn finish(
    db: &Object,
    fence: &LeaseFence,
    finished: &FinishedAudit,
    options: Option<&str>,
) -> Result<Option<FinishResult>, StoreError> {
    let error = finished.error.as_ref();
    let summary = finished.summary.as_ref();
    let row = row(
        db,
        "WITH done AS (
             UPDATE audits SET state = 'completed', lease_owner = NULL, lease_expires_at = NULL,
                               finished_at = $3, error_code = $4, error_message = $5,
                               lab_data = $7, summary = $8, final_url = $9, options = $10
             WHERE tracking_id = $1 AND attempt = $2 AND state = 'running'
             RETURNING position, account_id, runs, webhook, batch_id
         ), stored AS (
             INSERT INTO reports (position, report) SELECT position, $6 FROM done
         ), counted AS (
             UPDATE batches SET finished = finished + 1 FROM done
             WHERE batches.id = done.batch_id AND done.webhook IS NOT NULL
             RETURNING batches.id, finished >= batches.audits AS is_last
         ), due AS (
             INSERT INTO deliveries (position, account_id, state, due_at, batch_id)
             SELECT position, account_id, 'pending', $3, (SELECT id FROM counted WHERE is_last)
             FROM done WHERE webhook IS NOT NULL
         ), refunded AS (
             UPDATE accounts SET credits = credits + runs FROM done
             WHERE accounts.id = done.account_id AND $4 IS NOT NULL
         ), recorded AS (
             INSERT INTO ledger (account_id, amount, reason, position, at)
             SELECT account_id, runs, 'refund', position, $3 FROM done WHERE $4 IS NOT NULL
         )
         SELECT webhook IS NOT NULL FROM done",
        &[
            &fence.tracking_id,
            &fence.attempt,
            &finished.finished_at.0,
            &error.map(|error| &error.code),
            &error.map(|error| &error.message),
            &finished.report,
            &summary.and_then(|summary| summary.lab_data.as_deref()),
            &summary.map(|summary| &summary.summary),
            &summary.and_then(|summary| summary.final_url.as_deref()),
            &options,
        ],
    )
    .await?;
    let result = |row: Row| {
        Ok(FinishResult {
            has_webhook: row.try_get(0)?,
        })
    };
    row.map(result).transpose()
}

/// Completes audits without measurements, and returns the tracking ids of those that were not
/// completed before. Audits are locked before their account, as in [`finish`].
pub(super) async fn cancel(
    db: &Object,
    cancellation: &Cancellation,
) -> Result<Vec<String>, StoreError> {
    fn all<'a, T>(
        cancellation: &'a Cancellation,
        value: impl Fn(&'a CancelledAudit) -> T,
    ) -> Vec<T> {
        cancellation.audits.iter().map(value).collect()
    }
    let error = &cancellation.error;
    let options = all(cancellation, |audit| ended_options_column(&audit.order));
    let options: Vec<_> = options.into_iter().collect::<Result<_, _>>()?;
    // A higher attempt makes the earlier ones late, as a new lease would.
    let rows = rows(
        db,
        "WITH requested AS (
             SELECT * FROM unnest($5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
                                  $10::text[])
                           AS requested (tracking_id, report, lab_data, summary, final_url,
                                         options)
         ), unfinished AS MATERIALIZED (
             SELECT position FROM audits
             WHERE account_id = $1 AND tracking_id = ANY ($5) AND state <> 'completed'
             ORDER BY position FOR UPDATE
         ), done AS (
             UPDATE audits SET state = 'completed', lease_owner = NULL, lease_expires_at = NULL,
                               attempt = attempt + (attempt > 0)::int, finished_at = $2,
                               error_code = $3, error_message = $4, lab_data = requested.lab_data,
                               summary = requested.summary, final_url = requested.final_url,
                               options = requested.options
             FROM unfinished, requested
             WHERE audits.position = unfinished.position
               AND audits.tracking_id = requested.tracking_id
             RETURNING audits.position, audits.tracking_id, account_id, runs, webhook, report,
                       batch_id, attempt
         ), stored AS (
             INSERT INTO reports (position, report) SELECT position, report FROM done
         ), counted AS (
             UPDATE batches SET finished = finished + ended.audits
             FROM (SELECT batch_id, count(*) AS audits, max(position) AS last FROM done
                   WHERE webhook IS NOT NULL GROUP BY batch_id) AS ended
             WHERE batches.id = ended.batch_id
             RETURNING batches.id, ended.last, finished >= batches.audits AS is_last
         ), due AS (
             INSERT INTO deliveries (position, account_id, state, due_at, batch_id)
             SELECT position, account_id, 'pending', $2,
                    (SELECT id FROM counted WHERE is_last AND counted.last = done.position)
             FROM done WHERE webhook IS NOT NULL
         ), refunded AS (
             UPDATE accounts SET credits = credits + (SELECT sum(runs) FROM done)::bigint
             WHERE id = $1 AND EXISTS (SELECT 1 FROM done)
         ), recorded AS (
             INSERT INTO ledger (account_id, amount, reason, position, at, never_leased)
             SELECT account_id, runs, 'refund', position, $2, attempt = 0 FROM done
         )
         SELECT tracking_id FROM done ORDER BY position",
        &[
            &cancellation.account_id,
            &cancellation.at.0,
            &error.code,
            &error.message,
            &all(cancellation, |audit| &audit.tracking_id),
            &all(cancellation, |audit| &audit.report),
            &all(cancellation, |audit| audit.summary.lab_data.as_ref()),
            &all(cancellation, |audit| &audit.summary.summary),
            &all(cancellation, |audit| audit.summary.final_url.as_ref()),
            &options,
        ],
    )
    .await?;
    let tracking_id = |row: &Row| Ok(row.try_get(0)?);
    rows.iter().map(tracking_id).collect()
}

pub(super) async fn unsummarized(
    db: &Object,
    limit: u32,
) -> Result<Vec<UnsummarizedAudit>, StoreError> {
    let rows = rows(
        db,
        "SELECT audits.tracking_id, reports.report
         FROM audits JOIN reports ON reports.position = audits.position
         WHERE audits.state = 'completed' AND audits.summary IS NULL
         ORDER BY audits.position LIMIT $1",
        &[&i64::from(limit)],
    )
    .await?;
    let audit = |row: &Row| {
        Ok(UnsummarizedAudit {
            tracking_id: row.try_get(0)?,
            report: row.try_get(1)?,
        })
    };
    rows.iter().map(audit).collect()
}

pub(super) async fn store_summary(
    db: &Object,
    tracking_id: &str,
    summary: &AuditSummary,
) -> Result<(), StoreError> {
    change(
        db,
        "UPDATE audits SET lab_data = $2, summary = $3, final_url = $4
         WHERE tracking_id = $1 AND state = 'completed' AND summary IS NULL",
        &[
            &tracking_id,
            &summary.lab_data,
            &summary.summary,
            &summary.final_url,
        ],
    )
    .await?;
    Ok(())
}

/// Ends a lease. The audit is locked before its account, as in [`cancel`].
pub(super) async fn release(
    db: &Transaction<'_>,
    fence: &LeaseFence,
    reason: ReleaseReason,
) -> Result<LeaseState, StoreError> {
    let released = row(
        db,
        "UPDATE audits SET state = 'waiting', lease_owner = NULL, lease_expires_at = NULL,
                           faults = faults + $1
         WHERE tracking_id = $2 AND attempt = $3 AND state = 'running'
               AND (NOT $4 OR lease_expires_at = $5)
         RETURNING position, account_id",
        &[
            &i64::from(reason == ReleaseReason::Returned(ReturnReason::Fault)),
            &fence.tracking_id,
            &fence.attempt,
            &(reason == ReleaseReason::Unconfirmed),
            &fence.expires_at.0,
        ],
    )
    .await?;
    match released {
        None => Ok(LeaseState::Lost),
        Some(released) => {
            accounts::lock(db, released.try_get(1)?).await?;
            lanes::open(db, released.try_get(0)?).await?;
            Ok(LeaseState::Held)
        }
    }
}

/// Returns audits of dead processes to the queue. All audits are locked before their accounts, each
/// in order, so that neither another recovery nor a [`cancel`] causes a deadlock.
pub(super) async fn recover(
    db: &Transaction<'_>,
    processes: &ProcessSet,
) -> Result<u64, StoreError> {
    let running = rows(
        db,
        "SELECT position, attempt, lease_owner FROM audits WHERE state = 'running'",
        &[],
    )
    .await?;
    let (mut positions, mut attempts): (Vec<i64>, Vec<i64>) = Default::default();
    for row in &running {
        if processes.contains(&LeaseOwner::from(row.try_get::<_, &str>(2)?).process) {
            positions.push(row.try_get(0)?);
            attempts.push(row.try_get(1)?);
        }
    }
    let recovered = rows(
        db,
        "WITH held AS MATERIALIZED (
             SELECT position FROM audits
             WHERE state = 'running'
               AND (position, attempt) IN (SELECT * FROM unnest($1::bigint[], $2::bigint[]))
             ORDER BY position FOR UPDATE
         )
         UPDATE audits SET state = 'waiting', lease_owner = NULL, lease_expires_at = NULL,
                           faults = faults + 1
         FROM held WHERE audits.position = held.position
         RETURNING audits.position, account_id",
        &[&positions, &attempts],
    )
    .await?;
    let mut accounts = BTreeSet::new();
    for row in &recovered {
        accounts.insert(row.try_get::<_, &str>(1)?);
    }
    for account_id in accounts {
        accounts::lock(db, account_id).await?;
    }
    for row in &recovered {
        lanes::open(db, row.try_get(0)?).await?;
    }
    Ok(recovered.len() as u64)
}

pub(super) async fn depth(db: &Object) -> Result<QueueDepth, StoreError> {
    let row = row(
        db,
        "SELECT (SELECT count(*) FROM audits WHERE state = 'waiting'),
                (SELECT count(*) FROM audits WHERE state = 'running')",
        &[],
    )
    .await?;
    match row {
        Some(row) => Ok(QueueDepth {
            waiting: count(&row, 0)?,
            running: count(&row, 1)?,
        }),
        None => Ok(QueueDepth::default()),
    }
}

pub(super) async fn waiting_since(db: &Object) -> Result<Option<Timestamp>, StoreError> {
    let row = row(
        db,
        "SELECT accepted_at FROM audits WHERE state = 'waiting' ORDER BY position LIMIT 1",
        &[],
    )
    .await?;
    let since = row.map(|row| row.try_get(0)).transpose()?;
    Ok(since.map(Timestamp))
}

pub(super) async fn unfinished(db: &Object, limit: u32) -> Result<Vec<QueuedAudit>, StoreError> {
    let rows = rows(
        db,
        "SELECT tracking_id, account_id, url, accepted_at, attempt, faults, lease_owner,
                lease_expires_at
         FROM audits WHERE position IN (
             (SELECT position FROM audits WHERE state = 'waiting' ORDER BY position LIMIT $1)
             UNION ALL
             (SELECT position FROM audits WHERE state = 'running'))
         ORDER BY position LIMIT $1",
        &[&i64::from(limit)],
    )
    .await?;
    let audit = |row: &Row| {
        let owner: Option<&str> = row.try_get(6)?;
        let until: Option<i64> = row.try_get(7)?;
        Ok(QueuedAudit {
            tracking_id: row.try_get(0)?,
            account_id: row.try_get(1)?,
            url: row.try_get(2)?,
            accepted_at: Timestamp(row.try_get(3)?),
            attempt: read_u32(row, 4)?,
            faults: read_u32(row, 5)?,
            lease: owner.map(LeaseOwner::from).zip(until.map(Timestamp)),
        })
    };
    rows.iter().map(audit).collect()
}

/// The part of a lease that identifies it. Owners may share a name, but attempts are unique.
pub(super) struct LeaseFence {
    pub(super) tracking_id: String,
    attempt: i64,
    /// The expiry when it was leased or last read.
    expires_at: Timestamp,
}

impl From<&Lease> for LeaseFence {
    fn from(lease: &Lease) -> Self {
        Self {
            tracking_id: lease.tracking_id.clone(),
            attempt: lease.attempt.into(),
            expires_at: lease.expires_at,
        }
    }
}
