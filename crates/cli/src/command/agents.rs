//! `admin agents`: lists, registers, drains and revokes agents.

use std::collections::HashMap;
use std::sync::Arc;

use plumbline_report::contract::iso8601_ms;
use plumbline_store::{
    AgentBounds, AgentPresence, AgentRecord, AgentStore, AgentToken, Lease, PRESENCE_RETENTION_MS,
    PostgresOptions, StoreError, Timestamp,
};

use crate::args::{AdminAgentsArgs, AgentAddArgs, AgentNameArgs, AgentsCommand, DataArgs};
use crate::clock::now;
use crate::exit::Exit;
use crate::settings::load_catalog;
use crate::standard_output as out;
use crate::storage::{self, StoreLocation};
use crate::suggestion::unknown_location;

/// The maximum length of a name, which is shown in tables.
const MAX_NAME_CHARS: usize = 40;
/// The time without a sign of an agent after which it is offline. Idle agents report at least this
/// often.
const OFFLINE_AFTER_MS: i64 = 90_000;

/// Runs `plumbline admin agents`.
pub async fn run(args: AdminAgentsArgs) -> Result<Exit, Exit> {
    match args.command {
        None => list(args.data).await,
        Some(AgentsCommand::Add(args)) => add(args).await,
        Some(AgentsCommand::Drain(args)) => drain(args, true).await,
        Some(AgentsCommand::Resume(args)) => drain(args, false).await,
        Some(AgentsCommand::Revoke(args)) => revoke(args).await,
    }
}

async fn add(args: AgentAddArgs) -> Result<Exit, Exit> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !(1..=MAX_NAME_CHARS).contains(&args.name.len()) || !args.name.chars().all(is_allowed) {
        return Err(Exit::usage(format!(
            "a name has 1 to {MAX_NAME_CHARS} letters, digits, `-`, `_` and `.`"
        )));
    }
    let catalog = load_catalog(args.catalog.as_deref())?;
    let is_known = |id: &&String| catalog.location(id).is_some();
    if let Some(unknown) = args.location.iter().find(|id| !is_known(id)) {
        return Err(Exit::usage(unknown_location(&catalog, unknown)));
    }
    let bounds = AgentBounds {
        locations: Some(args.location),
        slots: Some(args.slots),
    };
    let token = AgentToken::generate().map_err(Exit::failed)?;
    let (id, digest) = (token.key().id(), token.key().digest());
    let store = open(args.data).await?;
    match store
        .add_agent(&args.name, id, digest, &bounds, now())
        .await
    {
        Ok(()) => {}
        Err(StoreError::InUse(_)) => {
            return Err(Exit::failed(format!(
                "agent `{}` already exists; revoke it first, or use another name",
                args.name
            )));
        }
        Err(error) => return Err(Exit::failed(error)),
    }
    out::line("The token is not shown again:")?;
    out::line(token.reveal())?;
    Ok(Exit::Done)
}

async fn drain(args: AgentNameArgs, drained: bool) -> Result<Exit, Exit> {
    let store = open(args.data).await?;
    let result = store.drain_agent(&args.name, drained, now()).await;
    map_not_found(result, &args.name)?;
    out::line(if drained {
        format!("{} gets no new audits", args.name)
    } else {
        format!("{} gets audits again", args.name)
    })?;
    Ok(Exit::Done)
}

async fn revoke(args: AgentNameArgs) -> Result<Exit, Exit> {
    let result = open(args.data).await?.revoke_agent(&args.name, now()).await;
    map_not_found(result, &args.name)?;
    out::line(format_args!("revoked {}", args.name))?;
    Ok(Exit::Done)
}

/// Converts the result of a change to the agent with this name.
fn map_not_found(result: Result<(), StoreError>, name: &str) -> Result<(), Exit> {
    result.map_err(|error| match error {
        StoreError::NotFound(_) => Exit::failed(format!("unknown agent `{name}`")),
        error => Exit::failed(error),
    })
}

async fn list(data: DataArgs) -> Result<Exit, Exit> {
    let (store, now) = (open(data).await?, now());
    let agents = store.agents().await.map_err(Exit::failed)?;
    let since = Timestamp(now.0 - PRESENCE_RETENTION_MS);
    let presences = store.presences(since).await.map_err(Exit::failed)?;
    let running = store.running(None).await.map_err(Exit::failed)?;
    out::line(format_args!(
        "{:<20}{:<10}{:<12}{:<26}{:>8}{:>7}  {:<10}{:<20}RUNNING",
        "AGENT", "STATE", "LOCATION", "CHROMIUM", "INDEX", "SLOTS", "VERSION", "TOKEN"
    ))?;
    let by_id: HashMap<_, _> = agents.iter().map(|agent| (&agent.id, agent)).collect();
    for presence in &presences {
        let agent = presence.agent_id.as_ref().and_then(|id| by_id.get(id));
        print(presence, agent.copied(), &running, now)?;
    }
    for agent in agents.iter().filter(|agent| agent.revoked_at.is_none()) {
        let is_of_agent = |presence: &AgentPresence| presence.agent_id.as_ref() == Some(&agent.id);
        if !presences.iter().any(is_of_agent) {
            let state = if agent.drained_at.is_some() {
                "drained"
            } else {
                "offline"
            };
            let token = bounds(&agent.bounds);
            out::line(format_args!("{:<20}{state:<10}token: {token}", agent.name))?;
        }
    }
    Ok(Exit::Done)
}

/// Prints the line of an agent process.
fn print(
    presence: &AgentPresence,
    agent: Option<&AgentRecord>,
    running: &[Lease],
    now: Timestamp,
) -> Result<(), Exit> {
    let name = agent.map_or("(embedded)", |agent| agent.name.as_str());
    let is_online = now.0 - presence.seen_at.0 < OFFLINE_AFTER_MS;
    let state = match agent {
        Some(agent) if agent.revoked_at.is_some() => "revoked",
        _ if !is_online => "offline",
        Some(agent) if agent.drained_at.is_some() => "draining",
        _ => "online",
    };
    let mut audits: Vec<_> = running
        .iter()
        .filter(|lease| lease.owner.process == presence.process)
        .map(|lease| format!("{} (attempt {})", lease.tracking_id, lease.attempt))
        .collect();
    if audits.is_empty() {
        audits.push(if is_online {
            "idle".to_owned()
        } else {
            format!("last seen {}", iso8601_ms(presence.seen_at.0))
        });
    }
    let token = agent.map_or_else(String::new, |agent| bounds(&agent.bounds));
    let index = presence
        .host_index
        .map_or_else(String::new, |index| format!("{index:.0}"));
    out::line(format_args!(
        "{name:<20}{state:<10}{:<12}{:<26}{index:>8}{:>7}  {:<10}{token:<19} {}",
        presence.location,
        presence.chromium,
        presence.slots,
        presence.version,
        audits.join(", ")
    ))
}

/// Formats the locations and slots of a token, for instance as `eu,us-tx x 2`.
fn bounds(bounds: &AgentBounds) -> String {
    let locations = bounds
        .locations
        .as_ref()
        .map(|locations| locations.join(","));
    let locations = locations.unwrap_or_else(|| "any location".to_owned());
    match bounds.slots {
        Some(slots) => format!("{locations} x {slots}"),
        None => locations,
    }
}

async fn open(args: DataArgs) -> Result<Arc<dyn AgentStore>, Exit> {
    let location = StoreLocation::resolve(args)?;
    let stores = storage::open(&location.store, PostgresOptions::default()).await?;
    Ok(stores.agents)
}
