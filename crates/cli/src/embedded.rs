//! The agent inside a server. It differs from other agents only in how it gets work.

use std::sync::Arc;

use plumbline_agent::{AgentSettings, Auditor, Cpu, WorkError};
use plumbline_browser::{BrowserError, Launcher};
use plumbline_server::Dispatcher;
use plumbline_store::{AgentPresence, Timestamp, random_text};
use tokio::sync::watch;

use crate::store_work::StoreWork;

/// Runs the embedded agent until it is stopped. Its process name begins with `process_prefix`,
/// which is unique to its server.
pub async fn run(
    dispatcher: Arc<Dispatcher>,
    process_prefix: String,
    launcher: Launcher,
    auditor: Auditor,
    settings: AgentSettings,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), WorkError> {
    let description = tokio::select! {
        description = describe(&launcher, &auditor.cpu) => description,
        _ = stopped.wait_for(|stop| *stop) => return Ok(()),
    };
    // The first audit would fail with the same error, and report it.
    let (chromium, host_index) = description.unwrap_or_else(|error| {
        tracing::error!(%error, "failed to calibrate this host");
        ("unknown".to_owned(), None)
    });
    let suffix = random_text(12).map_err(|error| WorkError::Refused(error.to_string()))?;
    let agent = AgentPresence {
        process: format!("{process_prefix}{suffix}"),
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

/// Returns the version of the browser and the CPU index of this host.
pub async fn describe(
    launcher: &Launcher,
    cpu: &Cpu,
) -> Result<(String, Option<f64>), BrowserError> {
    let chromium = launcher.version().await?.product;
    let calibration = cpu.calibration().await?;
    Ok((chromium, Some(calibration.host_index)))
}
