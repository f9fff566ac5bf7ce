//! `admin agents`: who may work for this server, who does, and on what.

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
use crate::storage::{self, Place};

/// A name is shown in tables.
const NAME_CHARS: usize = 40;
/// Idle agents are seen at least so often, and busy ones more often.
const LIVES_FOR_MS: i64 = 90_000;

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
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !(1..=NAME_CHARS).contains(&args.name.len()) || !args.name.chars().all(plain) {
        return Err(Exit::usage(format!(
            "a name has 1 to {NAME_CHARS} letters, digits, `-`, `_` and `.`"
        )));
    }
    let catalog = load_catalog(args.catalog.as_deref())?;
    let is_known = |id: &&String| catalog.location(id).is_some();
    if let Some(unknown) = args.location.iter().find(|id| !is_known(id)) {
        let known: Vec<_> = catalog.locations().iter().map(|l| l.id.as_str()).collect();
        return Err(Exit::usage(format!(
            "unknown location `{unknown}`; known locations: {}",
            known.join(", ")
        )));
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
                "there is an agent `{}`; revoke it first, or take another name",
                args.name
            )));
        }
        Err(error) => return Err(Exit::failed(error)),
    }
    out::line("The token is shown this once:")?;
    out::line(token.reveal())?;
    Ok(Exit::Done)
}

async fn drain(args: AgentNameArgs, drained: bool) -> Result<Exit, Exit> {
    let store = open(args.data).await?;
    let done = store.drain_agent(&args.name, drained, now()).await;
    named(done, &args.name)?;
    out::line(match drained {
        true => format!("{} gets no new work", args.name),
        false => format!("{} gets work", args.name),
    })?;
    Ok(Exit::Done)
}

async fn revoke(args: AgentNameArgs) -> Result<Exit, Exit> {
    let revoked = open(args.data).await?.revoke_agent(&args.name, now()).await;
    named(revoked, &args.name)?;
    out::line(format_args!("revoked {}", args.name))?;
    Ok(Exit::Done)
}

fn named(done: Result<(), StoreError>, name: &str) -> Result<(), Exit> {
    done.map_err(|error| match error {
        StoreError::NotFound(_) => Exit::failed(format!("no agent `{name}`")),
        error => Exit::failed(error),
    })
}

async fn list(data: DataArgs) -> Result<Exit, Exit> {
    let (store, now) = (open(data).await?, now());
    let agents = store.agents().await.map_err(Exit::failed)?;
    let since = Timestamp(now.0 - PRESENCE_RETENTION_MS);
    let seen = store.presences(since).await.map_err(Exit::failed)?;
    let running = store.running(None).await.map_err(Exit::failed)?;
    out::line(format_args!(
        "{:<20}{:<10}{:<12}{:<26}{:>8}{:>7}  {:<10}{:<20}DOES",
        "AGENT", "STATE", "LOCATION", "CHROMIUM", "INDEX", "SLOTS", "VERSION", "TOKEN"
    ))?;
    let names: HashMap<_, _> = agents.iter().map(|agent| (&agent.id, agent)).collect();
    for sighting in &seen {
        let agent = sighting.agent_id.as_ref().and_then(|id| names.get(id));
        print(sighting, agent.copied(), &running, now)?;
    }
    for agent in agents.iter().filter(|agent| agent.revoked_at.is_none()) {
        let is_seen = |seen: &AgentPresence| seen.agent_id.as_ref() == Some(&agent.id);
        if !seen.iter().any(is_seen) {
            let state = if agent.drained_at.is_some() {
                "drained"
            } else {
                "unseen"
            };
            let token = bounds(&agent.bounds);
            out::line(format_args!("{:<20}{state:<10}token: {token}", agent.name))?;
        }
    }
    Ok(Exit::Done)
}

fn print(
    seen: &AgentPresence,
    agent: Option<&AgentRecord>,
    running: &[Lease],
    now: Timestamp,
) -> Result<(), Exit> {
    let name = agent.map_or("(in a server)", |agent| agent.name.as_str());
    let lives = now.0 - seen.seen_at.0 < LIVES_FOR_MS;
    let state = match agent {
        Some(agent) if agent.revoked_at.is_some() => "revoked",
        _ if !lives => "gone",
        Some(agent) if agent.drained_at.is_some() => "draining",
        _ => "lives",
    };
    let slots_of = format!("{}/", seen.process);
    let mut does: Vec<_> = running
        .iter()
        .filter(|lease| lease.owner.starts_with(&slots_of))
        .map(|lease| format!("{} (attempt {})", lease.tracking_id, lease.attempt))
        .collect();
    if does.is_empty() {
        does.push(match lives {
            true => "nothing".to_owned(),
            false => format!("seen {}", iso8601_ms(seen.seen_at.0)),
        });
    }
    let token = agent.map_or_else(String::new, |agent| bounds(&agent.bounds));
    let index = seen
        .host_index
        .map_or_else(String::new, |index| format!("{index:.0}"));
    out::line(format_args!(
        "{name:<20}{state:<10}{:<12}{:<26}{index:>8}{:>7}  {:<10}{token:<19} {}",
        seen.location,
        seen.chromium,
        seen.slots,
        seen.version,
        does.join(", ")
    ))
}

/// What a token is bound to, in short: `eu,us-tx x 2`.
fn bounds(bounds: &AgentBounds) -> String {
    let locations = bounds
        .locations
        .as_ref()
        .map(|locations| locations.join(","));
    let locations = locations.unwrap_or_else(|| "anywhere".to_owned());
    match bounds.slots {
        Some(slots) => format!("{locations} x {slots}"),
        None => locations,
    }
}

async fn open(args: DataArgs) -> Result<Arc<dyn AgentStore>, Exit> {
    let place = Place::resolve(args)?;
    let opened = storage::open(&place.store, PostgresOptions::default()).await?;
    Ok(opened.agents)
}
