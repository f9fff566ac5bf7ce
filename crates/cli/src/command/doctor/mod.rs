//! `doctor`: checks that this machine can run audits.

mod machine;
mod outbound;
mod speed;

use std::path::Path;
use std::time::Duration;

use plumbline_agent::{Cpu, ThrottleMethod, self_check};
use plumbline_browser::{LaunchOptions, Launcher, NetworkIsolation};
use plumbline_catalog::Catalog;
use plumbline_store::{PostgresOptions, PostgresStore, SqliteStore, Store};

use crate::args::{BrowserArgs, DoctorArgs};
use crate::clock::now;
use crate::exit::Exit;
use crate::page_url;
use crate::settings::{calibration_file, launch_options, load_catalog};
use crate::standard_output as out;
use crate::storage::{Address, StoreLocation};

/// The earliest plausible time (2026-01-01). With an earlier clock, certificates would be invalid
/// and times in reports wrong.
const CLOCK_FLOOR_MS: i64 = 1_767_225_600_000;

/// Runs `plumbline doctor`.
pub async fn run(args: DoctorArgs) -> Result<Exit, Exit> {
    if args.calibrate {
        return calibrate(args.browser, args.catalog.as_deref()).await;
    }
    let location = StoreLocation::resolve(args.data)?;
    let catalog = load_catalog(args.catalog.as_deref())?;
    let url = page_url::parse(&args.check_url)
        .map_err(|error| Exit::usage(format!("--check-url: {error}")))?;
    let launch = launch_options(args.browser);
    let browser_bytes = launch.memory_bytes;
    let load = machine::load();
    let time_before = machine::ProcessorTime::read();
    let (chromium, storage) = (chromium(launch, &catalog).await, storage(&location).await);
    let findings = [
        chromium,
        storage,
        clock(),
        vec![
            machine::cores(),
            machine::memory(browser_bytes),
            machine::shared_memory(),
            machine::fonts(),
            load,
            machine::steal(time_before).await,
        ],
        outbound::connections(&url).await,
        vec![outbound::crux_key(args.crux_key.as_deref())],
    ];
    let mut is_ok = true;
    for finding in findings.into_iter().flatten() {
        match finding {
            Finding::Ok(text) => out::line(format_args!("ok    {text}"))?,
            Finding::Warning { text, advice } => {
                out::line(format_args!("warn  {text}\n      {advice}"))?;
            }
            Finding::Failure { text, advice } => {
                is_ok = false;
                out::line(format_args!("FAIL  {text}\n      {advice}"))?;
            }
        }
    }
    Ok(if is_ok {
        Exit::Done
    } else {
        Exit::Failed(None)
    })
}

async fn calibrate(browser: BrowserArgs, catalog: Option<&Path>) -> Result<Exit, Exit> {
    let catalog = load_catalog(catalog)?;
    let launcher = Launcher::find(launch_options(browser)).map_err(Exit::failed)?;
    let file = calibration_file(&launcher);
    let cpu = Cpu::new(launcher, file);
    let calibration = cpu.calibrate().await.map_err(Exit::failed)?;
    out::line(format_args!("host        {}", calibration.processor))?;
    out::line(format_args!("browser     {}", calibration.browser))?;
    out::line(format_args!("host index  {:.0}", calibration.host_index))?;
    out::line(format_args!(
        "slowed down {}",
        match calibration.method {
            ThrottleMethod::ByClock => "not at all: the page's clock runs faster or slower",
            ThrottleMethod::ByChromium => "by Chromium, whose browsers see no clock of their own",
        }
    ))?;
    for step in &calibration.points {
        out::line(format_args!(
            "rate {:>5.2}  {:>5.2} times slower",
            step.rate, step.slowdown
        ))?;
    }
    out::line(format_args!(
        "\n{:<24}{:>8}{:>8}{:>10}",
        "DEVICE", "INDEX", "RATE", "MEASURED"
    ))?;
    let indices: Vec<_> = catalog
        .devices()
        .iter()
        .map(|device| device.cpu_index)
        .collect();
    let trials = cpu.measure_devices(&indices).await.map_err(Exit::failed)?;
    for (device, trial) in catalog.devices().iter().zip(trials) {
        let index = device
            .cpu_index
            .map_or("–".to_owned(), |index| index.to_string());
        let measured = trial
            .measured_index
            .map_or("–".to_owned(), |index| format!("{index:.0}"));
        let limited = if trial.choice.limited_by_host {
            "  limited by the host"
        } else {
            ""
        };
        let (id, rate) = (&device.id, trial.choice.rate);
        out::line(format_args!(
            "{id:<24}{index:>8}{rate:>8.2}{measured:>10}{limited}"
        ))?;
    }
    Ok(Exit::Done)
}

/// The result of one check.
enum Finding {
    Ok(String),
    /// Audits can run, but with less protection or less accurately than possible.
    Warning {
        text: String,
        advice: String,
    },
    Failure {
        text: String,
        advice: String,
    },
}

