//! `keys` and `credits`: manage keys and credits, also while a server is running.

use std::sync::Arc;
use std::time::Duration;

use plumbline_report::contract::iso8601_ms;
use plumbline_store::{Key, PostgresOptions, Store, StoreError};

use crate::args::{
    CreditsAddArgs, CreditsCommand, DataArgs, KeysCommand, KeysCreateArgs, KeysEndSessionsArgs,
    KeysRevokeArgs,
};
use crate::clock::now;
use crate::exit::Exit;
use crate::standard_output as out;
use crate::storage::{self, StoreLocation};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs `plumbline keys`.
pub async fn run(command: KeysCommand) -> Result<Exit, Exit> {
    match command {
        KeysCommand::Create(args) => create(args).await,
        KeysCommand::List(args) => list(args).await,
        KeysCommand::Revoke(args) => revoke(args).await,
        KeysCommand::EndSessions(args) => end_sessions(args).await,
    }
}

/// Runs `plumbline credits`.
pub async fn run_credits(command: CreditsCommand) -> Result<Exit, Exit> {
    match command {
        CreditsCommand::Add(args) => add_credits(args).await,
    }
}

async fn create(args: KeysCreateArgs) -> Result<Exit, Exit> {
    let store = open(args.data).await?;
    let account = match args.account {
        Some(account) => {
            store
                .add_credits(&account, args.credits.into(), now())
                .await
                .map_err(Exit::failed)?;
            account
        }
        None => {
            store
                .create_account(&args.name, args.credits, now())
                .await
                .map_err(Exit::failed)?
                .id
        }
    };
    let expires_at = args.expires_in_days.map(|days| now().plus(DAY * days));
    let key = Key::generate().map_err(Exit::failed)?;
    store
        .add_key(&account, key.id(), key.digest(), expires_at, now())
        .await
        .map_err(Exit::failed)?;
    out::line(format_args!("account {account}"))?;
    out::line(format_args!("key id  {}", key.id()))?;
    out::line("The key is not shown again:")?;
    out::line(key.reveal())?;
    Ok(Exit::Done)
}

async fn list(args: DataArgs) -> Result<Exit, Exit> {
    let keys = open(args).await?.keys().await.map_err(Exit::failed)?;
    out::line(format_args!(
        "{:<14}{:<26}{:<20}{:>10}  {:<26}STATE",
        "KEY", "ACCOUNT", "NAME", "CREDITS", "CREATED"
    ))?;
    for key in keys {
        let state = match (key.revoked_at, key.expires_at) {
            (Some(at), _) => format!("revoked {}", iso8601_ms(at.0)),
            (None, Some(at)) if at <= now() => format!("expired {}", iso8601_ms(at.0)),
            (None, Some(at)) => format!("valid until {}", iso8601_ms(at.0)),
            (None, None) => "valid".to_owned(),
        };
        out::line(format_args!(
            "{:<14}{:<26}{:<20}{:>10}  {:<26}{state}",
            key.id,
            key.account_id,
            key.account_name,
            key.credits,
            iso8601_ms(key.created_at.0),
        ))?;
    }
    Ok(Exit::Done)
}

async fn revoke(args: KeysRevokeArgs) -> Result<Exit, Exit> {
    let id = key_id(&args.key);
    open(args.data)
        .await?
        .revoke_key(&id, now())
        .await
        .map_err(Exit::failed)?;
    out::line(format_args!("revoked {id}"))?;
    Ok(Exit::Done)
}

async fn end_sessions(args: KeysEndSessionsArgs) -> Result<Exit, Exit> {
    let location = StoreLocation::resolve(args.data)?;
    let stores = storage::open(&location.store, PostgresOptions::default()).await?;
    let id = args.key.as_deref().map(key_id);
    if let Some(id) = &id
        && stores.store.key(id).await.map_err(Exit::failed)?.is_none()
    {
        return Err(Exit::failed(format!("unknown key `{id}`")));
    }
    let ended = stores.pages.close_sessions(id.as_deref()).await;
    let ended = ended.map_err(Exit::failed)?;
    let noun = if ended == 1 { "session" } else { "sessions" };
    out::line(format_args!("ended {ended} {noun}"))?;
    Ok(Exit::Done)
}

/// Returns the id of a key, which may be given as its id or as the key itself.
fn key_id(text: &str) -> String {
    Key::parse(text).map_or_else(|| text.to_owned(), |key| key.id().to_owned())
}

async fn add_credits(args: CreditsAddArgs) -> Result<Exit, Exit> {
    let store = open(args.data).await?;
    let account = match store
        .key(&args.account_or_key)
        .await
        .map_err(Exit::failed)?
    {
        Some(key) => key.account_id,
        None => args.account_or_key,
    };
    match store.add_credits(&account, args.credits, now()).await {
        Ok(balance) => {
            out::line(format_args!("{account} has {balance} credits"))?;
            Ok(Exit::Done)
        }
        Err(StoreError::NotFound(_)) => {
            Err(Exit::failed(format!("unknown account or key `{account}`")))
        }
        Err(error) => Err(Exit::failed(error)),
    }
}

async fn open(args: DataArgs) -> Result<Arc<dyn Store>, Exit> {
    let location = StoreLocation::resolve(args)?;
    let stores = storage::open(&location.store, PostgresOptions::default()).await?;
    Ok(stores.store)
}
