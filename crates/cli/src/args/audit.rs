//! Arguments of the commands that need no server.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use plumbline_catalog::PRESETS;
use plumbline_report::Format;

use super::{BrowserArgs, DataArgs, FieldArgs, StateArgs, TargetArgs};

#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    /// The URL of the page
    #[arg(required_unless_present = "recording")]
    pub url: Option<String>,
    /// Visit a recording of `plumbline record`, or a HAR file whose name ends with .har, in place
    /// of the servers; nothing is connected to
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["url", "interactions", "flow", "profile", "steps", "consent", "view"]
    )]
    pub recording: Option<PathBuf>,
    /// Begin dates at the time of the recording and repeat random numbers in every visit
    #[arg(long, requires = "recording")]
    pub repeatable: bool,
    #[command(flatten)]
    pub conditions: ConditionArgs,
    /// Print the whole report as JSON
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Number of runs; the median run is reported
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_RUNS))]
    pub runs: u32,
    /// Visit the page exactly once per run, even if the machine was busy or the score is uncertain
    #[arg(long)]
    pub quick: bool,
    /// Make real inputs on up to N visible controls after the visits and report Interaction to Next
    /// Paint; no input leaves the page or sends a form [without N: 8]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "8", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub interactions: Option<u8>,
    /// Perform the steps in this file after the visits and measure each of them (INP, CLS, TBT): a
    /// list of steps, or a recording of the Recorder in Chrome DevTools (JSON, or TOML if its name
    /// ends with .toml)
    #[arg(long, value_name = "FILE")]
    pub flow: Option<PathBuf>,
    /// Load the page once more after the visits with a profiler, and name the functions and lines
    /// that take the time of long tasks, of forced layouts and of the whole load
    #[arg(long)]
    pub profile: bool,
    /// Measure the page also if the server responds with status 400 or above
    #[arg(long)]
    pub allow_error_status: bool,
    /// Write the report as a web page and open it with the desktop's program; the file is
    /// HOST_TIME.html in the current directory unless `--output html` writes one
    #[arg(long)]
    pub open: bool,
    /// Print nothing but errors and what `--output` writes; the exit code tells the result
    #[arg(long, short)]
    pub quiet: bool,
    /// Check the runs against this budget (TOML, or JSON of Lighthouse CI); exit code 3 if it is
    /// exceeded
    #[arg(long, value_name = "FILE")]
    pub budget: Option<PathBuf>,
    /// Fail a limit of the budget only if it is surely exceeded: if the whole 90 % interval of the
    /// score or metric is beyond it
    #[arg(long, requires = "budget")]
    pub budget_by_interval: bool,
    /// Write the evidence to this file, for `plumbline judge`
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    #[command(flatten)]
    pub field: FieldArgs,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// The URL of the page
    pub url: String,
    /// The file to write: a HAR file if its name ends with .har, otherwise a recording
    #[arg(long, short, value_name = "FILE")]
    pub output_path: PathBuf,
    #[command(flatten)]
    pub conditions: ConditionArgs,
    /// Record the page also if the server responds with status 400 or above
    #[arg(long)]
    pub allow_error_status: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The URLs of the two pages, or with `--recordings` two files; the second is compared with the
    /// first
    #[arg(num_args = 2, required = true, value_names = ["URL_A", "URL_B"])]
    pub pages: Vec<String>,
    /// Visit two recordings of `plumbline record`, or HAR files whose names end with .har, in place
    /// of the servers; nothing is connected to
    #[arg(long, conflicts_with_all = ["steps", "consent", "view"])]
    pub recordings: bool,
    /// Begin dates at the time of the recording and repeat random numbers in every visit
    #[arg(long, requires = "recordings")]
    pub repeatable: bool,
    #[command(flatten)]
    pub conditions: ConditionArgs,
    #[command(flatten)]
    pub comparison: ComparisonArgs,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Debug, clap::Args)]
pub struct ConvertRecordingArgs {
    /// A recording, or a HAR file (of this or another program) whose name ends with .har
    pub input: PathBuf,
    /// The file to write: a HAR file if its name ends with .har, otherwise a recording
    pub output: PathBuf,
    /// Remove the values of cookies, tokens and authorization, also from bodies
    #[arg(long)]
    pub redact: bool,
}

#[derive(Debug, clap::Args)]
pub struct ExperimentArgs {
    /// A recording of `plumbline record`, or a HAR file whose name ends with .har
    pub recording: PathBuf,
    /// A change in JSON, such as '{"type": "block", "pattern": "//ads.example.com/"}'; can be given
    /// several times
    #[arg(long = "change", value_name = "JSON")]
    pub changes: Vec<String>,
    /// A file with a JSON list of changes
    #[arg(
        long = "changes",
        value_name = "FILE",
        required_unless_present_any = ["changes", "check", "third_party"]
    )]
    pub changes_file: Option<PathBuf>,
    /// Follow the advice of a failed check, such as `render-blocking-insight`, instead of changes
    #[arg(long, value_name = "ID", conflicts_with_all = ["changes", "changes_file"])]
    pub check: Option<String>,
    /// Leave out a third party, as the report names it, instead of changes
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["changes", "changes_file", "check"]
    )]
    pub third_party: Option<String>,
    /// Begin dates at the time of the recording and repeat random numbers in every visit
    #[arg(long)]
    pub repeatable: bool,
    #[command(flatten)]
    pub conditions: ConditionArgs,
    #[command(flatten)]
    pub comparison: ComparisonArgs,
}

