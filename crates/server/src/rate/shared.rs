//! Buckets that all servers on one store take from.
//!
//! While much is left, a server lets requests pass and reports them to the store a moment later,
//! all buckets in one statement, so that a request costs no query. Near the limit each request
//! needs a query, and those that arrive together share one statement. A server that knows a bucket
//! to be empty refuses without a query: others can only have taken more. `docs/decisions/0020`
//! describes how exact that is.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use plumbline_store::{BucketGrant, BucketRate, BucketRequest, Store, StoreError, Timestamp};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep, timeout},
};

use super::{Bucket, RateStatus, SWEEP_AT_LEAST, now_ns, ns_per_token};

/// How late other servers may learn of requests that passed.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// How long the store's state of a bucket counts as current.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// The pause after a failed query.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A server lets at most this fraction (one in so many) of a whole bucket pass unreported, and
/// nothing once less than half is left. So two dozen servers do not exceed a limit together if each
/// of them has queried it lately; where one has not, they exceed it by at most this fraction, which
/// becomes a debt of the bucket.
const MAX_UNREPORTED_FRACTION: u32 = 64;
/// The largest debt of a bucket (one in so many), which is the same in the store.
const MAX_DEBT_FRACTION: i128 = 8;

/// The buckets of one limit that all servers share.
pub(crate) struct SharedBuckets {
    name: &'static str,
    limit: u32,
    store: Arc<dyn Store>,
    state: Mutex<State>,
    /// Notified when a request waits for a query.
    query_needed: Notify,
}

#[derive(Default)]
struct State {
    by_key: HashMap<String, KnownBucket>,
    /// The keys with unreported tokens or waiting requests.
    pending: HashSet<String>,
    /// Whether the task that queries the store is running.
    is_syncing: bool,
    sweep_at: usize,
    /// The time of the latest request.
    now: Option<Timestamp>,
}

/// The state of a bucket as far as this server knows it.
struct KnownBucket {
    /// The state in the store at the last query, less what passed here since.
    bucket: Bucket,
    /// Tokens that passed here since the last query.
    unreported: u32,
    waiters: Vec<Waiter>,
    queried_at: Option<Instant>,
}

/// A request that waits for `count` tokens, or with a count of 0 for the bucket's state.
struct Waiter {
    count: u32,
    reply: oneshot::Sender<Result<RateStatus, String>>,
}

/// The content of one statement: buckets whose waiters all want the same count.
struct Query {
    now: Timestamp,
    count: u32,
    parts: Vec<QueryPart>,
}

struct QueryPart {
    key: String,
    unreported: u32,
    waiters: Vec<Waiter>,
    /// The number of waiters that could possibly succeed.
    wanted: u32,
}

impl SharedBuckets {
    pub(super) fn new(name: &'static str, limit: u32, store: Arc<dyn Store>) -> Self {
        Self {
            name,
            limit,
            store,
            state: Mutex::default(),
            query_needed: Notify::new(),
        }
    }

    /// Takes `count` at once, or none of them.
    pub(super) async fn take(
        self: &Arc<Self>,
        key: &str,
        now: Timestamp,
        count: u32,
    ) -> Result<RateStatus, StoreError> {
        let count = count.min(self.limit);
        let reply = {
            let mut state = self.state.lock();
            state.now = Some(now);
            let known = state.known(key, now);
            let mut bucket = known.bucket;
            let status = self.take_from(&mut bucket, now, count);
            if count == 0 || status.is_refused() {
                return Ok(status);
            }
            let unreported = known.unreported + count;
            if known.waiters.is_empty() && self.may_pass_unreported(status.remaining, unreported) {
                (known.bucket, known.unreported) = (bucket, unreported);
                self.add_pending(&mut state, key);
                return Ok(status);
            }
            self.add_waiter(&mut state, key, count)
        };
        receive(reply).await
    }

    /// Returns the state as far as this server knows it, without taking anything.
    pub(super) fn peek(&self, key: &str, now: Timestamp) -> RateStatus {
        let state = self.state.lock();
        let known = state.by_key.get(key).map(|known| known.bucket);
        let mut bucket = known.unwrap_or(Bucket::full(now));
        self.take_from(&mut bucket, now, 0)
    }

