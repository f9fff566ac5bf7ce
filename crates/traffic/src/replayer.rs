//! Answers the connections of a visit from a recording.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use parking_lot::Mutex;
use plumbline_link::{Arrival, Arrivals, ReplayedConnection, ReplayedHandshake};
use plumbline_recording::{
    ConnectFailure, ConnectResult, Endpoint, Matcher, Protocol, RecordedExchange, RecordedResponse,
    Recording,
};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::server::StartHandshake;

use crate::Identity;
use crate::body::BodyFrames;
use crate::client_hello::{ClientHello, HANDSHAKE_RECORD};
use crate::replayed_body::ReplayedBody;
use crate::serve::{
    ConnectionError, Connections, PendingResponse, endpoint_of, path_of, serve_requests,
};

/// Replays a recording to the browser of one visit.
pub struct Replayer {
    shared: Arc<Shared>,
    connections: Connections,
}

struct Shared {
    identity: Arc<Identity>,
    recording: Arc<Recording>,
    matcher: Mutex<Matcher>,
    missing: Mutex<BTreeMap<String, u64>>,
}

/// A request or connection that is not in the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The URL of the request, or the host and port of the connection.
    pub name: String,
    pub count: u64,
}

/// The reason why a connection ends that ended when it was recorded.
pub(crate) const CUT_OFF: &str = "the connection ended here when it was recorded";

/// The most missing requests whose names are kept.
const MAX_MISSING: usize = 1000;

impl Replayer {
    /// Creates a replayer.
    pub fn new(identity: Arc<Identity>, recording: Arc<Recording>) -> Self {
        Self {
            shared: Arc::new(Shared {
                identity,
                matcher: Mutex::new(Matcher::new(&recording)),
                recording,
                missing: Mutex::default(),
            }),
            connections: Connections::default(),
        }
    }

    /// Returns what the browser asked for in vain, in alphabetical order.
    pub fn missing(&self) -> Vec<Missing> {
        let missing = self.shared.missing.lock();
        let missing = missing.iter().map(|(name, count)| Missing {
            name: name.clone(),
            count: *count,
        });
        missing.collect()
    }
}

impl plumbline_link::Replayer for Replayer {
    fn resolves(&self, host: &str) -> bool {
        let results = self.shared.results(host, None);
        let resolves = results
            .into_iter()
            .any(|it| *it != ConnectResult::Failed(ConnectFailure::NameNotFound));
        if !resolves && !self.shared.has_host(host) {
            self.shared.add_missing(host.to_owned());
        }
        resolves
    }

    fn handshake(&self, host: &str, port: u16) -> ReplayedHandshake {
        let results = self.shared.results(host, Some(port));
        let connected = results
            .iter()
            .find(|it| matches!(it, ConnectResult::Connected { .. }));
        match connected.or(results.first()) {
            Some(ConnectResult::Connected { connect_ms, .. }) => {
                ReplayedHandshake::Accepted(duration(*connect_ms))
            }
            Some(ConnectResult::Failed(failure)) => match failure {
                ConnectFailure::Certificate => ReplayedHandshake::Accepted(Duration::ZERO),
                ConnectFailure::Refused | ConnectFailure::NotAllowed => ReplayedHandshake::Refused,
                ConnectFailure::TimedOut => ReplayedHandshake::Silent,
                ConnectFailure::Unreachable | ConnectFailure::NameNotFound => {
                    ReplayedHandshake::Unreachable
                }
            },
            Some(ConnectResult::Silent) => ReplayedHandshake::Silent,
            None => {
                self.shared.add_missing(format!("{host}:{port}"));
                ReplayedHandshake::Refused
            }
        }
    }

    fn serve(&self, connection: ReplayedConnection) {
        let shared = Arc::clone(&self.shared);
        let runtime = Handle::current();
        self.connections
            .start(&runtime, Box::pin(serve(shared, connection)));
    }
}

impl Shared {
    /// Returns the results of connections to a host, on one port or any.
    fn results(&self, host: &str, port: Option<u16>) -> Vec<&ConnectResult> {
        let is_meant = |endpoint: &Endpoint| {
            endpoint.host.eq_ignore_ascii_case(host) && port.is_none_or(|it| it == endpoint.port)
        };
        let endpoints = self.recording.endpoints.iter();
        endpoints
            .filter(|it| is_meant(&it.endpoint))
            .map(|it| &it.result)
            .collect()
    }

    fn has_host(&self, host: &str) -> bool {
        !self.results(host, None).is_empty()
    }

    fn result(&self, endpoint: &Endpoint) -> Option<&ConnectResult> {
        let mut endpoints = self.recording.endpoints.iter();
        let endpoint = endpoints.find(|it| it.endpoint == *endpoint);
        endpoint.map(|it| &it.result)
    }

    fn add_missing(&self, name: String) {
        let mut missing = self.missing.lock();
        if missing.len() < MAX_MISSING || missing.contains_key(&name) {
            *missing.entry(name).or_default() += 1;
        }
    }
}

/// Returns a duration of a recording.
pub(crate) fn duration(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default()
}

