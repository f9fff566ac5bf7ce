//! What is deleted: by its owner, or because it has been kept long enough.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::connect::{change, row, rows};
use super::small;
use crate::{PurgeResult, PurgedAudit, Retention, StoreError, Timestamp};

pub(super) async fn delete(
    db: &Transaction<'_>,
    account_id: &str,
    audit_id: &str,
) -> Result<bool, StoreError> {
    let found = row(
        db,
        "SELECT position FROM audits
         WHERE audit_id = $1 AND account_id = $2 AND state = 'completed' FOR UPDATE",
        &[&audit_id, &account_id],
    )
    .await?;
    let Some(found) = found else {
        return Ok(false);
    };
    remove(db, &[found.try_get(0)?]).await?;
    Ok(true)
}

async fn remove(db: &Transaction<'_>, positions: &[i64]) -> Result<(), StoreError> {
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
    at_most: u32,
) -> Result<PurgeResult, StoreError> {
    change(db, "DELETE FROM replies WHERE expires_at <= $1", &[&now.0]).await?;
    change(db, "DELETE FROM shares WHERE expires_at <= $1", &[&now.0]).await?;
    let mut forgotten = PurgeResult::default();
    let mut left = i64::from(at_most);
    if let Some(before) = retention.accepted_before {
        // Another server that forgets at the same time takes others.
        let old = rows(
            db,
            "SELECT position, audit_id, attempt FROM audits WHERE state = 'completed' AND accepted_at < $1
             ORDER BY accepted_at, position LIMIT $2 FOR UPDATE SKIP LOCKED",
            &[&before.0, &left],
        )
        .await?;
        left -= remove_all(db, &old, &mut forgotten).await?;
    }
    if let Some(keep) = retention.keep_per_account {
        too_many(db, keep, left, &mut forgotten).await?;
    }
    let before = retention.accepted_before.map_or(i64::MIN, |at| at.0);
    change(
        db,
        "DELETE FROM batches WHERE accepted_at < $1
         AND NOT EXISTS (SELECT 1 FROM audits WHERE audits.batch_id = batches.id)",
        &[&before],
    )
    .await?;
    forget_limits(db, now).await?;
    Ok(forgotten)
}

/// Buckets that are full. Last, since who takes from one of them waits until this is committed; and waiting for nobody,
/// since who takes from many holds some while it waits for others.
async fn forget_limits(db: &Transaction<'_>, now: Timestamp) -> Result<(), StoreError> {
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
    forgotten: &mut PurgeResult,
) -> Result<i64, StoreError> {
    let mut positions = Vec::new();
    for row in found {
        positions.push(row.try_get(0)?);
        forgotten.audits.push(PurgedAudit {
            audit_id: row.try_get(1)?,
            attempt: small(row, 2)?,
        });
    }
    remove(db, &positions).await?;
    Ok(i64::try_from(positions.len()).unwrap_or(i64::MAX))
}

/// Of each account, what stands before its newest `keep`.
async fn too_many(
    db: &Transaction<'_>,
    keep: u64,
    mut left: i64,
    forgotten: &mut PurgeResult,
) -> Result<(), StoreError> {
    let keep = i64::try_from(keep).unwrap_or(i64::MAX);
    let accounts = rows(db, "SELECT id FROM accounts WHERE audits > $1", &[&keep]).await?;
    for account in &accounts {
        if left <= 0 {
            break;
        }
        let account_id: &str = account.try_get(0)?;
        let over = rows(
            db,
            "SELECT position, audit_id, attempt FROM audits
             WHERE account_id = $1 AND state = 'completed' AND (accepted_at, number) <= (
                 SELECT accepted_at, number FROM audits WHERE account_id = $1
                 ORDER BY accepted_at DESC, number DESC LIMIT 1 OFFSET $2)
             ORDER BY accepted_at, number LIMIT $3 FOR UPDATE SKIP LOCKED",
            &[&account_id, &keep, &left],
        )
        .await?;
        left -= remove_all(db, &over, forgotten).await?;
    }
    Ok(())
}
