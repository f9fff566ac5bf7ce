/// Error that prevents a trace or log from being read at all. A fact that is merely missing is not
/// an error.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("the file looks gzipped but cannot be unpacked: {0}")]
    Gzip(#[source] std::io::Error),
    #[error("the file is not valid JSON, or ends too early: {0}")]
    Json(#[source] serde_json::Error),
    #[error(
        "the trace holds no events: an array of events or an object with \"traceEvents\" is expected"
    )]
    NoEvents,
    #[error("the trace does not say which frame was inspected")]
    NoMainFrame,
    #[error("the trace has no main thread of the page's process")]
    NoMainThread,
    #[error("the trace has no navigation of the main frame to a web address")]
    NoNavigation,
}

impl TraceError {
    /// Returns a stable code; Lighthouse's own if it has one for the same state.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Gzip(_) | Self::Json(_) => "INVALID_FILE",
            Self::NoEvents => "NO_EVENTS",
            Self::NoMainFrame => "NO_TRACING_STARTED",
            Self::NoMainThread => "NO_MAIN_THREAD",
            Self::NoNavigation => "NO_NAVSTART",
        }
    }
}
