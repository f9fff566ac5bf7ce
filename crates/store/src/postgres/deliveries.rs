//! Webhooks of finished audits.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;

use super::connect::{change, row, rows};
use super::{audits, count, hold, read_u32};
use crate::delivery_turns::{ActiveAttempt, CANDIDATES_PER_ACCOUNT, Candidate, select};
use crate::{
    AuditState, AuditStatus, ClaimedDeliveries, Delivery, DeliveryClaim, DeliveryDepth,
    DeliveryEvent, DeliveryLane, DeliveryOutcome, LeaseState, StoreError, Timestamp,
};

/// The key of an advisory lock, which no other program on the same database should use.
const LOCK: i64 = 0x706c_756d_6865_6f6b;

/// Waits until no other transaction claims webhooks or deletes audits with webhooks. It comes
/// before all locks of rows.
pub(super) async fn lock(db: &Transaction<'_>) -> Result<(), StoreError> {
    change(db, "SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    Ok(())
}

/// Implements [`Store::claim_deliveries`](crate::Store::claim_deliveries). A lock allows one claim
/// at a time in the whole database, so that the limits hold across servers.
pub(super) async fn claim(
    db: &Transaction<'_>,
    claim: &DeliveryClaim,
    now: Timestamp,
) -> Result<ClaimedDeliveries, StoreError> {
    lock(db).await?;
    // Servers of the previous version do not set the account.
    change(
        db,
        "UPDATE deliveries SET account_id = audits.account_id FROM audits
         WHERE audits.position = deliveries.position
           AND deliveries.state = 'pending' AND deliveries.account_id IS NULL",
        &[],
    )
    .await?;
    let candidates = candidates(db, claim.lane, now).await?;
    let mut claimed = ClaimedDeliveries {
        next_claim_at: next_due_at(db, now).await?,
        ..ClaimedDeliveries::default()
    };
    if candidates.is_empty() {
        return Ok(claimed);
    }
    let selection = select(
        claim.lane,
        &claim.after_account,
        usize::try_from(claim.limit).unwrap_or(usize::MAX),
        &active_attempts(db, now).await?,
        candidates,
    );
    claimed.has_more_due = selection.has_more_due;
    claimed.deliveries = attempts(db, &selection.positions, now.plus(claim.hold)).await?;
    Ok(claimed)
}

/// Returns the webhooks of every account that are due longest. The accounts are found one by one
/// through the index, regardless of how many webhooks each has.
async fn candidates(
    db: &Transaction<'_>,
    lane: DeliveryLane,
    now: Timestamp,
) -> Result<Vec<Candidate>, StoreError> {
    let attempts = match lane {
        DeliveryLane::First => "attempts = 0",
        DeliveryLane::Retry => "attempts > 0",
    };
    let sql = format!(
        "WITH RECURSIVE waiting (account_id) AS (
             (SELECT account_id FROM deliveries
              WHERE state = 'pending' AND {attempts} AND account_id IS NOT NULL
              ORDER BY account_id LIMIT 1)
             UNION ALL
             SELECT (SELECT d.account_id FROM deliveries AS d
                     WHERE d.state = 'pending' AND d.{attempts} AND d.account_id > waiting.account_id
                     ORDER BY d.account_id LIMIT 1)
             FROM waiting WHERE waiting.account_id IS NOT NULL
         )
         SELECT due.position, waiting.account_id, audits.webhook
         FROM waiting
         CROSS JOIN LATERAL (
             SELECT d.position, d.due_at FROM deliveries AS d
             WHERE d.state = 'pending' AND d.{attempts} AND d.account_id = waiting.account_id
               AND d.due_at <= $1
             ORDER BY d.due_at, d.position LIMIT $2
         ) AS due
         JOIN audits ON audits.position = due.position
         ORDER BY waiting.account_id, due.due_at, due.position"
    );
    let rows = rows(db, &sql, &[&now.0, &i64::from(CANDIDATES_PER_ACCOUNT)]).await?;
    let candidate = |row: &Row| {
        Ok(Candidate {
            position: row.try_get(0)?,
            account_id: row.try_get(1)?,
            webhook: row.try_get(2)?,
        })
    };
    rows.iter().map(candidate).collect()
}

async fn active_attempts(
    db: &Transaction<'_>,
    now: Timestamp,
) -> Result<Vec<ActiveAttempt>, StoreError> {
    let rows = rows(
        db,
        "SELECT audits.account_id, audits.webhook, deliveries.attempts > 1
         FROM deliveries JOIN audits USING (position)
         WHERE deliveries.claimed_until > $1",
        &[&now.0],
    )
    .await?;
    let attempt = |row: &Row| {
        Ok(ActiveAttempt {
            account_id: row.try_get(0)?,
            webhook: row.try_get(1)?,
            is_retry: row.try_get(2)?,
        })
    };
    rows.iter().map(attempt).collect()
}

