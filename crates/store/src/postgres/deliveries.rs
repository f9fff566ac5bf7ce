//! Webhooks of finished audits.

use deadpool_postgres::Object;
use tokio_postgres::Row;

use super::connect::{change, row, rows};
use super::{audits, count, hold, small};
use crate::{
    AuditState, AuditStatus, Delivery, DeliveryDepth, Hold, Settled, StoreError, Timestamp,
};

pub(super) async fn claim(
    db: &Object,
    now: Timestamp,
    due_again_at: Timestamp,
    at_most: u32,
) -> Result<Vec<Delivery>, StoreError> {
    let claimed = rows(
        db,
        "WITH due AS (
             SELECT position, due_at FROM deliveries WHERE state = 'pending' AND due_at <= $1
             ORDER BY due_at, position LIMIT $2 FOR UPDATE SKIP LOCKED
         ), claimed AS (
             UPDATE deliveries SET attempts = attempts + 1, due_at = $3 FROM due
             WHERE deliveries.position = due.position
             RETURNING deliveries.position, deliveries.attempts, due.due_at AS was_due_at
         )
         SELECT account_id, webhook, tracking_id, audit_id, url, error_code, error_message,
                finished_at, attempts
         FROM claimed JOIN audits USING (position) ORDER BY was_due_at, position",
        &[&now.0, &i64::from(at_most), &due_again_at.0],
    )
    .await?;
    let delivery = |row: &Row| {
        Ok(Delivery {
            account_id: row.try_get(0)?,
            webhook: row.try_get(1)?,
            audit: AuditStatus {
                tracking_id: row.try_get(2)?,
                audit_id: row.try_get(3)?,
                url: row.try_get(4)?,
                state: AuditState::Completed,
                error: audits::error(row, 5)?,
            },
            finished_at: Timestamp(row.try_get(7)?),
            attempt: small(row, 8)?,
        })
    };
    claimed.iter().map(delivery).collect()
}

pub(super) async fn settle(
    db: &Object,
    tracking_id: &str,
    attempt: u32,
    settled: &Settled,
) -> Result<Hold, StoreError> {
    let (state, due_at, error) = match settled {
        Settled::Delivered => ("delivered", None, None),
        Settled::Again(at, error) => ("pending", Some(at.0), Some(error)),
        Settled::GivenUp(error) => ("given-up", None, Some(error)),
    };
    let changed = change(
        db,
        "UPDATE deliveries SET state = $1, due_at = coalesce($2, due_at), last_error = $3
         WHERE position = (SELECT position FROM audits WHERE tracking_id = $4)
           AND attempts = $5 AND state = 'pending'",
        &[&state, &due_at, &error, &tracking_id, &i64::from(attempt)],
    )
    .await?;
    Ok(hold(changed))
}

/// When the next is due.
pub(super) async fn next(db: &Object) -> Result<Option<Timestamp>, StoreError> {
    let found = row(
        db,
        "SELECT due_at FROM deliveries WHERE state = 'pending' ORDER BY due_at LIMIT 1",
        &[],
    )
    .await?;
    let due_at = found.map(|row| row.try_get(0)).transpose()?;
    Ok(due_at.map(Timestamp))
}

pub(super) async fn depth(db: &Object) -> Result<DeliveryDepth, StoreError> {
    let found = row(
        db,
        "SELECT (SELECT count(*) FROM deliveries WHERE state = 'pending'),
                (SELECT count(*) FROM deliveries WHERE state = 'given-up')",
        &[],
    )
    .await?;
    match found {
        Some(row) => Ok(DeliveryDepth {
            pending: count(&row, 0)?,
            given_up: count(&row, 1)?,
        }),
        None => Ok(DeliveryDepth::default()),
    }
}
