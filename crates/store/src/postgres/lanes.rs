//! Decides which account is served next: accounts take turns, single audits before batches. As in
//! SQLite, but several servers lease at once: turns are recorded separately from the leases, so
//! that no server waits for the commit of another.

use std::collections::HashMap;

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use super::connect::{Value, change, row, rows};
use super::turns::{Pick, Turns, WaitingLane};
use super::{accounts, count};
use crate::{QueuePosition, StoreError, Timestamp};

/// The condition that an audit waits in a lane. An empty lane is kept for a while, so that it need
/// not be opened again for the next audit.
const WAITS: &str = "EXISTS (SELECT 1 FROM audits
                             WHERE audits.state = 'waiting'
                               AND audits.account_id = lanes.account_id
                               AND (audits.batch_id IS NULL) = lanes.interactive
                               AND audits.location = lanes.location)";

/// The audits that a scope may lease, as found by one query.
pub(super) struct Leasable {
    pub(super) turns: Turns,
    /// The positions of audits whose leases have expired, the earliest expiry first.
    pub(super) expired: Vec<i64>,
}

impl Leasable {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.lanes.is_empty() && self.expired.is_empty()
    }
}

/// Reads everything that up to `count` leases are decided from, in one query.
pub(super) async fn find_leasable(
    db: &impl GenericClient,
    locations: Option<&Vec<String>>,
    running_per_account: Option<u32>,
    now: Timestamp,
    count: usize,
) -> Result<Leasable, StoreError> {
    let (allowed, condition) = match locations {
        Some(_) => ("unnest($1::text[])", "lanes.location = allowed.location"),
        None => ("(SELECT $1::text[])", "true"),
    };
    let sql = format!(
        "SELECT 'clock', NULL, NULL, turn, batch_turn, 0::bigint, 0::bigint FROM queue_clock
         UNION ALL
         (SELECT 'expired', NULL, NULL, position, 0, 0, 0 FROM audits
          WHERE state = 'running' AND lease_expires_at <= $2
            AND ($1::text[] IS NULL OR location = ANY ($1))
          ORDER BY lease_expires_at, position LIMIT $3)
         UNION ALL
         SELECT CASE WHEN kind.interactive THEN 'single' ELSE 'batch' END,
                lane.account_id, lane.location, lane.turn, lane.since, lane.audits, lane.running
         FROM (VALUES (true), (false)) AS kind (interactive)
         CROSS JOIN {allowed} AS allowed (location)
         CROSS JOIN LATERAL (
             SELECT account_id, location, turn, since,
                    (SELECT count(*) FROM (
                         SELECT 1 FROM audits
                         WHERE audits.state = 'waiting' AND audits.account_id = lanes.account_id
                           AND (audits.batch_id IS NULL) = lanes.interactive
                           AND audits.location = lanes.location LIMIT $3) AS counted) AS audits,
                    CASE WHEN $4::bigint IS NULL THEN 0 ELSE (
                         SELECT count(*) FROM audits WHERE audits.state = 'running'
                            AND audits.account_id = lanes.account_id) END AS running
             FROM lanes
             WHERE lanes.interactive = kind.interactive AND {condition} AND {WAITS}
               AND ($4 IS NULL OR $4 > (SELECT count(*) FROM audits
                                        WHERE audits.state = 'running'
                                          AND audits.account_id = lanes.account_id))
             ORDER BY turn, since LIMIT $3) AS lane"
    );
    let max_running = running_per_account.map(i64::from);
    let limit = i64::try_from(count).unwrap_or(i64::MAX);
    let values: &[Value<'_>] = &[&locations, &now.0, &limit, &max_running];
    let rows = rows(db, &sql, values).await?;
    let is_by_location = locations.is_some();
    read_leasable(&rows, count, is_by_location, running_per_account)
}

/// The turn of an account, and the position since which it waits.
type TurnOrder = (i64, i64);

fn read_leasable(
    rows: &[Row],
    limit: usize,
    is_by_location: bool,
    running_per_account: Option<u32>,
) -> Result<Leasable, StoreError> {
    let (mut turns, mut expired) = (Turns::default(), Vec::new());
    // By kind and, if read by location, by location: there may be more lanes than the limit.
    let mut lanes: HashMap<(bool, Option<&str>), Vec<TurnOrder>> = HashMap::new();
    for row in rows {
        let (turn, since): (i64, i64) = (row.try_get(3)?, row.try_get(4)?);
        let kind: &str = row.try_get(0)?;
        match kind {
            "clock" => (turns.clock, turns.batch_clock) = (turn, since),
            "expired" => expired.push(turn),
            _ => {
                let interactive = kind == "single";
                let running = count(row, 6)?;
                turns.lanes.push(WaitingLane {
                    account_id: row.try_get(1)?,
                    interactive,
                    turn,
                    since,
                    audits: count(row, 5)?,
                    allowance: running_per_account
                        .map(|max_running| u64::from(max_running).saturating_sub(running)),
                });
                let location: &str = row.try_get(2)?;
                let location = is_by_location.then_some(location);
                lanes
                    .entry((interactive, location))
                    .or_default()
                    .push((turn, since));
            }
        }
    }
    for ((interactive, _), lanes) in lanes {
        if lanes.len() >= limit {
            let known_up_to = &mut turns.known_up_to[usize::from(!interactive)];
            *known_up_to = (*known_up_to)
                .into_iter()
                .chain(lanes.into_iter().max())
                .min();
        }
    }
    Ok(Leasable { turns, expired })
}

/// Whether an audit waits that may be leased now.
pub(super) async fn has_waiting(
    db: &Object,
    locations: Option<&Vec<String>>,
    running_per_account: Option<u32>,
) -> Result<bool, StoreError> {
    let never = Timestamp(i64::MIN);
    let leasable = find_leasable(db, locations, running_per_account, never, 1).await?;
    Ok(!leasable.is_empty())
}

/// Records that accounts were served: each goes behind all others, in this order. If this is lost,
/// accounts are served once too often.
pub(super) async fn record_served(db: &Object, picks: &[Pick]) -> Result<(), StoreError> {
    let nth = |nth: usize| i64::try_from(nth + 1).unwrap_or(i64::MAX);
    let (mut last_turns, mut last_batch) = (HashMap::new(), 0);
    for (index, pick) in picks.iter().enumerate() {
        last_turns.insert(&pick.account_id, nth(index));
        if !pick.interactive {
            last_batch = nth(index);
        }
    }
    let (account_ids, turns): (Vec<_>, Vec<_>) = last_turns.into_iter().unzip();
    let all = i64::try_from(picks.len()).unwrap_or(i64::MAX);
    change(
        db,
        "WITH clock AS (
             UPDATE queue_clock SET turn = turn + $1,
                    batch_turn = CASE WHEN $2::bigint = 0 THEN batch_turn ELSE turn + $2 END
             RETURNING turn - $1 AS before
         ), account AS (
             INSERT INTO turns (account_id, turn)
             SELECT served.account_id, before + nth
             FROM clock, unnest($3::text[], $4::bigint[]) AS served (account_id, nth)
             ON CONFLICT (account_id) DO UPDATE SET turn = excluded.turn
             RETURNING account_id, turn
         )
         UPDATE lanes SET turn = account.turn FROM account
         WHERE lanes.account_id = account.account_id",
        &[&all, &last_batch, &account_ids, &turns],
    )
    .await?;
    Ok(())
}

