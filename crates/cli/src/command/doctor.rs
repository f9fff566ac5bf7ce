//! `doctor`: is this machine fit, and what to do if not.

use std::path::Path;
use std::time::Duration;

use plumbline_agent::{Cpu, ThrottleMethod, self_check};
use plumbline_browser::{LaunchOptions, Launcher, NetworkIsolation};
use plumbline_catalog::Catalog;
use plumbline_store::{PostgresOptions, PostgresStore, SqliteStore, Store};

use crate::args::{BrowserArgs, DoctorArgs};
use crate::clock::now;
use crate::exit::Exit;
use crate::settings::{calibration_file, launch_options, load_catalog};
use crate::standard_output as out;
use crate::storage::{Address, Place};

/// A clock before this (2026-01-01) is wrong: certificates and times in reports would be too.
const CLOCK_FLOOR_MS: i64 = 1_767_225_600_000;

pub async fn run(args: DoctorArgs) -> Result<Exit, Exit> {
    if args.calibrate {
        return calibrate(args.browser, args.catalog.as_deref()).await;
    }
    let place = Place::resolve(args.data)?;
    let catalog = load_catalog(args.catalog.as_deref())?;
    let findings = [
        chromium(launch_options(args.browser), &catalog).await,
        kept(&place).await,
        clock(),
    ];
    let mut fit = true;
    for finding in findings.into_iter().flatten() {
        match finding {
            Finding::Fit(what) => out::line(format_args!("ok    {what}"))?,
            Finding::Weak { what, mend } => {
                out::line(format_args!("warn  {what}\n      {mend}"))?;
            }
            Finding::Unfit { what, mend } => {
                fit = false;
                out::line(format_args!("FAIL  {what}\n      {mend}"))?;
            }
        }
    }
    Ok(if fit { Exit::Done } else { Exit::Failed(None) })
}

