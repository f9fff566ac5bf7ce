//! Buckets that every server on one store takes from.
//!
//! While much is left, a server lets requests pass and tells the others a moment later, all buckets in one statement; so
//! a request costs no question. Near the limit each request asks, those that come together in one statement. A server that
//! knows a bucket to be empty refuses without asking: others can only have taken more. `docs/decisions/0026` says how
//! exact that is.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plumbline_store::{BucketGrant, BucketRate, BucketRequest, Store, StoreError, Timestamp};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep, timeout},
};

use super::{Bucket, SWEEP_AT_LEAST, Turn, each_ns, now_ns};

/// How late others may hear what was let pass.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// What was heard longer ago may be out of date.
const FRESH_FOR: Duration = Duration::from_secs(1);
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Of a whole bucket, a server lets no more than this part pass that others have not heard of; and none at all once less
/// than half is left. So two dozen servers do not overstep a limit together that each of them has heard of lately, and
/// where one has not, it is by this part at most, which the bucket then owes.
const UNTOLD_PART: u32 = 64;
/// How much a bucket can owe, as the store has it.
const OWED_PART: i128 = 8;

pub(crate) struct SharedBuckets {
    name: &'static str,
    limit: u32,
    store: Arc<dyn Store>,
    kept: Mutex<Kept>,
    /// Rung when somebody waits for an answer.
    asked: Notify,
}

#[derive(Default)]
struct Kept {
    by_key: HashMap<String, Known>,
    /// Keys with something to tell or to ask.
    open: HashSet<String>,
    is_telling: bool,
    sweep_at: usize,
    /// The time of the latest request.
    now: Option<Timestamp>,
}

/// What this server knows of a bucket.
struct Known {
    /// As it was last heard of, with all that was let pass here since.
    bucket: Bucket,
    untold: u32,
    asking: Vec<Ask>,
    heard_at: Option<Instant>,
}

/// Somebody who waits for `count`, or for 0 to be told what there is.
struct Ask {
    count: u32,
    reply: oneshot::Sender<Result<Turn, String>>,
}

/// What is asked in one statement: buckets of which each who waits wants the same.
struct Round {
    now: Timestamp,
    count: u32,
    parts: Vec<Part>,
}

struct Part {
    key: String,
    untold: u32,
    asking: Vec<Ask>,
    /// How many of them can be asked for at all.
    wanted: u32,
}

impl SharedBuckets {
    pub(super) fn new(name: &'static str, limit: u32, store: Arc<dyn Store>) -> Self {
        Self {
            name,
            limit,
            store,
            kept: Mutex::default(),
            asked: Notify::new(),
        }
    }

    pub(super) async fn take(
        self: &Arc<Self>,
        key: &str,
        now: Timestamp,
        count: u32,
    ) -> Result<Turn, StoreError> {
        let count = count.min(self.limit);
        let answer = {
            let mut kept = self.locked();
            kept.now = Some(now);
            let known = kept.known(key, now);
            let mut bucket = known.bucket;
            let turn = self.taken_from(&mut bucket, now, count);
            if count == 0 || turn.is_refused() {
                return Ok(turn);
            }
            let untold = known.untold + count;
            if known.asking.is_empty() && self.need_not_ask(turn.remaining, untold) {
                (known.bucket, known.untold) = (bucket, untold);
                self.open(&mut kept, key);
                return Ok(turn);
            }
            self.ask(&mut kept, key, count)
        };
        heard(answer).await
    }

    pub(super) fn look(&self, key: &str, now: Timestamp) -> Turn {
        let kept = self.locked();
        let known = kept.by_key.get(key).map(|known| known.bucket);
        let mut bucket = known.unwrap_or(Bucket::full(now));
        self.taken_from(&mut bucket, now, 0)
    }

    pub(super) async fn look_around(
        self: &Arc<Self>,
        key: &str,
        now: Timestamp,
    ) -> Result<Turn, StoreError> {
        let answer = {
            let mut kept = self.locked();
            kept.now = Some(now);
            let known = kept.known(key, now);
            let mut bucket = known.bucket;
            let turn = self.taken_from(&mut bucket, now, 0);
            let is_fresh = known.heard_at.is_some_and(|at| at.elapsed() < FRESH_FOR);
            if is_fresh || turn.remaining == 0 {
                return Ok(turn);
            }
            self.ask(&mut kept, key, 0)
        };
        heard(answer).await
    }

    fn taken_from(&self, bucket: &mut Bucket, now: Timestamp, count: u32) -> Turn {
        let burst_ns = each_ns(self.limit) * i128::from(self.limit);
        bucket.take_owing(now, self.limit, count, burst_ns / OWED_PART)
    }

    fn need_not_ask(&self, remaining: u32, untold: u32) -> bool {
        remaining >= self.limit.div_ceil(2) && untold <= self.limit / UNTOLD_PART
    }

    fn ask(
        self: &Arc<Self>,
        kept: &mut Kept,
        key: &str,
        count: u32,
    ) -> oneshot::Receiver<Result<Turn, String>> {
        let (reply, answer) = oneshot::channel();
        if let Some(known) = kept.by_key.get_mut(key) {
            known.asking.push(Ask { count, reply });
        }
        self.asked.notify_one();
        self.open(kept, key);
        answer
    }

    fn open(self: &Arc<Self>, kept: &mut Kept, key: &str) {
        if !kept.open.contains(key) {
            kept.open.insert(key.to_owned());
        }
        if !kept.is_telling {
            kept.is_telling = true;
            tokio::spawn(Arc::clone(self).tell());
        }
    }

