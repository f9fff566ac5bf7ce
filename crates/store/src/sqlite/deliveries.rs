//! Webhooks of finished audits.

use rusqlite::{Connection, OptionalExtension, params};

use super::audits;
use crate::delivery_turns::{ActiveAttempt, CANDIDATES_PER_ACCOUNT, Candidate, select};
use crate::{
    AuditState, AuditStatus, ClaimedDeliveries, Delivery, DeliveryClaim, DeliveryDepth,
    DeliveryEvent, DeliveryLane, DeliveryOutcome, LeaseState, StoreError, Timestamp,
};

/// Adds the webhook of an audit that has ended. `batch_id` is set if all other audits of its batch
/// have ended before.
pub(super) fn add(
    connection: &Connection,
    position: i64,
    account_id: &str,
    due_at: Timestamp,
    batch_id: Option<&str>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO deliveries (position, account_id, state, due_at, batch_id)
             VALUES (?, ?, 'pending', ?, ?)",
        )?
        .execute(params![position, account_id, due_at.0, batch_id])?;
    Ok(())
}

/// Implements [`Store::claim_deliveries`](crate::Store::claim_deliveries).
pub(super) fn claim(
    connection: &Connection,
    claim: &DeliveryClaim,
    now: Timestamp,
) -> Result<ClaimedDeliveries, StoreError> {
    let lane = LaneStatements::of(claim.lane);
    let candidates = candidates(connection, &lane, now)?;
    let mut claimed = ClaimedDeliveries {
        next_claim_at: next_due_at(connection, now)?,
        ..ClaimedDeliveries::default()
    };
    if candidates.is_empty() {
        return Ok(claimed);
    }
    let selection = select(
        claim.lane,
        &claim.after_account,
        usize::try_from(claim.limit).unwrap_or(usize::MAX),
        &active_attempts(connection, now)?,
        candidates,
    );
    claimed.has_more_due = selection.has_more_due;
    let until = now.plus(claim.hold);
    for position in selection.positions {
        claimed
            .deliveries
            .push(attempt(connection, position, until)?);
    }
    Ok(claimed)
}

/// The statements that read one lane, each through the lane's own index.
struct LaneStatements {
    next_account: &'static str,
    due_of_account: &'static str,
}

impl LaneStatements {
    fn of(lane: DeliveryLane) -> Self {
        match lane {
            DeliveryLane::First => Self {
                next_account: "SELECT account_id FROM deliveries INDEXED BY deliveries_first
                     WHERE state = 'pending' AND attempts = 0 AND account_id > ?
                     ORDER BY account_id LIMIT 1",
                due_of_account: "SELECT d.position, a.webhook
                     FROM deliveries AS d INDEXED BY deliveries_first
                     JOIN audits AS a ON a.position = d.position
                     WHERE d.state = 'pending' AND d.attempts = 0 AND d.account_id = ?
                       AND d.due_at <= ?
                     ORDER BY d.due_at, d.position LIMIT ?",
            },
            DeliveryLane::Retry => Self {
                next_account: "SELECT account_id FROM deliveries INDEXED BY deliveries_retry
                     WHERE state = 'pending' AND attempts > 0 AND account_id > ?
                     ORDER BY account_id LIMIT 1",
                due_of_account: "SELECT d.position, a.webhook
                     FROM deliveries AS d INDEXED BY deliveries_retry
                     JOIN audits AS a ON a.position = d.position
                     WHERE d.state = 'pending' AND d.attempts > 0 AND d.account_id = ?
                       AND d.due_at <= ?
                     ORDER BY d.due_at, d.position LIMIT ?",
            },
        }
    }
}

/// Returns the webhooks of every account that are due longest.
fn candidates(
    connection: &Connection,
    lane: &LaneStatements,
    now: Timestamp,
) -> Result<Vec<Candidate>, rusqlite::Error> {
    let mut next_account = connection.prepare_cached(lane.next_account)?;
    let mut due = connection.prepare_cached(lane.due_of_account)?;
    let mut candidates = Vec::new();
    let mut after = String::new();
    while let Some(account_id) = next_account
        .query_row([&after], |row| row.get::<_, String>(0))
        .optional()?
    {
        let of_account =
            due.query_map(params![account_id, now.0, CANDIDATES_PER_ACCOUNT], |row| {
                Ok(Candidate {
                    position: row.get(0)?,
                    account_id: account_id.clone(),
                    webhook: row.get(1)?,
                })
            })?;
        for candidate in of_account {
            candidates.push(candidate?);
        }
        after = account_id;
    }
    Ok(candidates)
}