/// Opens the lane of an audit that waits again. The row of its account must be locked.
pub(super) async fn open(db: &Transaction<'_>, position: i64) -> Result<(), StoreError> {
    change(
        db,
        "INSERT INTO lanes (account_id, location, interactive, turn, since)
         SELECT account_id, location, batch_id IS NULL,
                coalesce((SELECT turn FROM turns WHERE turns.account_id = audits.account_id), 0),
                position
         FROM audits WHERE position = $1
         ON CONFLICT DO NOTHING",
        &[&position],
    )
    .await?;
    Ok(())
}

struct Lane {
    account_id: String,
    location: String,
    interactive: bool,
}

/// Maximum number of lanes removed at a time.
const MAX_REMOVED_LANES: i64 = 100;

/// Removes lanes in which no audit waits.
pub(super) async fn remove_empty(db: &mut Object) -> Result<(), StoreError> {
    let sql =
        format!("SELECT account_id, location, interactive FROM lanes WHERE NOT {WAITS} LIMIT $1");
    for row in rows(db, &sql, &[&MAX_REMOVED_LANES]).await? {
        let lane = Lane {
            account_id: row.try_get(0)?,
            location: row.try_get(1)?,
            interactive: row.try_get(2)?,
        };
        let transaction = db.transaction().await?;
        close(&transaction, &lane).await?;
        transaction.commit().await?;
    }
    Ok(())
}

