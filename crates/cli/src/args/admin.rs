//! Arguments of the operator commands: accounts, keys, credits, agents, retention, store migration.

use std::path::PathBuf;

use clap::Subcommand;

use super::{BlobArgs, DataArgs};

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create a key and print it on the last line; it is not shown again
    Create(KeysCreateArgs),
    /// List keys with their accounts and balances
    List(DataArgs),
    /// Revoke a key
    Revoke(KeysRevokeArgs),
    /// End the browser sessions of a key, or of all keys
    EndSessions(KeysEndSessionsArgs),
}

#[derive(Debug, clap::Args)]
pub struct KeysCreateArgs {
    /// Credits to add to the account
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub credits: u32,
    /// Name of the new account
    #[arg(long, default_value = "default", conflicts_with = "account")]
    pub name: String,
    /// Create the key for this existing account
    #[arg(long, value_name = "ACCOUNT_ID")]
    pub account: Option<String>,
    /// Number of days after which the key expires
    #[arg(long, value_name = "DAYS")]
    pub expires_in_days: Option<u32>,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub struct KeysRevokeArgs {
    /// The key's id, as `keys list` shows it, or the key itself
    pub key: String,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub struct KeysEndSessionsArgs {
    /// The key's id, as `keys list` shows it, or the key itself
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub key: Option<String>,
    /// End the sessions of all keys
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Subcommand)]
pub enum CreditsCommand {
    /// Add credits to an account; a negative number removes credits, but never below zero
    Add(CreditsAddArgs),
}

#[derive(Debug, clap::Args)]
pub struct CreditsAddArgs {
    /// The id of the account or of one of its keys
    #[arg(value_name = "ACCOUNT_ID|KEY_ID")]
    pub account_or_key: String,
    /// The number of credits
    #[arg(allow_negative_numbers = true)]
    pub credits: i64,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// List accounts with their balances and audits
    Accounts(DataArgs),
    /// The same as `plumbline keys`
    #[command(subcommand, hide = true)]
    Keys(KeysCommand),
    /// The same as `plumbline credits`
    #[command(subcommand, hide = true)]
    Credits(CreditsCommand),
    /// List agents with their state and running audits; add, drain, resume or revoke agents
    Agents(AdminAgentsArgs),
    /// List waiting and running audits, oldest first, and count pending webhooks
    Queue(DataArgs),
    /// Print the secret that signs an account's webhooks
    WebhookSecret(AdminSecretArgs),
    /// Delete finished audits now, with their reports and evidence
    Retention(AdminRetentionArgs),
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AdminAgentsArgs {
    #[command(subcommand)]
    pub command: Option<AgentsCommand>,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// Register an agent and print its token on the last line; it is not shown again
    Add(AgentAddArgs),
    /// Stop giving work to an agent: it finishes its running audits and exits
    Drain(AgentNameArgs),
    /// Give work to a drained agent again
    Resume(AgentNameArgs),
    /// Revoke a token immediately; running audits of the agent are given to others
    Revoke(AgentNameArgs),
}

#[derive(Debug, clap::Args)]
pub struct AgentAddArgs {
    /// The name of the agent: letters, digits, `-`, `_` and `.`
    pub name: String,
    /// A location that agents with this token may be at and take audits for; repeatable
    #[arg(long, value_name = "ID", value_delimiter = ',', required = true)]
    pub location: Vec<String>,
    /// Maximum number of audits that all agents with this token run at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub slots: u32,
    /// Directory with catalog files that replace the built-in ones
    #[arg(long, env = "PLUMBLINE_CATALOG", value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub struct AgentNameArgs {
    /// The name of the agent: letters, digits, `-`, `_` and `.`
    pub name: String,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub struct AdminSecretArgs {
    /// The id of the account
    #[arg(value_name = "ACCOUNT_ID")]
    pub account: String,
    /// Replace the secret; later webhooks are signed with the new one
    #[arg(long)]
    pub rotate: bool,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub struct AdminRetentionArgs {
    /// Delete audits older than this number of days
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_audits_days: Option<u32>,
    /// Delete all but this number of the newest audits of each account
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub keep_audits_per_account: Option<u64>,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub blobs: BlobArgs,
}

#[derive(Debug, clap::Args)]
pub struct MigrateStoreArgs {
    /// The SQLite file to migrate; no server may be using it
    #[arg(long, value_name = "sqlite:FILE")]
    pub from: String,
    /// An empty database, or one with an unfinished migration from the same file
    #[arg(
        long,
        env = "PLUMBLINE_STORE",
        value_name = "postgres://…",
        hide_env_values = true
    )]
    pub to: String,
}
