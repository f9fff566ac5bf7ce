//! The browser's side of recorded and replayed connections.

use std::future::Future;
use std::pin::{Pin, pin};

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, header};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use plumbline_recording::{Endpoint, Header, Protocol};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_rustls::rustls::pki_types::InvalidDnsNameError;

use crate::IdentityError;
use crate::body::BodyFrames;

/// An error that ends a connection or, with HTTP/2, a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("{0}")]
    Message(#[from] hyper::http::Error),
    #[error("the server took too long")]
    Timeout(#[from] tokio::time::error::Elapsed),
    #[error("{0}")]
    Name(#[from] InvalidDnsNameError),
    #[error("{0}")]
    Identity(#[from] IdentityError),
    #[error("{0}")]
    NotRecorded(&'static str),
}

/// A function that responds to requests.
pub(crate) type Respond = dyn Fn(Request<Incoming>) -> PendingResponse + Send + Sync;

/// The work of one connection.
pub(crate) type ConnectionTask = Pin<Box<dyn Future<Output = Result<(), ConnectionError>> + Send>>;

/// A response that is being made.
pub(crate) type PendingResponse =
    Pin<Box<dyn Future<Output = Result<Response<BodyFrames>, ConnectionError>> + Send>>;

/// The tasks of the connections of a visit, which end when this is dropped.
#[derive(Default)]
pub(crate) struct Connections {
    tasks: Mutex<JoinSet<()>>,
}

impl Connections {
    /// Starts the task of a connection.
    pub(crate) fn start(&self, runtime: &Handle, connection: ConnectionTask) {
        let mut tasks = self.tasks.lock();
        // Those that have ended are forgotten.
        while tasks.try_join_next().is_some() {}
        let task = async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
        };
        tasks.spawn_on(task, runtime);
    }
}

/// Serves the requests of a connection until the browser closes it or `ended` completes.
pub(crate) fn serve_requests<IO>(
    browser: IO,
    protocol: Protocol,
    respond: Box<Respond>,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
) -> ConnectionTask
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(browser);
    match protocol {
        Protocol::Http1 => Box::pin(serve_http1(io, respond, ended)),
        Protocol::Http2 => Box::pin(serve_http2(io, respond, ended)),
    }
}

async fn serve_http1<IO>(
    io: TokioIo<IO>,
    respond: Box<Respond>,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
) -> Result<(), ConnectionError>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Unused connections stay open as long as the server's.
        .header_read_timeout(None)
        .auto_date_header(false)
        .preserve_header_case(true)
        .max_headers(MAX_HEADERS)
        .half_close(true)
        .serve_connection(io, service_fn(respond))
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        result = connection.as_mut() => return Ok(result?),
        () = ended => connection.as_mut().graceful_shutdown(),
    }
    Ok(connection.await?)
}

async fn serve_http2<IO>(
    io: TokioIo<IO>,
    respond: Box<Respond>,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
) -> Result<(), ConnectionError>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .auto_date_header(false)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .serve_connection(io, service_fn(respond));
    let mut connection = pin!(connection);
    tokio::select! {
        result = connection.as_mut() => return Ok(result?),
        () = ended => connection.as_mut().graceful_shutdown(),
    }
    Ok(connection.await?)
}

/// The number of requests that a connection with HTTP/2 accepts at the same time, as common servers
/// do.
const MAX_STREAMS: u32 = 128;

/// The maximum size of the headers of a message with HTTP/2: that of Chromium.
pub(crate) const MAX_HEADER_BYTES: u32 = 256 * 1024;

/// The maximum number of headers of a message with HTTP/1.1, which Chromium does not limit.
pub(crate) const MAX_HEADERS: usize = 1000;

/// Returns the server that a request names, which with HTTP/2 may be another than the one that was
/// connected to.
pub(crate) fn endpoint_of<B>(request: &Request<B>, connected: &Endpoint) -> Endpoint {
    let host_header = || request.headers().get(header::HOST)?.to_str().ok();
    let authority = request.uri().authority().map(|it| it.as_str());
    let Some(authority) = authority.or_else(host_header) else {
        return connected.clone();
    };
    let (host, port) = split_authority(authority);
    let default_port = if connected.is_secure { 443 } else { 80 };
    Endpoint {
        is_secure: connected.is_secure,
        host: host.to_ascii_lowercase(),
        port: port.unwrap_or(default_port),
    }
}

/// Splits a host, without the brackets of an IPv6 address, from its port.
fn split_authority(authority: &str) -> (&str, Option<u16>) {
    let after_host = authority.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match authority[after_host..].rfind(':') {
        Some(colon) => {
            let colon = after_host + colon;
            (&authority[..colon], authority[colon + 1..].parse().ok())
        }
        None => (authority, None),
    };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

/// Returns the path and the query of a request.
pub(crate) fn path_of<B>(request: &Request<B>) -> String {
    let path = request.uri().path_and_query();
    path.map_or_else(|| "/".to_owned(), |path| path.as_str().to_owned())
}

/// Returns headers as a recording has them.
pub(crate) fn recorded_headers(headers: &HeaderMap) -> Vec<Header> {
    let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    };
    headers.iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Empty;
    use hyper::client::conn;

    use super::*;

    #[tokio::test]
    async fn headers_may_be_as_long_as_chromium_sends_them() {
        let (near, far) = tokio::io::duplex(1 << 16);
        let respond =
            |_| -> PendingResponse { Box::pin(async { Ok(Response::new(BodyFrames::empty())) }) };
        let ended = Box::pin(std::future::pending());
        let serving = serve_requests(far, Protocol::Http2, Box::new(respond), ended);
        tokio::spawn(serving);
        let client = conn::http2::handshake(TokioExecutor::new(), TokioIo::new(near));
        let (mut sender, connection) = client.await.unwrap();
        tokio::spawn(connection);
        let request = Request::get("https://a.test/")
            .header("cookie", "a".repeat(200_000))
            .body(Empty::<Bytes>::new());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
    }

    #[test]
    fn authorities_are_split_into_host_and_port() {
        for (authority, host, port) in [
            ("example.com", "example.com", None),
            ("example.com:8080", "example.com", Some(8080)),
            ("[::1]", "::1", None),
            ("[::1]:443", "::1", Some(443)),
            ("10.0.0.1:80", "10.0.0.1", Some(80)),
        ] {
            assert_eq!(split_authority(authority), (host, port));
        }
    }
}
