use std::fmt;

use serde::{Deserialize, Serialize};

/// Reason why a page could not be measured, as clients read it in `error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    pub code: FailureCode,
    /// A sentence for people, without internal details.
    pub message: String,
}

impl Failure {
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// All failure codes of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FailureCode {
    DnsFailure,
    ConnectionFailed,
    TlsFailure,
    BlockedTarget,
    NotHtml,
    HttpError,
    PreconditionFailed,
    NoPaint,
    PageCrashed,
    PageHung,
    TooManyRedirects,
    TooLarge,
    Timeout,
    /// The client cancelled the audit.
    Cancelled,
    Internal,
}

impl FailureCode {
    pub const ALL: [Self; 15] = [
        Self::DnsFailure,
        Self::ConnectionFailed,
        Self::TlsFailure,
        Self::BlockedTarget,
        Self::NotHtml,
        Self::HttpError,
        Self::PreconditionFailed,
        Self::NoPaint,
        Self::PageCrashed,
        Self::PageHung,
        Self::TooManyRedirects,
        Self::TooLarge,
        Self::Timeout,
        Self::Cancelled,
        Self::Internal,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::DnsFailure => "DNS_FAILURE",
            Self::ConnectionFailed => "CONNECTION_FAILED",
            Self::TlsFailure => "TLS_FAILURE",
            Self::BlockedTarget => "BLOCKED_TARGET",
            Self::NotHtml => "NOT_HTML",
            Self::HttpError => "HTTP_ERROR",
            Self::PreconditionFailed => "PRECONDITION_FAILED",
            Self::NoPaint => "NO_PAINT",
            Self::PageCrashed => "PAGE_CRASHED",
            Self::PageHung => "PAGE_HUNG",
            Self::TooManyRedirects => "TOO_MANY_REDIRECTS",
            Self::TooLarge => "TOO_LARGE",
            Self::Timeout => "TIMEOUT",
            Self::Cancelled => "CANCELLED",
            Self::Internal => "INTERNAL",
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_written_the_same_in_json_and_in_text() {
        for code in FailureCode::ALL {
            assert_eq!(serde_json::to_string(&code).unwrap(), format!("\"{code}\""));
        }
    }
}
