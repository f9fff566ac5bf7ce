//! What needs no server: one page, kept evidence, a trace, this machine.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use plumbline_report::Format;

use super::{BrowserArgs, DataArgs, FieldArgs, TargetArgs};

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
        .try_map(|name| Format::from_name(&name).ok_or("no such form"))
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
