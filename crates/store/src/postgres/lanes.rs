//! Whose turn it is: accounts in turn, single starts before batches. As in SQLite, but several servers
//! lease at once: turns are noted apart from the leases, so that no server waits for another's commit.

use std::collections::HashMap;

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use super::connect::{Value, change, rows};
use super::turns::{Pick, Turns, Waiting};
use super::{accounts, count};
use crate::{StoreError, Timestamp};

/// A lane without audits stays for a while, so that it need not be opened again for the next one; it does not
/// count.
const WAITS: &str = "EXISTS (SELECT 1 FROM audits
                             WHERE audits.state = 'waiting'
                               AND audits.account_id = lanes.account_id
                               AND (audits.batch_id IS NULL) = lanes.interactive
                               AND audits.location = lanes.location)";

/// What a seat may take, as one look finds it.
pub(super) struct Look {
    pub(super) turns: Turns,
    /// Leases that have expired, the longest first.
    pub(super) expired: Vec<i64>,
}

impl Look {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.waiting.is_empty() && self.expired.is_empty()
    }
}

/// Everything that `wanted` leases are decided from, in one question.
pub(super) async fn look(
    db: &impl GenericClient,
    locations: Option<&Vec<String>>,
    running_per_account: Option<u32>,
    now: Timestamp,
    wanted: usize,
) -> Result<Look, StoreError> {
    let (places, at) = match locations {
        Some(_) => ("unnest($1::text[])", "lanes.location = place.name"),
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
         CROSS JOIN {places} AS place (name)
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
             WHERE lanes.interactive = kind.interactive AND {at} AND {WAITS}
               AND ($4 IS NULL OR $4 > (SELECT count(*) FROM audits
                                        WHERE audits.state = 'running'
                                          AND audits.account_id = lanes.account_id))
             ORDER BY turn, since LIMIT $3) AS lane"
    );
    let at_most = running_per_account.map(i64::from);
    let limit = i64::try_from(wanted).unwrap_or(i64::MAX);
    let values: &[Value<'_>] = &[&locations, &now.0, &limit, &at_most];
    let found = rows(db, &sql, values).await?;
    let is_by_place = locations.is_some();
    seen(&found, wanted, is_by_place, running_per_account)
}

/// When an account's turn comes, and since when it waits.
type Turn = (i64, i64);

fn seen(
    found: &[Row],
    wanted: usize,
    is_by_place: bool,
    running_per_account: Option<u32>,
) -> Result<Look, StoreError> {
    let (mut turns, mut expired) = (Turns::default(), Vec::new());
    // By kind and, where it was read by place, by place: as many as were asked for may not be all.
    let mut read: HashMap<(bool, Option<&str>), Vec<Turn>> = HashMap::new();
    for row in found {
        let (turn, since): (i64, i64) = (row.try_get(3)?, row.try_get(4)?);
        let kind: &str = row.try_get(0)?;
        match kind {
            "clock" => (turns.clock, turns.batch_clock) = (turn, since),
            "expired" => expired.push(turn),
            _ => {
                let interactive = kind == "single";
                let (at_most, running) = (running_per_account, count(row, 6)?);
                turns.waiting.push(Waiting {
                    account_id: row.try_get(1)?,
                    interactive,
                    turn,
                    since,
                    audits: count(row, 5)?,
                    room: at_most.map(|at_most| u64::from(at_most).saturating_sub(running)),
                });
                let place: &str = row.try_get(2)?;
                let place = is_by_place.then_some(place);
                read.entry((interactive, place))
                    .or_default()
                    .push((turn, since));
            }
        }
    }
    for ((interactive, _), lanes) in read {
        if lanes.len() >= wanted {
            let known_up_to = &mut turns.known_up_to[usize::from(!interactive)];
            *known_up_to = (*known_up_to)
                .into_iter()
                .chain(lanes.into_iter().max())
                .min();
        }
    }
    Ok(Look { turns, expired })
}

/// Whether anything waits that the seat may take now.
pub(super) async fn any_waits(
    db: &Object,
    locations: Option<&Vec<String>>,
    running_per_account: Option<u32>,
) -> Result<bool, StoreError> {
    let never = Timestamp(i64::MIN);
    let found = look(db, locations, running_per_account, never, 1).await?;
    Ok(!found.is_empty())
}

/// Each account goes behind all others, in the order in which they were served. Should this be lost, accounts
/// are served once too often.
pub(super) async fn served(db: &Object, picks: &[Pick]) -> Result<(), StoreError> {
    let nth = |nth: usize| i64::try_from(nth + 1).unwrap_or(i64::MAX);
    let (mut last_turns, mut last_batch) = (HashMap::new(), 0);
    for (at, pick) in picks.iter().enumerate() {
        last_turns.insert(&pick.account_id, nth(at));
        if !pick.interactive {
            last_batch = nth(at);
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

/// For an audit that waits again. The account's row must be locked.
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

/// So many are removed at a time.
const EMPTY_AT_ONCE: i64 = 100;

/// Removes lanes in which nothing waits.
pub(super) async fn tidy(db: &mut Object) -> Result<(), StoreError> {
    let sql =
        format!("SELECT account_id, location, interactive FROM lanes WHERE NOT {WAITS} LIMIT $1");
    for row in rows(db, &sql, &[&EMPTY_AT_ONCE]).await? {
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

/// Removes it if nothing waits in it. Whoever adds audits to a lane holds the account's row, and so does this:
/// what was added before is seen, and who adds after opens it anew.
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
