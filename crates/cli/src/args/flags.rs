//! Flags that several commands share.

use std::path::PathBuf;

use clap::ValueEnum;

#[derive(Debug, Clone, clap::Args)]
pub struct DataArgs {
    /// Data directory [default: plumbline in the user's data directory]
    #[arg(long, env = "PLUMBLINE_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Database for accounts, audits and the queue: sqlite:FILE or
    /// postgres://USER:PASSWORD@HOST/DATABASE [default: plumbline.db in the data directory]
    #[arg(
        long,
        env = "PLUMBLINE_STORE",
        value_name = "ADDRESS",
        hide_env_values = true
    )]
    pub store: Option<String>,
}

/// The storage for evidence. Credentials are not arguments but environment variables:
/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
#[derive(Debug, Clone, clap::Args)]
pub struct BlobArgs {
    /// Storage for evidence; credentials of a bucket are read from AWS_ACCESS_KEY_ID and
    /// AWS_SECRET_ACCESS_KEY [default: the data directory]
    #[arg(
        long,
        env = "PLUMBLINE_BLOBS",
        value_name = "file:DIR|s3://BUCKET[/PREFIX]"
    )]
    pub blobs: Option<String>,
    /// Endpoint of the bucket [default: Amazon S3]
    #[arg(long, env = "PLUMBLINE_S3_ENDPOINT", value_name = "URL")]
    pub s3_endpoint: Option<String>,
    /// Region of the bucket [default: us-east-1]
    #[arg(long, env = "PLUMBLINE_S3_REGION", value_name = "REGION")]
    pub s3_region: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct TargetArgs {
    /// A host, IP address or network outside the public internet that may be visited; repeatable
    #[arg(
        long,
        env = "PLUMBLINE_ALLOW_TARGET",
        value_name = "HOST[:PORT]|CIDR",
        value_delimiter = ','
    )]
    pub allow_target: Vec<String>,
    /// A host (including its subdomains), IP address or network that may never be visited, even if
    /// allowed otherwise; repeatable. The networks of this machine's interfaces are denied unless
    /// --allow-target names them
    #[arg(
        long,
        env = "PLUMBLINE_DENY_TARGET",
        value_name = "HOST[:PORT]|CIDR",
        value_delimiter = ','
    )]
    pub deny_target: Vec<String>,
    /// Directory with devices.toml, networks.toml and locations.toml that replace the built-in ones
    #[arg(long, env = "PLUMBLINE_CATALOG", value_name = "DIR")]
    pub catalog: Option<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct FieldArgs {
    /// API key of the Chrome UX Report, for field data; without it there is no field data. Other
    /// users of this machine can see flags: prefer the environment or, with `serve`, the
    /// configuration file
    #[arg(
        long,
        env = "PLUMBLINE_CRUX_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    pub crux_key: Option<String>,
    // Not a doc comment: rustdoc takes the brackets for a link.
    #[arg(
        long,
        env = "PLUMBLINE_CRUX_URL",
        value_name = "URL",
        help = "URL of the Chrome UX Report API [default: https://chromeuxreport.googleapis.com]"
    )]
    pub crux_url: Option<String>,
    /// A host, IP address or network to request field data for although it is not public, or is
    /// named by --allow-target; repeatable
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
    /// The Chromium to run [default: the first one found]
    #[arg(long, env = "PLUMBLINE_CHROMIUM", value_name = "PATH")]
    pub chromium: Option<PathBuf>,
    /// Run Chromium without its sandbox: pages then run with the rights of this process
    #[arg(long, env = "PLUMBLINE_NO_SANDBOX")]
    pub no_sandbox: bool,
    /// Memory limit of one browser, in MiB; a page that needs more ends as TOO_LARGE [default:
    /// 2048]
    #[arg(long, env = "PLUMBLINE_BROWSER_MEMORY", value_name = "MIB", value_parser = clap::value_parser!(u32).range(256..))]
    pub browser_memory: Option<u32>,
    /// Let Chromium slow pages down instead of letting the clock of their browser run faster:
    /// audits take longer and vary more, and devices that are faster than this machine cannot be
    /// emulated
    #[arg(long, env = "PLUMBLINE_NO_PAGE_CLOCK")]
    pub no_page_clock: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct LogArgs {
    /// Format of log lines on standard error [default: pretty]
    #[arg(long, env = "PLUMBLINE_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Log filter, as `level` or `crate=level,…` [default: info]
    #[arg(long, env = "PLUMBLINE_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Pretty,
    Json,
}
