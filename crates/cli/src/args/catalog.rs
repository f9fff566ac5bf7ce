use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// The catalog that is listed.
#[derive(Debug, Args)]
pub struct CatalogArgs {
    /// A directory with devices.toml, networks.toml and locations.toml [default: the built-in
    /// catalog]
    #[arg(long, env = "PLUMBLINE_CATALOG", value_name = "DIR")]
    pub catalog: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell that reads the completions
    pub shell: Shell,
}
