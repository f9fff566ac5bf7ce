//! The arguments of the program, from the command line, the environment and a configuration file.
//! `settings` resolves them to settings.

mod admin;
mod audit;
mod catalog;
mod config_file;
mod flags;
mod serve;
mod state;

use clap::{Parser, Subcommand};

pub use admin::{
    AdminAgentsArgs, AdminCommand, AdminRetentionArgs, AdminSecretArgs, AgentAddArgs,
    AgentNameArgs, AgentsCommand, CreditsAddArgs, CreditsCommand, KeysCommand, KeysCreateArgs,
    KeysEndSessionsArgs, KeysRevokeArgs, MigrateStoreArgs,
};
pub use audit::{
    AuditArgs, ChoiceArgs, CompareArgs, ComparisonArgs, ComparisonOutput, ConditionArgs,
    ConvertRecordingArgs, DoctorArgs, ExperimentArgs, FormFactor, JudgeArgs, MatrixArgs,
    MatrixOutput, MetricsArgs, OutputArgs, RecordArgs,
};
pub use catalog::{CatalogArgs, CompletionsArgs};
pub use config_file::parse;
pub use flags::{BlobArgs, BrowserArgs, DataArgs, FieldArgs, LogArgs, LogFormat, TargetArgs};
pub use serve::{AgentArgs, ServeArgs};
pub use state::StateArgs;

/// Audit web pages in a real Chromium with a chosen device, network and location
#[derive(Debug, Parser)]
#[command(name = "plumbline", version, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API and the web pages, and run audits
    Serve(Box<ServeArgs>),
    /// Run audits for a server on another machine
    Agent(AgentArgs),
    /// Audit one page and print the result, without a server
    Audit(Box<AuditArgs>),
    /// Compare two pages fairly: visit them in turn until it is clear whether one is faster
    Compare(Box<CompareArgs>),
    /// Visit a page once and keep its traffic, so that it can be visited again without its servers
    Record(Box<RecordArgs>),
    /// Change a recording and measure whether the page becomes faster
    Experiment(Box<ExperimentArgs>),
    /// Audit a recording with several devices and networks
    Matrix(Box<MatrixArgs>),
    /// Convert a recording from or to HAR, or remove secrets from it
    ConvertRecording(ConvertRecordingArgs),
    /// Evaluate the stored evidence of an audit again and print the report as JSON
    Judge(JudgeArgs),
    /// Print the metrics of a trace file as JSON
    Metrics(MetricsArgs),
    /// Check that this machine can run audits
    Doctor(DoctorArgs),
    /// Create, list and revoke access keys
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Add or remove credits of an account
    #[command(subcommand)]
    Credits(CreditsCommand),
    /// Operator commands: accounts, agents, queue, webhook secrets, retention
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Migrate an installation from SQLite to PostgreSQL (resumable: run again to continue)
    MigrateStore(MigrateStoreArgs),
    /// List the devices that can be emulated
    Devices(CatalogArgs),
    /// List the networks that can be emulated
    Networks(CatalogArgs),
    /// List the locations from which a page can be audited
    Locations(CatalogArgs),
    /// Print a script that completes commands and flags in a shell
    Completions(CompletionsArgs),
    /// Print the manual page, for example for `man -l -`
    Man,
    /// Print the licences of Plumbline and of the software and data in it
    Licenses,
}
