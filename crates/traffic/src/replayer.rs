//! Answers the connections of a visit from a recording.

use std::collections::BTreeMap;
use std::net::TcpStream as StdStream;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use parking_lot::Mutex;
use plumbline_link::ReplayedHandshake;
use plumbline_recording::{
    ConnectFailure, ConnectResult, Endpoint, Matcher, Protocol, RecordedResponse, Recording,
};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_rustls::server::StartHandshake;

use crate::Identity;
use crate::body::{BodyFrames, FrameSender};
use crate::client_hello::{ClientHello, HANDSHAKE_RECORD};
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
const CUT_OFF: &str = "the connection ended here when it was recorded";

/// The most missing requests whose names are kept.
const MAX_MISSING: usize = 1000;

impl Replayer {
    /// Creates a replayer. Its connections run on the runtime of the caller.
    pub fn new(identity: Arc<Identity>, recording: Arc<Recording>) -> Self {
        Self {
            shared: Arc::new(Shared {
                identity,
                matcher: Mutex::new(Matcher::new(&recording)),
                recording,
                missing: Mutex::default(),
            }),
            connections: Connections::on_this_runtime(),
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

    fn serve(&self, host: &str, port: u16, browser: StdStream) {
        let shared = Arc::clone(&self.shared);
        let host = host.to_ascii_lowercase();
        self.connections
            .start(Box::pin(serve(shared, host, port, browser)));
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

fn duration(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default()
}

/// Waits as long as a server took. Waits of less than a millisecond would take longer than that.
async fn wait(ms: f64) {
    if ms >= 1.0 {
        sleep(duration(ms)).await;
    }
}

/// Serves a connection of the browser until it ends.
async fn serve(
    shared: Arc<Shared>,
    host: String,
    port: u16,
    browser: StdStream,
) -> Result<(), ConnectionError> {
    let mut browser = TcpStream::from_std(browser)?;
    let mut first = [0];
    if browser.peek(&mut first).await? == 0 {
        return Ok(());
    }
    let endpoint = Endpoint {
        is_secure: first[0] == HANDSHAKE_RECORD,
        host,
        port,
    };
    if !endpoint.is_secure {
        return respond_to_all(shared, endpoint, Protocol::Http1, browser).await;
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
    wait(tls_ms).await;
    let name = hello.server_name().unwrap_or_else(|| endpoint.host.clone());
    let config = shared.identity.server_config(&name, protocol, is_trusted)?;
    let browser = StartHandshake::from_parts(hello.accepted, browser)
        .into_stream(config)
        .await?;
    respond_to_all(shared, endpoint, protocol, browser).await
}

async fn respond_to_all(
    shared: Arc<Shared>,
    endpoint: Endpoint,
    protocol: Protocol,
    browser: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
) -> Result<(), ConnectionError> {
    let respond = move |request: Request<Incoming>| -> PendingResponse {
        let (shared, connected) = (Arc::clone(&shared), endpoint.clone());
        Box::pin(async move { respond(&shared, &connected, protocol, request).await })
    };
    let ended = Box::pin(std::future::pending());
    serve_requests(browser, protocol, Box::new(respond), ended).await
}

/// Returns the recorded response to a request, after the time that the server took.
async fn respond(
    shared: &Shared,
    connected: &Endpoint,
    protocol: Protocol,
    request: Request<Incoming>,
) -> Result<Response<BodyFrames>, ConnectionError> {
    let endpoint = endpoint_of(&request, connected);
    let (method, path) = (request.method().to_string(), path_of(&request));
    // The server responded when it had the whole request.
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
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
        return Err(ConnectionError::NotRecorded(CUT_OFF));
    };
    if recorded.status < 200 {
        let reason = "connections of other protocols are not recorded";
        return Err(ConnectionError::NotRecorded(reason));
    }
    wait(recorded.wait_ms).await;
    response(recorded, protocol, &method)
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
    recorded: &RecordedResponse,
    protocol: Protocol,
    method: &str,
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
        tokio::spawn(send_body(recorded.clone(), sender));
    }
    Ok(response)
}

/// Sends the parts of a body, each as long after the headers as it was recorded.
async fn send_body(recorded: RecordedResponse, sender: FrameSender) {
    let began_at = Instant::now();
    let mut body = recorded.body;
    for chunk in &recorded.chunks {
        if chunk.after_ms >= 1.0 {
            tokio::select! {
                () = sleep_until(began_at + duration(chunk.after_ms)) => {}
                () = sender.closed() => return,
            }
        }
        let bytes = usize::try_from(chunk.bytes).unwrap_or(usize::MAX);
        let part = body.split_to(bytes.min(body.len()));
        if !sender.send(Ok(Frame::data(part))) {
            return;
        }
    }
    if !body.is_empty() {
        sender.send(Ok(Frame::data(body)));
    }
    if recorded.is_cut_off {
        sender.send(Err(ConnectionError::NotRecorded(CUT_OFF)));
    }
}
