//! Audits as agents see them: prolonged, finished, put back. How they are leased is in `leaser`.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;

use super::connect::{change, row, rows};
use super::{accounts, count, hold, lanes, small};
use crate::{
    AuditSummary, FinishedAudit, Hold, Lease, QueueDepth, QueuedAudit, ReleaseReason, StoreError,
    Timestamp, UnsummarizedAudit,
};

pub(super) async fn heartbeat(
    db: &Object,
    held: &Attempt,
    until: Timestamp,
) -> Result<Hold, StoreError> {
    let changed = change(
        db,
        "UPDATE audits SET lease_expires_at = $1
         WHERE tracking_id = $2 AND attempt = $3 AND state = 'running'",
        &[&until.0, &held.tracking_id, &held.attempt],
    )
    .await?;
    Ok(hold(changed))
}

/// What was finished.
pub(super) struct Done {
    /// Somebody is to be told.
    pub(super) has_webhook: bool,
}

/// `None` when another attempt has it.
pub(super) async fn finish(
    db: &Object,
    held: &Attempt,
    finished: &FinishedAudit,
) -> Result<Option<Done>, StoreError> {
    let error = finished.error.as_ref();
    let summary = finished.summary.as_ref();
    let found = row(
        db,
        "WITH done AS (
             UPDATE audits SET state = 'completed', lease_owner = NULL, lease_expires_at = NULL,
                               finished_at = $3, error_code = $4, error_message = $5,
                               lab_data = $7, summary = $8
             WHERE tracking_id = $1 AND attempt = $2 AND state = 'running'
             RETURNING position, account_id, runs, webhook
         ), kept AS (
             INSERT INTO reports (position, report) SELECT position, $6 FROM done
         ), due AS (
             INSERT INTO deliveries (position, account_id, state, due_at)
             SELECT position, account_id, 'pending', $3 FROM done WHERE webhook IS NOT NULL
         ), given_back AS (
             UPDATE accounts SET credits = credits + runs FROM done
             WHERE accounts.id = done.account_id AND $4 IS NOT NULL
         ), entered AS (
             INSERT INTO ledger (account_id, amount, reason, position, at)
             SELECT account_id, runs, 'refund', position, $3 FROM done WHERE $4 IS NOT NULL
         )
         SELECT webhook IS NOT NULL FROM done",
        &[
            &held.tracking_id,
            &held.attempt,
            &finished.finished_at.0,
            &error.map(|error| &error.code),
            &error.map(|error| &error.message),
            &finished.report,
            &summary.and_then(|summary| summary.lab_data.as_deref()),
            &summary.map(|summary| &summary.summary),
        ],
    )
    .await?;
    let done = |row: Row| {
        Ok(Done {
            has_webhook: row.try_get(0)?,
        })
    };
    found.map(done).transpose()
}

pub(super) async fn unsummarized(
    db: &Object,
    at_most: u32,
) -> Result<Vec<UnsummarizedAudit>, StoreError> {
    let found = rows(
        db,
        "SELECT audits.tracking_id, reports.report
         FROM audits JOIN reports ON reports.position = audits.position
         WHERE audits.state = 'completed' AND audits.summary IS NULL
         ORDER BY audits.position LIMIT $1",
        &[&i64::from(at_most)],
    )
    .await?;
    let audit = |row: &Row| {
        Ok(UnsummarizedAudit {
            tracking_id: row.try_get(0)?,
            report: row.try_get(1)?,
        })
    };
    found.iter().map(audit).collect()
}

pub(super) async fn store_summary(
    db: &Object,
    tracking_id: &str,
    summary: &AuditSummary,
) -> Result<(), StoreError> {
    change(
        db,
        "UPDATE audits SET lab_data = $2, summary = $3
         WHERE tracking_id = $1 AND state = 'completed' AND summary IS NULL",
        &[&tracking_id, &summary.lab_data, &summary.summary],
    )
    .await?;
    Ok(())
}

