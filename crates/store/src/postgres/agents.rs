//! Agents: tokens, presence and leases.

use async_trait::async_trait;
use tokio_postgres::Row;

use super::connect::{change, row, rows};
use super::notifier::Wakeup;
use super::{PostgresStore, audits, digest, read_u32};
use crate::{
    AgentBounds, AgentPresence, AgentRecord, AgentStore, AttemptState, KeyDigest, Lease,
    LeaseOwner, PRESENCE_RETENTION_MS, ProcessSet, StoreError, Timestamp,
};

macro_rules! select_agents {
    ($tail:literal) => {
        concat!(
            "SELECT id, name, digest, created_at, revoked_at, drained_at, locations, slots
             FROM agents ",
            $tail
        )
    };
}

macro_rules! select_leases {
    ($tail:literal) => {
        concat!(
            "SELECT tracking_id, audit_id, attempt, lease_owner, lease_expires_at,
                    url, device, network, location, options, runs, faults, state
             FROM audits ",
            $tail
        )
    };
}

#[async_trait]
impl AgentStore for PostgresStore {
    async fn add_agent(
        &self,
        name: &str,
        token_id: &str,
        digest: KeyDigest,
        bounds: &AgentBounds,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (name, token_id) = (name.to_owned(), token_id.to_owned());
        let (locations, slots) = (bounds.locations_column()?, bounds.slots.map(i64::from));
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                let added = change(
                    db,
                    "INSERT INTO agents (id, name, digest, created_at, locations, slots)
                     VALUES ($1, $2, $3, $4, $5, $6)
                     ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING",
                    &[
                        &token_id,
                        &name,
                        &digest.0.as_slice(),
                        &now.0,
                        &locations,
                        &slots,
                    ],
                )
                .await?;
                match added {
                    0 => Err(StoreError::InUse("agent's name")),
                    _ => Ok(()),
                }
            })
        })
        .await
    }

    async fn agent(&self, token_id: &str) -> Result<Option<AgentRecord>, StoreError> {
        let token_id = token_id.to_owned();
        self.read(move |db| {
            Box::pin(async move {
                let row = row(db, select_agents!("WHERE id = $1"), &[&token_id]).await?;
                row.as_ref().map(agent).transpose()
            })
        })
        .await
    }

    async fn agents(&self) -> Result<Vec<AgentRecord>, StoreError> {
        self.read(|db| {
            Box::pin(async move {
                let rows = rows(db, select_agents!("ORDER BY name, created_at, id"), &[]).await?;
                rows.iter().map(agent).collect()
            })
        })
        .await
    }

    async fn revoke_agent(&self, name: &str, now: Timestamp) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                let changed = change(
                    db,
                    "UPDATE agents SET revoked_at = $1 WHERE name = $2 AND revoked_at IS NULL",
                    &[&now.0, &name],
                )
                .await?;
                found_if(changed)
            })
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
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                let changed = change(
                    db,
                    "UPDATE agents SET drained_at = CASE WHEN $1 THEN coalesce(drained_at, $2) END
                     WHERE name = $3 AND revoked_at IS NULL",
                    &[&drained, &now.0, &name],
                )
                .await?;
                found_if(changed)
            })
        })
        .await
    }

    async fn record_presence(&self, presence: AgentPresence) -> Result<(), StoreError> {
        self.write_statement(move |db| {
            Box::pin(async move {
                let oldest_kept = presence.seen_at.0.saturating_sub(PRESENCE_RETENTION_MS);
                change(
                    db,
                    "WITH deleted AS (
                         DELETE FROM sightings WHERE process IN (
                             SELECT process FROM sightings WHERE seen_at < $9 AND process <> $1
                             FOR UPDATE SKIP LOCKED))
                     INSERT INTO sightings (process, agent_id, location, chromium, host_index,
                                            slots, version, seen_at)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                     ON CONFLICT (process) DO UPDATE SET
                         agent_id = excluded.agent_id, location = excluded.location,
                         chromium = excluded.chromium, host_index = excluded.host_index,
                         slots = excluded.slots, version = excluded.version,
                         seen_at = excluded.seen_at",
                    &[
                        &presence.process.to_string(),
                        &presence.agent_id,
                        &presence.location,
                        &presence.chromium,
                        &presence.host_index,
                        &i64::from(presence.slots),
                        &presence.version,
                        &presence.seen_at.0,
                        &oldest_kept,
                    ],
                )
                .await?;
                Ok(())
            })
        })
        .await
    }

    async fn presences(&self, since: Timestamp) -> Result<Vec<AgentPresence>, StoreError> {
        self.read(move |db| {
            Box::pin(async move {
                let rows = rows(
                    db,
                    "SELECT process, agent_id, location, chromium, host_index, slots, version,
                            seen_at
                     FROM sightings WHERE seen_at >= $1 ORDER BY process",
                    &[&since.0],
                )
                .await?;
                rows.iter().map(presence).collect()
            })
        })
        .await
    }

    async fn active_locations(&self, since: Timestamp) -> Result<Vec<String>, StoreError> {
        self.read(move |db| {
            Box::pin(async move {
                let rows = rows(
                    db,
                    "SELECT DISTINCT sightings.location FROM sightings
                     LEFT JOIN agents ON agents.id = sightings.agent_id
                     WHERE sightings.seen_at >= $1 AND agents.revoked_at IS NULL
                           AND agents.drained_at IS NULL
                     ORDER BY sightings.location",
                    &[&since.0],
                )
                .await?;
                rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
            })
        })
        .await
    }

    async fn remove_presence(&self, processes: &ProcessSet) -> Result<u64, StoreError> {
        let removable = processes.clone();
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                let rows = rows(db, "SELECT process FROM sightings", &[]).await?;
                let processes = rows.iter().map(|row| Ok(row.try_get::<_, &str>(0)?));
                let mut processes = processes.collect::<Result<Vec<_>, StoreError>>()?;
                processes.retain(|process| removable.contains(&(*process).into()));
                let sql = "DELETE FROM sightings WHERE process = ANY($1)";
                change(db, sql, &[&processes]).await
            })
        })
        .await
    }

    async fn attempt_state(
        &self,
        tracking_id: &str,
        attempt: u32,
    ) -> Result<AttemptState, StoreError> {
        let tracking_id = tracking_id.to_owned();
        self.read(move |db| {
            Box::pin(async move {
                let sql = select_leases!("WHERE tracking_id = $1 AND attempt = $2");
                let row = row(db, sql, &[&tracking_id, &i64::from(attempt)]).await?;
                let Some(row) = row else {
                    return Ok(AttemptState::Lost);
                };
                match row.try_get(12)? {
                    "running" => lease(&row).map(Box::new).map(AttemptState::Held),
                    "completed" => Ok(AttemptState::Finished),
                    _ => Ok(AttemptState::Lost),
                }
            })
        })
        .await
    }

    async fn running(&self, owner: Option<&LeaseOwner>) -> Result<Vec<Lease>, StoreError> {
        let owner = owner.map(ToString::to_string);
        self.read(move |db| {
            Box::pin(async move {
                let found = match &owner {
                    Some(owner) => {
                        let sql = select_leases!(
                            "WHERE state = 'running' AND lease_owner = $1 ORDER BY position"
                        );
                        rows(db, sql, &[owner]).await?
                    }
                    None => {
                        let sql = select_leases!("WHERE state = 'running' ORDER BY position");
                        rows(db, sql, &[]).await?
                    }
                };
                found.iter().map(lease).collect()
            })
        })
        .await
    }
}

