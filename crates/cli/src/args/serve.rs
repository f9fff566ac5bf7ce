//! What stays: the server, and agents elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{BlobArgs, BrowserArgs, DataArgs, FieldArgs, LogFormat, TargetArgs};

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
    /// How many audits run at a time; 0 serves without an agent [default: half of the cores, at
    /// least 1]
    #[arg(long, env = "PLUMBLINE_SLOTS", value_name = "N")]
    pub slots: Option<u32>,
    /// How often one audit may visit its page: again where the host spoiled a visit, or left doubt
    /// about the score [default: 3]
    #[arg(long, env = "PLUMBLINE_VISITS", value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    pub visits: Option<u8>,
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
    /// Audits of one account that may fail within an hour before its starts are refused; 0 sets no
    /// limit [default: 500]
    #[arg(long, env = "PLUMBLINE_FAILED_AUDITS_PER_HOUR", value_name = "N")]
    pub failed_audits_per_hour: Option<u32>,
    /// Audits that one account may have running at a time; 0 sets no limit [default: 0]
    #[arg(long, env = "PLUMBLINE_RUNNING_PER_ACCOUNT", value_name = "N")]
    pub running_per_account: Option<u32>,
    /// Connections to PostgreSQL that are open at a time, at least 4 [default: 16]
    #[arg(long, env = "PLUMBLINE_STORE_CONNECTIONS", value_name = "N")]
    pub store_connections: Option<usize>,
    /// Requests that are served at a time; one address may hold half of these places, and the waits
    /// and event streams of one key or address a quarter. Probes and agents have places of their
    /// own [default: 2048]
    #[arg(long, env = "PLUMBLINE_CONNECTIONS", value_name = "N")]
    pub connections: Option<usize>,
    /// PEM file with the certificate and its chain, for HTTPS without a proxy in front; read again
    /// when it changes
    #[arg(long, env = "PLUMBLINE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the certificate's private key
    #[arg(long, env = "PLUMBLINE_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Token that readers of /metrics must present (Authorization: Bearer TOKEN), at least 16
    /// characters. Other users see the flag: prefer the environment or the file [default: anybody
    /// may read them]
    #[arg(
        long,
        env = "PLUMBLINE_METRICS_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub metrics_token: Option<String>,
    /// A proxy of ours stands in front and speaks HTTPS: believe the last address in
    /// X-Forwarded-For, and set cookies for HTTPS only
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
    /// How often one audit may visit its page: again where the host spoiled a visit, or left doubt
    /// about the score [default: 3]
    #[arg(long, env = "PLUMBLINE_VISITS", value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    pub visits: Option<u8>,
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