/// Serves a connection of the browser until it ends.
async fn serve(shared: Arc<Shared>, connection: ReplayedConnection) -> Result<(), ConnectionError> {
    let arrivals = connection.arrivals;
    let mut browser = TcpStream::from_std(connection.browser)?;
    let mut first = [0];
    if browser.peek(&mut first).await? == 0 {
        return Ok(());
    }
    let endpoint = Endpoint {
        is_secure: first[0] == HANDSHAKE_RECORD,
        host: connection.host.to_ascii_lowercase(),
        port: connection.port,
    };
    if !endpoint.is_secure {
        return respond_to_all(shared, endpoint, Protocol::Http1, arrivals, browser).await;
    }
    let (mut protocol, tls_ms, is_trusted) = match shared.result(&endpoint) {
        Some(ConnectResult::Connected {
            protocol, tls_ms, ..
        }) => (*protocol, *tls_ms, true),
        Some(ConnectResult::Failed(_) | ConnectResult::Silent) => (Protocol::Http1, 0.0, false),
        None => (Protocol::Http1, 0.0, true),
    };
    let Some(hello) = ClientHello::read(&mut browser).await? else {
        return Ok(());
    };
    if !hello.accepts_http2() {
        // A WebSocket, for example.
        protocol = Protocol::Http1;
    }
    arrivals.last().elapsed(duration(tls_ms)).await;
    let name = hello.server_name().unwrap_or_else(|| endpoint.host.clone());
    let config = shared.identity.server_config(&name, protocol, is_trusted)?;
    let browser = StartHandshake::from_parts(hello.accepted, browser)
        .into_stream(config)
        .await?;
    respond_to_all(shared, endpoint, protocol, arrivals, browser).await
}

async fn respond_to_all(
    shared: Arc<Shared>,
    endpoint: Endpoint,
    protocol: Protocol,
    arrivals: Arrivals,
    browser: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
) -> Result<(), ConnectionError> {
    let respond = move |request: Request<Incoming>| -> PendingResponse {
        let (shared, connected) = (Arc::clone(&shared), endpoint.clone());
        let arrivals = arrivals.clone();
        Box::pin(async move { respond(&shared, &connected, protocol, &arrivals, request).await })
    };
    let ended = Box::pin(pending());
    serve_requests(browser, protocol, Box::new(respond), ended).await
}

/// Returns the recorded response to a request, after the page time that the server took.
async fn respond(
    shared: &Shared,
    connected: &Endpoint,
    protocol: Protocol,
    arrivals: &Arrivals,
    request: Request<Incoming>,
) -> Result<Response<BodyFrames>, ConnectionError> {
    let mut arrival = arrivals.last();
    let endpoint = endpoint_of(&request, connected);
    let (method, path) = (request.method().to_string(), path_of(&request));
    // The server responded when it had the whole request.
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
        arrival = arrivals.last();
    }
    let found = shared.matcher.lock().find(&endpoint, &method, &path);
    let Some(found) = found else {
        shared.add_missing(format!("{endpoint}{path}"));
        let mut response = Response::new(BodyFrames::empty());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let exchange = &shared.recording.exchanges[found.index];
    if !exchange.handling.is_answered() {
        return Err(ConnectionError::NotRecorded("the request is blocked"));
    }
    let Some(recorded) = &exchange.response else {
        if exchange.is_open {
            return pending().await;
        }
        return Err(ConnectionError::NotRecorded(CUT_OFF));
    };
    if recorded.status < 200 {
        let reason = "connections of other protocols are not recorded";
        return Err(ConnectionError::NotRecorded(reason));
    }
    arrival.elapsed(duration(recorded.wait_ms)).await;
    response(exchange, recorded, protocol, &method, arrival)
}

/// Headers that belong to one connection with HTTP/1.1.
const CONNECTION_HEADERS: [HeaderName; 4] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// Returns a response as it was recorded. That to a HEAD request has no body, whatever was
/// recorded.
fn response(
    exchange: &RecordedExchange,
    recorded: &RecordedResponse,
    protocol: Protocol,
    method: &str,
    arrival: Arrival,
) -> Result<Response<BodyFrames>, ConnectionError> {
    let has_body = method != "HEAD" && (!recorded.body.is_empty() || recorded.is_cut_off);
    let (sender, frames) = if !has_body {
        (None, BodyFrames::empty())
    } else {
        let size = recorded.body.len() as u64;
        let (sender, frames) = BodyFrames::sent((!recorded.is_cut_off).then_some(size));
        (Some(sender), frames)
    };
    let mut response = Response::new(frames);
    *response.status_mut() =
        StatusCode::from_u16(recorded.status).map_err(hyper::http::Error::from)?;
    for (name, value) in &recorded.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(hyper::http::Error::from)?;
        if protocol == Protocol::Http2 && CONNECTION_HEADERS.contains(&name) {
            continue;
        }
        // That of an imported recording may be wrong, and the right one is sent instead.
        let is_wrong = || value.parse() != Ok(recorded.body.len());
        if name == header::CONTENT_LENGTH && has_body && !recorded.is_cut_off && is_wrong() {
            continue;
        }
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(hyper::http::Error::from)?;
        response.headers_mut().append(name, value);
    }
    if let Some(sender) = sender {
        ReplayedBody::of(recorded, exchange.is_open, sender).start(arrival);
    }
    Ok(response)
}

#[cfg(test)]
mod tests;
