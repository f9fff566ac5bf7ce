//! `serve`: the server, with a store and an agent in one process.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use plumbline_agent::{AgentSettings, Auditor, Cpu, Host, Interception, self_check};
use plumbline_browser::{LaunchOptions, Launcher, NetworkIsolation, Pool, sweep};
use plumbline_catalog::Catalog;
use plumbline_server::{
    Agents, App, AuditPhases, BrowserCounter, BrowserCounts, Dispatcher, DispatcherParts,
    EmbeddedAgent, Metrics, Pages, ServeOptions, TlsFiles, Uploads, Vault, WEBHOOK_RETRIES,
    deliver_webhooks, router, serve_with, summaries,
};
use plumbline_store::{Key, ProcessSet, Store, random_text};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

use crate::args::{LogArgs, LogFormat, ServeArgs};
use crate::blobs::EvidenceBlobs;
use crate::clock::now;
use crate::exit::Exit;
use crate::field_data::FieldData;
use crate::field_quota::SharedQuota;
use crate::retention;
use crate::settings::{ServeSettings, TargetSettings, calibration_file};
use crate::standard_output as out;
use crate::storage::{self, Stores};
use crate::webhook_client::WebhookClient;

/// The largest upload: a bundle of the maximum unpacked size is about a fifth of it when packed.
const MAX_EVIDENCE_BYTES: u64 = 256 * 1024 * 1024;

