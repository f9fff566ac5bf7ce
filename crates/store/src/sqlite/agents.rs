//! Agents: tokens, presence and leases.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::writer::Wakeup;
use super::{SqliteStore, audits};
use crate::{
    AgentBounds, AgentPresence, AgentRecord, AgentStore, AttemptState, KeyDigest, Lease,
    LeaseOwner, PRESENCE_RETENTION_MS, ProcessSet, StoreError, Timestamp,
};

const AGENT: &str =
    "SELECT id, name, digest, created_at, revoked_at, drained_at, locations, slots FROM agents";
const LEASE: &str = "SELECT tracking_id, audit_id, attempt, lease_owner, lease_expires_at,
                            url, device, network, location, options, runs, faults, state
                     FROM audits";

#[async_trait]
impl AgentStore for SqliteStore {
    async fn add_agent(
        &self,
        name: &str,
        token_id: &str,
        digest: KeyDigest,
        bounds: &AgentBounds,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (name, token_id) = (name.to_owned(), token_id.to_owned());
        let (locations, slots) = (bounds.locations_column()?, bounds.slots);
        self.writer
            .write(Wakeup::None, move |connection| {
                if active_agent_id(connection, &name)?.is_some() {
                    return Err(StoreError::InUse("agent's name"));
                }
                connection
                    .prepare_cached(
                        "INSERT INTO agents (id, name, digest, created_at, locations, slots)
                         VALUES (?, ?, ?, ?, ?, ?)",
                    )?
                    .execute(params![token_id, name, digest.0, now.0, locations, slots])?;
                Ok(())
            })
            .await
    }

    async fn agent(&self, token_id: &str) -> Result<Option<AgentRecord>, StoreError> {
        let token_id = token_id.to_owned();
        self.readers
            .quick(move |connection| {
                connection
                    .prepare_cached(&format!("{AGENT} WHERE id = ?"))?
                    .query_row([&token_id], agent)
                    .optional()
            })
            .await
    }

    async fn agents(&self) -> Result<Vec<AgentRecord>, StoreError> {
        self.readers
            .blocking(|connection| {
                let mut statement =
                    connection.prepare_cached(&format!("{AGENT} ORDER BY name, created_at, id"))?;
                let rows = statement.query_map([], agent)?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }

    async fn revoke_agent(&self, name: &str, now: Timestamp) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.writer
            .write(Wakeup::None, move |connection| {
                let id =
                    active_agent_id(connection, &name)?.ok_or(StoreError::NotFound("agent"))?;
                connection
                    .prepare_cached("UPDATE agents SET revoked_at = ? WHERE id = ?")?
                    .execute(params![now.0, id])?;
                Ok(())
            })
            .await
    }

    async fn drain_agent(
        &self,
        name: &str,
        drained: bool,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.writer
            .write(Wakeup::None, move |connection| {
                let id =
                    active_agent_id(connection, &name)?.ok_or(StoreError::NotFound("agent"))?;
                connection
                    .prepare_cached(
                        "UPDATE agents SET drained_at = CASE WHEN ? THEN coalesce(drained_at, ?) END
                         WHERE id = ?",
                    )?
                    .execute(params![drained, now.0, id])?;
                Ok(())
            })
            .await
    }

    async fn record_presence(&self, presence: AgentPresence) -> Result<(), StoreError> {
        self.writer
            .write(Wakeup::None, move |connection| {
                connection
                    .prepare_cached("DELETE FROM sightings WHERE seen_at < ?")?
                    .execute([presence.seen_at.0.saturating_sub(PRESENCE_RETENTION_MS)])?;
                connection
                    .prepare_cached(
                        "INSERT INTO sightings (process, agent_id, location, chromium, host_index,
                                                slots, version, seen_at)
                         VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                         ON CONFLICT (process) DO UPDATE SET
                             agent_id = excluded.agent_id, location = excluded.location,
                             chromium = excluded.chromium, host_index = excluded.host_index,
                             slots = excluded.slots, version = excluded.version,
                             seen_at = excluded.seen_at",
                    )?
                    .execute(params![
                        presence.process.to_string(),
                        presence.agent_id,
                        presence.location,
                        presence.chromium,
                        presence.host_index,
                        presence.slots,
                        presence.version,
                        presence.seen_at.0
                    ])?;
                Ok(())
            })
            .await
    }

