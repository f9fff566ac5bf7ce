//! Flags that several commands have.

use std::path::PathBuf;

use clap::ValueEnum;

#[derive(Debug, Clone, clap::Args)]
pub struct DataArgs {
    /// Where everything is kept [default: plumbline in the user's data directory]
    #[arg(long, env = "PLUMBLINE_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where accounts, audits and the queue are kept: sqlite:FILE or
    /// postgres://USER:PASSWORD@HOST/DATABASE [default: plumbline.db in the data directory]
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
    /// Where evidence is kept; a bucket's keys come from AWS_ACCESS_KEY_ID and
    /// AWS_SECRET_ACCESS_KEY [default: the data directory]
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
    /// A host (with all names below it), address or network that may never be visited, whatever
    /// else allows it; repeatable. The networks of this machine's own interfaces are denied unless
    /// --allow-target names them
    #[arg(
        long,
        env = "PLUMBLINE_DENY_TARGET",
        value_name = "HOST[:PORT]|CIDR",
        value_delimiter = ','
    )]
    pub deny_target: Vec<String>,
    /// Directory with devices.toml, networks.toml, locations.toml in place of the built-in ones
    #[arg(long, env = "PLUMBLINE_CATALOG", value_name = "DIR")]
    pub catalog: Option<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct FieldArgs {
    /// Key to the Chrome UX Report API, for field data; without one nothing is asked. Other users
    /// see the flag: prefer the environment or the file
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
    /// A host, address or network to ask about though it is not public, or --allow-target names it;
    /// repeatable
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
    /// How much memory one browser may use, in MiB; a page that needs more ends as TOO_LARGE
    /// [default: 2048]
    #[arg(long, env = "PLUMBLINE_BROWSER_MEMORY", value_name = "MIB", value_parser = clap::value_parser!(u32).range(256..))]
    pub browser_memory: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Pretty,
    Json,
}
