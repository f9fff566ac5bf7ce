use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::process::Process;
use super::stderr::StderrTail;
use super::way_out::{Relay, WayOut};
use crate::BrowserError;
use crate::pool::Restock;
use crate::protocol::{CallError, Client, Events};

/// A spare that does not answer within this is replaced.
const HEALTH_DEADLINE: Duration = Duration::from_secs(2);

/// What the browser says that it is.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// E.g. `Chrome/156.0.8078.79`.
    pub product: String,
    #[serde(default)]
    pub user_agent: String,
    #[serde(default)]
    pub js_version: String,
}

impl Version {
    /// The four-part version, e.g. `156.0.8078.79`.
    pub fn number(&self) -> &str {
        self.product.rsplit('/').next().unwrap_or_default()
    }

    /// E.g. `156`.
    pub fn major(&self) -> &str {
        self.number().split('.').next().unwrap_or_default()
    }
}

/// A started Chromium that nobody has used. However it is let go, its processes end and its files
/// are removed.
pub struct Browser {
    pub(crate) client: Client,
    pub(crate) events: Events,
    pub(crate) stderr: StderrTail,
    version: Version,
    /// Where it can connect to, if not everywhere.
    pub(crate) way_out: Option<WayOut>,
    /// Where that leads, once a visit has said so.
    pub(crate) relay: Option<Relay>,
    /// Says that the next spare may be started. Before the process, so that it is told even if the
    /// end takes long.
    pub(crate) restock: Option<Restock>,
    process: Process,
}

impl Browser {
    /// Waits until a process that was just started answers.
    pub(super) async fn greet(
        process: Process,
        client: Client,
        events: Events,
        stderr: StderrTail,
        deadline: Duration,
    ) -> Result<Self, BrowserError> {
        let answer = client
            .call_within(deadline, None, "Browser.getVersion", json!({}))
            .await;
        match answer {
            Ok(version) => Ok(Self {
                client,
                events,
                stderr,
                version,
                way_out: None,
                relay: None,
                restock: None,
                process,
            }),
            Err(error) => {
                process.end().await;
                Err(BrowserError::Start {
                    reason: why_not_started(&error, &stderr.text()),
                })
            }
        }
    }

    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The id of the main process, which is also that of its process group.
    pub fn process_id(&self) -> u32 {
        self.process.group()
    }

    /// Whether it still answers.
    pub(crate) async fn is_healthy(&self) -> bool {
        let answer: Result<Version, CallError> = self
            .client
            .call_within(HEALTH_DEADLINE, None, "Browser.getVersion", json!({}))
            .await;
        answer.is_ok()
    }

    /// Ends the browser and waits until nothing is left of it. Returns its memory limit in bytes if
    /// it had ended because it used more.
    pub async fn close(self) -> Option<u64> {
        let exceeded = self.process.exceeded_memory();
        self.process.end().await;
        exceeded.get().copied()
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

fn why_not_started(error: &CallError, stderr: &str) -> String {
    let hint = if stderr.contains("No usable sandbox") {
        "; this kernel or container lets unprivileged users make no namespaces, which Chromium's \
         sandbox needs"
    } else {
        ""
    };
    if stderr.is_empty() {
        format!("{error}{hint}")
    } else {
        format!("{error}{hint}; it said:\n{stderr}")
    }
}
