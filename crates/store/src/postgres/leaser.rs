//! Leases, handed out by one task per server: who asks while it works goes into its next round together
//! with all others. A round is one look at what waits and one statement that takes of it, for as many as asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
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
use crate::{Lease, LeaseScope, StoreError, Timestamp};

/// Bounds how long the first of a round waits for the last.
const TOGETHER: usize = 32;
/// How often other servers may have been faster before callers are told that there is nothing.
const TRIES: u32 = 4;
const DONE_WITHIN: Duration = Duration::from_secs(60);
/// Empty lanes are looked for so often.
const TIDY_EVERY: Duration = Duration::from_secs(10);

type Answer = Result<Option<Lease>, StoreError>;

pub(super) struct Request {
    pub(super) seat: LeaseScope,
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
            Ok(answers) => {
                for (request, answer) in asked.into_iter().zip(answers) {
                    // Who no longer listens leaves a lease that expires.
                    let _ = request.reply.send(answer);
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
    ) -> Result<Vec<Answer>, StoreError> {
        let mut answers: Vec<Option<Answer>> = asked.iter().map(|_| None).collect();
        let now = asked.iter().map(|request| request.now).max();
        let now = now.unwrap_or(Timestamp(i64::MIN));
        let mut client = self.connections.get().await?;
        let mut tries = 0;
        loop {
            let open: Vec<usize> = (0..asked.len())
                .filter(|at| answers[*at].is_none())
                .collect();
            if open.is_empty() || tries == TRIES {
                break;
            }
            let arrived = self.bells.arrived.load(Ordering::SeqCst);
            let round = Round {
                places,
                now,
                asked,
                open,
            };
            let outcome = match round.is_bounded() {
                true => self.bounded_round(&mut client, round).await?,
                false => self.round(&mut client, &round).await?,
            };
            for (at, at_most) in outcome.refused {
                answers[at] = Some(Err(StoreError::SlotsInUse(at_most)));
            }
            let Some(taken) = outcome.taken else {
                self.looks.found_nothing(places.cloned(), arrived);
                break;
            };
            if taken.is_empty() {
                tries += 1;
            }
            for (at, lease) in taken {
                answers[at] = Some(Ok(Some(lease)));
            }
        }
        let or_nothing = |answer: Option<Answer>| answer.unwrap_or(Ok(None));
        Ok(answers.into_iter().map(or_nothing).collect())
    }

    async fn round(&self, client: &mut Object, round: &Round<'_>) -> Result<Outcome, StoreError> {
        let found = self.look(&*client, round).await?;
        if found.is_empty() {
            return Ok(Outcome::default());
        }
        if self.running_per_account.is_none() && found.expired.is_empty() {
            let picks = found.turns.pick(round.open.len());
            // At once: should another server be faster, a turn is noted for nothing.
            let noted = self.note_turns(&picks);
            let (taken, ()) = tokio::join!(round.take_waiting(&*client, &picks), noted);
            return Ok(Outcome::of(taken?));
        }
        let transaction = client.transaction().await?;
        let (taken, picks) = self.take(&transaction, round, found).await?;
        transaction.commit().await?;
        self.note_turns(&picks).await;
        Ok(Outcome::of(taken))
    }

    /// As [`Self::round`], for requests of which some may hold only so many leases. The bounds are
    /// looked at under locks that are held until the leases are committed.
    async fn bounded_round(
        &self,
        client: &mut Object,
        mut round: Round<'_>,
    ) -> Result<Outcome, StoreError> {
        let transaction = client.transaction().await?;
        let rooms = rooms(&transaction, &round).await?;
        let (mut refused, mut left) = (Vec::new(), rooms.clone());
        round.open.retain(|at| {
            let Some(bound) = &round.asked[*at].seat.slots else {
                return true;
            };
            let prefix = bound.owner_prefix.as_str();
            if rooms.get(prefix).is_none_or(|room| *room == 0) {
                refused.push((*at, bound.max_leases));
                return false;
            }
            // What is over waits for the next round, which counts again.
            let left = left.get_mut(prefix).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_some()
        });
        let mut outcome = Outcome {
            taken: Some(Vec::new()),
            refused,
        };
        if round.open.is_empty() {
            return Ok(outcome);
        }
        let found = self.look(&transaction, &round).await?;
        if found.is_empty() {
            outcome.taken = None;
            return Ok(outcome);
        }
        let (taken, picks) = self.take(&transaction, &round, found).await?;
        transaction.commit().await?;
        self.note_turns(&picks).await;
        outcome.taken = Some(taken);
        Ok(outcome)
    }

    async fn look(&self, db: &impl GenericClient, round: &Round<'_>) -> Result<Look, StoreError> {
        let (at_most, wanted) = (self.running_per_account, round.open.len());
        lanes::look(db, round.places, at_most, round.now, wanted).await
    }

    /// Also whose they were, as turns to be noted.
    async fn take(
        &self,
        transaction: &Transaction<'_>,
        round: &Round<'_>,
        found: Look,
    ) -> Result<(Vec<(usize, Lease)>, Vec<Pick>), StoreError> {
        if !found.expired.is_empty() {
            return round.take_expired(transaction, &found.expired).await;
        }
        let mut picks = found.turns.pick(round.open.len());
        if let Some(at_most) = self.running_per_account {
            picks = within_bounds(transaction, picks, at_most).await?;
        }
        let taken = round.take_waiting(transaction, &picks).await?;
        Ok((taken, picks))
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

/// What became of a round.
#[derive(Default)]
struct Outcome {
    /// Which request got which lease; `None` where nothing waits.
    taken: Option<Vec<(usize, Lease)>>,
    /// Requests whose slots are all in use, and how many those are.
    refused: Vec<(usize, u32)>,
}

impl Outcome {
    fn of(taken: Vec<(usize, Lease)>) -> Self {
        Self {
            taken: Some(taken),
            refused: Vec::new(),
        }
    }
}

/// Those of a kind who are still without a lease.
struct Round<'a> {
    places: Option<&'a Vec<String>>,
    now: Timestamp,
    asked: &'a [Request],
    /// Indices of `asked`.
    open: Vec<usize>,
}

const TAKEN: &str =
    "tracking_id, audit_id, attempt, audits.faults, url, device, network, location, runs,
                     seat.asked";

impl Round<'_> {
    fn is_bounded(&self) -> bool {
        let mut open = self.open.iter().map(|at| &self.asked[*at]);
        open.any(|request| request.seat.slots.is_some())
    }

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

/// How many leases each name that is bounded may still get, counted under locks that the transaction
/// holds to its end. Locked in the order of names, so that two servers do not wait for each other.
async fn rooms(
    transaction: &Transaction<'_>,
    round: &Round<'_>,
) -> Result<HashMap<String, u64>, StoreError> {
    let requests = round.open.iter().map(|at| &round.asked[*at]);
    let bounds = requests.filter_map(|request| request.seat.slots.as_ref());
    let bounds: BTreeMap<&str, u32> = bounds
        .map(|bound| (bound.owner_prefix.as_str(), bound.max_leases))
        .collect();
    let names: Vec<&str> = bounds.keys().copied().collect();
    // By themselves: what is counted is what was committed before all locks were there.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended(name, 1))
                FROM (SELECT name FROM unnest($1::text[]) AS bound (name)
                      ORDER BY name COLLATE \"C\") AS bound";
    rows(transaction, lock, &[&names]).await?;
    let counted = rows(
        transaction,
        "SELECT name, (SELECT count(*) FROM audits
                       WHERE state = 'running' AND lease_expires_at > $2
                         AND starts_with(lease_owner, name))
         FROM unnest($1::text[]) AS bound (name)",
        &[&names, &round.now.0],
    )
    .await?;
    let room = |row: &Row| {
        let name: &str = row.try_get(0)?;
        let at_most = bounds.get(name).copied().map_or(0, u64::from);
        Ok((name.to_owned(), at_most.saturating_sub(count(row, 1)?)))
    };
    counted.iter().map(room).collect()
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
