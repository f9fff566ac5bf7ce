//! Finds out why a visit failed. Behind a proxy the browser reports every failed connection alike;
//! the link knows the reason.

use plumbline_browser::VisitError;
use plumbline_bundle::{Bundle, FailedConnection, FailedConnections, Failure, FailureCode};
use plumbline_link::{ConnectionOutcome, ConnectionRecord, Link};
use tokio::time::error::Elapsed;

/// Returns the result of a visit, with the link's reason where a connection failed.
pub(crate) fn explain(
    result: Result<Result<Bundle, VisitError>, Elapsed>,
    link: &Link,
    page_over_limit: bool,
) -> Result<Bundle, VisitError> {
    let result = result.unwrap_or_else(|_| {
        Err(VisitError::Fault(
            "the visit did not end in time".to_owned(),
        ))
    });
    if page_over_limit {
        return Err(VisitError::Page(Failure::new(
            FailureCode::TooLarge,
            "The page loads more than a visit may transfer.",
        )));
    }
    match result {
        Err(VisitError::Page(failure)) if failure.code == FailureCode::ConnectionFailed => {
            let link_failure = last_failure(&link.records());
            Err(VisitError::Page(link_failure.unwrap_or(failure)))
        }
        other => other,
    }
}

/// Returns the failed connections with the errors that a visitor without a proxy gets.
pub(crate) fn failed_connections(records: &[ConnectionRecord]) -> FailedConnections {
    let failed = records.iter().filter_map(|record| {
        Some(FailedConnection {
            host: record.host.clone(),
            port: record.port,
            error: visitor_error(&record.outcome)?.to_owned(),
        })
    });
    FailedConnections(failed.collect())
}

/// Returns Chromium's name of an error (net/base/net_error_list.h); `None` if the connection did
/// not fail, or only because of this service.
fn visitor_error(outcome: &ConnectionOutcome) -> Option<&'static str> {
    Some(match outcome {
        ConnectionOutcome::Pending
        | ConnectionOutcome::Connected
        | ConnectionOutcome::BrowserService
        | ConnectionOutcome::OverLimit => return None,
        // A visitor elsewhere has no such address in reach.
        ConnectionOutcome::Blocked(refusal) if !refusal.follows_a_lookup() => {
            "ERR_ADDRESS_UNREACHABLE"
        }
        // The same for both: clients must not find out which names our network knows.
        ConnectionOutcome::Blocked(_)
        | ConnectionOutcome::NameNotFound
        | ConnectionOutcome::LookupTimedOut => "ERR_NAME_NOT_RESOLVED",
        ConnectionOutcome::ConnectionRefused => "ERR_CONNECTION_REFUSED",
        ConnectionOutcome::ConnectTimedOut => "ERR_CONNECTION_TIMED_OUT",
        ConnectionOutcome::Unreachable => "ERR_ADDRESS_UNREACHABLE",
        ConnectionOutcome::Failed(_) => "ERR_CONNECTION_FAILED",
    })
}

/// Returns the last failed connection. The document did not arrive, so this is the reason.
fn last_failure(records: &[ConnectionRecord]) -> Option<Failure> {
    records.iter().rev().find_map(failure_of)
}

fn failure_of(record: &ConnectionRecord) -> Option<Failure> {
    let (host, port) = (&record.host, record.port);
    let (code, message) = match &record.outcome {
        ConnectionOutcome::Pending
        | ConnectionOutcome::Connected
        | ConnectionOutcome::BrowserService
        | ConnectionOutcome::OverLimit => {
            return None;
        }
        ConnectionOutcome::Blocked(refusal) if !refusal.follows_a_lookup() => {
            let detail = refusal.client_detail();
            let detail = detail.map_or_else(String::new, |detail| format!(": {detail}"));
            let message = format!("This address may not be visited{detail}.");
            (FailureCode::BlockedTarget, message)
        }
        // The same message for both: clients must not find out which names our network knows.
        ConnectionOutcome::Blocked(_) | ConnectionOutcome::NameNotFound => (
            FailureCode::DnsFailure,
            format!("The name {host} was not found, or has no address that may be visited."),
        ),
        ConnectionOutcome::LookupTimedOut => (
            FailureCode::DnsFailure,
            format!("The name {host} could not be looked up in time."),
        ),
        ConnectionOutcome::ConnectionRefused => (
            FailureCode::ConnectionFailed,
            format!("{host} refused the connection on port {port}."),
        ),
        ConnectionOutcome::ConnectTimedOut => (
            FailureCode::ConnectionFailed,
            format!("{host} did not answer on port {port}."),
        ),
        ConnectionOutcome::Unreachable => (
            FailureCode::ConnectionFailed,
            format!("There is no route to {host}."),
        ),
        ConnectionOutcome::Failed(_) => (
            FailureCode::ConnectionFailed,
            format!("The connection to {host} on port {port} failed."),
        ),
    };
    Some(Failure::new(code, message))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plumbline_link::Guard;

    use super::*;

    fn record(host: &str, outcome: ConnectionOutcome) -> ConnectionRecord {
        ConnectionRecord {
            host: host.to_owned(),
            port: 80,
            address: None,
            outcome,
            bytes_up: 0,
            bytes_down: 0,
            requested_at: Duration::ZERO,
            decided_at: None,
            ended_at: None,
        }
    }

    #[test]
    fn a_redirect_into_a_private_network_is_named_as_such() {
        let refusal = Guard::public_only().check_host("10.0.0.1", 80).unwrap_err();
        let records = [
            record("example.com", ConnectionOutcome::Connected),
            record("10.0.0.1", ConnectionOutcome::Blocked(refusal)),
        ];
        let failure = last_failure(&records).unwrap();
        assert_eq!(failure.code, FailureCode::BlockedTarget);
    }

    #[test]
    fn a_refused_name_and_an_unknown_one_give_the_same_message() {
        for address in ["10.0.0.1:80", "127.0.0.1:80", "[fd00::1]:80"] {
            let address = address.parse().unwrap();
            let refusal = Guard::public_only().check_address("wiki.corp.example", address);
            let refused = ConnectionOutcome::Blocked(refusal.unwrap_err());
            let [refused, unknown] = [refused, ConnectionOutcome::NameNotFound]
                .map(|outcome| last_failure(&[record("wiki.corp.example", outcome)]).unwrap());
            assert_eq!(refused, unknown);
            assert_eq!(refused.code, FailureCode::DnsFailure);
            assert!(!refused.message.contains(&address.ip().to_string()));
        }
    }

    #[test]
    fn the_message_does_not_reveal_the_service_configuration() {
        let denied = vec!["93.184.215.0/24".parse().unwrap()];
        let guard = Guard::public_only().denying(denied);
        let refusal = guard.check_host("93.184.215.14", 80).unwrap_err();
        let failure =
            last_failure(&[record("93.184.215.14", ConnectionOutcome::Blocked(refusal))]).unwrap();
        assert_eq!(failure.code, FailureCode::BlockedTarget);
        assert_eq!(failure.message, "This address may not be visited.");
    }

    #[test]
    fn connections_to_browser_services_are_not_the_reason() {
        let records = [
            record("nowhere.example", ConnectionOutcome::NameNotFound),
            record("update.example", ConnectionOutcome::BrowserService),
        ];
        assert_eq!(
            last_failure(&records).unwrap().code,
            FailureCode::DnsFailure
        );
        assert_eq!(last_failure(&records[1..]), None);
    }
}
