//! Grants leases, in one task per server. Requests that arrive while it works share its next round.
//! A round is one query of the waiting audits and one statement that leases as many as requested.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_postgres::Row;

use super::connect::{Connections, Value, row, rows};
use super::empty_queue_cache::EmptyQueueCache;
use super::lanes::{self, Leasable};
use super::notifier::Notifier;
use super::turns::Pick;
use super::{audits, count, read_u32};
use crate::owner::token_prefix;
use crate::{Lease, LeaseScope, StoreError, Timestamp};

/// Maximum number of requests in a round, which limits how long the first waits for the last.
const MAX_REQUESTS: usize = 32;
/// Maximum number of rounds in which other servers leased everything first. After that, callers
/// get no lease.
const MAX_TRIES: u32 = 4;
const DEADLINE: Duration = Duration::from_secs(60);
/// Interval of removing empty lanes.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(10);

type LeaseResult = Result<Option<Lease>, StoreError>;

pub(super) struct WaitingLease {
    pub(super) scope: LeaseScope,
    pub(super) now: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) reply: oneshot::Sender<LeaseResult>,
}

pub(super) struct Leaser {
    pub(super) connections: Arc<Connections>,
    pub(super) notifier: Arc<Notifier>,
    pub(super) empty_queues: Arc<EmptyQueueCache>,
    pub(super) running_per_account: Option<u32>,
}

impl Leaser {
    /// Serves requests until their channel is closed.
    pub(super) async fn run(self, mut queue: mpsc::UnboundedReceiver<WaitingLease>) {
        let mut last_cleanup = Instant::now();
        while let Some(first) = queue.recv().await {
            let mut requests = vec![first];
            while requests.len() < MAX_REQUESTS
                && let Ok(next) = queue.try_recv()
            {
                requests.push(next);
            }
            // Callers that are gone need no lease.
            requests.retain(|request| !request.reply.is_closed());
            let mut by_locations: HashMap<_, Vec<WaitingLease>> = HashMap::new();
            for request in requests {
                let locations = request.scope.locations.clone();
                by_locations.entry(locations).or_default().push(request);
            }
            for (locations, requests) in by_locations {
                self.serve(locations.as_ref(), requests).await;
            }
            if last_cleanup.elapsed() >= CLEANUP_INTERVAL {
                self.remove_empty_lanes().await;
                last_cleanup = Instant::now();
            }
        }
    }

    async fn serve(&self, locations: Option<&Vec<String>>, requests: Vec<WaitingLease>) {
        let start = Instant::now();
        let results = timeout(DEADLINE, self.lease(locations, &requests)).await;
        self.connections.writes.record(start.elapsed());
        let results = results.unwrap_or_else(|_| {
            let reason = "PostgreSQL did not respond in time".to_owned();
            Err(StoreError::Backend(reason))
        });
        match results {
            Ok(results) => {
                for (request, result) in requests.into_iter().zip(results) {
                    // If the caller is gone, the lease expires.
                    let _ = request.reply.send(result);
                }
            }
            Err(error) => {
                let reason = error.to_string();
                for request in requests {
                    let _ = request.reply.send(Err(StoreError::Backend(reason.clone())));
                }
            }
        }
    }

    /// Grants a lease to each request, as long as there are audits.
    async fn lease(
        &self,
        locations: Option<&Vec<String>>,
        requests: &[WaitingLease],
    ) -> Result<Vec<LeaseResult>, StoreError> {
        let mut results: Vec<Option<LeaseResult>> = requests.iter().map(|_| None).collect();
        let now = requests.iter().map(|request| request.now).max();
        let now = now.unwrap_or(Timestamp(i64::MIN));
        let mut client = self.connections.get().await?;
        let mut tries = 0;
        loop {
            let open: Vec<usize> = (0..requests.len())
                .filter(|index| results[*index].is_none())
                .collect();
            if open.is_empty() || tries == MAX_TRIES {
                break;
            }
            let arrival_count = self.notifier.arrival_count.load(Ordering::SeqCst);
            let round = Round {
                locations,
                now,
                requests,
                open,
            };
            let outcome = if round.has_slot_limits() {
                self.limited_round(&mut client, round).await?
            } else {
                self.round(&mut client, &round).await?
            };
            for (index, max_leases) in outcome.refused {
                results[index] = Some(Err(StoreError::SlotsInUse(max_leases)));
            }
            let Some(leases) = outcome.leases else {
                self.empty_queues
                    .record_empty(locations.cloned(), arrival_count);
                break;
            };
            if leases.is_empty() {
                tries += 1;
            }
            for (index, lease) in leases {
                results[index] = Some(Ok(Some(lease)));
            }
        }
        let or_none = |result: Option<LeaseResult>| result.unwrap_or(Ok(None));
        Ok(results.into_iter().map(or_none).collect())
    }

