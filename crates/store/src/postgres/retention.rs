//! Deletion of audits, by their owner or by retention.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::connect::{change, row, rows};
use super::{deliveries, read_u32};
use crate::{PurgeResult, PurgedAudit, Retention, StoreError, Timestamp};

pub(super) async fn delete(
    db: &Transaction<'_>,
    account_id: &str,
    audit_id: &str,
) -> Result<bool, StoreError> {
    deliveries::lock(db).await?;
    let row = row(
        db,
        "SELECT position FROM audits
         WHERE audit_id = $1 AND account_id = $2 AND state = 'completed' FOR UPDATE",
        &[&audit_id, &account_id],
    )
    .await?;
    let Some(row) = row else {
        return Ok(false);
    };
    remove(db, &[row.try_get(0)?]).await?;
    Ok(true)
}

async fn remove(db: &Transaction<'_>, positions: &[i64]) -> Result<(), StoreError> {
    deliveries::hand_over_batches(db, positions).await?;
    for sql in [
        "DELETE FROM deliveries WHERE position = ANY($1)",
        "DELETE FROM reports WHERE position = ANY($1)",
        "DELETE FROM audits WHERE position = ANY($1)",
    ] {
        change(db, sql, &[&positions]).await?;
    }
    Ok(())
}

pub(super) async fn purge(
    db: &Transaction<'_>,
    retention: &Retention,
    now: Timestamp,
    limit: u32,
) -> Result<PurgeResult, StoreError> {
    deliveries::lock(db).await?;
    change(db, "DELETE FROM replies WHERE expires_at <= $1", &[&now.0]).await?;
    change(db, "DELETE FROM shares WHERE expires_at <= $1", &[&now.0]).await?;
    change(
        db,
        "DELETE FROM page_shares WHERE expires_at <= $1",
        &[&now.0],
    )
    .await?;
    let mut result = PurgeResult::default();
    let mut remaining = i64::from(limit);
    if let Some(before) = retention.accepted_before {
        // Another server that purges at the same time deletes other audits.
        let old = rows(
            db,
            "SELECT position, audit_id, attempt FROM audits WHERE state = 'completed' AND accepted_at < $1
             ORDER BY accepted_at, position LIMIT $2 FOR UPDATE SKIP LOCKED",
            &[&before.0, &remaining],
        )
        .await?;
        remaining -= remove_all(db, &old, &mut result).await?;
    }
    if let Some(keep) = retention.keep_per_account {
        purge_excess(db, keep, remaining, &mut result).await?;
    }
    // This reads all batches, and is therefore left to the last call.
    if result.audits.is_empty() {
        change(
            db,
            "DELETE FROM batches
             WHERE NOT EXISTS (SELECT 1 FROM audits WHERE audits.batch_id = batches.id)",
            &[],
        )
        .await?;
    }
    purge_limits(db, now).await?;
    Ok(result)
}

/// Deletes full buckets. This is the last step, because requests to these buckets wait until it is
/// committed. It skips locked rows, because a request to several buckets holds some locks while it
/// waits for others.
async fn purge_limits(db: &Transaction<'_>, now: Timestamp) -> Result<(), StoreError> {
    let now_ns = now.0.saturating_mul(1_000_000);
    change(
        db,
        "DELETE FROM limits WHERE bucket IN (
             SELECT bucket FROM limits WHERE full_at_ns <= $1 FOR UPDATE SKIP LOCKED)",
        &[&now_ns],
    )
    .await?;
    Ok(())
}

async fn remove_all(
    db: &Transaction<'_>,
    found: &[Row],
    result: &mut PurgeResult,
) -> Result<i64, StoreError> {
    let mut positions = Vec::new();
    for row in found {
        positions.push(row.try_get(0)?);
        result.audits.push(PurgedAudit {
            audit_id: row.try_get(1)?,
            attempt: read_u32(row, 2)?,
        });
    }
    remove(db, &positions).await?;
    Ok(i64::try_from(positions.len()).unwrap_or(i64::MAX))
}

/// Deletes the audits of each account that are older than its newest `keep`.
async fn purge_excess(
    db: &Transaction<'_>,
    keep: u64,
    mut remaining: i64,
    result: &mut PurgeResult,
) -> Result<(), StoreError> {
    let keep = i64::try_from(keep).unwrap_or(i64::MAX);
    let accounts = rows(db, "SELECT id FROM accounts WHERE audits > $1", &[&keep]).await?;
    for account in &accounts {
        if remaining <= 0 {
            break;
        }
        let account_id: &str = account.try_get(0)?;
        let excess = rows(
            db,
            "SELECT position, audit_id, attempt FROM audits
             WHERE account_id = $1 AND state = 'completed' AND (accepted_at, number) <= (
                 SELECT accepted_at, number FROM audits WHERE account_id = $1
                 ORDER BY accepted_at DESC, number DESC LIMIT 1 OFFSET $2)
             ORDER BY accepted_at, number LIMIT $3 FOR UPDATE SKIP LOCKED",
            &[&account_id, &keep, &remaining],
        )
        .await?;
        remaining -= remove_all(db, &excess, result).await?;
    }
    Ok(())
}