    /// For as long as there is anything to tell or to ask.
    async fn tell(self: Arc<Self>) {
        loop {
            if !self.somebody_waits() {
                // Past that time there is something to tell all the same.
                let _ = timeout(TELL_EVERY, self.asked.notified()).await;
            }
            let Some(rounds) = self.next_rounds() else {
                return;
            };
            for round in rounds {
                let takings = round.parts.iter().map(|part| self.taking(part)).collect();
                let rate = self.rate(round.now, round.count);
                let taken = match self.store.shared_limits() {
                    Some(limits) => limits.take(rate, takings).await,
                    None => Err(StoreError::Backend("limits are not shared".to_owned())),
                };
                match taken {
                    Ok(taken) => self.settle(round, &taken),
                    Err(error) => {
                        tracing::warn!(%error, limit = self.name, "a limit could not be asked for");
                        self.give_up(round, &error.to_string());
                        sleep(AGAIN_AFTER).await;
                    }
                }
            }
        }
    }

    fn somebody_waits(&self) -> bool {
        let kept = self.locked();
        let waits = |key: &String| kept.by_key.get(key).is_some_and(|k| !k.asking.is_empty());
        kept.open.iter().any(waits)
    }

    /// Everything there is to tell, and of those who wait for a bucket the first ones who want the same.
    /// `None` when there is nothing: then the next to come begins again.
    fn next_rounds(&self) -> Option<Vec<Round>> {
        let mut kept = self.locked();
        let kept = &mut *kept;
        let Some(now) = kept.now.filter(|_| !kept.open.is_empty()) else {
            kept.is_telling = false;
            return None;
        };
        let mut by_count: HashMap<u32, Vec<Part>> = HashMap::new();
        for key in mem::take(&mut kept.open) {
            let Some(known) = kept.by_key.get_mut(&key) else {
                continue;
            };
            let wants = |ask: &&Ask| ask.count > 0;
            let count = known.asking.iter().find(wants).map_or(1, |ask| ask.count);
            let same = |ask: &&Ask| ask.count == 0 || ask.count == count;
            let together = known.asking.iter().take_while(same).count();
            let rest = known.asking.split_off(together);
            let asking = mem::replace(&mut known.asking, rest);
            if !known.asking.is_empty() {
                kept.open.insert(key.clone());
            }
            let untold = mem::take(&mut known.untold);
            let wanted = asking.iter().filter(wants).count();
            // More than that is not there, and then they are refused.
            let room = self.limit.saturating_sub(untold) / count;
            let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(room);
            by_count.entry(count).or_default().push(Part {
                key,
                untold,
                asking,
                wanted,
            });
        }
        let round = |(count, parts)| Round { now, count, parts };
        Some(by_count.into_iter().map(round).collect())
    }

    fn rate(&self, now: Timestamp, count: u32) -> BucketRate {
        let each = each_ns(self.limit);
        BucketRate {
            now_ns: fits(now_ns(now)),
            burst_ns: fits(each * i128::from(self.limit)),
            cost_ns: fits(each * i128::from(count)),
        }
    }

    fn taking(&self, part: &Part) -> BucketRequest {
        BucketRequest {
            bucket: format!("{} {}", self.name, part.key),
            debt_ns: fits(each_ns(self.limit) * i128::from(part.untold)),
            requested: part.wanted,
        }
    }

    fn settle(&self, round: Round, taken: &[BucketGrant]) {
        let mut kept = self.locked();
        let each = each_ns(self.limit);
        for (part, taken) in round.parts.into_iter().zip(taken) {
            let known = kept.known(&part.key, round.now);
            let full_at_ns = i128::from(taken.full_at_ns);
            known.bucket.full_at_ns = full_at_ns + each * i128::from(known.untold);
            known.heard_at = Some(Instant::now());
            let mut left = taken.granted;
            for ask in part.asking {
                let turn = if ask.count > 0 && left > 0 {
                    left -= 1;
                    let others = each * i128::from(round.count) * i128::from(left);
                    let mut bucket = Bucket {
                        full_at_ns: full_at_ns - others,
                    };
                    self.taken_from(&mut bucket, round.now, 0)
                } else {
                    let mut bucket = known.bucket;
                    self.taken_from(&mut bucket, round.now, ask.count)
                };
                // Who has gone away has taken it all the same.
                let _ = ask.reply.send(Ok(turn));
            }
        }
    }

    /// What was let pass is told the next time. It may have been told: then it counts twice, and nobody gets more.
    fn give_up(&self, round: Round, error: &str) {
        let mut kept = self.locked();
        for part in round.parts {
            let known = kept.known(&part.key, round.now);
            known.untold += part.untold;
            for ask in part.asking {
                let _ = ask.reply.send(Err(error.to_owned()));
            }
            if part.untold > 0 {
                kept.open.insert(part.key);
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, Kept> {
        // What is kept is whole after every statement.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Buckets that are full and of which nothing is to be told are forgotten each time their number could have doubled.
    fn known(&mut self, key: &str, now: Timestamp) -> &mut Known {
        if self.by_key.len() >= self.sweep_at.max(SWEEP_AT_LEAST) && !self.by_key.contains_key(key)
        {
            let open = &self.open;
            self.by_key.retain(|key, known| {
                !known.bucket.is_full(now) || known.untold > 0 || open.contains(key)
            });
            self.sweep_at = self.by_key.len() * 2;
        }
        self.by_key.entry(key.to_owned()).or_insert_with(|| Known {
            bucket: Bucket::full(now),
            untold: 0,
            asking: Vec::new(),
            heard_at: None,
        })
    }
}

async fn heard(answer: oneshot::Receiver<Result<Turn, String>>) -> Result<Turn, StoreError> {
    match answer.await {
        Ok(said) => said.map_err(StoreError::Backend),
        Err(_) => Err(StoreError::Backend("a limit was not answered".to_owned())),
    }
}

fn fits(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
