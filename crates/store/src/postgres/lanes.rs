//! Whose turn it is: accounts in turn, single starts before batches. As in SQLite, but several servers
//! lease at once: turns are noted apart from the leases, so that no server waits for another's commit.

use deadpool_postgres::{GenericClient, Object, Transaction};

use super::accounts;
use super::connect::{change, row};
use crate::{INTERACTIVE_IN_A_ROW, Seat, StoreError};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    pub(super) account_id: String,
    pub(super) location: String,
    pub(super) interactive: bool,
}

/// The account whose turn it is, and whether with a single start.
pub(super) async fn next_account(
    db: &Object,
    seat: &Seat,
    running_per_account: Option<u32>,
) -> Result<Option<(String, bool)>, StoreError> {
    let lag = row(db, "SELECT turn - batch_turn FROM queue_clock", &[]).await?;
    let lag: i64 = lag.map_or(Ok(0), |row| row.try_get(0))?;
    let interactive_first = lag < INTERACTIVE_IN_A_ROW;
    for interactive in [interactive_first, !interactive_first] {
        let found = first(db, seat, running_per_account, interactive).await?;
        if let Some(account_id) = found {
            return Ok(Some((account_id, interactive)));
        }
    }
    Ok(None)
}

/// A lane whose audits have just been leased does not count.
const WAITS: &str = "EXISTS (SELECT 1 FROM audits
                             WHERE audits.state = 'waiting'
                               AND audits.account_id = lanes.account_id
                               AND (audits.batch_id IS NULL) = lanes.interactive
                               AND audits.location = lanes.location)";

async fn first(
    db: &Object,
    seat: &Seat,
    running_per_account: Option<u32>,
    interactive: bool,
) -> Result<Option<String>, StoreError> {
    let mut first: Option<(i64, i64, String)> = None;
    let at_most = running_per_account.map(i64::from);
    for place in seat.places() {
        let at = match place {
            Some(_) => "location = $3",
            None => "$3::text IS NULL",
        };
        let sql = format!(
            "SELECT turn, since, account_id FROM lanes
             WHERE interactive = $1 AND {at} AND {WAITS}
               AND ($2::bigint IS NULL OR $2 > (SELECT count(*) FROM audits
                                                WHERE audits.state = 'running'
                                                  AND audits.account_id = lanes.account_id))
             ORDER BY turn, since LIMIT 1"
        );
        let found = row(db, &sql, &[&interactive, &at_most, &place]).await?;
        let found = match found {
            Some(row) => Some((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)),
            None => None,
        };
        first = first.into_iter().chain(found).min();
    }
    Ok(first.map(|(_, _, account_id)| account_id))
}

/// Whether anything waits that the seat may take now.
pub(super) async fn any_waits(
    db: &Object,
    seat: &Seat,
    running_per_account: Option<u32>,
) -> Result<bool, StoreError> {
    for interactive in [true, false] {
        if first(db, seat, running_per_account, interactive)
            .await?
            .is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The account goes behind all others. Should this be lost, an account is served once too often.
pub(super) async fn served(
    db: &Object,
    account_id: &str,
    interactive: bool,
) -> Result<(), StoreError> {
    change(
        db,
        "WITH clock AS (
             UPDATE queue_clock SET turn = turn + 1,
                    batch_turn = CASE WHEN $2 THEN batch_turn ELSE turn + 1 END
             RETURNING turn
         ), account AS (
             INSERT INTO turns (account_id, turn) SELECT $1, turn FROM clock
             ON CONFLICT (account_id) DO UPDATE SET turn = excluded.turn
             RETURNING turn
         )
         UPDATE lanes SET turn = account.turn FROM account WHERE account_id = $1",
        &[&account_id, &interactive],
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

const EMPTY: &str = "NOT EXISTS (SELECT 1 FROM audits
                                 WHERE state = 'waiting' AND account_id = $1 AND location = $2
                                   AND (batch_id IS NULL) = $3)";

/// Whether nothing waits in it, as far as is committed.
pub(super) async fn looks_empty(db: &impl GenericClient, lane: &Lane) -> Result<bool, StoreError> {
    let found = row(
        db,
        &format!("SELECT {EMPTY}"),
        &[&lane.account_id, &lane.location, &lane.interactive],
    )
    .await?;
    Ok(found.map_or(Ok(false), |row| row.try_get(0))?)
}

/// Removes it if nothing waits in it. Whoever adds audits to a lane holds the account's row, and so does this:
/// what was added before is seen, and who adds after opens it anew.
pub(super) async fn close(db: &Transaction<'_>, lane: &Lane) -> Result<(), StoreError> {
    accounts::lock(db, &lane.account_id).await?;
    change(
        db,
        &format!(
            "DELETE FROM lanes WHERE account_id = $1 AND location = $2 AND interactive = $3 AND {EMPTY}"
        ),
        &[&lane.account_id, &lane.location, &lane.interactive],
    )
    .await?;
    Ok(())
}