/// Starts an attempt of each webhook, in this order.
async fn attempts(
    db: &Transaction<'_>,
    positions: &[i64],
    until: Timestamp,
) -> Result<Vec<Delivery>, StoreError> {
    let claimed = rows(
        db,
        "WITH claimed AS (
             UPDATE deliveries SET attempts = attempts + 1, due_at = $2, claimed_until = $2
             WHERE position = ANY($1)
             RETURNING position, attempts, CASE WHEN is_batch THEN batch_id END AS ended_batch
         )
         SELECT account_id, webhook, tracking_id, audit_id, url, error_code, error_message,
                finished_at, attempts, lab_data, final_url, runs, accepted_at,
                ended_batch, labels
         FROM claimed JOIN audits USING (position) ORDER BY array_position($1, position)",
        &[&positions, &until.0],
    )
    .await?;
    let delivery = |row: &Row| {
        Ok(Delivery {
            account_id: row.try_get(0)?,
            webhook: row.try_get(1)?,
            event: DeliveryEvent::new(row.try_get(13)?),
            audit: AuditStatus {
                tracking_id: row.try_get(2)?,
                audit_id: row.try_get(3)?,
                url: row.try_get(4)?,
                state: AuditState::Completed,
                error: audits::error(row, 5)?,
                final_url: row.try_get(10)?,
                runs: read_u32(row, 11)?,
                accepted_at: Timestamp(row.try_get(12)?),
                labels: audits::labels(row, 14)?,
            },
            lab_data: row.try_get(9)?,
            finished_at: Timestamp(row.try_get(7)?),
            attempt: read_u32(row, 8)?,
        })
    };
    claimed.iter().map(delivery).collect()
}

pub(super) async fn settle(
    db: &Object,
    tracking_id: &str,
    is_batch: bool,
    attempt: u32,
    outcome: &DeliveryOutcome,
) -> Result<LeaseState, StoreError> {
    let (state, due_at, error) = match outcome {
        DeliveryOutcome::Delivered => ("delivered", None, None),
        DeliveryOutcome::RetryAt(at, error) => ("pending", Some(at.0), Some(error)),
        DeliveryOutcome::GivenUp(error) => ("given-up", None, Some(error)),
    };
    let changed = change(
        db,
        // The webhook of the batch follows that of its last audit. It is due since the audit ended.
        "UPDATE deliveries
         SET state = CASE WHEN follows THEN 'pending' ELSE $1 END,
             attempts = CASE WHEN follows THEN 0 ELSE attempts END,
             is_batch = is_batch OR follows,
             due_at = CASE WHEN follows THEN finished_at ELSE coalesce($2, due_at) END,
             last_error = $3, claimed_until = NULL
         FROM (SELECT position, finished_at FROM audits WHERE tracking_id = $4) AS audit
         CROSS JOIN LATERAL (
             SELECT $1::text <> 'pending' AND batch_id IS NOT NULL AND NOT is_batch AS follows
             FROM deliveries AS unsettled WHERE unsettled.position = audit.position) AS next
         WHERE deliveries.position = audit.position
           AND attempts = $5 AND is_batch = $6 AND state = 'pending'",
        &[
            &state,
            &due_at,
            &error,
            &tracking_id,
            &i64::from(attempt),
            &is_batch,
        ],
    )
    .await?;
    Ok(hold(changed))
}

/// Hands the webhooks of batches over to other audits of the batches, if they are still to be
/// delivered and their audits are deleted. If there is no other audit, there is nothing to report.
/// The caller holds the [`lock`].
pub(super) async fn hand_over_batches(
    db: &Transaction<'_>,
    positions: &[i64],
) -> Result<(), StoreError> {
    change(
        db,
        "UPDATE deliveries
         SET batch_id = heir.batch_id, is_batch = state <> 'pending',
             attempts = CASE WHEN state = 'pending' THEN attempts ELSE 0 END,
             due_at = CASE WHEN state = 'pending' THEN deliveries.due_at ELSE heir.due_at END,
             state = 'pending'
         FROM (SELECT lost.batch_id, lost.due_at, max(audits.position) AS position
               FROM (SELECT batch_id, due_at FROM deliveries
                     WHERE position = ANY($1) AND state = 'pending' AND batch_id IS NOT NULL
                     FOR UPDATE) AS lost
               JOIN audits ON audits.batch_id = lost.batch_id
               JOIN deliveries AS of_audit ON of_audit.position = audits.position
               WHERE audits.position <> ALL($1)
               GROUP BY lost.batch_id, lost.due_at) AS heir
         WHERE deliveries.position = heir.position",
        &[&positions],
    )
    .await?;
    Ok(())
}

/// Returns when the next webhook becomes due.
async fn next_due_at(
    db: &Transaction<'_>,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let row = row(
        db,
        "SELECT due_at FROM deliveries WHERE state = 'pending' AND due_at > $1
         ORDER BY due_at LIMIT 1",
        &[&now.0],
    )
    .await?;
    let due_at = row.map(|row| row.try_get(0)).transpose()?;
    Ok(due_at.map(Timestamp))
}

pub(super) async fn depth(db: &Object) -> Result<DeliveryDepth, StoreError> {
    let row = row(
        db,
        "SELECT (SELECT count(*) FROM deliveries WHERE state = 'pending'),
                (SELECT count(*) FROM deliveries WHERE state = 'given-up')",
        &[],
    )
    .await?;
    match row {
        Some(row) => Ok(DeliveryDepth {
            pending: count(&row, 0)?,
            given_up: count(&row, 1)?,
        }),
        None => Ok(DeliveryDepth::default()),
    }
}
