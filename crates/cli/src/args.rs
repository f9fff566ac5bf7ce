//! The command line as data. What a flag means is said once, here; what it resolves to, in
//! `settings`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use plumbline_report::Format;

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
    Serve(ServeArgs),
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

#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, env = "PLUMBLINE_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub blobs: BlobArgs,
    #[command(flatten)]
    pub browser: BrowserArgs,
    #[command(flatten)]
    pub targets: TargetArgs,
    #[command(flatten)]
    pub field: FieldArgs,
    /// The location at which this machine stands [default: us-tx]
    #[arg(long, env = "PLUMBLINE_LOCATION", value_name = "ID")]
    pub location: Option<String>,
    /// Whether others may simulate a location while no agent stands there; else its audits wait for
    /// one [default: true]
    #[arg(long, env = "PLUMBLINE_SIMULATE_LOCATIONS", value_name = "BOOL")]
    pub simulate_locations: Option<bool>,
    /// How long an agent may be silent before its audit is given to another [default: 30]
    #[arg(long, env = "PLUMBLINE_LEASE_SECONDS", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub lease_seconds: Option<u32>,
    /// How many audits run at a time; 0 serves without an agent [default: half of the cores, at least 1]
    #[arg(long, env = "PLUMBLINE_SLOTS", value_name = "N")]
    pub slots: Option<u32>,
    /// Starts that one key may make in a minute; 0 sets no limit [default: 600]
    #[arg(long, env = "PLUMBLINE_STARTS_PER_MINUTE", value_name = "N")]
    pub starts_per_minute: Option<u32>,
    /// Other requests that one key may make in a minute; 0 sets no limit [default: 60000]
    #[arg(long, env = "PLUMBLINE_REQUESTS_PER_MINUTE", value_name = "N")]
    pub requests_per_minute: Option<u32>,
    /// Wrong keys that one address may try in a minute; 0 sets no limit [default: 300]
    #[arg(long, env = "PLUMBLINE_FAILED_KEYS_PER_MINUTE", value_name = "N")]
    pub failed_keys_per_minute: Option<u32>,
    /// Audits that one account may have waiting or running; 0 sets no limit [default: 10000]
    #[arg(long, env = "PLUMBLINE_UNFINISHED_PER_ACCOUNT", value_name = "N")]
    pub unfinished_per_account: Option<u64>,
    /// Audits that one account may have running at a time; 0 sets no limit [default: 0]
    #[arg(long, env = "PLUMBLINE_RUNNING_PER_ACCOUNT", value_name = "N")]
    pub running_per_account: Option<u32>,
    /// Connections to PostgreSQL that are open at a time, at least 4 [default: 16]
    #[arg(long, env = "PLUMBLINE_STORE_CONNECTIONS", value_name = "N")]
    pub store_connections: Option<usize>,
    /// Connections that are open at a time; the next wait [default: 2048]
    #[arg(long, env = "PLUMBLINE_CONNECTIONS", value_name = "N")]
    pub connections: Option<usize>,
    /// A proxy of ours stands in front: believe the last address in X-Forwarded-For
    #[arg(long, env = "PLUMBLINE_BEHIND_PROXY")]
    pub behind_proxy: bool,
    /// When stopped, how long running audits may go on before they are handed back [default: 10]
    #[arg(long, env = "PLUMBLINE_DRAIN_SECONDS", value_name = "SECONDS")]
    pub drain_seconds: Option<u64>,
    /// How long the evidence of an audit is kept beside its report [default: 30]
    #[arg(long, env = "PLUMBLINE_KEEP_BUNDLES_DAYS", value_name = "DAYS")]
    pub keep_bundles_days: Option<u32>,
    /// How long audits are kept; 0 keeps them for ever [default: 365]
    #[arg(long, env = "PLUMBLINE_KEEP_AUDITS_DAYS", value_name = "DAYS")]
    pub keep_audits_days: Option<u32>,
    /// How many audits of an account are kept, the newest; 0 keeps all [default: 0]
    #[arg(long, env = "PLUMBLINE_KEEP_AUDITS_PER_ACCOUNT", value_name = "N")]
    pub keep_audits_per_account: Option<u64>,
    /// How log lines are written to standard error [default: pretty]
    #[arg(long, env = "PLUMBLINE_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// What is logged, as `level` or `crate=level,…` [default: info]
    #[arg(long, env = "PLUMBLINE_LOG", value_name = "FILTER")]
    pub log: Option<String>,
    /// Create a key with this many credits, and print it with a request to try
    #[arg(long, value_name = "CREDITS")]
    pub create_key: Option<u32>,
    /// TOML file with the same names as the flags; flags and environment win over it
    #[arg(long, env = "PLUMBLINE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct AgentArgs {
    /// The server to work for, as https://HOST[:PORT][/PATH]
    #[arg(long, env = "PLUMBLINE_SERVER", value_name = "URL")]
    pub server: String,
    /// What `plumbline admin agents add` printed; better in the environment, which nobody lists
    #[arg(
        long,
        env = "PLUMBLINE_AGENT_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: String,
    /// The location at which this machine stands
    #[arg(long, env = "PLUMBLINE_LOCATION", value_name = "ID")]
    pub location: String,
    /// How many audits run at a time [default: half of the cores, at least 1]
    #[arg(long, env = "PLUMBLINE_SLOTS", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub slots: Option<u32>,
    /// Believe only the authorities in this file (PEM) [default: those that this machine trusts]
    #[arg(long, env = "PLUMBLINE_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Let the token and all evidence travel unencrypted to a server on another machine
    #[arg(long, env = "PLUMBLINE_PLAIN_HTTP")]
    pub plain_http: bool,
    /// When stopped, how long running audits may go on before they are handed back [default: 10]
    #[arg(long, env = "PLUMBLINE_DRAIN_SECONDS", value_name = "SECONDS")]
    pub drain_seconds: Option<u64>,
    #[command(flatten)]
    pub browser: BrowserArgs,
    #[command(flatten)]
    pub targets: TargetArgs,
    /// How log lines are written to standard error [default: pretty]
    #[arg(long, env = "PLUMBLINE_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// What is logged, as `level` or `crate=level,…` [default: info]
    #[arg(long, env = "PLUMBLINE_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct DataArgs {
    /// Where everything is kept [default: plumbline in the user's data directory]
    #[arg(long, env = "PLUMBLINE_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where accounts, audits and the queue are kept: sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE
    /// [default: plumbline.db in the data directory]
    #[arg(
        long,
        env = "PLUMBLINE_STORE",
        value_name = "ADDRESS",
        hide_env_values = true
    )]
    pub store: Option<String>,
}