#[derive(Debug, clap::Args)]
pub struct MatrixArgs {
    /// A recording of `plumbline record`, or a HAR file whose name ends with .har
    pub recording: PathBuf,
    /// The devices; `plumbline devices` lists the ids [default: those of Lighthouse's presets]
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub devices: Vec<String>,
    /// The networks; `plumbline networks` lists the ids [default: all]
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub networks: Vec<String>,
    /// Begin dates at the time of the recording and repeat random numbers in every visit
    #[arg(long)]
    pub repeatable: bool,
    /// The format of the result [default: a text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output: Option<MatrixOutput>,
    /// The output file [default: standard output]
    #[arg(long, value_name = "PATH")]
    pub output_path: Option<PathBuf>,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MatrixOutput {
    Json,
    Markdown,
    Csv,
}

/// How two pages are compared.
#[derive(Debug, clap::Args)]
pub struct ComparisonArgs {
    /// The most pairs of visits; fewer are made if the answer is clear before
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(4..=10))]
    pub max_pairs: u8,
    /// Visit each page exactly once per pair, even if the machine was busy
    #[arg(long)]
    pub quick: bool,
    /// The format of the result [default: a text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output: Option<ComparisonOutput>,
    /// The output file [default: standard output]
    #[arg(long, value_name = "PATH")]
    pub output_path: Option<PathBuf>,
    /// End with exit code 3 if the second page is slower in any figure
    #[arg(long)]
    pub fail_if_slower: bool,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComparisonOutput {
    Json,
    Markdown,
    Junit,
}

/// The conditions of the visits that a command makes itself.
#[derive(Debug, clap::Args)]
pub struct ConditionArgs {
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// The place and the browser of visits, and the targets that are allowed.
#[derive(Debug, clap::Args)]
pub struct PlaceArgs {
    /// The location to audit from; simulated unless this machine is there; `plumbline locations`
    /// lists the ids [default: the location of this machine]
    #[arg(long, value_name = "ID")]
    pub location: Option<String>,
    /// The location of this machine; reports name it only if it is set [default: us-tx]
    #[arg(
        long,
        alias = "stands-at",
        env = "PLUMBLINE_LOCATION",
        value_name = "ID"
    )]
    pub agent_location: Option<String>,
    #[command(flatten)]
    pub browser: BrowserArgs,
    #[command(flatten)]
    pub targets: TargetArgs,
}

/// The device and the network of an audit.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ChoiceArgs {
    /// The device to emulate; `plumbline devices` lists the ids [default: mobile]
    #[arg(long, value_name = "ID")]
    pub device: Option<String>,
    /// The network to emulate; `plumbline networks` lists the ids [default: follows the device:
    /// mobileSlow4g for phones and tablets, desktopDense4G for desktops]
    #[arg(long, value_name = "ID")]
    pub network: Option<String>,
    /// The device and the network of a configuration of Lighthouse
    #[arg(long, conflicts_with_all = ["device", "network"], value_parser = PossibleValuesParser::new(PRESETS.map(|preset| preset.id)))]
    pub preset: Option<String>,
}

/// The most runs of one audit. More would take an hour and hardly be more accurate.
const MAX_RUNS: i64 = 50;

#[derive(Debug, clap::Args)]
pub struct JudgeArgs {
    /// A bundle, from `audit --bundle` or a server's data directory
    pub bundle: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Check the report against this budget; exit code 3 if it is exceeded
    #[arg(long, value_name = "FILE")]
    pub budget: Option<PathBuf>,
    /// Fail a limit of the budget only if it is surely exceeded: if the whole 90 % interval of the
    /// score or metric is beyond it
    #[arg(long, requires = "budget")]
    pub budget_by_interval: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct OutputArgs {
    /// Formats to write the report in
    #[arg(long, value_name = "FORMAT,…", value_delimiter = ',', value_parser = format())]
    pub output: Vec<Format>,
    /// The output file, or the prefix of the file names for several formats; `-` for standard
    /// output [default: standard output for one format, HOST_TIME.EXTENSION for several]
    #[arg(long, value_name = "PATH", requires = "output")]
    pub output_path: Option<PathBuf>,
    /// In JUnit XML, report failed checks as failures, not only what exceeds the budget
    #[arg(long)]
    pub junit_checks: bool,
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .try_map(|name| Format::from_name(&name).ok_or("unknown format"))
}

#[derive(Debug, clap::Args)]
pub struct MetricsArgs {
    /// A Chromium trace: array or object format, optionally with gzip
    pub trace: PathBuf,
    /// A DevTools protocol log with the requests [default: the requests of the trace]
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// The form factor whose scoring curves are used
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
    /// Calibrate this host again, and print for every device its CPU index, the rate at which it is
    /// emulated, and the index that was measured
    #[arg(long)]
    pub calibrate: bool,
    /// Directory with catalog files that replace the built-in ones
    #[arg(long, env = "PLUMBLINE_CATALOG", value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    /// The page by which outgoing connections are checked
    #[arg(long, value_name = "URL", default_value = "https://example.com/")]
    pub check_url: String,
    /// API key of the Chrome UX Report, whose form is checked
    #[arg(
        long,
        env = "PLUMBLINE_CRUX_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    pub crux_key: Option<String>,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub browser: BrowserArgs,
}