/// Runs `plumbline serve`.
pub async fn run(args: ServeArgs) -> Result<Exit, Exit> {
    let settings = ServeSettings::resolve(args)?;
    start_log(&settings.log)?;
    let tls = match &settings.tls {
        Some((cert, key)) => Some(TlsFiles::load(cert, key).map_err(Exit::failed)?),
        None => None,
    };
    let data = &settings.store.data;
    create_private_dir(data)?;
    // Held until the process ends. The holder may take over leases of earlier servers on this
    // directory.
    let _lock = lock(data)?;
    let server_id = storage::server_id(data)?;
    let Stores {
        store,
        pages: page_store,
        agents,
        secrets,
    } = storage::open(&settings.store.store, settings.store_options).await?;
    // In a shared store, only leases of this directory's last server are orphaned.
    let orphans = if settings.store.is_local() {
        ProcessSet::Embedded
    } else {
        ProcessSet::EmbeddedIn {
            server_id: server_id.clone(),
        }
    };
    let recovered = store.recover(&orphans).await.map_err(Exit::failed)?;
    agents
        .remove_presence(&orphans)
        .await
        .map_err(Exit::failed)?;
    if recovered > 0 {
        tracing::warn!(
            recovered,
            "requeued audits of a terminated server; each counts a fault"
        );
    }
    let vault = storage::vault_key(&settings.store, settings.secrets_key)?
        .map(|key| Arc::new(Vault::new(secrets, key)));
    let guard = Arc::new(settings.targets.guard()?);
    let TargetSettings {
        agent_location,
        catalog,
        ..
    } = settings.targets;
    let catalog = Arc::new(catalog);
    let quota = Arc::new(SharedQuota::new(Arc::clone(&store), Arc::new(now)));
    let field = FieldData::new(settings.field, Arc::clone(&catalog), quota);
    let field = Arc::new(field);

    let blobs = EvidenceBlobs::open(&settings.blobs, data)?;
    blobs.check().await?;
    let pages = Pages {
        store: page_store,
        media: blobs.media.clone(),
        phases: AuditPhases::of_store(&*store),
        logo: settings.logo.map(Arc::new),
    };

    let (stop, stopped) = watch::channel(false);
    let stop = Arc::new(stop);
    let metrics = Arc::new(Metrics::default());
    for _ in 0..recovered {
        metrics.audit_faulted();
    }
    tokio::spawn(retention::run_periodically(
        Arc::clone(&store),
        blobs.clone(),
        settings.keep,
    ));
    tokio::spawn(summaries::keep_adding_missing(Arc::clone(&store)));
    let dispatcher = Arc::new(Dispatcher::new(DispatcherParts {
        store: Arc::clone(&store),
        agents: Arc::clone(&agents),
        bundles: blobs.bundles.clone(),
        media: blobs.media.clone(),
        phases: pages.phases.clone(),
        metrics: Arc::clone(&metrics),
        clock: Arc::new(now),
        lease: settings.lease,
        locations: catalog.locations().iter().map(|l| l.id.clone()).collect(),
        simulate: settings.simulate_locations,
        vault: vault.clone(),
        observers: vec![field.clone()],
    }));
    let uploads = Uploads::open(&data.join("uploads"), MAX_EVIDENCE_BYTES)
        .map_err(|error| Exit::failed(format!("{}: {error}", data.display())))?;
    tokio::spawn(uploads.clone().sweep_periodically());
    let mut browsers: Option<BrowserCounter> = None;
    let mut isolation = "no browsers: audits are performed by agents".to_owned();
    let agent = match settings.slots {
        0 => None,
        slots => {
            let has_sandbox = settings.launch.sandbox;
            let launcher = find_browser(settings.launch)?;
            isolation = describe_isolation(has_sandbox, launcher.network_isolation());
            let pool = Pool::start(launcher.clone(), 1);
            browsers = Some(browser_counter(&pool));
            let roots = plumbline_http::roots::of_system();
            let interception = Interception::new(&launcher, roots).map_err(Exit::failed)?;
            let auditor = Auditor {
                interception,
                cpu: Cpu::new(launcher.clone(), calibration_file(&launcher)),
                browsers: pool,
                catalog: Arc::clone(&catalog),
                guard: Arc::clone(&guard),
                agent_location,
                max_visits: settings.visits,
            };
            let agent = AgentSettings {
                slots,
                drain_grace: settings.drain_grace,
            };
            let (dispatcher, stop) = (Arc::clone(&dispatcher), Arc::clone(&stop));
            let (catalog, mut stopped) = (Arc::clone(&catalog), stopped.clone());
            Some(tokio::spawn(async move {
                let checked = tokio::select! {
                    checked = check_isolation(&launcher, &catalog) => checked,
                    _ = stopped.wait_for(|stop| *stop) => return Ok(()),
                };
                if let Err(error) = checked {
                    // A server whose agent cannot run audits would only fill its queue.
                    stop.send_replace(true);
                    return Err(error);
                }
                let host = tokio::select! {
                    host = Host::measure(&launcher, &auditor.cpu) => host,
                    _ = stopped.wait_for(|stop| *stop) => return Ok(()),
                };
                // The first audit would fail with the same error, and report it.
                let host = host.unwrap_or_else(|error| {
                    tracing::error!(%error, "failed to calibrate this host");
                    Host::unknown()
                });
                let process = random_text(12).map_err(Exit::failed)?;
                let location = auditor.agent_location.id.clone();
                let announcement = host.announcement(process, location, slots);
                let work = Arc::new(EmbeddedAgent::new(dispatcher, server_id, announcement));
                plumbline_agent::run(work, Arc::new(auditor), agent, stopped)
                    .await
                    .map_err(Exit::failed)
            }))
        }
    };

    let listener = TcpListener::bind(settings.listen).await.map_err(|error| {
        Exit::failed(format!(
            "cannot listen on {}: {error}; choose another address with --listen",
            settings.listen
        ))
    })?;
    let address = listener.local_addr().map_err(Exit::failed)?;
    // Whoever reads that the server listens may stop it.
    let stop_signal = stop_signal();
    // The service runs even if nobody reads standard output.
    let scheme = if tls.is_some() { "https" } else { "http" };
    let base = format!("{scheme}://{address}");
    let _ = out::line(format_args!("listening on {base}"));
    match settings.create_key {
        Some(credits) => print_example_key(&store, credits, &base).await?,
        None if settings.store.is_local() => {
            let data = data.display();
            let _ = out::line(format_args!(
                "create a key: plumbline keys create --credits 100 --data {data}"
            ));
        }
        None => {
            let _ = out::line(
                "create a key: plumbline keys create --credits 100 --store ADDRESS, with the address \
                 of this server's --store",
            );
        }
    }
    let (slots, data) = (settings.slots, data.display());
    let _ = out::line(format_args!("data directory {data}, slots: {slots}"));
    let _ = out::line(isolation);
    let webhook_client = WebhookClient::new(Arc::clone(&guard));
    let may_visit = Arc::new(move |host: &str, port: u16| guard.check_host(host, port).is_ok());
    let app = App {
        limits: settings.limits,
        bundles: Some(blobs.bundles),
        pages: Some(pages),
        agents: Some(Agents {
            dispatcher,
            store: agents,
            uploads,
        }),
        metrics,
        metrics_token: settings.metrics_token,
        browsers,
        field: Some(field),
        vault,
        stopping: stopped.clone(),
        ..App::new(Arc::clone(&store), catalog, may_visit)
    };
    let webhooks = tokio::spawn(deliver_webhooks(
        app.clone(),
        Arc::new(webhook_client),
        WEBHOOK_RETRIES.to_vec(),
        stopped.clone(),
    ));
    tokio::spawn(async move {
        stop_signal.await;
        // Fails only if there is no receiver any more.
        let _ = stop.send(true);
    });
    let mut stop_serving = stopped.clone();
    let serve_options = ServeOptions {
        connections: settings.limits.connections,
        ..ServeOptions::default()
    };
    let stop_serving = async move {
        let _ = stop_serving.wait_for(|stop| *stop).await;
    };
    let acceptor = match tls {
        Some(files) => {
            let acceptor = files.acceptor().map_err(Exit::failed)?;
            tokio::spawn(files.reload_periodically());
            Some(acceptor)
        }
        None => None,
    };
    serve_with(listener, acceptor, router(app), serve_options, stop_serving)
        .await
        .map_err(Exit::failed)?;
    if let Some(agent) = agent {
        agent.await.map_err(Exit::failed)??;
    }
    webhooks.await.map_err(Exit::failed)?;
    tracing::info!("server stopped");
    Ok(Exit::Done)
}

