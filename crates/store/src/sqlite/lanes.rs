//! Decides which account is served next: accounts take turns, single audits before batches.

use rusqlite::{Connection, OptionalExtension, params};

use crate::{LeaseScope, MAX_INTERACTIVE_IN_A_ROW, QueuePosition, StoreError};

/// A queue of waiting audits of one account, of the same kind (single or batch) and location.
pub(super) struct Lane<'a> {
    pub(super) account_id: &'a str,
    pub(super) location: &'a str,
    pub(super) interactive: bool,
}

impl Lane<'_> {
    /// Opens the lane, unless it is open already.
    pub(super) fn open(&self, connection: &Connection, position: i64) -> Result<(), StoreError> {
        connection
            .prepare_cached(
                "INSERT INTO lanes (account_id, location, interactive, turn, since)
                 VALUES (?1, ?2, ?3,
                         coalesce((SELECT turn FROM turns WHERE account_id = ?1), 0), ?4)
                 ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                self.account_id,
                self.location,
                self.interactive,
                position
            ])?;
        Ok(())
    }

    /// Records that an audit of the lane was leased: the account goes behind all others, and the
    /// lane is closed if no audit waits in it.
    pub(super) fn record_served(&self, connection: &Connection) -> Result<(), StoreError> {
        let turn: i64 = connection
            .prepare_cached(
                "UPDATE queue_clock SET turn = turn + 1,
                        batch_turn = CASE WHEN ? THEN batch_turn ELSE turn + 1 END
                 RETURNING turn",
            )?
            .query_row([self.interactive], |row| row.get(0))?;
        connection
            .prepare_cached(
                "INSERT INTO turns (account_id, turn) VALUES (?, ?)
                 ON CONFLICT (account_id) DO UPDATE SET turn = excluded.turn",
            )?
            .execute(params![self.account_id, turn])?;
        connection
            .prepare_cached("UPDATE lanes SET turn = ? WHERE account_id = ?")?
            .execute(params![turn, self.account_id])?;
        self.close_if_empty(connection)
    }

    /// Closes the lane if no audit waits in it.
    pub(super) fn close_if_empty(&self, connection: &Connection) -> Result<(), StoreError> {
        connection
            .prepare_cached(
                "DELETE FROM lanes WHERE account_id = ?1 AND location = ?2 AND interactive = ?3
                 AND NOT EXISTS (SELECT 1 FROM audits INDEXED BY audits_in_lanes
                                 WHERE state = 'waiting' AND account_id = ?1 AND location = ?2
                                   AND (batch_id IS NULL) = ?3)",
            )?
            .execute(params![self.account_id, self.location, self.interactive])?;
        Ok(())
    }
}

/// Returns the position of the waiting audit to be leased next.
pub(super) fn next(
    connection: &Connection,
    scope: &LeaseScope,
    running_per_account: Option<u32>,
) -> Result<Option<i64>, StoreError> {
    let batches_lag: i64 = connection
        .prepare_cached("SELECT turn - batch_turn FROM queue_clock")?
        .query_row([], |row| row.get(0))?;
    let interactive_first = batches_lag < MAX_INTERACTIVE_IN_A_ROW;
    for interactive in [interactive_first, !interactive_first] {
        if let Some(account_id) = next_account(connection, scope, running_per_account, interactive)?
        {
            return next_of_account(connection, scope, &account_id, interactive);
        }
    }
    Ok(None)
}

