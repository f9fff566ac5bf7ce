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
pub(crate) struct Connections {
    runtime: tokio::runtime::Handle,
    tasks: Mutex<JoinSet<()>>,
}

impl Connections {
    /// Creates a set whose tasks run on the runtime of the caller.
    pub(crate) fn on_this_runtime() -> Self {
        Self {
            runtime: tokio::runtime::Handle::current(),
            tasks: Mutex::default(),
        }
    }

    /// Starts the task of a connection.
    pub(crate) fn start(&self, connection: ConnectionTask) {
        let mut tasks = self.tasks.lock();
        // Those that have ended are forgotten.
        while tasks.try_join_next().is_some() {}
        let task = async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
        };
        tasks.spawn_on(task, &self.runtime);
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
    use super::*;

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