    async fn round(
        &self,
        client: &mut Object,
        round: &Round<'_>,
    ) -> Result<RoundOutcome, StoreError> {
        let leasable = self.find_leasable(&*client, round).await?;
        if leasable.is_empty() {
            return Ok(RoundOutcome::default());
        }
        if self.running_per_account.is_none() && leasable.expired.is_empty() {
            let picks = leasable.turns.pick(round.open.len());
            // Both at once: if another server leases first, a turn is recorded in vain.
            let (leases, ()) = tokio::join!(
                round.lease_waiting(&*client, &picks),
                self.record_turns(&picks)
            );
            return Ok(RoundOutcome::new(leases?));
        }
        let transaction = client.transaction().await?;
        let (leases, picks) = self.lease_found(&transaction, round, leasable).await?;
        transaction.commit().await?;
        self.record_turns(&picks).await;
        Ok(RoundOutcome::new(leases))
    }

    /// Like [`Self::round`], for requests of which some have a slot limit. The limits are checked
    /// under locks that are held until the leases are committed.
    async fn limited_round(
        &self,
        client: &mut Object,
        mut round: Round<'_>,
    ) -> Result<RoundOutcome, StoreError> {
        let transaction = client.transaction().await?;
        let free_slots = free_slots(&transaction, &round).await?;
        let (mut refused, mut remaining) = (Vec::new(), free_slots.clone());
        round.open.retain(|index| {
            let Some(slots) = &round.requests[*index].scope.slots else {
                return true;
            };
            let token_id = slots.token_id.as_str();
            if free_slots.get(token_id).is_none_or(|free| *free == 0) {
                refused.push((*index, slots.max_leases));
                return false;
            }
            // Requests beyond the free slots wait for the next round, which counts again.
            let remaining = remaining.get_mut(token_id).filter(|free| **free > 0);
            remaining.map(|free| *free -= 1).is_some()
        });
        let mut outcome = RoundOutcome {
            leases: Some(Vec::new()),
            refused,
        };
        if round.open.is_empty() {
            return Ok(outcome);
        }
        let leasable = self.find_leasable(&transaction, &round).await?;
        if leasable.is_empty() {
            outcome.leases = None;
            return Ok(outcome);
        }
        let (leases, picks) = self.lease_found(&transaction, &round, leasable).await?;
        transaction.commit().await?;
        self.record_turns(&picks).await;
        outcome.leases = Some(leases);
        Ok(outcome)
    }

    async fn find_leasable(
        &self,
        db: &impl GenericClient,
        round: &Round<'_>,
    ) -> Result<Leasable, StoreError> {
        let (per_account, count) = (self.running_per_account, round.open.len());
        lanes::find_leasable(db, round.locations, per_account, round.now, count).await
    }

    /// Leases audits, and returns the leases with the turns to be recorded.
    async fn lease_found(
        &self,
        transaction: &Transaction<'_>,
        round: &Round<'_>,
        leasable: Leasable,
    ) -> Result<(Vec<(usize, Lease)>, Vec<Pick>), StoreError> {
        if !leasable.expired.is_empty() {
            return round.lease_expired(transaction, &leasable.expired).await;
        }
        let mut picks = leasable.turns.pick(round.open.len());
        if let Some(max_running) = self.running_per_account {
            picks = within_account_limits(transaction, picks, max_running).await?;
        }
        let leases = round.lease_waiting(transaction, &picks).await?;
        Ok((leases, picks))
    }

    /// Records turns separately from the leases, so that no server waits for another. The leases
    /// are valid even if this fails.
    async fn record_turns(&self, picks: &[Pick]) {
        let record = async {
            let db = self.connections.get_unsynced().await?;
            lanes::record_served(&db, picks).await
        };
        if let Err(error) = record.await {
            tracing::warn!(%error, "failed to record turns; an account may be served too often");
        }
    }

    /// Removes empty lanes on the unsynced connection: a lane that reappears after a crash is
    /// removed again.
    async fn remove_empty_lanes(&self) {
        let removal = timeout(DEADLINE, async {
            let mut db = self.connections.get_unsynced().await?;
            lanes::remove_empty(&mut db).await
        });
        match removal.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "failed to remove empty lanes"),
            Err(_) => tracing::debug!("removing empty lanes timed out"),
        }
    }
}

/// The outcome of a round.
#[derive(Default)]
struct RoundOutcome {
    /// The leases with the indices of their requests; `None` if no audit waits.
    leases: Option<Vec<(usize, Lease)>>,
    /// The indices of requests whose slots are all in use, with the number of these slots.
    refused: Vec<(usize, u32)>,
}

