//! Leases, handed out by one task per server: who asks while it commits goes into its next transaction
//! together with all others, and a thousand who are woken for one audit cost a few questions.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_postgres::{Object, Transaction};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_postgres::Row;

use super::connect::{Connections, Value, row};
use super::lanes::{self, Lane};
use super::{audits, small};
use crate::{Lease, Seat, StoreError, Timestamp};

/// Bounds how long the first of a batch waits for the last.
const TOGETHER: usize = 64;
/// How often another server may have been faster before the caller is told that there is nothing.
const TRIES: u32 = 4;
const DONE_WITHIN: Duration = Duration::from_secs(60);

type Answer = Result<Option<Lease>, StoreError>;

pub(super) struct Request {
    pub(super) seat: Seat,
    pub(super) now: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Until nobody can ask any more.
pub(super) async fn lease_for_all(
    mut requests: mpsc::UnboundedReceiver<Request>,
    connections: Arc<Connections>,
    running_per_account: Option<u32>,
) {
    // A bound is held by a lock on its account, and two of those could wait for each other.
    let together = if running_per_account.is_some() {
        1
    } else {
        TOGETHER
    };
    while let Some(first) = requests.recv().await {
        let mut batch = vec![first];
        while batch.len() < together
            && let Ok(next) = requests.try_recv()
        {
            batch.push(next);
        }
        // Who has gone away needs no lease.
        batch.retain(|request| !request.reply.is_closed());
        let began = Instant::now();
        let round = Round {
            running_per_account,
            empty_seats: HashSet::new(),
            lanes: HashSet::new(),
        };
        let emptied = round.answer(&connections, batch).await;
        connections.writes.note(began.elapsed());
        match timeout(DONE_WITHIN, tidy(&connections, emptied)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "empty lanes stay for now"),
            Err(_) => tracing::debug!("empty lanes stay for now"),
        }
    }
}

struct Round {
    running_per_account: Option<u32>,
    /// Locations for which nothing is left.
    empty_seats: HashSet<Option<Vec<String>>>,
    /// From which something was taken.
    lanes: HashSet<Lane>,
}

impl Round {
    async fn answer(mut self, connections: &Connections, batch: Vec<Request>) -> HashSet<Lane> {
        let leased = timeout(DONE_WITHIN, self.lease(connections, &batch)).await;
        let leased = leased.unwrap_or_else(|_| {
            Err(StoreError::Backend(
                "PostgreSQL did not answer in time".to_owned(),
            ))
        });
        match leased {
            Ok(leases) => {
                for (request, lease) in batch.into_iter().zip(leases) {
                    // Who no longer listens leaves a lease that expires.
                    let _ = request.reply.send(Ok(lease));
                }
            }
            Err(error) => {
                let reason = error.to_string();
                for request in batch {
                    let _ = request.reply.send(Err(StoreError::Backend(reason.clone())));
                }
            }
        }
        self.lanes
    }

    async fn lease(
        &mut self,
        connections: &Connections,
        batch: &[Request],
    ) -> Result<Vec<Option<Lease>>, StoreError> {
        // Turns are noted outside of the transaction, so that no server waits for another's.
        let turns = connections.get_hasty().await?;
        let mut client = connections.get().await?;
        let transaction = client.transaction().await?;
        let mut leases = Vec::new();
        for request in batch {
            leases.push(self.lease_one(&turns, &transaction, request).await?);
        }
        transaction.commit().await?;
        Ok(leases)
    }

    async fn lease_one(
        &mut self,
        turns: &Object,
        transaction: &Transaction<'_>,
        request: &Request,
    ) -> Result<Option<Lease>, StoreError> {
        let seat = &request.seat;
        if self.empty_seats.contains(&seat.locations) {
            return Ok(None);
        }
        if let Some(taken) = take_expired(transaction, request).await? {
            return self.taken(turns, request, &taken).await.map(Some);
        }
        for _ in 0..TRIES {
            let next = lanes::next_account(turns, seat, self.running_per_account).await?;
            let Some((account_id, interactive)) = next else {
                break;
            };
            if let Some(at_most) = self.running_per_account
                && !has_room(transaction, &account_id, at_most).await?
            {
                continue;
            }
            match take_waiting(transaction, request, &account_id, interactive).await? {
                Some(taken) => return self.taken(turns, request, &taken).await.map(Some),
                // What waits there is being leased by others.
                None => lanes::served(turns, &account_id, interactive).await?,
            }
        }
        self.empty_seats.insert(seat.locations.clone());
        Ok(None)
    }

