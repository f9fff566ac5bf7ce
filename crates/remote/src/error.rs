use plumbline_agent::WorkError;

#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("{0}")]
    Address(String),
    #[error("certificates: {0}")]
    Certificates(String),
    /// No answer, or none that could be read.
    #[error("no answer from the server: {0}")]
    Unanswered(String),
    /// The token, or the protocol.
    #[error("the server refuses this agent: {0}")]
    Refused(String),
    #[error("the server answers {status}: {message}")]
    Answered { status: u16, message: String },
}

impl RemoteError {
    /// Whether the same request may be answered better later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unanswered(_) => true,
            Self::Answered { status, .. } => {
                matches!(status, 408 | 429) || (*status >= 500 && *status != 507)
            }
            Self::Address(_) | Self::Certificates(_) | Self::Refused(_) => false,
        }
    }

    pub(crate) fn has_status(&self, wanted: u16) -> bool {
        matches!(self, Self::Answered { status, .. } if *status == wanted)
    }
}

impl From<RemoteError> for WorkError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Refused(_) => Self::Refused(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}