/// Removes a lane if no audit waits in it. The account's row is locked here and when audits are
/// added to a lane: audits added before are seen, and those added later open the lane again.
async fn close(db: &Transaction<'_>, lane: &Lane) -> Result<(), StoreError> {
    accounts::lock(db, &lane.account_id).await?;
    let sql = format!(
        "DELETE FROM lanes
         WHERE account_id = $1 AND location = $2 AND interactive = $3 AND NOT {WAITS}"
    );
    let values: &[Value<'_>] = &[&lane.account_id, &lane.location, &lane.interactive];
    change(db, &sql, values).await?;
    Ok(())
}

/// Implements [`Store::queue_position`](crate::Store::queue_position). Of every other account, as
/// many audits go first as the account has turns before the audit's own; single audits go before
/// batches.
pub(super) async fn position_of(
    db: &Object,
    account_id: &str,
    tracking_id: &str,
) -> Result<Option<QueuePosition>, StoreError> {
    let row = row(
        db,
        "WITH own AS (
             SELECT (batch_id IS NULL) AS interactive, faults, position,
                    coalesce((SELECT turn FROM turns WHERE account_id = $1), 0) AS turn,
                    (SELECT min(since) FROM lanes
                     WHERE account_id = $1
                       AND interactive = (audits.batch_id IS NULL)) AS since
             FROM audits
             WHERE tracking_id = $2 AND account_id = $1 AND state = 'waiting'
         ), ahead AS (
             SELECT count(*) AS audits FROM (
                 SELECT 1 FROM own JOIN audits
                     ON audits.state = 'waiting' AND audits.account_id = $1
                    AND (audits.batch_id IS NULL) = own.interactive
                    AND (audits.faults, audits.position) < (own.faults, own.position)
                 LIMIT 1000) AS counted
         ), others AS (
             SELECT min(lanes.turn) AS turn, min(lanes.since) AS since,
                    (SELECT count(*) FROM (
                         SELECT 1 FROM audits
                         WHERE audits.state = 'waiting' AND audits.account_id = lanes.account_id
                           AND (audits.batch_id IS NULL) = lanes.interactive
                         LIMIT 1001) AS counted) AS audits
             FROM own JOIN lanes ON lanes.interactive = own.interactive
             WHERE lanes.account_id <> $1
             GROUP BY lanes.account_id, lanes.interactive
         )
         SELECT 1 + ahead.audits
                + (SELECT coalesce(sum(least(others.audits, ahead.audits
                              + CASE WHEN (others.turn, others.since) < (own.turn, own.since)
                                     THEN 1 ELSE 0 END)), 0)::bigint FROM others),
                CASE WHEN own.interactive THEN 0
                     ELSE (SELECT count(*) FROM (
                           SELECT 1 FROM audits
                           WHERE state = 'waiting' AND batch_id IS NULL LIMIT 4000) AS counted) END,
                (SELECT count(*) FROM audits WHERE state = 'running')
         FROM own CROSS JOIN ahead",
        &[&account_id, &tracking_id],
    )
    .await?;
    let position = |row: Row| {
        let [place, singles, running] = [row.try_get(0)?, row.try_get(1)?, row.try_get(2)?];
        Ok(QueuePosition::new(place, singles, running))
    };
    row.map(position).transpose()
}
