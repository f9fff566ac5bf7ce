//! `admin`: operator commands, which also work while a server is running.

use std::path::PathBuf;
use std::sync::Arc;

use plumbline_report::contract::iso8601_ms;
use plumbline_store::{PostgresOptions, Retention, Store, StoreError, Timestamp};

use crate::args::{AdminCommand, AdminRetentionArgs, AdminSecretArgs, DataArgs};
use crate::blobs::EvidenceBlobs;
use crate::clock::now;
use crate::exit::Exit;
use crate::retention;
use crate::storage::{self, StoreLocation};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// The most audits of the queue that are listed.
const MAX_LISTED: u32 = 100;

/// Runs `plumbline admin`.
pub async fn run(command: AdminCommand) -> Result<Exit, Exit> {
    match command {
        AdminCommand::Accounts(data) => accounts(data).await,
        AdminCommand::Agents(args) => super::agents::run(args).await,
        AdminCommand::Queue(data) => queue(data).await,
        AdminCommand::WebhookSecret(args) => webhook_secret(args).await,
        AdminCommand::Retention(args) => purge(args).await,
        AdminCommand::Keys(command) => super::keys::run(command).await,
        AdminCommand::Credits(command) => super::keys::run_credits(command).await,
    }
}

async fn accounts(data: DataArgs) -> Result<Exit, Exit> {
    let accounts = open(data).await?.1.accounts().await.map_err(Exit::failed)?;
    println!(
        "{:<18}{:<24}{:>10}{:>6}{:>10}{:>12}  CREATED",
        "ACCOUNT", "NAME", "CREDITS", "KEYS", "AUDITS", "UNFINISHED"
    );
    for summary in accounts {
        let account = summary.account;
        println!(
            "{:<18}{:<24}{:>10}{:>6}{:>10}{:>12}  {}",
            account.id,
            account.name,
            account.credits,
            summary.keys,
            summary.audits,
            summary.unfinished,
            iso8601_ms(account.created_at.0)
        );
    }
    Ok(Exit::Done)
}

async fn queue(data: DataArgs) -> Result<Exit, Exit> {
    let (_, store) = open(data).await?;
    let depth = store.queue_depth().await.map_err(Exit::failed)?;
    let webhooks = store.delivery_depth().await.map_err(Exit::failed)?;
    println!("{} waiting, {} running", depth.waiting, depth.running);
    println!(
        "{} webhooks pending, {} given up",
        webhooks.pending, webhooks.given_up
    );
    let now = now();
    for audit in store.queue(MAX_LISTED).await.map_err(Exit::failed)? {
        let state = match &audit.lease {
            Some((owner, until)) if *until > now => format!("running on {owner}"),
            Some((owner, _)) => format!("abandoned by {owner}"),
            None => "waiting".to_owned(),
        };
        println!(
            "{}  {}  attempt {}, {} faults, {state}  {}  {}",
            iso8601_ms(audit.accepted_at.0),
            audit.tracking_id,
            audit.attempt,
            audit.faults,
            audit.account_id,
            audit.url
        );
    }
    Ok(Exit::Done)
}

async fn webhook_secret(args: AdminSecretArgs) -> Result<Exit, Exit> {
    let (_, store) = open(args.data).await?;
    match store.webhook_secret(&args.account, args.rotate).await {
        Ok(secret) => {
            println!("{secret}");
            Ok(Exit::Done)
        }
        Err(StoreError::NotFound(_)) => {
            Err(Exit::failed(format!("unknown account `{}`", args.account)))
        }
        Err(error) => Err(Exit::failed(error)),
    }
}

async fn purge(args: AdminRetentionArgs) -> Result<Exit, Exit> {
    if args.keep_audits_days.is_none() && args.keep_audits_per_account.is_none() {
        return Err(Exit::usage(
            "missing limit: set --keep-audits-days DAYS, --keep-audits-per-account N, or both",
        ));
    }
    let blobs = args.blobs;
    let (data, store) = open(args.data).await?;
    let blobs = EvidenceBlobs::open(&blobs, &data)?;
    let retention = Retention {
        accepted_before: args
            .keep_audits_days
            .map(|days| Timestamp(now().0 - i64::from(days) * DAY_MS)),
        keep_per_account: args.keep_audits_per_account,
    };
    let deleted = retention::purge(&*store, &blobs, retention)
        .await
        .map_err(Exit::failed)?;
    println!("{deleted} audits deleted");
    Ok(Exit::Done)
}

async fn open(args: DataArgs) -> Result<(PathBuf, Arc<dyn Store>), Exit> {
    let location = StoreLocation::resolve(args)?;
    let stores = storage::open(&location.store, PostgresOptions::default()).await?;
    Ok((location.data, stores.store))
}
