use std::error::Error;

/// A reason why there is no response. No message contains the URL, which may contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// No connection was established, so that the request was not sent.
    #[error("{0}")]
    Connect(String),
    /// The connection failed before the response was complete.
    #[error("{0}")]
    Interrupted(String),
    #[error("response timed out")]
    TimedOut,
    #[error("response too large")]
    TooLarge,
}

impl HttpError {
    pub(crate) fn of_client(error: &hyper_util::client::legacy::Error) -> Self {
        // The client's own message only names the step, which the variant does as well.
        let message = error.source().map_or_else(|| error.to_string(), describe);
        if error.is_connect() {
            Self::Connect(message)
        } else {
            Self::Interrupted(message)
        }
    }

    pub(crate) fn of_body(error: &(dyn Error + 'static)) -> Self {
        if error.is::<http_body_util::LengthLimitError>() {
            Self::TooLarge
        } else {
            Self::Interrupted(describe(error))
        }
    }
}

/// Returns the outermost message, which names the operation, and the innermost, which is the
/// reason.
fn describe(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let (operation, reason) = (error.to_string(), innermost.to_string());
    if operation.contains(&reason) {
        operation
    } else {
        format!("{operation}: {reason}")
    }
}
