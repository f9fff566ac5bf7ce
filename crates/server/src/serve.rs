//! Accepts and serves connections, and closes them gracefully.

use std::{future::poll_fn, io, net::SocketAddr, sync::Arc, task::Poll, time::Duration};

use axum::{Router, http::HeaderValue};
use futures_util::future::BoxFuture;
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use crate::{
    capacity::{AGENT_RESERVE, PROBE_RESERVE},
    client_stream::ClientStream,
    connections::{Connection, ConnectionTimeouts, Connections, never},
    guarded_body::with_guard,
    peer::Peer,
};

/// The largest head of a request. Ids and keys are short; a larger head is a mistake or an attack.
const HEAD_BYTES: usize = 16 * 1024;

/// Connections beyond the number of concurrent requests. Their heads are read, so that probes and
/// agents are served and other requests get a response that says that the server is busy.
const EXTRA_CONNECTIONS: usize = 64;

/// Timeouts and limits of connections.
#[derive(Debug, Clone, Copy)]
pub struct ServeOptions {
    /// The time for a whole request head.
    pub head: Duration,
    /// The time until the next request of a connection that stays open.
    pub idle: Duration,
    /// The time within which a client must read some of its response.
    pub write: Duration,
    /// The time for running requests to end after the shutdown began.
    pub drain: Duration,
    /// The number of ordinary requests that are served concurrently
    /// ([`Limits::connections`](crate::Limits)). Somewhat more connections may be open.
    pub connections: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            write: Duration::from_secs(30),
            drain: Duration::from_secs(20),
            connections: 2048,
        }
    }
}

/// Serves until `shutdown` completes; then accepts no more connections, finishes running requests,
/// and returns.
pub fn serve<'a>(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'a,
) -> BoxFuture<'a, io::Result<()>> {
    serve_with(listener, None, router, ServeOptions::default(), shutdown)
}

/// Serves like [`serve`], over TLS if there is an acceptor, and with these options.
pub fn serve_with<'a>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    options: ServeOptions,
    shutdown: impl Future<Output = ()> + Send + 'a,
) -> BoxFuture<'a, io::Result<()>> {
    let shutdown = Box::pin(shutdown);
    Box::pin(serve_until(listener, tls, router, options, shutdown))
}