    async fn taken(
        &mut self,
        turns: &Object,
        request: &Request,
        row: &Row,
    ) -> Result<Lease, StoreError> {
        let lease = Lease {
            tracking_id: row.try_get(0)?,
            audit_id: row.try_get(1)?,
            attempt: small(row, 2)?,
            owner: request.seat.owner.clone(),
            expires_at: request.expires_at,
            order: audits::order(row, 4)?,
            runs: small(row, 8)?,
            faults: small(row, 3)?,
        };
        let lane = Lane {
            account_id: row.try_get(9)?,
            location: lease.order.location.clone(),
            interactive: row.try_get(10)?,
        };
        lanes::served(turns, &lane.account_id, lane.interactive).await?;
        self.lanes.insert(lane);
        Ok(lease)
    }
}

const TAKE: &str = "UPDATE audits SET attempt = attempt + 1,
                           faults = faults + CASE WHEN state = 'running' THEN 1 ELSE 0 END,
                           state = 'running', lease_owner = $1, lease_expires_at = $2
                    FROM chosen WHERE audits.position = chosen.position
                    RETURNING tracking_id, audit_id, attempt, faults, url, device, network,
                              location, runs, account_id, batch_id IS NULL";

async fn take_expired(
    transaction: &Transaction<'_>,
    request: &Request,
) -> Result<Option<Row>, StoreError> {
    let sql = format!(
        "WITH chosen AS MATERIALIZED (
             SELECT position FROM audits
             WHERE state = 'running' AND lease_expires_at <= $3
               AND ($4::text[] IS NULL OR location = ANY ($4))
             ORDER BY lease_expires_at, position LIMIT 1 FOR UPDATE SKIP LOCKED)
         {TAKE}"
    );
    let seat = &request.seat;
    row(
        transaction,
        &sql,
        &[
            &seat.owner,
            &request.expires_at.0,
            &request.now.0,
            &seat.locations,
        ],
    )
    .await
}

async fn take_waiting(
    transaction: &Transaction<'_>,
    request: &Request,
    account_id: &str,
    interactive: bool,
) -> Result<Option<Row>, StoreError> {
    let seat = &request.seat;
    let expires_at = request.expires_at.0;
    let Some(locations) = &seat.locations else {
        let sql = format!(
            "WITH chosen AS MATERIALIZED (
                 SELECT position FROM audits
                 WHERE state = 'waiting' AND account_id = $3 AND (batch_id IS NULL) = $4
                 ORDER BY position LIMIT 1 FOR UPDATE SKIP LOCKED)
             {TAKE}"
        );
        let values: &[Value<'_>] = &[&seat.owner, &expires_at, &account_id, &interactive];
        return row(transaction, &sql, values).await;
    };
    // The oldest of each location; all of them are locked for a moment, and one is taken.
    let sql = format!(
        "WITH heads AS MATERIALIZED (
             SELECT head.position FROM unnest($5::text[]) AS place (location)
             CROSS JOIN LATERAL (
                 SELECT position FROM audits
                 WHERE state = 'waiting' AND account_id = $3 AND (batch_id IS NULL) = $4
                   AND audits.location = place.location
                 ORDER BY position LIMIT 1 FOR UPDATE SKIP LOCKED) AS head),
         chosen AS (SELECT min(position) AS position FROM heads)
         {TAKE}"
    );
    let values: &[Value<'_>] = &[
        &seat.owner,
        &expires_at,
        &account_id,
        &interactive,
        locations,
    ];
    row(transaction, &sql, values).await
}

/// Counted under a lock that is held until the lease is committed: two servers never take the last place
/// both.
async fn has_room(
    transaction: &Transaction<'_>,
    account_id: &str,
    at_most: u32,
) -> Result<bool, StoreError> {
    row(
        transaction,
        "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
        &[&account_id],
    )
    .await?;
    let found = row(
        transaction,
        "SELECT count(*) < $2 FROM audits WHERE state = 'running' AND account_id = $1",
        &[&account_id, &i64::from(at_most)],
    )
    .await?;
    Ok(found.map_or(Ok(false), |row| row.try_get(0))?)
}

/// On the hasty connection too: a lane that comes back after a crash is found empty once more.
async fn tidy(connections: &Connections, lanes: HashSet<Lane>) -> Result<(), StoreError> {
    let mut db = connections.get_hasty().await?;
    for lane in lanes {
        if lanes::looks_empty(&db, &lane).await? {
            let transaction = db.transaction().await?;
            lanes::close(&transaction, &lane).await?;
            transaction.commit().await?;
        }
    }
    Ok(())
}
