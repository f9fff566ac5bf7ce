//! Resolves arguments to settings: checks what depends on several arguments, and fills in defaults.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread::available_parallelism;
use std::time::Duration;

use plumbline_agent::AgentLocation;
use plumbline_browser::{DEFAULT_MEMORY_BYTES, LaunchOptions, Launcher};
use plumbline_catalog::{BUILT_IN, Catalog, CatalogFiles};
use plumbline_field::{ApiKey, DEFAULT_BASE};
use plumbline_link::{Guard, Target};
use plumbline_server::{DEFAULT_LEASE, Limits, Logo};
use plumbline_store::PostgresOptions;
use url::Url;

use crate::args::{BlobArgs, BrowserArgs, DataArgs, FieldArgs, LogArgs, ServeArgs, TargetArgs};
use crate::available_memory;
use crate::exit::Exit;
use crate::retention::Keep;
use crate::storage::StoreLocation;
use crate::suggestion::unknown_location;

/// The default location of this machine: that of the first agent in the API's examples.
const DEFAULT_LOCATION: &str = "us-tx";
const DEFAULT_PORT: u16 = 8080;
/// The default time to drain, below the 30 s that supervisors commonly wait between SIGTERM and
/// SIGKILL.
const DEFAULT_DRAIN_SECONDS: u64 = 10;
/// The default retention time of evidence: last month's audits can be evaluated again after an
/// upgrade.
const DEFAULT_KEEP_BUNDLES_DAYS: u32 = 30;
/// The default retention time of audits: long enough to compare with last year.
const DEFAULT_KEEP_AUDITS_DAYS: u32 = 365;
/// The minimum length of a metrics token, so that it cannot be guessed.
const MIN_METRICS_TOKEN_CHARS: usize = 16;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The settings of `serve`.
#[derive(Debug)]
pub struct ServeSettings {
    pub listen: SocketAddr,
    pub store: StoreLocation,
    pub store_options: PostgresOptions,
    pub blobs: BlobArgs,
    pub launch: LaunchOptions,
    pub targets: TargetSettings,
    pub field: FieldSettings,
    pub slots: u32,
    pub visits: usize,
    pub simulate_locations: bool,
    pub lease: Duration,
    pub limits: Limits,
    /// The files of the certificate and its key, for HTTPS.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub metrics_token: Option<String>,
    /// The file with the key that seals the secrets of clients.
    pub secrets_key: Option<PathBuf>,
    pub logo: Option<Logo>,
    pub drain_grace: Duration,
    pub keep: Keep,
    pub log: LogArgs,
    pub create_key: Option<u32>,
}

/// The targets that may be visited, the location of this machine, and the catalog.
#[derive(Debug)]
pub struct TargetSettings {
    pub allow: Vec<Target>,
    pub deny: Vec<Target>,
    pub agent_location: AgentLocation,
    pub catalog: Catalog,
}

/// The settings for field data.
#[derive(Debug)]
pub struct FieldSettings {
    /// The API key; without one, no field data is requested.
    pub key: Option<ApiKey>,
    pub base: Url,
    /// Targets to request field data for although they are not public.
    pub disclosed: Vec<Target>,
    /// Targets that may be visited although they are not public, and are therefore not disclosed.
    pub allowed: Vec<Target>,
    /// Targets that may never be visited, and are never disclosed.
    pub denied: Vec<Target>,
}

