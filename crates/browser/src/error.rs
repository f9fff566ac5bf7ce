use std::path::PathBuf;

use crate::protocol::CallError;

/// An error from finding, starting or using a browser. It is never caused by a page.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BrowserError {
    #[error(
        "Chromium not found: install Chromium or Google Chrome, or set PLUMBLINE_CHROMIUM to its \
         path (searched {searched})"
    )]
    NotFound { searched: String },
    #[error("`{}` cannot be used as Chromium: {reason}", path.display())]
    NotUsable { path: PathBuf, reason: String },
    #[error("the directory `{}` cannot be used for browser profiles: {reason}", path.display())]
    RunDir { path: PathBuf, reason: String },
    #[error("failed to start Chromium: {reason}")]
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
