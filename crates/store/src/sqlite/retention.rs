//! Deletion of audits, by their owner or by retention.

use rusqlite::{Connection, OptionalExtension, params};

use super::deliveries;
use crate::{PurgeResult, PurgedAudit, Retention, StoreError, Timestamp};

pub(super) fn delete(
    connection: &Connection,
    account_id: &str,
    audit_id: &str,
) -> Result<bool, StoreError> {
    let position: Option<i64> = connection
        .prepare_cached(
            "SELECT position FROM audits
             WHERE audit_id = ? AND account_id = ? AND state = 'completed'",
        )?
        .query_row([audit_id, account_id], |row| row.get(0))
        .optional()?;
    let Some(position) = position else {
        return Ok(false);
    };
    remove(connection, position)?;
    Ok(true)
}

fn remove(connection: &Connection, position: i64) -> Result<(), StoreError> {
    deliveries::hand_over_batch(connection, position)?;
    for sql in [
        "DELETE FROM deliveries WHERE position = ?",
        "DELETE FROM reports WHERE position = ?",
        "DELETE FROM audits WHERE position = ?",
    ] {
        connection.prepare_cached(sql)?.execute([position])?;
    }
    Ok(())
}

pub(super) fn purge(
    connection: &Connection,
    retention: &Retention,
    now: Timestamp,
    limit: u32,
) -> Result<PurgeResult, StoreError> {
    connection
        .prepare_cached("DELETE FROM replies WHERE expires_at <= ?")?
        .execute([now.0])?;
    connection
        .prepare_cached("DELETE FROM shares WHERE expires_at <= ?")?
        .execute([now.0])?;
    connection
        .prepare_cached("DELETE FROM page_shares WHERE expires_at <= ?")?
        .execute([now.0])?;
    let mut expired = Vec::new();
    if let Some(before) = retention.accepted_before {
        find_old(connection, before, limit, &mut expired)?;
    }
    if let Some(keep) = retention.keep_per_account {
        find_excess(connection, keep, limit, &mut expired)?;
    }
    let mut result = PurgeResult::default();
    for (position, audit_id, attempt) in expired {
        remove(connection, position)?;
        result.audits.push(PurgedAudit { audit_id, attempt });
    }
    // This reads all batches, and is therefore left to the last call.
    if result.audits.is_empty() {
        connection
            .prepare_cached(
                "DELETE FROM batches
                 WHERE NOT EXISTS (SELECT 1 FROM audits WHERE audits.batch_id = batches.id)",
            )?
            .execute([])?;
    }
    Ok(result)
}

/// The position of an audit, its id, and the attempt that finished it.
type ExpiredAudit = (i64, String, u32);

/// Finds audits accepted before a time, the oldest first. Positions approximate the order of time:
/// if a clock was set back, an audit is deleted later, never earlier.
fn find_old(
    connection: &Connection,
    before: Timestamp,
    limit: u32,
    expired: &mut Vec<ExpiredAudit>,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT position, audit_id, attempt, state = 'completed', accepted_at FROM audits
         ORDER BY position",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(4)? >= before.0 || is_full(expired, limit) {
            break;
        }
        if row.get(3)? {
            expired.push((row.get(0)?, row.get(1)?, row.get(2)?));
        }
    }
    Ok(())
}

/// Finds the audits of each account that are older than its newest `keep`.
fn find_excess(
    connection: &Connection,
    keep: u64,
    limit: u32,
    expired: &mut Vec<ExpiredAudit>,
) -> Result<(), StoreError> {
    let accounts = connection
        .prepare_cached("SELECT id FROM accounts WHERE audits > ?")?
        .query_map([i64::try_from(keep).unwrap_or(i64::MAX)], |row| row.get(0))?
        .collect::<Result<Vec<String>, _>>()?;
    for account_id in accounts {
        let oldest_kept: Option<(i64, i64)> = connection
            .prepare_cached(
                "SELECT accepted_at, number FROM audits INDEXED BY audits_by_account
                 WHERE account_id = ? ORDER BY accepted_at DESC, number DESC LIMIT 1 OFFSET ?",
            )?
            .query_row(
                params![
                    account_id,
                    i64::try_from(keep.saturating_sub(1)).unwrap_or(i64::MAX)
                ],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        let (accepted_at, number) = match oldest_kept {
            Some(_) if keep == 0 => (i64::MAX, i64::MAX),
            Some(oldest_kept) => oldest_kept,
            None => continue,
        };
        let mut statement = connection.prepare_cached(
            "SELECT position, audit_id, attempt, state = 'completed'
             FROM audits INDEXED BY audits_by_account
             WHERE account_id = ? AND (accepted_at, number) < (?, ?)
             ORDER BY accepted_at, number",
        )?;
        let mut rows = statement.query(params![account_id, accepted_at, number])?;
        while let Some(row) = rows.next()? {
            if is_full(expired, limit) {
                return Ok(());
            }
            let audit: ExpiredAudit = (row.get(0)?, row.get(1)?, row.get(2)?);
            if row.get(3)? && !expired.contains(&audit) {
                expired.push(audit);
            }
        }
    }
    Ok(())
}

fn is_full(expired: &[ExpiredAudit], limit: u32) -> bool {
    expired.len() >= usize::try_from(limit).unwrap_or(usize::MAX)
}
