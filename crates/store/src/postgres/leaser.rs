//! Leases, handed out by one task per server: who asks while it works goes into its next round together
//! with all others. A round is one look at what waits and one statement that takes of it, for as many as asked.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_postgres::Row;

use super::bells::Bells;
use super::connect::{Connections, Value, row, rows};
use super::lanes::{self, Look};
use super::looks::Looks;
use super::turns::Pick;
use super::{audits, count, small};
use crate::{Lease, Seat, StoreError, Timestamp};

/// Bounds how long the first of a round waits for the last.
const TOGETHER: usize = 32;
/// How often other servers may have been faster before callers are told that there is nothing.
const TRIES: u32 = 4;
const DONE_WITHIN: Duration = Duration::from_secs(60);
/// Empty lanes are looked for so often.
const TIDY_EVERY: Duration = Duration::from_secs(10);

type Answer = Result<Option<Lease>, StoreError>;

pub(super) struct Request {
    pub(super) seat: Seat,
    pub(super) now: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) reply: oneshot::Sender<Answer>,
}

pub(super) struct Leaser {
    pub(super) connections: Arc<Connections>,
    pub(super) bells: Arc<Bells>,
    pub(super) looks: Arc<Looks>,
    pub(super) running_per_account: Option<u32>,
}

impl Leaser {
    /// Until nobody can ask any more.
    pub(super) async fn lease_for_all(self, mut requests: mpsc::UnboundedReceiver<Request>) {
        let mut tidied_at = Instant::now();
        while let Some(first) = requests.recv().await {
            let mut asked = vec![first];
            while asked.len() < TOGETHER
                && let Ok(next) = requests.try_recv()
            {
                asked.push(next);
            }
            // Who has gone away needs no lease.
            asked.retain(|request| !request.reply.is_closed());
            let mut by_places: HashMap<_, Vec<Request>> = HashMap::new();
            for request in asked {
                let places = request.seat.locations.clone();
                by_places.entry(places).or_default().push(request);
            }
            for (places, asked) in by_places {
                self.answer(places.as_ref(), asked).await;
            }
            if tidied_at.elapsed() >= TIDY_EVERY {
                self.tidy().await;
                tidied_at = Instant::now();
            }
        }
    }

    async fn answer(&self, places: Option<&Vec<String>>, asked: Vec<Request>) {
        let began = Instant::now();
        let leased = timeout(DONE_WITHIN, self.lease(places, &asked)).await;
        self.connections.writes.note(began.elapsed());
        let leased = leased.unwrap_or_else(|_| {
            let reason = "PostgreSQL did not answer in time".to_owned();
            Err(StoreError::Backend(reason))
        });
        match leased {
            Ok(leases) => {
                for (request, lease) in asked.into_iter().zip(leases) {
                    // Who no longer listens leaves a lease that expires.
                    let _ = request.reply.send(Ok(lease));
                }
            }
            Err(error) => {
                let reason = error.to_string();
                for request in asked {
                    let _ = request.reply.send(Err(StoreError::Backend(reason.clone())));
                }
            }
        }
    }

    /// One for each who asks, for as long as there is something.
    async fn lease(
        &self,
        places: Option<&Vec<String>>,
        asked: &[Request],
    ) -> Result<Vec<Option<Lease>>, StoreError> {
        let mut leases: Vec<Option<Lease>> = asked.iter().map(|_| None).collect();
        let now = asked.iter().map(|request| request.now).max();
        let now = now.unwrap_or(Timestamp(i64::MIN));
        let mut client = self.connections.get().await?;
        let mut tries = 0;
        loop {
            let open: Vec<usize> = (0..asked.len())
                .filter(|at| leases[*at].is_none())
                .collect();
            if open.is_empty() || tries == TRIES {
                return Ok(leases);
            }
            let arrived = self.bells.arrived.load(Ordering::SeqCst);
            let found = lanes::look(&client, places, self.running_per_account, now, open.len());
            let found = found.await?;
            if found.is_empty() {
                self.looks.found_nothing(places.cloned(), arrived);
                return Ok(leases);
            }
            let round = Round {
                places,
                now,
                asked,
                open: &open,
            };
            let taken = self.take(&mut client, &round, found).await?;
            if taken.is_empty() {
                tries += 1;
            }
            for (at, lease) in taken {
                leases[at] = Some(lease);
            }
        }
    }