impl ServeSettings {
    /// Resolves the arguments.
    pub fn resolve(args: ServeArgs) -> Result<Self, Exit> {
        let defaults = Limits::default();
        let targets = TargetSettings::resolve(args.targets, args.agent_location)?;
        let tls = tls_files(args.tls_cert, args.tls_key)?;
        let days = |days: u32| DAY * days;
        Ok(Self {
            listen: args
                .listen
                .unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT))),
            store: StoreLocation::resolve(args.data)?,
            blobs: args.blobs,
            store_options: PostgresOptions {
                connections: args
                    .store_connections
                    .unwrap_or(PostgresOptions::default().connections),
                running_per_account: args.running_per_account.filter(|count| *count > 0),
            },
            slots: {
                let has_page_clocks = !args.browser.no_page_clock;
                let default = || default_slots(has_page_clocks);
                args.slots.unwrap_or_else(default)
            },
            launch: launch_options(args.browser),
            field: FieldSettings::resolve(&args.field, &targets)?,
            targets,
            secrets_key: args.secrets_key,
            visits: max_visits(args.visits),
            simulate_locations: args.simulate_locations.unwrap_or(true),
            lease: args
                .lease_seconds
                .map_or(DEFAULT_LEASE, |seconds| Duration::from_secs(seconds.into())),
            limits: Limits {
                starts_per_minute: args.starts_per_minute.unwrap_or(defaults.starts_per_minute),
                requests_per_minute: args
                    .requests_per_minute
                    .unwrap_or(defaults.requests_per_minute),
                failed_keys_per_minute: args
                    .failed_keys_per_minute
                    .unwrap_or(defaults.failed_keys_per_minute),
                unfinished_per_account: args
                    .unfinished_per_account
                    .unwrap_or(defaults.unfinished_per_account),
                failed_audits_per_hour: args
                    .failed_audits_per_hour
                    .unwrap_or(defaults.failed_audits_per_hour),
                behind_proxy: args.behind_proxy,
                serves_https: tls.is_some(),
                connections: args.connections.unwrap_or(defaults.connections).max(1),
                ..defaults
            },
            tls,
            metrics_token: metrics_token(args.metrics_token)?,
            logo: args.logo.as_deref().map(logo).transpose()?,
            drain_grace: drain_grace(args.drain_seconds),
            keep: Keep {
                bundles: days(args.keep_bundles_days.unwrap_or(DEFAULT_KEEP_BUNDLES_DAYS)),
                audits: Some(args.keep_audits_days.unwrap_or(DEFAULT_KEEP_AUDITS_DAYS))
                    .filter(|days| *days > 0)
                    .map(days),
                audits_per_account: args.keep_audits_per_account.filter(|count| *count > 0),
            },
            log: args.log,
            create_key: args.create_key,
        })
    }
}

impl TargetSettings {
    /// Resolves the arguments and checks the location.
    pub fn resolve(args: TargetArgs, agent_location: Option<String>) -> Result<Self, Exit> {
        let allow = parse_targets(&args.allow_target, "--allow-target")?;
        let deny = parse_targets(&args.deny_target, "--deny-target")?;
        let catalog = load_catalog(args.catalog.as_deref())?;
        let agent_location = AgentLocation {
            is_stated: agent_location.is_some(),
            id: agent_location.unwrap_or_else(|| DEFAULT_LOCATION.to_owned()),
        };
        if catalog.location(&agent_location.id).is_none() {
            let message = unknown_location(&catalog, &agent_location.id);
            return Err(Exit::usage(format!("--agent-location: {message}")));
        }
        Ok(Self {
            allow,
            deny,
            agent_location,
            catalog,
        })
    }

    /// Returns the guard for visits and webhooks.
    pub fn guard(&self) -> Result<Guard, Exit> {
        let guard = Guard::new(self.allow.clone()).denying(self.deny.clone());
        guard.check_local_networks().map_err(Exit::failed)?;
        Ok(guard)
    }
}

impl FieldSettings {
    /// Resolves the arguments.
    pub fn resolve(args: &FieldArgs, targets: &TargetSettings) -> Result<Self, Exit> {
        // An empty variable counts as unset.
        let key = args.crux_key.as_deref().filter(|key| !key.is_empty());
        let key = key.map(ApiKey::new).transpose();
        let base = args.crux_url.as_deref().unwrap_or(DEFAULT_BASE);
        let base = Url::parse(base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                Exit::usage(format!("--crux-url: `{base}` is not an http or https URL"))
            })?;
        Ok(Self {
            key: key.map_err(|error| Exit::usage(format!("--crux-key: {error}")))?,
            base,
            disclosed: parse_targets(&args.crux_target, "--crux-target")?,
            allowed: targets.allow.clone(),
            denied: targets.deny.clone(),
        })
    }
}

/// Checks that both files are set, or neither.
fn tls_files(
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<(PathBuf, PathBuf)>, Exit> {
    match (cert, key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some((cert, key))),
        (Some(_), None) => Err(Exit::usage("--tls-cert requires --tls-key")),
        (None, Some(_)) => Err(Exit::usage("--tls-key requires --tls-cert")),
    }
}

/// Reads the operator's logo.
fn logo(path: &Path) -> Result<Logo, Exit> {
    let usage = |error: String| Exit::usage(format!("--logo {}: {error}", path.display()));
    let bytes = fs::read(path).map_err(|error| usage(error.to_string()))?;
    Logo::new(bytes).map_err(|error| usage(error.to_string()))
}

/// Checks the token. An empty variable counts as unset; a short token could be guessed.
fn metrics_token(token: Option<String>) -> Result<Option<String>, Exit> {
    let token = token.filter(|token| !token.is_empty());
    if let Some(token) = &token {
        let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.len() < MIN_METRICS_TOKEN_CHARS || !is_plain {
            return Err(Exit::usage(format!(
                "--metrics-token: expected at least {MIN_METRICS_TOKEN_CHARS} ASCII characters without spaces"
            )));
        }
    }
    Ok(token)
}