/// Secrets are no arguments: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
#[derive(Debug, Clone, clap::Args)]
pub struct BlobArgs {
    /// Where evidence is kept; a bucket's keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY [default: the data directory]
    #[arg(
        long,
        env = "PLUMBLINE_BLOBS",
        value_name = "file:DIR|s3://BUCKET[/PREFIX]"
    )]
    pub blobs: Option<String>,
    /// Where the bucket is, unless it is Amazon's
    #[arg(long, env = "PLUMBLINE_S3_ENDPOINT", value_name = "URL")]
    pub s3_endpoint: Option<String>,
    /// The bucket's region [default: us-east-1]
    #[arg(long, env = "PLUMBLINE_S3_REGION", value_name = "REGION")]
    pub s3_region: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct TargetArgs {
    /// A host, address or network beyond the public internet that may be visited; repeatable
    #[arg(
        long,
        env = "PLUMBLINE_ALLOW_TARGET",
        value_name = "HOST[:PORT]|CIDR",
        value_delimiter = ','
    )]
    pub allow_target: Vec<String>,
    /// Directory with devices.toml, networks.toml, locations.toml in place of the built-in ones
    #[arg(long, env = "PLUMBLINE_CATALOG", value_name = "DIR")]
    pub catalog: Option<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct FieldArgs {
    /// Key to the Chrome UX Report API, for field data; without one nothing is asked. Other users see the flag:
    /// prefer the environment or the file
    #[arg(
        long,
        env = "PLUMBLINE_CRUX_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    pub crux_key: Option<String>,
    /// Where that API is [default: https://chromeuxreport.googleapis.com]
    #[arg(long, env = "PLUMBLINE_CRUX_URL", value_name = "URL")]
    pub crux_url: Option<String>,
    /// A host, address or network to ask about though it is not public, or --allow-target names it; repeatable
    #[arg(
        long,
        env = "PLUMBLINE_CRUX_TARGET",
        value_name = "HOST[:PORT]|CIDR",
        value_delimiter = ','
    )]
    pub crux_target: Vec<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct BrowserArgs {
    /// The Chromium to run [default: the first that is found]
    #[arg(long, env = "PLUMBLINE_CHROMIUM", value_name = "PATH")]
    pub chromium: Option<PathBuf>,
    /// Run Chromium without its sandbox: pages then run with this process' rights
    #[arg(long, env = "PLUMBLINE_NO_SANDBOX")]
    pub no_sandbox: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Pretty,
    Json,
}