impl RoundOutcome {
    fn new(leases: Vec<(usize, Lease)>) -> Self {
        Self {
            leases: Some(leases),
            refused: Vec::new(),
        }
    }
}

/// The requests for the same locations that have no result yet.
struct Round<'a> {
    locations: Option<&'a Vec<String>>,
    now: Timestamp,
    requests: &'a [WaitingLease],
    /// Indices of `requests`.
    open: Vec<usize>,
}

/// The columns of a granted lease.
const LEASE_COLUMNS: &str =
    "tracking_id, audit_id, attempt, audits.faults, url, device, network, location,
                     options, runs, request.request_index";

impl Round<'_> {
    fn has_slot_limits(&self) -> bool {
        let mut open = self.open.iter().map(|index| &self.requests[*index]);
        open.any(|request| request.scope.slots.is_some())
    }

    /// Returns the open requests as columns: their indices, owners and expiries.
    fn request_columns(&self) -> (Vec<i64>, Vec<String>, Vec<i64>) {
        let requests = self.open.iter().map(|index| &self.requests[*index]);
        let indices = self
            .open
            .iter()
            .map(|index| i64::try_from(*index).unwrap_or(-1));
        let (owners, until) = requests
            .map(|request| (request.scope.owner.to_string(), request.expires_at.0))
            .unzip();
        (indices.collect(), owners, until)
    }

    /// Leases audits whose leases have expired, and returns the leases with the turns to be
    /// recorded.
    async fn lease_expired(
        &self,
        db: &impl GenericClient,
        positions: &[i64],
    ) -> Result<(Vec<(usize, Lease)>, Vec<Pick>), StoreError> {
        let (indices, owners, until) = self.request_columns();
        let sql = format!(
            "WITH chosen AS MATERIALIZED (
                 SELECT position FROM audits
                 WHERE position = ANY ($1) AND state = 'running' AND lease_expires_at <= $2
                 FOR UPDATE SKIP LOCKED)
             UPDATE audits SET attempt = attempt + 1, faults = faults + 1,
                               lease_owner = request.owner, lease_expires_at = request.until
             FROM chosen
             JOIN unnest($1, $3::bigint[], $4::text[], $5::bigint[])
                  AS request (position, request_index, owner, until)
                  ON request.position = chosen.position
             WHERE audits.position = chosen.position
             RETURNING {LEASE_COLUMNS}, account_id, batch_id IS NULL"
        );
        let values: &[Value<'_>] = &[&positions, &self.now.0, &indices, &owners, &until];
        let rows = rows(db, &sql, values).await?;
        let pick = |row: &Row| {
            Ok(Pick {
                account_id: row.try_get(11)?,
                interactive: row.try_get(12)?,
            })
        };
        let picks: Result<_, StoreError> = rows.iter().map(pick).collect();
        Ok((self.leases(&rows)?, picks?))
    }

    /// Leases for each picked account the audits with the fewest faults, then the oldest, as many
    /// as it was picked for; fewer if other servers lease them first.
    async fn lease_waiting(
        &self,
        db: &impl GenericClient,
        picks: &[Pick],
    ) -> Result<Vec<(usize, Lease)>, StoreError> {
        if picks.is_empty() {
            return Ok(Vec::new());
        }
        let (locations, condition) = match self.locations {
            Some(_) => ("unnest($7::text[])", "audits.location = allowed.location"),
            None => ("(SELECT $7::text[])", "true"),
        };
        // The first audits of each location are locked for a moment, and some of them are leased.
        let sql = format!(
            "WITH request AS (
                 SELECT * FROM unnest($1::text[], $2::boolean[], $3::bigint[],
                                      $4::bigint[], $5::text[], $6::bigint[])
                               AS request (account_id, interactive, nth, request_index, owner,
                                           until)
             ), heads AS MATERIALIZED (
                 SELECT pick.account_id, pick.interactive, head.faults, head.position
                 FROM (SELECT account_id, interactive, max(nth) AS leases FROM request
                       GROUP BY account_id, interactive) AS pick
                 CROSS JOIN {locations} AS allowed (location)
                 CROSS JOIN LATERAL (
                     SELECT faults, position FROM audits
                     WHERE state = 'waiting' AND audits.account_id = pick.account_id
                       AND (batch_id IS NULL) = pick.interactive AND {condition}
                     ORDER BY faults, position LIMIT pick.leases FOR UPDATE SKIP LOCKED) AS head
             ), chosen AS (
                 SELECT *, row_number() OVER (PARTITION BY account_id, interactive
                                              ORDER BY faults, position) AS nth
                 FROM heads
             )
             UPDATE audits SET attempt = attempt + 1, state = 'running',
                               lease_owner = request.owner, lease_expires_at = request.until
             FROM chosen
             JOIN request ON request.account_id = chosen.account_id
                         AND request.interactive = chosen.interactive
                         AND request.nth = chosen.nth
             WHERE audits.position = chosen.position
             RETURNING {LEASE_COLUMNS}"
        );
        let (indices, owners, until) = self.request_columns();
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
        let count = picks.len().min(indices.len());
        let rows = rows(
            db,
            &sql,
            &[
                &account_ids,
                &interactive,
                &nth,
                &&indices[..count],
                &&owners[..count],
                &&until[..count],
                &self.locations,
            ],
        )
        .await?;
        self.leases(&rows)
    }

    /// Reads leases with the indices of their requests.
    fn leases(&self, rows: &[Row]) -> Result<Vec<(usize, Lease)>, StoreError> {
        let lease = |row: &Row| {
            let index = usize::try_from(row.try_get::<_, i64>(10)?).unwrap_or(usize::MAX);
            let request = self.requests.get(index);
            let request = request
                .ok_or_else(|| StoreError::Backend("a lease without a request".to_owned()))?;
            let lease = Lease {
                tracking_id: row.try_get(0)?,
                audit_id: row.try_get(1)?,
                attempt: read_u32(row, 2)?,
                owner: request.scope.owner.clone(),
                expires_at: request.expires_at,
                order: audits::order(row, 4)?,
                runs: read_u32(row, 9)?,
                faults: read_u32(row, 3)?,
            };
            Ok((index, lease))
        };
        rows.iter().map(lease).collect()
    }
}

