//! The command line as data. What a flag means is said once, here; what it resolves to, in
//! `settings`.

mod admin;
mod audit;
mod flags;
mod serve;

use clap::{Parser, Subcommand};

pub use admin::{
    AdminAgentsArgs, AdminCommand, AdminRetentionArgs, AdminSecretArgs, AgentAddArgs,
    AgentNameArgs, AgentsCommand, CreditsAddArgs, CreditsCommand, KeysCommand, KeysCreateArgs,
    KeysEndSessionsArgs, KeysRevokeArgs, MigrateStoreArgs,
};
pub use audit::{AuditArgs, DoctorArgs, FormFactor, JudgeArgs, MetricsArgs, OutputArgs};
pub use flags::{BlobArgs, BrowserArgs, DataArgs, FieldArgs, LogFormat, TargetArgs};
pub use serve::{AgentArgs, ServeArgs};

/// Audits web pages in a real Chromium under a chosen device, network and place.
#[derive(Debug, Parser)]
#[command(name = "plumbline", version, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API, with a store and an agent inside
    Serve(Box<ServeArgs>),
    /// Do a server's audits here: take them over HTTPS, visit, and hand in the reports
    Agent(AgentArgs),
    /// Audit one page and print the result; needs no server
    Audit(AuditArgs),
    /// Judge the kept evidence of an audit again, and print the report as JSON
    Judge(JudgeArgs),
    /// Print the metrics of a trace file as JSON
    Metrics(MetricsArgs),
    /// Say whether this machine is fit, and what to do if not
    Doctor(DoctorArgs),
    /// Create, list and revoke access keys
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Change what an account may spend
    #[command(subcommand)]
    Credits(CreditsCommand),
    /// What an operator asks and decides: accounts, keys, credits, queue, retention
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Move an installation from SQLite to PostgreSQL; run again after a stop, it goes on
    MigrateStore(MigrateStoreArgs),
}
