use plumbline_seam::WorkError;

#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("{0}")]
    Address(String),
    #[error("certificates: {0}")]
    Certificates(String),
    /// There was no response, or it could not be read.
    #[error("no response from the server: {0}")]
    NoResponse(String),
    /// The server does not accept the token or the protocol version.
    #[error("the server refused this agent: {0}")]
    Refused(String),
    #[error("the server responded with status {status}: {message}")]
    Status { status: u16, message: String },
}

impl RemoteError {
    /// Whether the same request may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::NoResponse(_) => true,
            Self::Status { status, .. } => {
                matches!(status, 408 | 429) || (*status >= 500 && *status != 507)
            }
            Self::Address(_) | Self::Certificates(_) | Self::Refused(_) => false,
        }
    }

    pub(crate) fn has_status(&self, expected: u16) -> bool {
        matches!(self, Self::Status { status, .. } if *status == expected)
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