/// Returns the number of free slots by token, counted under locks that the transaction holds
/// to its end. The locks are taken in the order of names, so that two servers do not deadlock.
async fn free_slots(
    transaction: &Transaction<'_>,
    round: &Round<'_>,
) -> Result<HashMap<String, u64>, StoreError> {
    let requests = round.open.iter().map(|index| &round.requests[*index]);
    let limits = requests.filter_map(|request| request.scope.slots.as_ref());
    let limits: BTreeMap<&str, u32> = limits
        .map(|slots| (slots.token_id.as_str(), slots.max_leases))
        .collect();
    let token_ids: Vec<&str> = limits.keys().copied().collect();
    // Servers of earlier versions lock the same names.
    let names: Vec<String> = token_ids.iter().map(|id| token_prefix(id)).collect();
    // A separate statement: the count then sees everything committed before all locks were taken.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended(name, 1))
                FROM (SELECT name FROM unnest($1::text[]) AS bound (name)
                      ORDER BY name COLLATE \"C\") AS bound";
    rows(transaction, lock, &[&names]).await?;
    let counts = rows(
        transaction,
        "SELECT token_id, (SELECT count(*) FROM audits
                           WHERE state = 'running' AND lease_expires_at > $2
                             AND starts_with(lease_owner, name))
         FROM unnest($1::text[], $3::text[]) AS bound (name, token_id)",
        &[&names, &round.now.0, &token_ids],
    )
    .await?;
    let free = |row: &Row| {
        let token_id: &str = row.try_get(0)?;
        let max_leases = limits.get(token_id).copied().map_or(0, u64::from);
        Ok((
            token_id.to_owned(),
            max_leases.saturating_sub(count(row, 1)?),
        ))
    };
    counts.iter().map(free).collect()
}

/// Removes picks beyond the limit of leases per account. Leases are counted under locks that are
/// held until the new ones are committed, so that two servers do not both take the last one. The
/// locks are taken in the order of accounts, so that the servers do not deadlock.
async fn within_account_limits(
    transaction: &Transaction<'_>,
    picks: Vec<Pick>,
    max_running: u32,
) -> Result<Vec<Pick>, StoreError> {
    let accounts: BTreeSet<&str> = picks.iter().map(|pick| &*pick.account_id).collect();
    let mut allowances = HashMap::new();
    for account_id in accounts {
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        row(transaction, lock, &[&account_id]).await?;
        let sql = "SELECT count(*) FROM audits WHERE state = 'running' AND account_id = $1";
        let running = row(transaction, sql, &[&account_id]).await?;
        let running = running.map_or(Ok(0), |row| count(&row, 0))?;
        let allowance = u64::from(max_running).saturating_sub(running);
        allowances.insert(account_id.to_owned(), allowance);
    }
    let mut allowed = picks;
    allowed.retain(|pick| match allowances.get_mut(&pick.account_id) {
        Some(allowance) if *allowance > 0 => {
            *allowance -= 1;
            true
        }
        _ => false,
    });
    Ok(allowed)
}
