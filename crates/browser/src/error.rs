use std::path::PathBuf;

use crate::protocol::CallError;

/// What keeps us from having a working browser. Never says anything about a page.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BrowserError {
    #[error(
        "no Chromium was found: install Chromium or Google Chrome, or set PLUMBLINE_CHROMIUM to its \
         path (looked at {looked_at})"
    )]
    NotFound { looked_at: String },
    #[error("`{}` cannot be used as Chromium: {reason}", path.display())]
    NotUsable { path: PathBuf, reason: String },
    #[error("the directory `{}` cannot hold browser profiles: {reason}", path.display())]
    RunDir { path: PathBuf, reason: String },
    #[error("Chromium could not be started: {reason}")]
    Start { reason: String },
    #[error("Chromium failed: {reason}")]
    Failed { reason: String },
}

impl From<CallError> for BrowserError {
    fn from(error: CallError) -> Self {
        Self::Failed {
            reason: error.to_string(),
        }
    }
}