async fn calibrate(browser: BrowserArgs, catalog: Option<&Path>) -> Result<Exit, Exit> {
    let catalog = load_catalog(catalog)?;
    let launcher = Launcher::find(launch_options(browser)).map_err(Exit::failed)?;
    let cpu = Cpu::new(launcher, calibration_file());
    let calibration = cpu.calibrate().await.map_err(Exit::failed)?;
    out::line(format_args!("host        {}", calibration.processor))?;
    out::line(format_args!("browser     {}", calibration.browser))?;
    out::line(format_args!("host index  {:.0}", calibration.host_index))?;
    out::line(format_args!(
        "slowed down {}",
        match calibration.method {
            ThrottleMethod::Paced => "by pacing the page on its core",
            ThrottleMethod::ByChromium => "by Chromium: this host lets no page be paced",
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
        "DEVICE", "INDEX", "RATE", "REACHED"
    ))?;
    let indices: Vec<_> = catalog
        .devices()
        .iter()
        .map(|device| device.cpu_index)
        .collect();
    let tried = cpu.measure_devices(&indices).await.map_err(Exit::failed)?;
    for (device, tried) in catalog.devices().iter().zip(tried) {
        let index = device
            .cpu_index
            .map_or("–".to_owned(), |index| index.to_string());
        let reached = tried
            .measured_index
            .map_or("–".to_owned(), |index| format!("{index:.0}"));
        let limited = match tried.choice.limited_by_host {
            true => "  limited by the host",
            false => "",
        };
        let (id, rate) = (&device.id, tried.choice.rate);
        out::line(format_args!(
            "{id:<24}{index:>8}{rate:>8.2}{reached:>10}{limited}"
        ))?;
    }
    Ok(Exit::Done)
}

enum Finding {
    Fit(String),
    /// Audits can be made, but with less protection than there could be.
    Weak {
        what: String,
        mend: String,
    },
    Unfit {
        what: String,
        mend: String,
    },
}

fn unfit(what: impl Into<String>, mend: impl Into<String>) -> Finding {
    Finding::Unfit {
        what: what.into(),
        mend: mend.into(),
    }
}

async fn chromium(options: LaunchOptions, catalog: &Catalog) -> Vec<Finding> {
    let sandboxed = options.sandbox;
    let launcher = match Launcher::find(options) {
        Ok(launcher) => launcher,
        Err(error) => {
            return vec![unfit(
                format!("Chromium: {error}"),
                "install it (`apt-get install chromium`) or name one with --chromium PATH",
            )];
        }
    };
    let path = launcher.chromium().display().to_string();
    let started = std::time::Instant::now();
    match launcher.version().await {
        Ok(version) => {
            let mut findings = vec![Finding::Fit(format!(
                "Chromium: {} at {path}, started in {} ms",
                version.product,
                started.elapsed().as_millis()
            ))];
            findings.push(if sandboxed {
                Finding::Fit("Sandbox: on".to_owned())
            } else {
                unfit(
                    "Sandbox: switched off by --no-sandbox",
                    "leave it on: every page is a stranger's program",
                )
            });
            findings.push(network_isolation(&launcher));
            findings.push(memory_limit(&launcher));
            findings.push(checked(&launcher, catalog).await);
            findings
        }
        Err(error) => vec![unfit(
            format!("Chromium at {path} does not start: {error}"),
            "its sandbox needs unprivileged user namespaces: allow them with \
             `sysctl kernel.unprivileged_userns_clone=1` or, on Ubuntu, \
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0`; in a container, \
             use a seccomp profile that permits them",
        )],
    }
}

fn network_isolation(launcher: &Launcher) -> Finding {
    match launcher.network_isolation() {
        NetworkIsolation::Namespace => {
            Finding::Fit("Network: each browser has a namespace of its own".to_owned())
        }
        NetworkIsolation::Shared { reason } => Finding::Weak {
            what: format!("Network: shared with browsers, kept apart by flags only: {reason}"),
            mend: "permit unprivileged user and network namespaces".to_owned(),
        },
    }
}

fn memory_limit(launcher: &Launcher) -> Finding {
    let means = if launcher.has_cgroups() {
        "enforced by a cgroup"
    } else {
        "sampled: no cgroup can be made here"
    };
    let mebibytes = launcher.memory_bytes() >> 20;
    Finding::Fit(format!("Memory: {mebibytes} MiB for each browser, {means}"))
}

async fn checked(launcher: &Launcher, catalog: &Catalog) -> Finding {
    match self_check(launcher, catalog).await {
        Ok(()) => Finding::Fit("Self-check: nothing gets around the guard".to_owned()),
        Err(error) => unfit(
            format!("Self-check: {error}"),
            "use the Chromium of your distribution, and permit user and network namespaces",
        ),
    }
}

async fn kept(place: &Place) -> Vec<Finding> {
    let opened = async {
        match &place.store {
            Address::Sqlite(path) => SqliteStore::open(path)?.ping().await,
            Address::Postgres(url) => {
                let store = PostgresStore::open(url, PostgresOptions::default()).await?;
                store.ping().await
            }
        }
    };
    let answer = tokio::time::timeout(Duration::from_secs(10), opened).await;
    if let Address::Postgres(_) = place.store {
        return vec![match answer {
            Ok(Ok(())) => Finding::Fit("PostgreSQL: it answers".to_owned()),
            Ok(Err(error)) => unfit(
                format!("PostgreSQL: {error}"),
                "check the address in --store, that the server runs, and that the user may create tables",
            ),
            Err(_) => unfit(
                "PostgreSQL: it does not answer".to_owned(),
                "check the address in --store, and that nothing on the way drops connections",
            ),
        }];
    }
    let shown = place.data.display();
    vec![match answer {
        Ok(Ok(())) => Finding::Fit(format!("Data directory: {shown} can be written")),
        Ok(Err(error)) => unfit(
            format!("Data directory: {shown}: {error}"),
            "make it writable for this user, or name another with --data DIR",
        ),
        Err(_) => unfit(
            format!("Data directory: {shown} does not answer"),
            "it needs a local disk that supports file locks, not a network share",
        ),
    }]
}

fn clock() -> Vec<Finding> {
    let time = plumbline_report::contract::iso8601_ms(now().0);
    vec![if now().0 < CLOCK_FLOOR_MS {
        unfit(
            format!("Clock: it shows {time}"),
            "set it (`timedatectl set-ntp true`): TLS and report times depend on it",
        )
    } else {
        Finding::Fit(format!("Clock: {time}"))
    }]
}