    async fn take(
        &self,
        client: &mut Object,
        round: &Round<'_>,
        found: Look,
    ) -> Result<Vec<(usize, Lease)>, StoreError> {
        if !found.expired.is_empty() {
            let (taken, picks) = round.take_expired(client, &found.expired).await?;
            self.note_turns(&picks).await;
            return Ok(taken);
        }
        let picks = found.turns.pick(round.open.len());
        let Some(at_most) = self.running_per_account else {
            // At once: should another server be faster, a turn is noted for nothing.
            let noted = self.note_turns(&picks);
            let (taken, ()) = tokio::join!(round.take_waiting(client, &picks), noted);
            return taken;
        };
        let transaction = client.transaction().await?;
        let picks = within_bounds(&transaction, picks, at_most).await?;
        let taken = round.take_waiting(&transaction, &picks).await?;
        transaction.commit().await?;
        self.note_turns(&picks).await;
        Ok(taken)
    }

    /// Apart from the leases, so that no server waits for another's. What is leased is leased whether or not
    /// this works.
    async fn note_turns(&self, picks: &[Pick]) {
        let noted = async {
            let turns = self.connections.get_hasty().await?;
            lanes::served(&turns, picks).await
        };
        if let Err(error) = noted.await {
            tracing::warn!(%error, "an account may be served once too often");
        }
    }

    /// On the hasty connection: a lane that comes back after a crash is found empty once more.
    async fn tidy(&self) {
        let tidied = timeout(DONE_WITHIN, async {
            let mut db = self.connections.get_hasty().await?;
            lanes::tidy(&mut db).await
        });
        match tidied.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "empty lanes stay for now"),
            Err(_) => tracing::debug!("empty lanes stay for now"),
        }
    }
}

/// Those of a kind who are still without a lease.
struct Round<'a> {
    places: Option<&'a Vec<String>>,
    now: Timestamp,
    asked: &'a [Request],
    /// Indices of `asked`.
    open: &'a [usize],
}

const TAKEN: &str =
    "tracking_id, audit_id, attempt, audits.faults, url, device, network, location, runs,
                     seat.asked";