#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    /// The page
    pub url: String,
    #[arg(long, default_value = "mobile", value_name = "ID")]
    pub device: String,
    #[arg(long, default_value = "mobileSlow4g", value_name = "ID")]
    pub network: String,
    /// The place to audit from [default: where this machine stands]
    #[arg(long, value_name = "ID")]
    pub location: Option<String>,
    /// The location at which this machine stands [default: us-tx]
    #[arg(long, env = "PLUMBLINE_LOCATION", value_name = "ID")]
    pub stands_at: Option<String>,
    /// Print the whole report as JSON
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Audit so many times; the run that stands for all is printed and written
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_RUNS))]
    pub runs: u32,
    /// Hold the runs against this budget (TOML, or Lighthouse CI's JSON); exceeding it ends with 3
    #[arg(long, value_name = "FILE")]
    pub budget: Option<PathBuf>,
    /// Keep the evidence in this file, for `plumbline judge`
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    #[command(flatten)]
    pub browser: BrowserArgs,
    #[command(flatten)]
    pub targets: TargetArgs,
    #[command(flatten)]
    pub field: FieldArgs,
}

/// More would keep a machine busy for an hour and say no more.
const MAX_RUNS: i64 = 50;

#[derive(Debug, clap::Args)]
pub struct JudgeArgs {
    /// A bundle, as `audit --bundle` or a server's data directory has it
    pub bundle: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Hold the report against this budget; exceeding it ends with 3
    #[arg(long, value_name = "FILE")]
    pub budget: Option<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct OutputArgs {
    /// Write the report in these forms
    #[arg(long, value_name = "FORMAT,…", value_delimiter = ',', value_parser = format())]
    pub output: Vec<Format>,
    /// Where to: a file, or with several forms the beginning of their names; `-` is standard output
    /// [default: standard output for one form, HOST_TIME.EXTENSION here for several]
    #[arg(long, value_name = "PATH", requires = "output")]
    pub output_path: Option<PathBuf>,
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .try_map(|name| Format::named(&name).ok_or("no such form"))
}

#[derive(Debug, clap::Args)]
pub struct MetricsArgs {
    /// Chromium's trace: array or object form, gzip or not
    pub trace: PathBuf,
    /// Protocol log with the requests; without one they are taken from the trace
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Whose curves give the score
    #[arg(long, default_value = "mobile")]
    pub form_factor: FormFactor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormFactor {
    Mobile,
    Desktop,
}

#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Measure this host anew, and print the throttling rate of every device
    #[arg(long)]
    pub calibrate: bool,
    /// Directory with the catalog's files in place of the built-in ones
    #[arg(long, env = "PLUMBLINE_CATALOG", value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub browser: BrowserArgs,
}

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create a key and print it, once, alone on the last line
    Create(KeysCreateArgs),
    /// List keys with their accounts and balances
    List(DataArgs),
    /// End a key's validity
    Revoke(KeysRevokeArgs),
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
    Add(AgentNameArgs),
    /// Give an agent no new work: it finishes what it has, and leaves
    Drain(AgentNameArgs),
    /// Give a drained agent work again
    Resume(AgentNameArgs),
    /// End a token's validity at once: what its agent still runs is given to others
    Revoke(AgentNameArgs),
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