fn parse_targets(texts: &[String], flag: &str) -> Result<Vec<Target>, Exit> {
    let parse = |text: &String| Target::from_str(text.trim());
    let targets: Result<_, _> = texts.iter().map(parse).collect();
    targets.map_err(|error| Exit::usage(format!("{flag}: {error}")))
}

/// Returns the options to launch browsers with.
pub fn launch_options(args: BrowserArgs) -> LaunchOptions {
    LaunchOptions {
        chromium: args.chromium,
        sandbox: !args.no_sandbox,
        only_through_proxy: true,
        memory_bytes: args
            .browser_memory
            .map_or(DEFAULT_MEMORY_BYTES, |mib| u64::from(mib) << 20),
        page_clock: !args.no_page_clock,
        ..LaunchOptions::default()
    }
}

/// Returns the data directory, by default in the user's data directory of the platform.
pub fn data_dir(args: DataArgs) -> Result<PathBuf, Exit> {
    args.data
        .or_else(|| from_env("XDG_DATA_HOME").map(|dir| dir.join("plumbline")))
        .or_else(|| from_env("HOME").map(|dir| dir.join(".local/share/plumbline")))
        .ok_or_else(|| Exit::usage("no data directory: set one with --data DIR"))
}

/// Returns the path of the cache file for the calibration of this host.
pub fn calibration_file(launcher: &Launcher) -> Option<PathBuf> {
    let cache =
        from_env("XDG_CACHE_HOME").or_else(|| from_env("HOME").map(|home| home.join(".cache")));
    // Each way to emulate a processor, and each kind of build, needs a calibration of its own.
    let name = match (launcher.uses_page_clocks(), cfg!(debug_assertions)) {
        (true, false) => "calibration-page-clock.json",
        (false, false) => "calibration.json",
        (true, true) => "calibration-page-clock-debug.json",
        (false, true) => "calibration-debug.json",
    };
    Some(cache?.join("plumbline").join(name))
}

fn from_env(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Loads the catalog from a directory, or the built-in one.
pub fn load_catalog(dir: Option<&Path>) -> Result<Catalog, Exit> {
    let Some(dir) = dir else {
        return Catalog::load(BUILT_IN).map_err(Exit::failed);
    };
    let text = |name| read(&dir.join(name));
    Catalog::load(CatalogFiles {
        devices: &text("devices.toml")?,
        networks: &text("networks.toml")?,
        locations: &text("locations.toml")?,
    })
    .map_err(Exit::usage)
}

fn read(path: &Path) -> Result<String, Exit> {
    fs::read_to_string(path).map_err(|error| Exit::usage(format!("{}: {error}", path.display())))
}

/// Returns the maximum number of visits per audit.
pub fn max_visits(visits: Option<u8>) -> usize {
    visits.map_or(plumbline_agent::MAX_VISITS, usize::from)
}

/// Returns the time that running audits may take to finish after a stop signal.
pub fn drain_grace(seconds: Option<u64>) -> Duration {
    Duration::from_secs(seconds.unwrap_or(DEFAULT_DRAIN_SECONDS))
}

/// The memory that a slot may need: that of a browser, and of the evidence of its visit.
const SLOT_BYTES: u64 = (2 << 30) + 400_000_000;

/// Returns the default number of slots. With page clocks, pages do not disturb each other: as many
/// as there are cores, if the memory suffices. Without, half of the cores, because a page uses one
/// core, and its compositor, the network and this process need another.
pub fn default_slots(has_page_clocks: bool) -> u32 {
    let cores = available_parallelism().map_or(1, NonZero::get);
    slots(cores, available_memory::bytes(), has_page_clocks)
}

fn slots(cores: usize, memory_bytes: Option<u64>, has_page_clocks: bool) -> u32 {
    let by_cores = if has_page_clocks { cores } else { cores / 2 };
    let by_cores = u32::try_from(by_cores).unwrap_or(u32::MAX);
    let by_memory = memory_bytes.map_or(u32::MAX, |bytes| {
        u32::try_from(bytes / SLOT_BYTES).unwrap_or(u32::MAX)
    });
    by_cores.min(by_memory).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_limited_by_cores_and_memory() {
        let gib = |number: u64| Some(number << 30);
        for (cores, memory_bytes, has_page_clocks, expected) in [
            (2, gib(23), true, 2),
            (2, gib(23), false, 1),
            (8, gib(64), true, 8),
            (8, gib(64), false, 4),
            (8, gib(10), true, 4),
            (8, gib(1), true, 1),
            (1, None, false, 1),
        ] {
            let slots = slots(cores, memory_bytes, has_page_clocks);
            assert_eq!(slots, expected, "{cores} cores, {memory_bytes:?}");
        }
    }
}