fn active_attempts(
    connection: &Connection,
    now: Timestamp,
) -> Result<Vec<ActiveAttempt>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT a.account_id, a.webhook, d.attempts > 1
             FROM deliveries AS d INDEXED BY deliveries_claimed
             JOIN audits AS a ON a.position = d.position
             WHERE d.claimed_until > ?",
        )?
        .query_map([now.0], |row| {
            Ok(ActiveAttempt {
                account_id: row.get(0)?,
                webhook: row.get(1)?,
                is_retry: row.get(2)?,
            })
        })?
        .collect()
}

fn attempt(
    connection: &Connection,
    position: i64,
    until: Timestamp,
) -> Result<Delivery, StoreError> {
    let (attempt, is_batch, batch_id): (u32, bool, Option<String>) = connection
        .prepare_cached(
            "UPDATE deliveries SET attempts = attempts + 1, due_at = ?1, claimed_until = ?1
             WHERE position = ?2
             RETURNING attempts, is_batch, batch_id",
        )?
        .query_row(params![until.0, position], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let event = DeliveryEvent::new(batch_id.filter(|_| is_batch));
    Ok(connection
        .prepare_cached(
            "SELECT account_id, webhook, tracking_id, audit_id, url, error_code, error_message,
                    finished_at, lab_data, final_url, runs, accepted_at, labels
             FROM audits WHERE position = ?",
        )?
        .query_row([position], |row| {
            Ok(Delivery {
                account_id: row.get(0)?,
                webhook: row.get(1)?,
                event,
                audit: AuditStatus {
                    tracking_id: row.get(2)?,
                    audit_id: row.get(3)?,
                    url: row.get(4)?,
                    state: AuditState::Completed,
                    error: audits::error(row, 5, 6)?,
                    final_url: row.get(9)?,
                    runs: row.get(10)?,
                    accepted_at: Timestamp(row.get(11)?),
                    labels: audits::labels(row, 12)?,
                },
                lab_data: row.get(8)?,
                finished_at: Timestamp(row.get(7)?),
                attempt,
            })
        })?)
}

pub(super) fn settle(
    connection: &Connection,
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
    let changed = connection
        .prepare_cached(
            "UPDATE deliveries
             SET state = ?, due_at = coalesce(?, due_at), last_error = ?, claimed_until = NULL
             WHERE position = (SELECT position FROM audits WHERE tracking_id = ?)
               AND attempts = ? AND is_batch = ? AND state = 'pending'",
        )?
        .execute(params![
            state,
            due_at,
            error,
            tracking_id,
            attempt,
            is_batch
        ])?;
    if changed == 0 {
        return Ok(LeaseState::Lost);
    }
    // The webhook of the batch follows. It is due since the audit ended.
    connection
        .prepare_cached(
            "UPDATE deliveries
             SET state = 'pending', attempts = 0, is_batch = 1,
                 due_at = (SELECT finished_at FROM audits
                           WHERE audits.position = deliveries.position)
             WHERE position = (SELECT position FROM audits WHERE tracking_id = ?)
               AND state <> 'pending' AND batch_id IS NOT NULL AND NOT is_batch",
        )?
        .execute([tracking_id])?;
    Ok(LeaseState::Held)
}

/// Hands the webhook of a batch over to another audit of the batch, if it is still to be delivered
/// and its audit is deleted. If there is no other audit, there is nothing to report.
pub(super) fn hand_over_batch(connection: &Connection, position: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE deliveries
             SET batch_id = lost.batch_id, is_batch = deliveries.state <> 'pending',
                 attempts = iif(deliveries.state = 'pending', deliveries.attempts, 0),
                 due_at = iif(deliveries.state = 'pending', deliveries.due_at, lost.due_at),
                 state = 'pending'
             FROM (SELECT batch_id, due_at FROM deliveries
                   WHERE position = ?1 AND state = 'pending' AND batch_id IS NOT NULL) AS lost
             WHERE deliveries.position = (
                 SELECT max(other.position) FROM audits AS other
                 JOIN deliveries AS of_other ON of_other.position = other.position
                 WHERE other.batch_id = lost.batch_id AND other.position <> ?1)",
        )?
        .execute([position])?;
    Ok(())
}

/// Returns when the next webhook becomes due.
fn next_due_at(
    connection: &Connection,
    now: Timestamp,
) -> Result<Option<Timestamp>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT due_at FROM deliveries INDEXED BY deliveries_pending
             WHERE state = 'pending' AND due_at > ? ORDER BY due_at LIMIT 1",
        )?
        .query_row([now.0], |row| row.get(0).map(Timestamp))
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