    async fn presences(&self, since: Timestamp) -> Result<Vec<AgentPresence>, StoreError> {
        self.readers
            .blocking(move |connection| {
                let mut statement = connection.prepare_cached(
                    "SELECT process, agent_id, location, chromium, host_index, slots, version,
                            seen_at
                     FROM sightings WHERE seen_at >= ? ORDER BY process",
                )?;
                let rows = statement.query_map([since.0], |row| {
                    Ok(AgentPresence {
                        process: row.get::<_, String>(0)?.as_str().into(),
                        agent_id: row.get(1)?,
                        location: row.get(2)?,
                        chromium: row.get(3)?,
                        host_index: row.get(4)?,
                        slots: row.get(5)?,
                        version: row.get(6)?,
                        seen_at: Timestamp(row.get(7)?),
                    })
                })?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }

    async fn active_locations(&self, since: Timestamp) -> Result<Vec<String>, StoreError> {
        self.readers
            .quick(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT DISTINCT sightings.location FROM sightings
                         LEFT JOIN agents ON agents.id = sightings.agent_id
                         WHERE sightings.seen_at >= ? AND agents.revoked_at IS NULL
                               AND agents.drained_at IS NULL
                         ORDER BY sightings.location",
                    )?
                    .query_map([since.0], |row| row.get(0))?
                    .collect()
            })
            .await
    }

    async fn remove_presence(&self, processes: &ProcessSet) -> Result<u64, StoreError> {
        let removable = processes.clone();
        self.writer
            .write(Wakeup::None, move |connection| {
                let processes = connection
                    .prepare_cached("SELECT process FROM sightings")?
                    .query_map([], |row| row.get(0))?
                    .collect::<Result<Vec<String>, _>>()?;
                let mut removed = 0;
                for process in processes
                    .iter()
                    .filter(|name| removable.contains(&name.as_str().into()))
                {
                    connection
                        .prepare_cached("DELETE FROM sightings WHERE process = ?")?
                        .execute([process])?;
                    removed += 1;
                }
                Ok(removed)
            })
            .await
    }

    async fn attempt_state(
        &self,
        tracking_id: &str,
        attempt: u32,
    ) -> Result<AttemptState, StoreError> {
        let tracking_id = tracking_id.to_owned();
        self.readers
            .quick(move |connection| {
                let state = connection
                    .prepare_cached(&format!("{LEASE} WHERE tracking_id = ? AND attempt = ?"))?
                    .query_row(params![tracking_id, attempt], |row| {
                        match row.get::<_, String>(12)?.as_str() {
                            "running" => lease(row).map(Box::new).map(AttemptState::Held),
                            "completed" => Ok(AttemptState::Finished),
                            _ => Ok(AttemptState::Lost),
                        }
                    })
                    .optional()?;
                Ok(state.unwrap_or(AttemptState::Lost))
            })
            .await
    }

    async fn running(&self, owner: Option<&LeaseOwner>) -> Result<Vec<Lease>, StoreError> {
        let Some(owner) = owner.map(ToString::to_string) else {
            return self
                .readers
                .blocking(|connection| {
                    let sql = format!(
                        "{LEASE} INDEXED BY audits_running WHERE state = 'running' ORDER BY position"
                    );
                    let mut statement = connection.prepare_cached(&sql)?;
                    let rows = statement.query_map([], lease)?;
                    Ok(rows.collect::<Result<_, _>>()?)
                })
                .await;
        };
        self.readers
            .quick(move |connection| {
                connection
                    .prepare_cached(&format!(
                        "{LEASE} INDEXED BY audits_by_owner
                         WHERE state = 'running' AND lease_owner = ? ORDER BY position"
                    ))?
                    .query_map([&owner], lease)?
                    .collect()
            })
            .await
    }
}

/// Returns the id of the agent that currently has this name.
fn active_agent_id(connection: &Connection, name: &str) -> Result<Option<String>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT id FROM agents WHERE name = ? AND revoked_at IS NULL")?
        .query_row([name], |row| row.get(0))
        .optional()
}

fn agent(row: &Row<'_>) -> Result<AgentRecord, rusqlite::Error> {
    Ok(AgentRecord {
        id: row.get(0)?,
        name: row.get(1)?,
        digest: KeyDigest(row.get(2)?),
        bounds: AgentBounds::from_columns(row.get::<_, Option<String>>(6)?.as_deref(), row.get(7)?),
        created_at: Timestamp(row.get(3)?),
        revoked_at: row.get::<_, Option<i64>>(4)?.map(Timestamp),
        drained_at: row.get::<_, Option<i64>>(5)?.map(Timestamp),
    })
}

/// Returns the lease of a running audit from a row that [`LEASE`] selects.
fn lease(row: &Row<'_>) -> Result<Lease, rusqlite::Error> {
    Ok(Lease {
        tracking_id: row.get(0)?,
        audit_id: row.get(1)?,
        attempt: row.get(2)?,
        owner: row.get::<_, String>(3)?.as_str().into(),
        expires_at: Timestamp(row.get(4)?),
        order: audits::order(row, 5)?,
        runs: row.get(10)?,
        faults: row.get(11)?,
    })
}
