//! What is done to an installation: accounts, keys, credits, agents, retention, its move to another
//! store.

use std::path::PathBuf;

use clap::Subcommand;

use super::{BlobArgs, DataArgs};

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create a key and print it, once, alone on the last line
    Create(KeysCreateArgs),
    /// List keys with their accounts and balances
    List(DataArgs),
    /// End a key's validity
    Revoke(KeysRevokeArgs),
    /// End the sessions in which browsers are signed in with a key, or with any key
    EndSessions(KeysEndSessionsArgs),
}

#[derive(Debug, clap::Args)]
pub struct KeysCreateArgs {
    /// Credits of the new account, or added to the account named
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub credits: u32,
    /// Name of the new account
    #[arg(long, default_value = "default", conflicts_with = "account")]
    pub name: String,
    /// Make the key for this existing account
    #[arg(long, value_name = "ACCOUNT_ID")]
    pub account: Option<String>,
    /// End the key's validity after so many days
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
    /// Add credits to an account (a negative number takes away, never below zero)
    Add(CreditsAddArgs),
}

#[derive(Debug, clap::Args)]
pub struct CreditsAddArgs {
    /// An account's id, or the id of one of its keys
    #[arg(value_name = "ACCOUNT_ID|KEY_ID")]
    pub whose: String,
    #[arg(allow_negative_numbers = true)]
    pub credits: i64,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// List accounts with their balances and audits
    Accounts(DataArgs),
    /// Create, list and revoke access keys
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Change what an account may spend
    #[command(subcommand)]
    Credits(CreditsCommand),
    /// Show which agents live and what they do; add, drain and revoke them
    Agents(AdminAgentsArgs),
    /// Show what waits and runs, oldest first, and webhooks on their way
    Queue(DataArgs),
    /// Print the secret that an account's webhooks are signed with
    WebhookSecret(AdminSecretArgs),
    /// Forget finished audits now, with their reports and evidence
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
    /// Let an agent work for this server, and print its token, once, alone on the last line
    Add(AgentAddArgs),
    /// Give an agent no new work: it finishes what it has, and leaves
    Drain(AgentNameArgs),
    /// Give a drained agent work again
    Resume(AgentNameArgs),
    /// End a token's validity at once: what its agent still runs is given to others
    Revoke(AgentNameArgs),
}

#[derive(Debug, clap::Args)]
pub struct AgentAddArgs {
    /// Letters, digits, `-`, `_` and `.`
    pub name: String,
    /// A location at which agents with this token may stand and whose audits they may take;
    /// repeatable
    #[arg(long, value_name = "ID", value_delimiter = ',', required = true)]
    pub location: Vec<String>,
    /// How many audits all agents with this token may run at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub slots: u32,
    /// Directory with the catalog's files in place of the built-in ones
    #[arg(long, env = "PLUMBLINE_CATALOG", value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub struct AgentNameArgs {
    /// Letters, digits, `-`, `_` and `.`
    pub name: String,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub struct AdminSecretArgs {
    #[arg(value_name = "ACCOUNT_ID")]
    pub account: String,
    /// Replace it: what is signed from now on has the new one
    #[arg(long)]
    pub rotate: bool,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub struct AdminRetentionArgs {
    /// Forget what was accepted longer ago
    #[arg(long, value_name = "DAYS")]
    pub keep_audits_days: Option<u32>,
    /// Forget all but so many of each account's newest
    #[arg(long, value_name = "N")]
    pub keep_audits_per_account: Option<u64>,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub blobs: BlobArgs,
}

#[derive(Debug, clap::Args)]
pub struct MigrateStoreArgs {
    /// The file to move, which no server may be using
    #[arg(long, value_name = "sqlite:FILE")]
    pub from: String,
    /// An empty database, or one with an unfinished move from the same file
    #[arg(
        long,
        env = "PLUMBLINE_STORE",
        value_name = "postgres://…",
        hide_env_values = true
    )]
    pub to: String,
}
