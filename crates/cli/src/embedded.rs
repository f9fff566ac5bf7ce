//! The agent inside a server: the same as elsewhere, but for the way to its dispatcher.

use std::sync::Arc;

use plumbline_agent::{AgentSettings, Auditor, Cpu, WorkError};
use plumbline_browser::{BrowserError, Launcher};
use plumbline_server::Dispatcher;
use plumbline_store::{AgentPresence, Timestamp, random_text};
use tokio::sync::watch;

use crate::store_work::StoreWork;

/// Works until it is told to stop. What its name begins with is its server's alone.
pub async fn run(
    dispatcher: Arc<Dispatcher>,
    process_prefix: String,
    launcher: Launcher,
    auditor: Auditor,
    settings: AgentSettings,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), WorkError> {
    let described = tokio::select! {
        described = describe(&launcher, &auditor.cpu) => described,
        _ = stopped.wait_for(|stop| *stop) => return Ok(()),
    };
    // The first audit would meet the same trouble, and say so to who waits for it.
    let (chromium, host_index) = described.unwrap_or_else(|error| {
        tracing::error!(%error, "this host could not be measured");
        ("unknown".to_owned(), None)
    });
    let mark = random_text(12).map_err(|error| WorkError::Refused(error.to_string()))?;
    let agent = AgentPresence {
        process: format!("{process_prefix}{mark}"),
        agent_id: None,
        location: auditor.agent_location.clone(),
        chromium,
        host_index,
        slots: settings.slots,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seen_at: Timestamp(0),
    };
    let work = StoreWork { dispatcher, agent };
    plumbline_agent::run(Arc::new(work), Arc::new(auditor), settings, stopped).await
}

/// What an agent says about the machine it stands on: its browser, and how fast it is.
pub async fn describe(
    launcher: &Launcher,
    cpu: &Cpu,
) -> Result<(String, Option<f64>), BrowserError> {
    let chromium = launcher.version().await?.product;
    let calibration = cpu.calibration().await?;
    Ok((chromium, Some(calibration.host_index)))
}
