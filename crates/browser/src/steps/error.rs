use crate::page::VisitError;
use crate::protocol::CallError;

/// An error of a step.
pub(super) enum StepError {
    /// The step failed; the text is a part of a sentence without a full stop.
    Failed(String),
    /// The page did not respond to a call.
    Unresponsive,
    /// The browser failed, or the page exceeded a limit.
    Visit(VisitError),
}

impl StepError {
    /// Creates the error of a failed step from a reason, which may be a sentence.
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        let reason: String = reason.into();
        Self::Failed(reason.trim_end_matches('.').to_owned())
    }
}

impl From<VisitError> for StepError {
    fn from(error: VisitError) -> Self {
        Self::Visit(error)
    }
}

impl From<CallError> for StepError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::TooLarge(_) | CallError::Ended => Self::Visit(error.into()),
            CallError::Crashed => Self::Failed("the page crashed".to_owned()),
            CallError::Detached => Self::Failed("the page was closed".to_owned()),
            CallError::TimedOut { .. } => Self::Unresponsive,
            CallError::Refused { reason, .. } => Self::failed(reason),
            // The text of an exception could contain anything.
            CallError::InvalidResponse { .. } => {
                Self::Failed("a script in the page failed".to_owned())
            }
        }
    }
}
