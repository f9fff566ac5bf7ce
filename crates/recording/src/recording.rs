//! A recording and its parts.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The traffic of one visit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recording {
    /// The URL that was visited.
    pub url: String,
    /// The time at which the visit began (RFC 3339).
    pub recorded_at: String,
    /// All servers that the browser connected to or tried to connect to.
    pub endpoints: Vec<RecordedEndpoint>,
    /// All exchanges, in the order of their requests.
    pub exchanges: Vec<RecordedExchange>,
}

/// A server as a URL names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// True if connections use TLS.
    pub is_secure: bool,
    /// The host in lower case; IPv6 addresses have no brackets.
    pub host: String,
    pub port: u16,
}

impl Endpoint {
    /// Returns the scheme of URLs of this server.
    pub fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }
}

/// Formats an endpoint as the origin of its URLs, without a default port.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host) = (self.scheme(), &self.host);
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]")?;
        } else {
            write!(f, "{scheme}://{host}")?;
        }
        let default_port = if self.is_secure { 443 } else { 80 };
        if self.port == default_port {
            return Ok(());
        }
        write!(f, ":{}", self.port)
    }
}

/// A server that the browser connected to, or tried to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedEndpoint {
    pub endpoint: Endpoint,
    /// The result of the first connection.
    pub result: ConnectResult,
}

/// The result of connecting to a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ConnectResult {
    Connected {
        protocol: Protocol,
        /// Duration of the TCP handshake on the real network.
        connect_ms: f64,
        /// Duration of the TLS handshake on the real network; zero without TLS.
        tls_ms: f64,
    },
    Failed(ConnectFailure),
    /// The server never answers, neither the connection nor what is sent. Only experiments make
    /// such servers.
    Silent,
}

/// The reason why a server could not be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConnectFailure {
    NameNotFound,
    Refused,
    TimedOut,
    Unreachable,
    /// The certificate of the server is not valid.
    Certificate,
    /// The connection may not be made or recorded.
    NotAllowed,
}

/// The protocol of the requests of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    #[serde(rename = "http/1.1")]
    Http1,
    #[serde(rename = "h2")]
    Http2,
}

/// A header, with its name in lower case. Bytes that are not UTF-8 are replaced.
pub type Header = (String, String);

/// A request with its response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedExchange {
    pub endpoint: Endpoint,
    pub method: String,
    /// The path and the query, as in the request.
    pub path: String,
    pub request_headers: Vec<Header>,
    /// The size of the request's body, which is not kept.
    pub request_bytes: u64,
    /// The real time from the beginning of the recording to the request.
    pub started_ms: f64,
    /// The response; `None` if there was none until the connection or the recording ended.
    pub response: Option<RecordedResponse>,
    /// True if the server had neither ended its response nor the connection when the recording
    /// ended or the browser cancelled the request, as with a long poll or a WebSocket. A replay
    /// leaves the request open, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_open: bool,
    #[serde(default, skip_serializing_if = "Handling::is_answered")]
    pub handling: Handling,
}

impl RecordedExchange {
    /// Returns the URL of the request.
    pub fn url(&self) -> String {
        format!("{}{}", self.endpoint, self.path)
    }
}

/// The treatment of a request in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Handling {
    /// The request is answered as it was recorded.
    #[default]
    Answered,
    /// The request fails at once, without a response. Only experiments block requests.
    Blocked,
}

impl Handling {
    /// Returns true if the request is answered as it was recorded.
    pub fn is_answered(&self) -> bool {
        *self == Self::Answered
    }
}

/// A response as it was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedResponse {
    pub status: u16,
    pub headers: Vec<Header>,
    /// The time from the end of the request to the headers of the response.
    pub wait_ms: f64,
    /// The times at which the parts of the body came. Their sizes add up to that of the body.
    pub chunks: Vec<BodyChunk>,
    /// True if the connection or the recording ended before the end of the body.
    pub is_cut_off: bool,
    /// The body as it was transferred: possibly compressed, but without the protocol's framing.
    #[serde(skip)]
    pub body: Bytes,
}

impl RecordedResponse {
    /// Returns the value of the first header with a name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(key, _)| key == name);
        header.map(|(_, value)| value.as_str())
    }
}

/// A part of a body that came at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BodyChunk {
    /// The time since the headers of the response.
    pub after_ms: f64,
    pub bytes: u64,
}