    /// Returns the state without taking anything, after a query unless the last one was a moment
    /// ago.
    pub(super) async fn peek_shared(
        self: &Arc<Self>,
        key: &str,
        now: Timestamp,
    ) -> Result<RateStatus, StoreError> {
        let reply = {
            let mut state = self.state.lock();
            state.now = Some(now);
            let known = state.known(key, now);
            let mut bucket = known.bucket;
            let status = self.take_from(&mut bucket, now, 0);
            let is_fresh = known.queried_at.is_some_and(|at| at.elapsed() < FRESH_FOR);
            if is_fresh || status.remaining == 0 {
                return Ok(status);
            }
            self.add_waiter(&mut state, key, 0)
        };
        receive(reply).await
    }

    fn take_from(&self, bucket: &mut Bucket, now: Timestamp, count: u32) -> RateStatus {
        let burst_ns = ns_per_token(self.limit) * i128::from(self.limit);
        bucket.take_with_debt(now, self.limit, count, burst_ns / MAX_DEBT_FRACTION)
    }

    fn may_pass_unreported(&self, remaining: u32, unreported: u32) -> bool {
        remaining >= self.limit.div_ceil(2) && unreported <= self.limit / MAX_UNREPORTED_FRACTION
    }

    fn add_waiter(
        self: &Arc<Self>,
        state: &mut State,
        key: &str,
        count: u32,
    ) -> oneshot::Receiver<Result<RateStatus, String>> {
        let (reply, receiver) = oneshot::channel();
        if let Some(known) = state.by_key.get_mut(key) {
            known.waiters.push(Waiter { count, reply });
        }
        self.query_needed.notify_one();
        self.add_pending(state, key);
        receiver
    }

    fn add_pending(self: &Arc<Self>, state: &mut State, key: &str) {
        if !state.pending.contains(key) {
            state.pending.insert(key.to_owned());
        }
        if !state.is_syncing {
            state.is_syncing = true;
            tokio::spawn(Arc::clone(self).sync());
        }
    }

    /// Queries the store for as long as there are unreported tokens or waiting requests.
    async fn sync(self: Arc<Self>) {
        loop {
            if !self.has_waiters() {
                // After a timeout there are still tokens to report.
                let _ = timeout(REPORT_INTERVAL, self.query_needed.notified()).await;
            }
            let Some(queries) = self.next_queries() else {
                return;
            };
            for query in queries {
                let requests = query.parts.iter();
                let requests = requests.map(|part| self.bucket_request(part)).collect();
                let rate = self.rate(query.now, query.count);
                let result = match self.store.shared_limits() {
                    Some(limits) => limits.take(rate, requests).await,
                    None => Err(StoreError::Backend("limits are not shared".to_owned())),
                };
                match result {
                    Ok(grants) => self.complete(query, &grants),
                    Err(error) => {
                        tracing::warn!(%error, limit = self.name, "failed to query a shared limit");
                        self.fail(query, &error.to_string());
                        sleep(RETRY_AFTER).await;
                    }
                }
            }
        }
    }

    fn has_waiters(&self) -> bool {
        let state = self.state.lock();
        let waits = |key: &String| {
            let known = state.by_key.get(key);
            known.is_some_and(|known| !known.waiters.is_empty())
        };
        state.pending.iter().any(waits)
    }

