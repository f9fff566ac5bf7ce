//! Reasons for failed visits, with the codes of the API.

use plumbline_bundle::{Failure, FailureCode};

use super::TRACE_DEADLINE;
use crate::protocol::{CallError, LimitExceeded, MAX_HELD_BYTES, MAX_MESSAGE_BYTES};

/// An error of a visit.
#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    /// The page cannot be measured, which is a result of the audit.
    #[error(transparent)]
    Page(#[from] Failure),
    /// A fault of Plumbline or of the browser; another attempt may succeed.
    #[error("{0}")]
    Fault(String),
}

impl From<CallError> for VisitError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Crashed => Self::Page(crashed()),
            CallError::TooLarge(limit) => Self::Page(too_large(limit)),
            other => Self::Fault(other.to_string()),
        }
    }
}

pub(super) fn crashed() -> Failure {
    Failure::new(
        FailureCode::PageCrashed,
        "The page crashed its process in the browser.",
    )
}

pub(crate) fn too_much_memory(limit_bytes: u64) -> Failure {
    Failure::new(
        FailureCode::TooLarge,
        format!(
            "The page made the browser use more than {} MiB of memory.",
            limit_bytes >> 20
        ),
    )
}

fn too_large(limit: LimitExceeded) -> Failure {
    let in_mb = |bytes: usize| bytes / 1_000_000;
    let message = match limit {
        LimitExceeded::Message => format!(
            "The page is too large to be measured: one of its console messages, URLs, scripts or \
             documents is larger than {} MB.",
            in_mb(MAX_MESSAGE_BYTES)
        ),
        LimitExceeded::Held => format!(
            "The page is too large to be measured: the browser reports more than {} MB about it \
             (requests, console messages, elements, trace).",
            in_mb(MAX_HELD_BYTES)
        ),
        LimitExceeded::Trace { limit_mb } => format!(
            "The page does too much while it loads to be measured: its trace is larger than \
             {limit_mb} MB."
        ),
        LimitExceeded::LostTrace => "The page does too much while it loads to be measured: the \
             browser could not record its whole trace."
            .to_owned(),
        LimitExceeded::SlowTrace => format!(
            "The page does too much while it loads to be measured: its trace did not arrive within \
             {} s.",
            TRACE_DEADLINE.as_secs()
        ),
    };
    Failure::new(FailureCode::TooLarge, message)
}

/// Returns the failure for one of Chromium's network errors `net::ERR_…`, which are listed in
/// `net/base/net_error_list.h`.
pub(crate) fn from_net_error(error_text: &str, status: Option<u16>) -> Failure {
    let name = error_text.strip_prefix("net::").unwrap_or(error_text);
    let is_any = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if name == "ERR_HTTP_RESPONSE_CODE_FAILURE" {
        let status = status.map_or("an error".to_owned(), |status| format!("status {status}"));
        let message = format!("The server responded with {status} and an empty page.");
        return Failure::new(FailureCode::NoPaint, message);
    }
    let (code, description) = if is_any(&["ERR_NAME_", "ERR_DNS_", "ERR_ICANN_NAME_COLLISION"]) {
        (
            FailureCode::DnsFailure,
            "The host name could not be resolved",
        )
    } else if is_any(&["ERR_CERT_", "ERR_SSL_", "ERR_BAD_SSL_", "ERR_ECH_"]) {
        (
            FailureCode::TlsFailure,
            "A secure connection could not be established",
        )
    } else if is_any(&["ERR_TOO_MANY_REDIRECTS"]) {
        (
            FailureCode::TooManyRedirects,
            "The page has too many redirects",
        )
    } else if is_any(&[
        "ERR_BLOCKED_BY_",
        "ERR_UNSAFE_PORT",
        "ERR_UNSAFE_REDIRECT",
        "ERR_ACCESS_DENIED",
        "ERR_DISALLOWED_URL_SCHEME",
        "ERR_UNKNOWN_URL_SCHEME",
        "ERR_INVALID_URL",
    ]) {
        (FailureCode::BlockedTarget, "The URL may not be visited")
    } else if is_any(&["ERR_TIMED_OUT"]) {
        (FailureCode::Timeout, "The server did not respond in time")
    } else {
        (
            FailureCode::ConnectionFailed,
            "The connection to the server failed",
        )
    };
    Failure::new(code, format!("{description} ({name})."))
}

pub(super) fn is_html(mime_type: &str) -> bool {
    matches!(mime_type, "text/html" | "application/xhtml+xml")
}

/// Returns the failure of a main document with an error status.
pub(super) fn http_error(status: u16) -> Failure {
    Failure::new(
        FailureCode::HttpError,
        format!("The server responded with status {status}."),
    )
}

pub(crate) fn not_html(mime_type: &str) -> Failure {
    let content = if mime_type.is_empty() {
        "no document"
    } else {
        mime_type
    };
    Failure::new(
        FailureCode::NotHtml,
        format!("The URL returns {content}, not an HTML page."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_errors_have_the_documented_codes() {
        let cases = [
            ("net::ERR_NAME_NOT_RESOLVED", FailureCode::DnsFailure),
            ("net::ERR_CONNECTION_REFUSED", FailureCode::ConnectionFailed),
            (
                "net::ERR_ADDRESS_UNREACHABLE",
                FailureCode::ConnectionFailed,
            ),
            (
                "net::ERR_SOCKS_CONNECTION_FAILED",
                FailureCode::ConnectionFailed,
            ),
            (
                "net::ERR_PROXY_CONNECTION_FAILED",
                FailureCode::ConnectionFailed,
            ),
            ("net::ERR_EMPTY_RESPONSE", FailureCode::ConnectionFailed),
            (
                "net::ERR_CONNECTION_TIMED_OUT",
                FailureCode::ConnectionFailed,
            ),
            ("net::ERR_TIMED_OUT", FailureCode::Timeout),
            ("net::ERR_CERT_AUTHORITY_INVALID", FailureCode::TlsFailure),
            ("net::ERR_SSL_PROTOCOL_ERROR", FailureCode::TlsFailure),
            ("net::ERR_TOO_MANY_REDIRECTS", FailureCode::TooManyRedirects),
            ("net::ERR_BLOCKED_BY_CLIENT", FailureCode::BlockedTarget),
            ("net::ERR_UNSAFE_PORT", FailureCode::BlockedTarget),
            ("net::ERR_NOT_INVENTED_YET", FailureCode::ConnectionFailed),
        ];
        for (text, code) in cases {
            assert_eq!(from_net_error(text, None).code, code, "{text}");
        }
    }

    #[test]
    fn an_error_response_without_a_body_has_its_status_in_the_message() {
        let failure = from_net_error("net::ERR_HTTP_RESPONSE_CODE_FAILURE", Some(503));
        assert_eq!(failure.code, FailureCode::NoPaint);
        assert!(failure.message.contains("503"));
    }
}
