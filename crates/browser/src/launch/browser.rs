use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use plumbline_clock::{PageClock, Turn};
use serde::Deserialize;
use serde_json::json;

use super::process::Process;
use super::proxy_port::{Forwarder, ProxyPort};
use super::stderr::StderrTail;
use crate::protocol::{CallError, Client, ProtocolEvents};
use crate::{BrowserError, Throttle};

/// Maximum response time of a spare; one that takes longer is replaced.
const HEALTH_DEADLINE: Duration = Duration::from_secs(2);

/// The version of a browser as it reports it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowserVersion {
    /// Name and version, such as `Chrome/156.0.8078.79`.
    pub product: String,
    #[serde(default)]
    pub user_agent: String,
}

impl BrowserVersion {
    /// Returns the four-part version, such as `156.0.8078.79`.
    pub fn number(&self) -> &str {
        self.product.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the major version, such as `156`.
    pub fn major(&self) -> &str {
        self.number().split('.').next().unwrap_or_default()
    }
}

/// A started Chromium that has not been used yet. When it is dropped, its processes are killed and
/// its files are removed.
pub struct Browser {
    pub(crate) client: Client,
    pub(crate) events: ProtocolEvents,
    pub(crate) stderr: StderrTail,
    version: BrowserVersion,
    /// The clock that its processes see, or one that shows real time if they see none.
    pub(crate) clock: Arc<PageClock>,
    /// The only port that it can connect to, if it is restricted.
    pub(crate) proxy_port: Option<ProxyPort>,
    /// Forwards connections from that port to the proxy of the visit.
    pub(crate) forwarder: Option<Forwarder>,
    /// The turn for loading a page, if it has begun.
    pub(crate) turn: Option<Turn>,
    /// Starts the next spare when it is dropped. It is declared before the process, so that it is
    /// dropped first even if the process ends slowly.
    pub(crate) restock: Option<OnDrop>,
    process: Process,
}

/// Calls a function when it is dropped.
pub(crate) struct OnDrop(Option<Box<dyn FnOnce() + Send + Sync>>);

impl OnDrop {
    pub(crate) fn new(function: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(function)))
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(function) = self.0.take() {
            function();
        }
    }
}

impl Browser {
    /// Waits until a process that was just started responds.
    pub(super) async fn connect(
        process: Process,
        client: Client,
        events: ProtocolEvents,
        stderr: StderrTail,
        clock: Arc<PageClock>,
        deadline: Duration,
    ) -> Result<Self, BrowserError> {
        let result = client
            .call_within(deadline, None, "Browser.getVersion", json!({}))
            .await;
        match result {
            Ok(version) => Ok(Self {
                client,
                events,
                stderr,
                version,
                clock,
                proxy_port: None,
                forwarder: None,
                turn: None,
                restock: None,
                process,
            }),
            Err(error) => {
                process.end().await;
                Err(BrowserError::Start {
                    reason: describe_start_error(&error, &stderr.text()),
                })
            }
        }
    }

    /// Returns the version that the browser reported when it was started.
    pub fn version(&self) -> &BrowserVersion {
        &self.version
    }

    /// Returns the id of the main process, which is also that of its process group.
    pub fn process_id(&self) -> u32 {
        self.process.group()
    }

    /// Returns the clock of the browser.
    pub fn clock(&self) -> &Arc<PageClock> {
        &self.clock
    }

    /// Returns whether the browser's processes see its clock.
    pub fn sees_clock(&self) -> bool {
        self.clock.is_seen()
    }

    /// Waits until a page may be loaded. With a page clock, pages take turns on the cores of the
    /// host, so this is not part of the time for a visit.
    pub fn wait_for_turn<'a>(&'a mut self, throttle: Throttle) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if matches!(throttle, Throttle::ByClock { .. }) && self.turn.is_none() {
                self.turn = Turn::begin().await;
            }
        })
    }

    /// Returns whether the browser still responds.
    pub(crate) async fn is_healthy(&self) -> bool {
        let result: Result<BrowserVersion, CallError> = self
            .client
            .call_within(HEALTH_DEADLINE, None, "Browser.getVersion", json!({}))
            .await;
        result.is_ok()
    }

    /// Ends the browser and waits until its processes have ended and its files are removed. Returns
    /// its memory limit in bytes if it was killed for exceeding it.
    pub fn close(self) -> BoxFuture<'static, Option<u64>> {
        Box::pin(async move {
            let exceeded = self.process.exceeded_memory();
            self.process.end().await;
            exceeded.get().copied()
        })
    }
}

impl std::fmt::Debug for Browser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Browser")
            .field("process_id", &self.process_id())
            .field("product", &self.version.product)
            .finish_non_exhaustive()
    }
}

fn describe_start_error(error: &CallError, stderr: &str) -> String {
    let hint = if stderr.contains("No usable sandbox") {
        "; this kernel or container does not permit unprivileged users to create namespaces, which \
         Chromium's sandbox needs"
    } else {
        ""
    };
    if stderr.is_empty() {
        format!("{error}{hint}")
    } else {
        format!("{error}{hint}; its standard error:\n{stderr}")
    }
}
