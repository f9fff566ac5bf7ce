//! Who is there: agents as they were last seen, and what is stored about their tokens. Asked of the store once for all who
//! wait, and believed for a moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plumbline_store::{AgentPresence, AgentRecord, AgentStore, StoreError, Timestamp};
use tokio::time::Instant;

use crate::Clock;

/// How long what is known of who stands where may be out of date.
const PLACES_FRESH_FOR: Duration = Duration::from_secs(2);
/// The same of tokens, for those who have proven themselves and wait since: a thousand of them ask for the same few.
const RECORD_FRESH_FOR: Duration = Duration::from_secs(1);

pub(super) struct Roll {
    agents: Arc<dyn AgentStore>,
    clock: Clock,
    /// How long an agent may be silent.
    lease: Duration,
    /// When this server last wrote down that it saw a process.
    seen: Mutex<HashMap<String, Instant>>,
    /// Held while it is asked for, so that who comes meanwhile waits for the same answer.
    stood_at: tokio::sync::Mutex<Option<(Instant, Vec<String>)>>,
    /// By the id of a token.
    records: Mutex<HashMap<String, (Instant, Option<AgentRecord>)>>,
}

impl Roll {
    pub(super) fn new(agents: Arc<dyn AgentStore>, clock: Clock, lease: Duration) -> Self {
        Self {
            agents,
            clock,
            lease,
            seen: Mutex::default(),
            stood_at: tokio::sync::Mutex::default(),
            records: Mutex::default(),
        }
    }

    /// Notes that this agent lives, not more often than it takes to be believed.
    pub(super) async fn see(&self, agent: &AgentPresence) -> Result<(), StoreError> {
        let enough = self.lease / 2;
        let known = locked(&self.seen).get(&agent.process).copied();
        if known.is_some_and(|at| at.elapsed() < enough) {
            return Ok(());
        }
        let now = Instant::now();
        let sighting = AgentPresence {
            seen_at: self.now(),
            ..agent.clone()
        };
        self.agents.record_presence(sighting).await?;
        {
            let mut seen = locked(&self.seen);
            seen.retain(|_, at| at.elapsed() < enough);
            seen.insert(agent.process.clone(), now);
        }
        let mut stood_at = self.stood_at.lock().await;
        if let Some((_, places)) = &*stood_at
            && !places.contains(&agent.location)
        {
            // Its place is its own from now on.
            *stood_at = None;
        }
        Ok(())
    }

    /// What is stored about a token, as it was a moment ago.
    pub(super) async fn record(&self, token_id: &str) -> Result<Option<AgentRecord>, StoreError> {
        let known = locked(&self.records).get(token_id).cloned();
        if let Some((at, record)) = known
            && at.elapsed() < RECORD_FRESH_FOR
        {
            return Ok(record);
        }
        let asked_at = Instant::now();
        let record = self.agents.agent(token_id).await?;
        let mut records = locked(&self.records);
        records.retain(|_, (at, _)| at.elapsed() < RECORD_FRESH_FOR);
        records.insert(token_id.to_owned(), (asked_at, record.clone()));
        Ok(record)
    }

    /// Where those stand who may get work.
    pub(super) async fn stood_at(&self) -> Result<Vec<String>, StoreError> {
        let mut stood_at = self.stood_at.lock().await;
        if let Some((at, known)) = &*stood_at
            && at.elapsed() < PLACES_FRESH_FOR
        {
            return Ok(known.clone());
        }
        let since = self.now().0.saturating_sub(ms(self.lease * 3));
        let found = self.agents.active_locations(Timestamp(since)).await?;
        *stood_at = Some((Instant::now(), found.clone()));
        Ok(found)
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

fn ms(duration: Duration) -> i64 {
    duration.as_millis().try_into().unwrap_or(i64::MAX)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
