//! `agent`: runs audits for a server on another machine.

use std::sync::Arc;

use plumbline_agent::{AgentSettings, Auditor, Cpu, Host, Interception};
use plumbline_browser::Pool;
use plumbline_remote::{RemoteWork, Server, Trust};
use plumbline_store::AgentToken;
use tokio::sync::watch;

use crate::args::AgentArgs;
use crate::command::serve::{check_isolation, find_browser, start_log, stop_signal};
use crate::exit::Exit;
use crate::settings::{
    TargetSettings, calibration_file, default_slots, drain_grace, launch_options, max_visits,
};

/// Runs `plumbline agent`.
pub async fn run(args: AgentArgs) -> Result<Exit, Exit> {
    start_log(&args.log)?;
    let token = AgentToken::parse(args.token.trim())
        .ok_or_else(|| Exit::usage("--token: not an agent token"))?;
    let trust = Trust {
        ca_file: args.ca,
        plain_http: args.plain_http,
    };
    let server = Server::new(&args.server, &token.reveal(), &trust).map_err(Exit::usage)?;
    let targets = TargetSettings::resolve(args.targets, Some(args.agent_location))?;
    let guard = Arc::new(targets.guard()?);
    let has_page_clocks = !args.browser.no_page_clock;
    let slots = args.slots.unwrap_or_else(|| default_slots(has_page_clocks));

    let (stop, mut stopped) = watch::channel(false);
    tokio::spawn(async move {
        stop_signal().await;
        // Fails only if there is no receiver any more.
        let _ = stop.send(true);
    });
    let launcher = find_browser(launch_options(args.browser))?;
    tokio::select! {
        checked = check_isolation(&launcher, &targets.catalog) => checked?,
        _ = stopped.wait_for(|stop| *stop) => return Ok(Exit::Done),
    }
    let cpu = Cpu::new(launcher.clone(), calibration_file(&launcher));
    let host = tokio::select! {
        host = Host::measure(&launcher, &cpu) => host.map_err(Exit::failed)?,
        _ = stopped.wait_for(|stop| *stop) => return Ok(Exit::Done),
    };
    let process = RemoteWork::process_name().map_err(Exit::failed)?;
    let agent = host.announcement(process, targets.agent_location.id.clone(), slots);
    tracing::info!(
        server = args.server,
        location = agent.location,
        chromium = agent.chromium,
        slots,
        "agent started"
    );
    let roots = plumbline_http::roots::of_system();
    let interception = Interception::new(&launcher, roots).map_err(Exit::failed)?;
    let auditor = Auditor {
        interception,
        browsers: Pool::start(launcher, 1),
        catalog: Arc::new(targets.catalog),
        guard,
        cpu,
        agent_location: targets.agent_location,
        max_visits: max_visits(args.visits),
    };
    let settings = AgentSettings {
        slots,
        drain_grace: drain_grace(args.drain_seconds),
    };
    let work = RemoteWork::new(server, agent);
    plumbline_agent::run(Arc::new(work), Arc::new(auditor), settings, stopped)
        .await
        .map_err(Exit::failed)?;
    tracing::info!("agent stopped");
    Ok(Exit::Done)
}