async fn serve_until(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    options: ServeOptions,
    mut shutdown: BoxFuture<'_, ()>,
) -> io::Result<()> {
    let (stop, stopping) = watch::channel(false);
    let timeouts = ConnectionTimeouts {
        head: options.head,
        idle: options.idle,
    };
    let at_most = options.connections + AGENT_RESERVE + PROBE_RESERVE + EXTRA_CONNECTIONS;
    let open = Arc::new(Connections::new(at_most, timeouts));
    let handler = ConnectionHandler {
        tls,
        router,
        write_timeout: options.write,
    };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            (stream, peer) = accept(&listener, &open) => {
                let connection = open.open(peer.ip());
                let handler = handler.clone();
                connections.spawn(handler.handle(stream, peer, connection, stopping.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    stop.send_replace(true);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(options.drain, finished).await.is_err() {
        warn!(
            connections = connections.len(),
            "closing connections that are still busy after the drain timeout"
        );
        connections.shutdown().await;
    }
    Ok(())
}

/// Accepts the next connection. An error here concerns only one client or is temporary (too many
/// open files), so it does not end the service.
async fn accept(listener: &TcpListener, open: &Connections) -> (TcpStream, SocketAddr) {
    const RETRY_AFTER: Duration = Duration::from_millis(200);
    // Wait before accepting: an accepted connection would be lost if this future were dropped.
    open.wait_for_capacity().await;
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_client_error(&error) => {
                debug!(%error, "failed to accept a connection")
            }
            Err(error) => {
                warn!(%error, "failed to accept connections, trying again");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

fn is_client_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Handles connections.
#[derive(Clone)]
struct ConnectionHandler {
    tls: Option<TlsAcceptor>,
    router: Router,
    write_timeout: Duration,
}

impl ConnectionHandler {
    async fn handle(
        self,
        stream: TcpStream,
        peer: SocketAddr,
        connection: Connection,
        mut stopping: watch::Receiver<bool>,
    ) {
        // Without this, small responses wait for the acknowledgement of earlier ones.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "failed to set TCP_NODELAY");
        }
        let Some(tls) = self.tls.clone() else {
            return self.serve_http(stream, peer, connection, stopping).await;
        };
        // The handshake is part of the time for the first head.
        let until = connection.deadline().unwrap_or_else(never);
        let handshake = tokio::select! {
            handshake = tokio::time::timeout_at(until, tls.accept(stream)) => handshake,
            () = connection.closed() => return,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        match handshake {
            Ok(Ok(stream)) => self.serve_http(stream, peer, connection, stopping).await,
            Ok(Err(error)) => debug!(%error, "TLS handshake failed"),
            Err(_) => debug!("TLS handshake timed out"),
        }
    }

    async fn serve_http<T: AsyncRead + AsyncWrite + Unpin>(
        self,
        stream: T,
        peer: SocketAddr,
        connection: Connection,
        mut stopping: watch::Receiver<bool>,
    ) {
        let router = TowerToHyperService::new(self.router);
        let (is_encrypted, current) = (self.tls.is_some(), connection.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer.ip()));
            if is_encrypted {
                // The header that a proxy in front would set.
                let https = HeaderValue::from_static("https");
                request.headers_mut().insert("x-forwarded-proto", https);
            }
            let serving = current.serve().map(|guard| (guard, router.call(request)));
            Box::pin(async move {
                let Some((guard, responding)) = serving else {
                    return Err(io::Error::from(io::ErrorKind::ConnectionAborted));
                };
                let response = responding.await.unwrap_or_else(|never| match never {});
                Ok(response.map(|body| with_guard(body, guard)))
            })
        });
        let stream = ClientStream::new(stream, self.write_timeout, connection.clone());
        let mut http = http1::Builder::new()
            .timer(TokioTimer::new())
            // `Connection` has timeouts of its own, which differ for heads and idle connections.
            .header_read_timeout(None)
            .max_buf_size(HEAD_BYTES)
            // Some clients close their half as soon as they have sent a request, and a start that
            // has begun must complete whether or not its client is still connected.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), service);
        let mut deadline = std::pin::pin!(tokio::time::sleep_until(never()));
        let mut is_stopping = false;
        let result = loop {
            let next_event = poll_fn(|cx| {
                if let Poll::Ready(result) = http.poll_without_shutdown(cx) {
                    return Poll::Ready(Some(result));
                }
                match connection.deadline() {
                    Some(until) if until != deadline.deadline() => deadline.as_mut().reset(until),
                    Some(_) => {}
                    None => return Poll::Pending,
                }
                deadline.as_mut().poll(cx).map(|()| None)
            });
            tokio::select! {
                result = next_event => break result,
                () = connection.closed() => break None,
                _ = stopping.wait_for(|stopping| *stopping), if !is_stopping => {
                    is_stopping = true;
                    std::pin::Pin::new(&mut http).graceful_shutdown();
                }
            }
        };
        match result {
            // No head arrived in time, or the capacity is needed for another connection.
            None => return,
            Some(Ok(())) => {}
            Some(Err(error)) => debug!(%error, "connection ended early"),
        }
        if !is_stopping {
            let stream = http.into_parts().io.into_inner();
            tokio::select! {
                () = linger(stream) => {}
                () = connection.closed() => {}
            }
        }
    }
}

/// Closes a connection so that the last response arrives: closing with unread bytes makes the
/// kernel reset the connection, and the client may lose what it has not read yet.
async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    const TIMEOUT: Duration = Duration::from_secs(1);
    const MAX_BYTES: u64 = 1024 * 1024;
    if stream.shutdown().await.is_err() {
        return;
    }
    let (mut rest, mut sink) = (stream.take(MAX_BYTES), tokio::io::sink());
    let draining = tokio::io::copy(&mut rest, &mut sink);
    let _: Result<io::Result<u64>, _> = tokio::time::timeout(TIMEOUT, draining).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_still_sending_is_not_interrupted_when_the_connection_closes() {
        let (server, mut client) = duplex(1024);
        let sending = async move {
            client.write_all(&[0; 100_000]).await.unwrap();
            assert_eq!(
                client.read(&mut [0; 1]).await.unwrap(),
                0,
                "the server closed its half"
            );
        };
        tokio::join!(linger(server), sending);
    }

    #[tokio::test(start_paused = true)]
    async fn lingering_is_limited_in_time_and_bytes() {
        let (server, silent) = duplex(1024);
        linger(server).await;
        drop(silent);

        let (server, mut endless) = duplex(1024);
        let sending = async move { while endless.write_all(&[0; 1024]).await.is_ok() {} };
        tokio::join!(linger(server), sending);
    }
}