fn next_account(
    connection: &Connection,
    scope: &LeaseScope,
    running_per_account: Option<u32>,
    interactive: bool,
) -> Result<Option<String>, rusqlite::Error> {
    let mut first: Option<(i64, i64, String)> = None;
    for location in scope.location_filters() {
        let index = match location {
            Some(_) => "INDEXED BY lanes_by_location WHERE location = ?3 AND",
            None => "INDEXED BY lanes_by_turn WHERE ?3 IS NULL AND",
        };
        let sql = format!(
            "SELECT turn, since, account_id FROM lanes {index} interactive = ?1
             AND (?2 IS NULL OR ?2 > (SELECT count(*) FROM audits INDEXED BY audits_running_of
                                      WHERE state = 'running'
                                        AND audits.account_id = lanes.account_id))
             ORDER BY turn, since LIMIT 1"
        );
        let head = connection
            .prepare_cached(&sql)?
            .query_row(params![interactive, running_per_account, location], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        first = first.into_iter().chain(head).min();
    }
    Ok(first.map(|(_, _, account_id)| account_id))
}

/// Returns the position of the audit with the fewest faults, then the oldest, of an account.
fn next_of_account(
    connection: &Connection,
    scope: &LeaseScope,
    account_id: &str,
    interactive: bool,
) -> Result<Option<i64>, StoreError> {
    let mut first: Option<(i64, i64)> = None;
    for location in scope.location_filters() {
        let head = connection
            .prepare_cached(
                "SELECT head.faults, head.position FROM lanes
                 JOIN audits AS head ON head.position =
                     (SELECT position FROM audits INDEXED BY audits_in_lanes
                      WHERE state = 'waiting' AND audits.account_id = lanes.account_id
                        AND (batch_id IS NULL) = lanes.interactive
                        AND audits.location = lanes.location
                      ORDER BY faults, position LIMIT 1)
                 WHERE lanes.account_id = ?1 AND lanes.interactive = ?2
                   AND (?3 IS NULL OR lanes.location = ?3)
                 ORDER BY head.faults, head.position LIMIT 1",
            )?
            .query_row(params![account_id, interactive, location], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        first = first.into_iter().chain(head).min();
    }
    Ok(first.map(|(_, position)| position))
}

/// Whether an audit waits that the scope may lease now.
pub(super) fn has_waiting(
    connection: &Connection,
    scope: &LeaseScope,
    running_per_account: Option<u32>,
) -> Result<bool, rusqlite::Error> {
    for interactive in [true, false] {
        if next_account(connection, scope, running_per_account, interactive)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Implements [`Store::queue_position`](crate::Store::queue_position). Of every other account, as
/// many audits go first as the account has turns before the audit's own; single audits go before
/// batches.
pub(super) fn position_of(
    connection: &Connection,
    account_id: &str,
    tracking_id: &str,
) -> Result<Option<QueuePosition>, StoreError> {
    Ok(connection
        .prepare_cached(
            "WITH own AS (
                 SELECT (batch_id IS NULL) AS interactive, faults, position,
                        coalesce((SELECT turn FROM turns WHERE account_id = ?1), 0) AS turn,
                        (SELECT min(since) FROM lanes
                         WHERE account_id = ?1
                           AND interactive = (audits.batch_id IS NULL)) AS since
                 FROM audits
                 WHERE tracking_id = ?2 AND account_id = ?1 AND state = 'waiting'
             ), ahead AS (
                 SELECT count(*) AS audits FROM (
                     SELECT 1 FROM own JOIN audits INDEXED BY audits_in_lanes
                         ON audits.state = 'waiting' AND audits.account_id = ?1
                        AND (audits.batch_id IS NULL) = own.interactive
                        AND (audits.faults, audits.position) < (own.faults, own.position)
                     LIMIT 1000) AS counted
             ), others AS (
                 SELECT min(lanes.turn) AS turn, min(lanes.since) AS since,
                        (SELECT count(*) FROM (
                             SELECT 1 FROM audits INDEXED BY audits_in_lanes
                             WHERE audits.state = 'waiting' AND audits.account_id = lanes.account_id
                               AND (audits.batch_id IS NULL) = lanes.interactive
                             LIMIT 1001) AS counted) AS audits
                 FROM own JOIN lanes ON lanes.interactive = own.interactive
                 WHERE lanes.account_id <> ?1
                 GROUP BY lanes.account_id, lanes.interactive
             )
             SELECT 1 + ahead.audits
                    + (SELECT coalesce(sum(min(others.audits, ahead.audits
                                  + CASE WHEN (others.turn, others.since) < (own.turn, own.since)
                                         THEN 1 ELSE 0 END)), 0) FROM others),
                    CASE WHEN own.interactive THEN 0
                         ELSE (SELECT count(*) FROM (
                               SELECT 1 FROM audits INDEXED BY audits_waiting
                               WHERE state = 'waiting' AND batch_id IS NULL LIMIT 4000) AS counted) END,
                    (SELECT count(*) FROM audits INDEXED BY audits_running WHERE state = 'running')
             FROM own CROSS JOIN ahead",
        )?
        .query_row([account_id, tracking_id], |row| {
            let [place, singles, running] = [row.get(0)?, row.get(1)?, row.get(2)?];
            Ok(QueuePosition::new(place, singles, running))
        })
        .optional()?)
}