fn failure(text: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding::Failure {
        text: text.into(),
        advice: advice.into(),
    }
}

fn warning(text: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding::Warning {
        text: text.into(),
        advice: advice.into(),
    }
}

async fn chromium(options: LaunchOptions, catalog: &Catalog) -> Vec<Finding> {
    let sandboxed = options.sandbox;
    let launcher = match Launcher::find(options) {
        Ok(launcher) => launcher,
        Err(error) => {
            return vec![failure(
                format!("Chromium: {error}"),
                "install it (`apt-get install chromium`) or set its path with --chromium PATH",
            )];
        }
    };
    let path = launcher.chromium().display().to_string();
    let started = std::time::Instant::now();
    match launcher.launch().await {
        Ok(browser) => {
            let mut findings = vec![Finding::Ok(format!(
                "Chromium: {} at {path}, started in {} ms",
                browser.version().product,
                started.elapsed().as_millis()
            ))];
            let sees_clock = browser.sees_clock();
            browser.close().await;
            findings.push(if sandboxed {
                Finding::Ok("Sandbox: on".to_owned())
            } else {
                failure(
                    "Sandbox: disabled by --no-sandbox",
                    "enable it: pages run untrusted code",
                )
            });
            findings.push(network_isolation(&launcher));
            findings.push(memory_limit(&launcher));
            findings.push(isolation_check(&launcher, catalog).await);
            findings.push(speed::emulation(&launcher, sees_clock));
            findings.extend(speed::calibration(&launcher, catalog));
            findings
        }
        Err(error) => vec![failure(
            format!("Chromium at {path} does not start: {error}"),
            "its sandbox requires unprivileged user namespaces: allow them with \
             `sysctl kernel.unprivileged_userns_clone=1` or, on Ubuntu, \
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0`; in a container, \
             use a seccomp profile that permits them",
        )],
    }
}

fn network_isolation(launcher: &Launcher) -> Finding {
    match launcher.network_isolation() {
        NetworkIsolation::Namespace => {
            Finding::Ok("Network: each browser has its own namespace".to_owned())
        }
        NetworkIsolation::Shared { reason } => warning(
            format!(
                "Network: browsers share this machine's network, isolated by flags only: {reason}"
            ),
            "allow unprivileged user and network namespaces",
        ),
    }
}

fn memory_limit(launcher: &Launcher) -> Finding {
    let enforcement = if launcher.has_cgroups() {
        "enforced by a cgroup"
    } else {
        "sampled, because cgroups cannot be created here"
    };
    let mebibytes = launcher.memory_bytes() >> 20;
    Finding::Ok(format!(
        "Memory limit: {mebibytes} MiB for each browser, {enforcement}"
    ))
}

async fn isolation_check(launcher: &Launcher, catalog: &Catalog) -> Finding {
    match self_check(launcher, catalog).await {
        Ok(()) => Finding::Ok("Self-check: pages cannot bypass the guard".to_owned()),
        Err(error) => failure(
            format!("Self-check: {error}"),
            "use the Chromium of your distribution, and allow user and network namespaces",
        ),
    }
}

async fn storage(location: &StoreLocation) -> Vec<Finding> {
    let ping = async {
        match &location.store {
            Address::Sqlite(path) => SqliteStore::open(path)?.ping().await,
            Address::Postgres(url) => {
                let store = PostgresStore::open(url, PostgresOptions::default()).await?;
                store.ping().await
            }
        }
    };
    let result = tokio::time::timeout(Duration::from_secs(10), ping).await;
    if let Address::Postgres(_) = location.store {
        return vec![match result {
            Ok(Ok(())) => Finding::Ok("PostgreSQL: reachable".to_owned()),
            Ok(Err(error)) => failure(
                format!("PostgreSQL: {error}"),
                "check the URL in --store, that the server is running, and that the user may create tables",
            ),
            Err(_) => failure(
                "PostgreSQL: no response".to_owned(),
                "check the URL in --store, and that no firewall drops connections",
            ),
        }];
    }
    let path = location.data.display();
    vec![match result {
        Ok(Ok(())) => Finding::Ok(format!("Data directory: {path} is writable")),
        Ok(Err(error)) => failure(
            format!("Data directory: {path}: {error}"),
            "make it writable for this user, or set another one with --data DIR",
        ),
        Err(_) => failure(
            format!("Data directory: {path} does not respond"),
            "use a local disk that supports file locks, not a network share",
        ),
    }]
}

fn clock() -> Vec<Finding> {
    let time = plumbline_report::contract::iso8601_ms(now().0);
    vec![if now().0 < CLOCK_FLOOR_MS {
        failure(
            format!("Clock: implausible time {time}"),
            "set it (`timedatectl set-ntp true`): TLS and report times depend on it",
        )
    } else {
        Finding::Ok(format!("Clock: {time}"))
    }]
}