impl Round<'_> {
    /// As columns: which request, whose, and until when.
    fn seats(&self) -> (Vec<i64>, Vec<&str>, Vec<i64>) {
        let requests = self.open.iter().map(|at| &self.asked[*at]);
        let asked = self.open.iter().map(|at| i64::try_from(*at).unwrap_or(-1));
        let (owners, until) = requests
            .map(|request| (request.seat.owner.as_str(), request.expires_at.0))
            .unzip();
        (asked.collect(), owners, until)
    }

    /// Also whose they were, as turns to be noted.
    async fn take_expired(
        &self,
        db: &impl GenericClient,
        positions: &[i64],
    ) -> Result<(Vec<(usize, Lease)>, Vec<Pick>), StoreError> {
        let (asked, owners, until) = self.seats();
        let sql = format!(
            "WITH chosen AS MATERIALIZED (
                 SELECT position FROM audits
                 WHERE position = ANY ($1) AND state = 'running' AND lease_expires_at <= $2
                 FOR UPDATE SKIP LOCKED)
             UPDATE audits SET attempt = attempt + 1, faults = faults + 1,
                               lease_owner = seat.owner, lease_expires_at = seat.until
             FROM chosen
             JOIN unnest($1, $3::bigint[], $4::text[], $5::bigint[])
                  AS seat (position, asked, owner, until) ON seat.position = chosen.position
             WHERE audits.position = chosen.position
             RETURNING {TAKEN}, account_id, batch_id IS NULL"
        );
        let values: &[Value<'_>] = &[&positions, &self.now.0, &asked, &owners, &until];
        let found = rows(db, &sql, values).await?;
        let pick = |row: &Row| {
            Ok(Pick {
                account_id: row.try_get(10)?,
                interactive: row.try_get(11)?,
            })
        };
        let picks: Result<_, StoreError> = found.iter().map(pick).collect();
        Ok((self.taken(&found)?, picks?))
    }

    /// Of each account picked those that failed least often, of them the oldest, as many as it was picked for; fewer when
    /// others take them.
    async fn take_waiting(
        &self,
        db: &impl GenericClient,
        picks: &[Pick],
    ) -> Result<Vec<(usize, Lease)>, StoreError> {
        if picks.is_empty() {
            return Ok(Vec::new());
        }
        let (places, at) = match self.places {
            Some(_) => ("unnest($7::text[])", "audits.location = place.name"),
            None => ("(SELECT $7::text[])", "true"),
        };
        // Of each place the first: all of them are locked for a moment, and some are taken.
        let sql = format!(
            "WITH seat AS (
                 SELECT * FROM unnest($1::text[], $2::boolean[], $3::bigint[],
                                      $4::bigint[], $5::text[], $6::bigint[])
                               AS seat (account_id, interactive, nth, asked, owner, until)
             ), heads AS MATERIALIZED (
                 SELECT pick.account_id, pick.interactive, head.faults, head.position
                 FROM (SELECT account_id, interactive, max(nth) AS leases FROM seat
                       GROUP BY account_id, interactive) AS pick
                 CROSS JOIN {places} AS place (name)
                 CROSS JOIN LATERAL (
                     SELECT faults, position FROM audits
                     WHERE state = 'waiting' AND audits.account_id = pick.account_id
                       AND (batch_id IS NULL) = pick.interactive AND {at}
                     ORDER BY faults, position LIMIT pick.leases FOR UPDATE SKIP LOCKED) AS head
             ), chosen AS (
                 SELECT *, row_number() OVER (PARTITION BY account_id, interactive
                                              ORDER BY faults, position) AS nth
                 FROM heads
             )
             UPDATE audits SET attempt = attempt + 1, state = 'running',
                               lease_owner = seat.owner, lease_expires_at = seat.until
             FROM chosen
             JOIN seat ON seat.account_id = chosen.account_id
                      AND seat.interactive = chosen.interactive AND seat.nth = chosen.nth
             WHERE audits.position = chosen.position
             RETURNING {TAKEN}"
        );
        let (asked, owners, until) = self.seats();
        let account_ids: Vec<&str> = picks.iter().map(|pick| &*pick.account_id).collect();
        let interactive: Vec<bool> = picks.iter().map(|pick| pick.interactive).collect();
        let mut counts: HashMap<&Pick, i64> = HashMap::new();
        let nth: Vec<i64> = picks
            .iter()
            .map(|pick| {
                let nth = counts.entry(pick).or_default();
                *nth += 1;
                *nth
            })
            .collect();
        let some = picks.len().min(asked.len());
        let found = rows(
            db,
            &sql,
            &[
                &account_ids,
                &interactive,
                &nth,
                &&asked[..some],
                &&owners[..some],
                &&until[..some],
                &self.places,
            ],
        )
        .await?;
        self.taken(&found)
    }

    /// With the index of who gets it.
    fn taken(&self, found: &[Row]) -> Result<Vec<(usize, Lease)>, StoreError> {
        let lease = |row: &Row| {
            let at = usize::try_from(row.try_get::<_, i64>(9)?).unwrap_or(usize::MAX);
            let request = self.asked.get(at);
            let request = request
                .ok_or_else(|| StoreError::Backend("a lease that nobody asked for".to_owned()))?;
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
            Ok((at, lease))
        };
        found.iter().map(lease).collect()
    }
}

/// Counted under locks that are held until the leases are committed: two servers never take the last place
/// both. In the order of accounts, so that they do not wait for each other.
async fn within_bounds(
    transaction: &Transaction<'_>,
    picks: Vec<Pick>,
    at_most: u32,
) -> Result<Vec<Pick>, StoreError> {
    let accounts: BTreeSet<&str> = picks.iter().map(|pick| &*pick.account_id).collect();
    let mut rooms = HashMap::new();
    for account_id in accounts {
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        row(transaction, lock, &[&account_id]).await?;
        let sql = "SELECT count(*) FROM audits WHERE state = 'running' AND account_id = $1";
        let running = row(transaction, sql, &[&account_id]).await?;
        let running = running.map_or(Ok(0), |row| count(&row, 0))?;
        let room = u64::from(at_most).saturating_sub(running);
        rooms.insert(account_id.to_owned(), room);
    }
    let mut within = picks;
    within.retain(|pick| match rooms.get_mut(&pick.account_id) {
        Some(room) if *room > 0 => {
            *room -= 1;
            true
        }
        _ => false,
    });
    Ok(within)
}