fn found_if(changed: u64) -> Result<(), StoreError> {
    match changed {
        0 => Err(StoreError::NotFound("agent")),
        _ => Ok(()),
    }
}

fn agent(row: &Row) -> Result<AgentRecord, StoreError> {
    let is_bound = row.try_get::<_, Option<i64>>(7)?.is_some();
    let slots = is_bound.then(|| read_u32(row, 7)).transpose()?;
    Ok(AgentRecord {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        digest: KeyDigest(digest(row, 2)?),
        bounds: AgentBounds::from_columns(row.try_get(6)?, slots),
        created_at: Timestamp(row.try_get(3)?),
        revoked_at: row.try_get::<_, Option<i64>>(4)?.map(Timestamp),
        drained_at: row.try_get::<_, Option<i64>>(5)?.map(Timestamp),
    })
}

fn presence(row: &Row) -> Result<AgentPresence, StoreError> {
    Ok(AgentPresence {
        process: row.try_get::<_, &str>(0)?.into(),
        agent_id: row.try_get(1)?,
        location: row.try_get(2)?,
        chromium: row.try_get(3)?,
        host_index: row.try_get(4)?,
        slots: read_u32(row, 5)?,
        version: row.try_get(6)?,
        seen_at: Timestamp(row.try_get(7)?),
    })
}

/// Returns the lease of a running audit from a row of `select_leases`.
fn lease(row: &Row) -> Result<Lease, StoreError> {
    Ok(Lease {
        tracking_id: row.try_get(0)?,
        audit_id: row.try_get(1)?,
        attempt: read_u32(row, 2)?,
        owner: row.try_get::<_, &str>(3)?.into(),
        expires_at: Timestamp(row.try_get(4)?),
        order: audits::order(row, 5)?,
        runs: read_u32(row, 10)?,
        faults: read_u32(row, 11)?,
    })
}