/// Finds the browser, and removes profiles of terminated processes.
pub fn find_browser(options: LaunchOptions) -> Result<Launcher, Exit> {
    let launcher = Launcher::find(options).map_err(Exit::failed)?;
    let removed = sweep(launcher.run_dir()).map_err(Exit::failed)?;
    if removed > 0 {
        tracing::info!(removed, "removed profiles of terminated processes");
    }
    Ok(launcher)
}

/// Checks that pages can connect only to what the guard allows, and logs how they are isolated.
pub async fn check_isolation(launcher: &Launcher, catalog: &Catalog) -> Result<(), Exit> {
    self_check(launcher, catalog).await.map_err(Exit::failed)?;
    match launcher.network_isolation() {
        NetworkIsolation::Namespace => {
            tracing::info!("each browser has its own network namespace");
        }
        NetworkIsolation::Shared { reason } => tracing::warn!(
            reason,
            "browsers share this machine's network; only Chromium's flags prevent pages from bypassing \
             the guard"
        ),
    }
    Ok(())
}

/// Describes for an operator how pages are isolated from this machine.
fn describe_isolation(has_sandbox: bool, network: &NetworkIsolation) -> String {
    let sandbox = if has_sandbox {
        "on"
    } else {
        "off (--no-sandbox): pages run with the rights of this process"
    };
    let network = match network {
        NetworkIsolation::Namespace => "each browser has its own namespace".to_owned(),
        NetworkIsolation::Shared { reason } => {
            format!("shared with this machine, isolated by flags only: {reason}")
        }
    };
    format!("sandbox of Chromium: {sandbox}; network: {network}")
}

/// Returns a function that counts the browsers of a pool.
fn browser_counter(pool: &Pool) -> BrowserCounter {
    let have_own_network = *pool.launcher().network_isolation() == NetworkIsolation::Namespace;
    let counter = pool.counter();
    Arc::new(move || {
        let counts = counter();
        BrowserCounts {
            started: counts.started,
            failed: counts.failed,
            dead: counts.dead,
            have_own_network,
        }
    })
}

/// Locks a data directory, on which only one server may run at a time.
pub fn lock(data: &Path) -> Result<File, Exit> {
    let path = data.join("serve.lock");
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(|error| Exit::failed(format!("{}: {error}", path.display())))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Exit::failed(format!(
            "another server is using {}",
            data.display()
        ))),
        Err(TryLockError::Error(error)) => Err(Exit::failed(error)),
    }
}

fn create_private_dir(dir: &Path) -> Result<(), Exit> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| Exit::failed(format!("--data {}: {error}", dir.display())))
}

/// Creates a key and prints it with an example request.
async fn print_example_key(store: &Arc<dyn Store>, credits: u32, base: &str) -> Result<(), Exit> {
    let account = store
        .create_account("serve --create-key", credits, now())
        .await
        .map_err(Exit::failed)?;
    let key = Key::generate().map_err(Exit::failed)?;
    store
        .add_key(&account.id, key.id(), key.digest(), None, now())
        .await
        .map_err(Exit::failed)?;
    let key = key.reveal();
    out::line(format_args!("key {key}"))?;
    out::line(format_args!(
        "example:\n  curl -s {base}/v1/audit/start -H 'Content-Type: application/json' \
         -H 'X-SVC-KEY: {key}' -d '{{\"url\":\"https://example.com/\",\"device\":\"mobile\",\
         \"network\":\"mobileSlow4g\",\"location\":\"us-tx\"}}'"
    ))?;
    Ok(())
}

/// Handles SIGTERM and SIGINT from now on. The future ends when the process receives one of them.
pub fn stop_signal() -> impl Future<Output = ()> + Send {
    let handlers = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    );
    async move {
        match handlers {
            (Ok(mut terminate), Ok(mut interrupt)) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            }
            // Without handlers, the default action ends the process, which the queue survives.
            _ => std::future::pending().await,
        }
    }
}

/// Starts logging to standard error.
pub fn start_log(args: &LogArgs) -> Result<(), Exit> {
    let filter = EnvFilter::try_new(args.log.as_deref().unwrap_or("info"))
        .map_err(|error| Exit::usage(format!("--log: {error}")))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none())
        .with_writer(std::io::stderr);
    match args.log_format.unwrap_or(LogFormat::Pretty) {
        LogFormat::Pretty => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
