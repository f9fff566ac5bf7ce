//! Arguments of the long-running commands: `serve` and `agent`.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{BlobArgs, BrowserArgs, DataArgs, FieldArgs, LogArgs, TargetArgs};

#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Address to listen on; port 0 selects a free port [default: 127.0.0.1:8080]
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
    /// The location of this machine; reports name it only if it is set [default: us-tx]
    #[arg(
        long,
        alias = "location",
        env = "PLUMBLINE_LOCATION",
        value_name = "ID"
    )]
    pub agent_location: Option<String>,
    /// Whether agents simulate locations that have no agent of their own; if false, such audits
    /// wait for one [default: true]
    #[arg(long, env = "PLUMBLINE_SIMULATE_LOCATIONS", value_name = "BOOL")]
    pub simulate_locations: Option<bool>,
    /// Seconds without a heartbeat after which an audit is given to another agent [default: 30]
    #[arg(long, env = "PLUMBLINE_LEASE_SECONDS", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub lease_seconds: Option<u32>,
    /// Number of audits that run at the same time; 0 serves without an agent [default: the number
    /// of cores, or half of it with --no-page-clock, as far as the memory suffices]
    #[arg(long, env = "PLUMBLINE_SLOTS", value_name = "N")]
    pub slots: Option<u32>,
    /// Maximum number of visits per audit; a page is visited again if the host disturbed a visit or
    /// the score is uncertain [default: 3]
    #[arg(long, env = "PLUMBLINE_VISITS", value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    pub visits: Option<u8>,
    /// Maximum number of starts per key and minute; 0 for no limit [default: 600]
    #[arg(long, env = "PLUMBLINE_STARTS_PER_MINUTE", value_name = "N")]
    pub starts_per_minute: Option<u32>,
    /// Maximum number of other requests per key and minute; 0 for no limit [default: 60000]
    #[arg(long, env = "PLUMBLINE_REQUESTS_PER_MINUTE", value_name = "N")]
    pub requests_per_minute: Option<u32>,
    /// Maximum number of requests with invalid keys per IP address and minute; 0 for no limit
    /// [default: 300]
    #[arg(long, env = "PLUMBLINE_FAILED_KEYS_PER_MINUTE", value_name = "N")]
    pub failed_keys_per_minute: Option<u32>,
    /// Maximum number of waiting and running audits per account; 0 for no limit [default: 10000]
    #[arg(long, env = "PLUMBLINE_UNFINISHED_PER_ACCOUNT", value_name = "N")]
    pub unfinished_per_account: Option<u64>,
    /// Maximum number of failed audits per account and hour, after which starts are refused; 0 for
    /// no limit [default: 500]
    #[arg(long, env = "PLUMBLINE_FAILED_AUDITS_PER_HOUR", value_name = "N")]
    pub failed_audits_per_hour: Option<u32>,
    /// Maximum number of running audits per account; 0 for no limit [default: 0]
    #[arg(long, env = "PLUMBLINE_RUNNING_PER_ACCOUNT", value_name = "N")]
    pub running_per_account: Option<u32>,
    /// Maximum number of connections to PostgreSQL, at least 4 [default: 16]
    #[arg(long, env = "PLUMBLINE_STORE_CONNECTIONS", value_name = "N")]
    pub store_connections: Option<usize>,
    /// Maximum number of concurrent requests. One IP address may use half of them, and long polls
    /// and event streams of one key or IP address a quarter. Probes and agents have separate limits
    /// [default: 2048]
    #[arg(long, env = "PLUMBLINE_CONNECTIONS", value_name = "N")]
    pub connections: Option<usize>,
    /// PEM file with the certificate chain, for HTTPS without a proxy; reloaded when it changes
    #[arg(long, env = "PLUMBLINE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate
    #[arg(long, env = "PLUMBLINE_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// File with the key that seals the secrets of clients: 64 hexadecimal digits, the same on all
    /// servers of a store [default: secrets.key in the data directory, made on first use; with
    /// PostgreSQL none, so that secrets cannot be stored]
    #[arg(long, env = "PLUMBLINE_SECRETS_KEY", value_name = "FILE")]
    pub secrets_key: Option<PathBuf>,
    /// An image (PNG, JPEG, WebP or SVG) that is printed on reports, such as a company's logo
    #[arg(long, env = "PLUMBLINE_LOGO", value_name = "FILE")]
    pub logo: Option<PathBuf>,
    /// Token for reading /metrics (Authorization: Bearer TOKEN), at least 16 characters. Other
    /// users of this machine can see flags: prefer the environment or the configuration file
    /// [default: no token required]
    #[arg(
        long,
        env = "PLUMBLINE_METRICS_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub metrics_token: Option<String>,
    /// The server is behind a trusted HTTPS proxy: use the last address in X-Forwarded-For, and set
    /// cookies for HTTPS only
    #[arg(long, env = "PLUMBLINE_BEHIND_PROXY")]
    pub behind_proxy: bool,
    /// Seconds that running audits may take to finish after a stop signal, before they are returned
    /// to the queue [default: 10]
    #[arg(long, env = "PLUMBLINE_DRAIN_SECONDS", value_name = "SECONDS")]
    pub drain_seconds: Option<u64>,
    /// Number of days to keep the evidence of audits [default: 30]
    #[arg(long, env = "PLUMBLINE_KEEP_BUNDLES_DAYS", value_name = "DAYS")]
    pub keep_bundles_days: Option<u32>,
    /// Number of days to keep audits; 0 keeps them forever [default: 365]
    #[arg(long, env = "PLUMBLINE_KEEP_AUDITS_DAYS", value_name = "DAYS")]
    pub keep_audits_days: Option<u32>,
    /// Number of newest audits to keep per account; 0 keeps all [default: 0]
    #[arg(long, env = "PLUMBLINE_KEEP_AUDITS_PER_ACCOUNT", value_name = "N")]
    pub keep_audits_per_account: Option<u64>,
    #[command(flatten)]
    pub log: LogArgs,
    /// Create a key with this number of credits, and print it with an example request
    #[arg(long, value_name = "CREDITS")]
    pub create_key: Option<u32>,
    /// TOML configuration file with the names of the flags as keys; flags and environment variables
    /// take precedence
    #[arg(long, env = "PLUMBLINE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct AgentArgs {
    // Not a doc comment: rustdoc takes the brackets for a link.
    #[arg(
        long,
        env = "PLUMBLINE_SERVER",
        value_name = "URL",
        help = "URL of the server, as https://HOST[:PORT][/PATH]"
    )]
    pub server: String,
    /// Token printed by `plumbline admin agents add`. Other users of this machine can see flags:
    /// prefer the environment or the configuration file
    #[arg(
        long,
        env = "PLUMBLINE_AGENT_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: String,
    /// The location of this machine
    #[arg(
        long,
        alias = "location",
        env = "PLUMBLINE_LOCATION",
        value_name = "ID"
    )]
    pub agent_location: String,
    /// Number of audits that run at the same time [default: the number of cores, or half of it with
    /// --no-page-clock, as far as the memory suffices]
    #[arg(long, env = "PLUMBLINE_SLOTS", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub slots: Option<u32>,
    /// Maximum number of visits per audit; a page is visited again if the host disturbed a visit or
    /// the score is uncertain [default: 3]
    #[arg(long, env = "PLUMBLINE_VISITS", value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    pub visits: Option<u8>,
    /// PEM file with the only trusted certificate authorities [default: those of this machine]
    #[arg(long, env = "PLUMBLINE_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Allow unencrypted HTTP to a server on another machine, for the token and all evidence
    #[arg(long, env = "PLUMBLINE_PLAIN_HTTP")]
    pub plain_http: bool,
    /// Seconds that running audits may take to finish after a stop signal, before they are returned
    /// to the queue [default: 10]
    #[arg(long, env = "PLUMBLINE_DRAIN_SECONDS", value_name = "SECONDS")]
    pub drain_seconds: Option<u64>,
    #[command(flatten)]
    pub browser: BrowserArgs,
    #[command(flatten)]
    pub targets: TargetArgs,
    #[command(flatten)]
    pub log: LogArgs,
    /// TOML configuration file with the names of the flags as keys; flags and environment variables
    /// take precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
