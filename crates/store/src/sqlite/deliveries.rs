//! Webhooks of finished audits.

use rusqlite::{Connection, OptionalExtension, params};

use super::audits;
use crate::{
    AuditState, AuditStatus, Delivery, DeliveryDepth, Hold, Settled, StoreError, Timestamp,
};

pub(super) fn add(
    connection: &Connection,
    position: i64,
    due_at: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO deliveries (position, state, due_at) VALUES (?, 'pending', ?)",
        )?
        .execute(params![position, due_at.0])?;
    Ok(())
}

pub(super) fn claim(
    connection: &Connection,
    now: Timestamp,
    due_again_at: Timestamp,
    at_most: u32,
) -> Result<Vec<Delivery>, StoreError> {
    let due = connection
        .prepare_cached(
            "SELECT position FROM deliveries INDEXED BY deliveries_pending
             WHERE state = 'pending' AND due_at <= ? ORDER BY due_at, position LIMIT ?",
        )?
        .query_map(params![now.0, at_most], |row| row.get(0))?
        .collect::<Result<Vec<i64>, _>>()?;
    due.into_iter()
        .map(|position| attempt(connection, position, due_again_at))
        .collect()
}

fn attempt(
    connection: &Connection,
    position: i64,
    due_again_at: Timestamp,
) -> Result<Delivery, StoreError> {
    let attempt = connection
        .prepare_cached(
            "UPDATE deliveries SET attempts = attempts + 1, due_at = ? WHERE position = ?
             RETURNING attempts",
        )?
        .query_row(params![due_again_at.0, position], |row| row.get(0))?;
    Ok(connection
        .prepare_cached(
            "SELECT account_id, webhook, tracking_id, audit_id, url, error_code, error_message,
                    finished_at
             FROM audits WHERE position = ?",
        )?
        .query_row([position], |row| {
            Ok(Delivery {
                account_id: row.get(0)?,
                webhook: row.get(1)?,
                audit: AuditStatus {
                    tracking_id: row.get(2)?,
                    audit_id: row.get(3)?,
                    url: row.get(4)?,
                    state: AuditState::Completed,
                    error: audits::error(row, 5, 6)?,
                },
                finished_at: Timestamp(row.get(7)?),
                attempt,
            })
        })?)
}

pub(super) fn settle(
    connection: &Connection,
    tracking_id: &str,
    attempt: u32,
    settled: &Settled,
) -> Result<Hold, StoreError> {
    let (state, due_at, error) = match settled {
        Settled::Delivered => ("delivered", None, None),
        Settled::Again(at, error) => ("pending", Some(at.0), Some(error)),
        Settled::GivenUp(error) => ("given-up", None, Some(error)),
    };
    let changed = connection
        .prepare_cached(
            "UPDATE deliveries SET state = ?, due_at = coalesce(?, due_at), last_error = ?
             WHERE position = (SELECT position FROM audits WHERE tracking_id = ?)
               AND attempts = ? AND state = 'pending'",
        )?
        .execute(params![state, due_at, error, tracking_id, attempt])?;
    Ok(if changed == 0 { Hold::Lost } else { Hold::Held })
}

/// When the next is due.
pub(super) fn next(connection: &Connection) -> Result<Option<Timestamp>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT due_at FROM deliveries INDEXED BY deliveries_pending
             WHERE state = 'pending' ORDER BY due_at LIMIT 1",
        )?
        .query_row([], |row| row.get(0).map(Timestamp))
        .optional()
}

pub(super) fn depth(connection: &Connection) -> Result<DeliveryDepth, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT (SELECT count(*) FROM deliveries INDEXED BY deliveries_pending
                     WHERE state = 'pending'),
                    (SELECT count(*) FROM deliveries INDEXED BY deliveries_given_up
                     WHERE state = 'given-up')",
        )?
        .query_row([], |row| {
            Ok(DeliveryDepth {
                pending: row.get::<_, i64>(0)?.unsigned_abs(),
                given_up: row.get::<_, i64>(1)?.unsigned_abs(),
            })
        })?)
}