    /// Returns queries with all unreported tokens, and for each bucket with its first waiters that
    /// want the same count. Returns `None` if there is nothing pending; the next request then
    /// starts the task again.
    fn next_queries(&self) -> Option<Vec<Query>> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(now) = state.now.filter(|_| !state.pending.is_empty()) else {
            state.is_syncing = false;
            return None;
        };
        let mut by_count: HashMap<u32, Vec<QueryPart>> = HashMap::new();
        for key in mem::take(&mut state.pending) {
            let Some(known) = state.by_key.get_mut(&key) else {
                continue;
            };
            let takes = |waiter: &&Waiter| waiter.count > 0;
            let first = known.waiters.iter().find(takes);
            let count = first.map_or(1, |waiter| waiter.count);
            let fits = |waiter: &&Waiter| waiter.count == 0 || waiter.count == count;
            let fitting = known.waiters.iter().take_while(fits).count();
            let rest = known.waiters.split_off(fitting);
            let waiters = mem::replace(&mut known.waiters, rest);
            if !known.waiters.is_empty() {
                state.pending.insert(key.clone());
            }
            let unreported = mem::take(&mut known.unreported);
            let wanted = waiters.iter().filter(takes).count();
            // A bucket never holds more than this; the remaining waiters are refused.
            let possible = self.limit.saturating_sub(unreported) / count;
            let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(possible);
            by_count.entry(count).or_default().push(QueryPart {
                key,
                unreported,
                waiters,
                wanted,
            });
        }
        let query = |(count, parts)| Query { now, count, parts };
        Some(by_count.into_iter().map(query).collect())
    }

    fn rate(&self, now: Timestamp, count: u32) -> BucketRate {
        let each = ns_per_token(self.limit);
        BucketRate {
            now_ns: saturating_i64(now_ns(now)),
            burst_ns: saturating_i64(each * i128::from(self.limit)),
            cost_ns: saturating_i64(each * i128::from(count)),
        }
    }

    fn bucket_request(&self, part: &QueryPart) -> BucketRequest {
        BucketRequest {
            bucket: format!("{} {}", self.name, part.key),
            debt_ns: saturating_i64(ns_per_token(self.limit) * i128::from(part.unreported)),
            requested: part.wanted,
        }
    }

    /// Stores the results of a query, and replies to its waiters.
    fn complete(&self, query: Query, grants: &[BucketGrant]) {
        let mut state = self.state.lock();
        let each = ns_per_token(self.limit);
        for (part, grant) in query.parts.into_iter().zip(grants) {
            let known = state.known(&part.key, query.now);
            let full_at_ns = i128::from(grant.full_at_ns);
            known.bucket.full_at_ns = full_at_ns + each * i128::from(known.unreported);
            known.queried_at = Some(Instant::now());
            let mut granted = grant.granted;
            for waiter in part.waiters {
                let status = if waiter.count > 0 && granted > 0 {
                    granted -= 1;
                    let later_ns = each * i128::from(query.count) * i128::from(granted);
                    let mut bucket = Bucket {
                        full_at_ns: full_at_ns - later_ns,
                    };
                    self.take_from(&mut bucket, query.now, 0)
                } else {
                    let mut bucket = known.bucket;
                    self.take_from(&mut bucket, query.now, waiter.count)
                };
                // The tokens stay taken if the request was dropped in the meantime.
                let _ = waiter.reply.send(Ok(status));
            }
        }
    }

    /// Replies to the waiters of a failed query. Its tokens are reported again the next time. If
    /// the query was in fact executed, they count twice, and no client gets more than its limit.
    fn fail(&self, query: Query, error: &str) {
        let mut state = self.state.lock();
        for part in query.parts {
            let known = state.known(&part.key, query.now);
            known.unreported += part.unreported;
            for waiter in part.waiters {
                let _ = waiter.reply.send(Err(error.to_owned()));
            }
            if part.unreported > 0 {
                state.pending.insert(part.key);
            }
        }
    }
}

impl State {
    /// Returns the bucket of a key. Buckets that are full and fully reported are removed each time
    /// the number of buckets could have doubled.
    fn known(&mut self, key: &str, now: Timestamp) -> &mut KnownBucket {
        if self.by_key.len() >= self.sweep_at.max(SWEEP_AT_LEAST) && !self.by_key.contains_key(key)
        {
            let pending = &self.pending;
            self.by_key.retain(|key, known| {
                !known.bucket.is_full(now) || known.unreported > 0 || pending.contains(key)
            });
            self.sweep_at = self.by_key.len() * 2;
        }
        self.by_key
            .entry(key.to_owned())
            .or_insert_with(|| KnownBucket {
                bucket: Bucket::full(now),
                unreported: 0,
                waiters: Vec::new(),
                queried_at: None,
            })
    }
}

async fn receive(
    reply: oneshot::Receiver<Result<RateStatus, String>>,
) -> Result<RateStatus, StoreError> {
    match reply.await {
        Ok(result) => result.map_err(StoreError::Backend),
        Err(_) => Err(StoreError::Backend(
            "the query of a shared limit was dropped".to_owned(),
        )),
    }
}

fn saturating_i64(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
