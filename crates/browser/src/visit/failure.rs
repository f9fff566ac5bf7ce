//! What went wrong with a page, in our closed list of reasons.

use plumbline_bundle::{Failure, FailureCode};

use crate::protocol::{CallError, Excess, MAX_HELD_BYTES, MAX_MESSAGE_BYTES};

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    /// A result about the page.
    #[error(transparent)]
    Page(#[from] Failure),
    /// A fault of ours or of the browser; another try may go well.
    #[error("{0}")]
    Fault(String),
}

impl From<CallError> for VisitError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Crashed => Self::Page(crashed()),
            CallError::TooLarge(excess) => Self::Page(too_large(excess)),
            other => Self::Fault(other.to_string()),
        }
    }
}

pub(super) fn crashed() -> Failure {
    Failure::new(
        FailureCode::PageCrashed,
        "The page made the browser's process crash.",
    )
}

pub(super) fn too_much_memory(limit_bytes: u64) -> Failure {
    Failure::new(
        FailureCode::TooLarge,
        format!(
            "The page made the browser use more than {} MiB of memory.",
            limit_bytes >> 20
        ),
    )
}

pub(super) fn too_large(excess: Excess) -> Failure {
    let in_mb = |bytes: usize| bytes / 1_000_000;
    let message = match excess {
        Excess::Message => format!(
            "The page is too large to be measured: a single console message, address, script or document of it \
             is larger than {} MB.",
            in_mb(MAX_MESSAGE_BYTES)
        ),
        Excess::Held => format!(
            "The page is too large to be measured: what the browser reports of it (requests, console messages, \
             elements, a recording of what it does) is more than {} MB.",
            in_mb(MAX_HELD_BYTES)
        ),
        Excess::Trace { limit_mb } => format!(
            "The page does too much while it loads to be measured: the recording of it is larger than {limit_mb} MB."
        ),
        Excess::LostTrace => {
            "The page does too much while it loads to be measured: the browser could not \
                              record all of it."
                .to_owned()
        }
        Excess::SlowTrace => format!(
            "The page does too much while it loads to be measured: the recording of it did not arrive within {} s.",
            super::TRACE_DEADLINE.as_secs()
        ),
    };
    Failure::new(FailureCode::TooLarge, message)
}

/// From Chromium's `net::ERR_…`, as its list of network errors (`net/base/net_error_list.h`) has them.
pub(super) fn from_net_error(error_text: &str, status: Option<u16>) -> Failure {
    let name = error_text.strip_prefix("net::").unwrap_or(error_text);
    let is_any = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if name == "ERR_HTTP_RESPONSE_CODE_FAILURE" {
        let status = status.map_or("an error".to_owned(), |status| format!("status {status}"));
        let message = format!("The server answered with {status} and nothing to show.");
        return Failure::new(FailureCode::NoPaint, message);
    }
    let (code, what) = if is_any(&["ERR_NAME_", "ERR_DNS_", "ERR_ICANN_NAME_COLLISION"]) {
        (
            FailureCode::DnsFailure,
            "The host name could not be resolved",
        )
    } else if is_any(&["ERR_CERT_", "ERR_SSL_", "ERR_BAD_SSL_", "ERR_ECH_"]) {
        (
            FailureCode::TlsFailure,
            "No secure connection could be made",
        )
    } else if is_any(&["ERR_TOO_MANY_REDIRECTS"]) {
        (
            FailureCode::TooManyRedirects,
            "The page redirects without end",
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
        (FailureCode::BlockedTarget, "The address may not be visited")
    } else if is_any(&["ERR_TIMED_OUT"]) {
        (FailureCode::Timeout, "The server did not answer in time")
    } else {
        (
            FailureCode::ConnectionFailed,
            "The server could not be reached or broke off",
        )
    };
    Failure::new(code, format!("{what} ({name})."))
}

pub(super) fn is_html(mime_type: &str) -> bool {
    matches!(mime_type, "text/html" | "application/xhtml+xml")
}

pub(super) fn not_html(mime_type: &str) -> Failure {
    let what = if mime_type.is_empty() {
        "no document"
    } else {
        mime_type
    };
    Failure::new(
        FailureCode::NotHtml,
        format!("The address leads to {what}, not to an HTML page."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_errors_have_the_codes_that_the_api_promises() {
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
    fn an_error_answer_without_a_body_names_its_status() {
        let failure = from_net_error("net::ERR_HTTP_RESPONSE_CODE_FAILURE", Some(503));
        assert_eq!(failure.code, FailureCode::NoPaint);
        assert!(failure.message.contains("503"));
    }
}
