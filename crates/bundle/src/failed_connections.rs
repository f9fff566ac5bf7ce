//! The connections of a visit that failed, with the errors that a visitor without a proxy gets.

use serde::{Deserialize, Serialize};

use crate::Record;

/// The failed connections of a visit. The browser connects through a proxy and reports every
/// failure as an error of that proxy; this list has the actual reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedConnections(pub Vec<FailedConnection>);

/// A connection that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedConnection {
    pub host: String,
    pub port: u16,
    /// Chromium's name of the error: `ERR_NAME_NOT_RESOLVED`.
    pub error: String,
}

/// The beginnings of Chromium's names of errors of a proxy.
const PROXY_ERRORS: [&str; 3] = ["ERR_SOCKS_", "ERR_PROXY_", "ERR_TUNNEL_"];
/// Chromium's name of a failed connection without a known reason.
const UNKNOWN_REASON: &str = "ERR_CONNECTION_FAILED";

impl Record for FailedConnections {
    const ARTIFACT: &'static str = "failedConnections";
}

impl FailedConnections {
    /// Replaces errors of the proxy in a message about a URL by the error that a visitor gets.
    pub fn without_proxy(&self, message: &str, url: &str) -> String {
        let mut text = String::with_capacity(message.len());
        let mut rest = message;
        while let Some(at) = PROXY_ERRORS.iter().filter_map(|name| rest.find(name)).min() {
            text.push_str(&rest[..at]);
            text.push_str(self.error_of(url).unwrap_or(UNKNOWN_REASON));
            let name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            rest = rest[at..].trim_start_matches(name);
        }
        text.push_str(rest);
        text
    }

    /// Returns the error of the last connection to the host and port of a URL.
    fn error_of(&self, url: &str) -> Option<&str> {
        let (host, port) = host_and_port(url)?;
        let mut connections = self.0.iter().rev();
        let connection = connections
            .find(|failed| failed.port == port && failed.host.eq_ignore_ascii_case(host));
        connection.map(|failed| failed.error.as_str())
    }
}

/// Returns the host, without brackets, and the port of a URL.
fn host_and_port(url: &str) -> Option<(&str, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let default_port = match scheme {
        "http" | "ws" => 80,
        _ => 443,
    };
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        let port = port.strip_prefix(':').and_then(|port| port.parse().ok());
        return Some((host, port.unwrap_or(default_port)));
    }
    match authority.split_once(':') {
        Some((host, port)) => Some((host, port.parse().ok()?)),
        None => Some((authority, default_port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(host: &str, port: u16, error: &str) -> FailedConnection {
        FailedConnection {
            host: host.to_owned(),
            port,
            error: error.to_owned(),
        }
    }

    #[test]
    fn an_error_of_the_proxy_becomes_the_one_that_a_visitor_gets() {
        let connections = FailedConnections(vec![
            failed("gone.test", 443, "ERR_NAME_NOT_RESOLVED"),
            failed("closed.test", 8080, "ERR_CONNECTION_REFUSED"),
            failed("::1", 80, "ERR_ADDRESS_UNREACHABLE"),
        ]);
        let message = "Failed to load resource: net::ERR_SOCKS_CONNECTION_FAILED (x)";
        for (url, error) in [
            ("https://gone.test/a.js?b", "ERR_NAME_NOT_RESOLVED"),
            ("https://user@GONE.test", "ERR_NAME_NOT_RESOLVED"),
            ("http://closed.test:8080/", "ERR_CONNECTION_REFUSED"),
            ("ws://[::1]/socket", "ERR_ADDRESS_UNREACHABLE"),
            ("http://gone.test/", "ERR_CONNECTION_FAILED"),
            ("nonsense", "ERR_CONNECTION_FAILED"),
        ] {
            assert_eq!(
                connections.without_proxy(message, url),
                format!("Failed to load resource: net::{error} (x)"),
                "{url}"
            );
        }
        assert_eq!(
            connections.without_proxy("net::ERR_TUNNEL_CONNECTION_FAILED", "https://gone.test/"),
            "net::ERR_NAME_NOT_RESOLVED"
        );
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        for message in ["", "net::ERR_FAILED", "status of 404 ()"] {
            let connections = FailedConnections::default();
            assert_eq!(
                connections.without_proxy(message, "https://a.test/"),
                message
            );
        }
    }
}
