//! The agents that are active, and the records of their tokens. Both are read from the store once
//! for all waiting requests, and cached for a moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plumbline_store::{
    AgentPresence, AgentProcess, AgentRecord, AgentStore, StoreError, Timestamp,
};
use tokio::time::Instant;

use crate::time::Clock;

/// How long the list of active locations is cached.
const LOCATIONS_CACHED_FOR: Duration = Duration::from_secs(2);
/// How long token records are cached for agents that have authenticated and are waiting: a thousand
/// of them need the same few records.
const RECORD_CACHED_FOR: Duration = Duration::from_secs(1);

/// Records which agents are active, and caches what the store knows about them.
pub(super) struct AgentRegistry {
    agents: Arc<dyn AgentStore>,
    clock: Clock,
    /// How long an agent may be silent.
    lease: Duration,
    /// When this server last recorded the presence of each process.
    recorded_at: Mutex<HashMap<AgentProcess, Instant>>,
    /// The active locations; locked during the query, so that concurrent callers wait for the same
    /// result.
    active_locations: tokio::sync::Mutex<Option<(Instant, Vec<String>)>>,
    /// The cached records, by token id.
    records: Mutex<HashMap<String, (Instant, Option<AgentRecord>)>>,
}

impl AgentRegistry {
    pub(super) fn new(agents: Arc<dyn AgentStore>, clock: Clock, lease: Duration) -> Self {
        Self {
            agents,
            clock,
            lease,
            recorded_at: Mutex::default(),
            active_locations: tokio::sync::Mutex::default(),
            records: Mutex::default(),
        }
    }

    /// Records that this agent is active, but no more often than needed to keep it listed.
    pub(super) async fn record_presence(&self, agent: &AgentPresence) -> Result<(), StoreError> {
        let interval = self.lease / 2;
        let last = self.recorded_at.lock().get(&agent.process).copied();
        if last.is_some_and(|at| at.elapsed() < interval) {
            return Ok(());
        }
        let now = Instant::now();
        let presence = AgentPresence {
            seen_at: self.now(),
            ..agent.clone()
        };
        self.agents.record_presence(presence).await?;
        {
            let mut recorded_at = self.recorded_at.lock();
            recorded_at.retain(|_, at| at.elapsed() < interval);
            recorded_at.insert(agent.process.clone(), now);
        }
        let mut active_locations = self.active_locations.lock().await;
        if let Some((_, locations)) = &*active_locations
            && !locations.contains(&agent.location)
        {
            // From now on its location is not simulated by others.
            *active_locations = None;
        }
        Ok(())
    }

    /// Returns the record of a token, which may be up to [`RECORD_CACHED_FOR`] old.
    pub(super) async fn record(&self, token_id: &str) -> Result<Option<AgentRecord>, StoreError> {
        let cached = self.records.lock().get(token_id).cloned();
        if let Some((at, record)) = cached
            && at.elapsed() < RECORD_CACHED_FOR
        {
            return Ok(record);
        }
        let read_at = Instant::now();
        let record = self.agents.agent(token_id).await?;
        let mut records = self.records.lock();
        records.retain(|_, (at, _)| at.elapsed() < RECORD_CACHED_FOR);
        records.insert(token_id.to_owned(), (read_at, record.clone()));
        Ok(record)
    }

    /// Returns the locations at which agents are active that may get work.
    pub(super) async fn active_locations(&self) -> Result<Vec<String>, StoreError> {
        let mut active_locations = self.active_locations.lock().await;
        if let Some((at, locations)) = &*active_locations
            && at.elapsed() < LOCATIONS_CACHED_FOR
        {
            return Ok(locations.clone());
        }
        let since = self.now().0.saturating_sub(ms(self.lease * 3));
        let locations = self.agents.active_locations(Timestamp(since)).await?;
        *active_locations = Some((Instant::now(), locations.clone()));
        Ok(locations)
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

fn ms(duration: Duration) -> i64 {
    duration.as_millis().try_into().unwrap_or(i64::MAX)
}