pub(super) async fn release(
    db: &Transaction<'_>,
    held: &Attempt,
    why: ReleaseReason,
) -> Result<Hold, StoreError> {
    let owner = row(
        db,
        "SELECT account_id FROM audits WHERE tracking_id = $1",
        &[&held.tracking_id],
    )
    .await?;
    let Some(owner) = owner else {
        return Ok(Hold::Lost);
    };
    // Before the audit waits again: see `lanes::close`.
    accounts::lock(db, owner.try_get(0)?).await?;
    let back = row(
        db,
        "UPDATE audits SET state = 'waiting', lease_owner = NULL, lease_expires_at = NULL,
                           faults = faults + $1
         WHERE tracking_id = $2 AND attempt = $3 AND state = 'running'
               AND (NOT $4 OR lease_expires_at = $5)
         RETURNING position",
        &[
            &i64::from(why == ReleaseReason::Fault),
            &held.tracking_id,
            &held.attempt,
            &(why == ReleaseReason::Unconfirmed),
            &held.expires_at.0,
        ],
    )
    .await?;
    match back {
        None => Ok(Hold::Lost),
        Some(back) => {
            lanes::open(db, back.try_get(0)?).await?;
            Ok(Hold::Held)
        }
    }
}

pub(super) async fn recover(db: &Transaction<'_>, owner_prefix: &str) -> Result<u64, StoreError> {
    // Compared here and not in SQL: LIKE has wildcards. In the order of accounts, so that two that recover
    // at once do not wait for each other.
    let running = rows(
        db,
        "SELECT position, account_id, lease_owner, attempt FROM audits WHERE state = 'running'
         ORDER BY account_id, position",
        &[],
    )
    .await?;
    let mut put_back = 0;
    for row in &running {
        if !row.try_get::<_, &str>(2)?.starts_with(owner_prefix) {
            continue;
        }
        let (position, attempt): (i64, i64) = (row.try_get(0)?, row.try_get(3)?);
        accounts::lock(db, row.try_get(1)?).await?;
        let changed = change(
            db,
            "UPDATE audits SET state = 'waiting', lease_owner = NULL, lease_expires_at = NULL,
                               faults = faults + 1
             WHERE position = $1 AND attempt = $2 AND state = 'running'",
            &[&position, &attempt],
        )
        .await?;
        if changed > 0 {
            lanes::open(db, position).await?;
            put_back += 1;
        }
    }
    Ok(put_back)
}

pub(super) async fn depth(db: &Object) -> Result<QueueDepth, StoreError> {
    let found = row(
        db,
        "SELECT (SELECT count(*) FROM audits WHERE state = 'waiting'),
                (SELECT count(*) FROM audits WHERE state = 'running')",
        &[],
    )
    .await?;
    match found {
        Some(row) => Ok(QueueDepth {
            waiting: count(&row, 0)?,
            running: count(&row, 1)?,
        }),
        None => Ok(QueueDepth::default()),
    }
}

pub(super) async fn waiting_since(db: &Object) -> Result<Option<Timestamp>, StoreError> {
    let found = row(
        db,
        "SELECT accepted_at FROM audits WHERE state = 'waiting' ORDER BY position LIMIT 1",
        &[],
    )
    .await?;
    let since = found.map(|row| row.try_get(0)).transpose()?;
    Ok(since.map(Timestamp))
}

pub(super) async fn unfinished(db: &Object, at_most: u32) -> Result<Vec<QueuedAudit>, StoreError> {
    let found = rows(
        db,
        "SELECT tracking_id, account_id, url, accepted_at, attempt, faults, lease_owner,
                lease_expires_at
         FROM audits WHERE position IN (
             (SELECT position FROM audits WHERE state = 'waiting' ORDER BY position LIMIT $1)
             UNION ALL
             (SELECT position FROM audits WHERE state = 'running'))
         ORDER BY position LIMIT $1",
        &[&i64::from(at_most)],
    )
    .await?;
    let audit = |row: &Row| {
        let owner: Option<String> = row.try_get(6)?;
        let until: Option<i64> = row.try_get(7)?;
        Ok(QueuedAudit {
            tracking_id: row.try_get(0)?,
            account_id: row.try_get(1)?,
            url: row.try_get(2)?,
            accepted_at: Timestamp(row.try_get(3)?),
            attempt: small(row, 4)?,
            faults: small(row, 5)?,
            lease: owner.zip(until.map(Timestamp)),
        })
    };
    found.iter().map(audit).collect()
}

/// What of a lease fences: owners may share a name, attempts do not.
pub(super) struct Attempt {
    pub(super) tracking_id: String,
    attempt: i64,
    /// As it was leased, or last looked at.
    expires_at: Timestamp,
}

impl From<&Lease> for Attempt {
    fn from(lease: &Lease) -> Self {
        Self {
            tracking_id: lease.tracking_id.clone(),
            attempt: lease.attempt.into(),
            expires_at: lease.expires_at,
        }
    }
}
