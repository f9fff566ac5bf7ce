//! Connections: accepted, served, and let go in good order.

use std::{future::poll_fn, io, net::SocketAddr, sync::Arc, task::Poll, time::Duration};

use axum::{Router, http::HeaderValue};
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
    connections::{Connection, Connections, Waits, never},
    held::holding,
    peer::Peer,
    places::{AGENT_RESERVE, PROBE_RESERVE},
    wire::Wire,
};

/// A request's head, all of it. Ids and keys are short; what is longer is a mistake or an attack.
const HEAD_BYTES: usize = 16 * 1024;

/// Connections beyond those that hold a place: their heads are read, probes and agents are served and
/// everybody else is told that there is no place.
const CONNECTIONS_BEYOND: usize = 64;

/// How long others are waited for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For a whole request head.
    pub head: Duration,
    /// For the next request of a connection that is kept open.
    pub idle: Duration,
    /// For a client to read some of its answer.
    pub write: Duration,
    /// For running requests, once the service is asked to end.
    pub drain: Duration,
    /// How many ordinary requests are served at a time ([`Limits::connections`](crate::Limits)).
    /// Somewhat more connections are open.
    pub connections: usize,
}

impl Default for Patience {
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

/// Serves until `shutdown` is ready; then accepts nothing more, finishes the requests that run, and
/// returns.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_with(listener, None, router, Patience::default(), shutdown).await
}

/// As [`serve`], over TLS where there is a certificate, and with other waits.
pub async fn serve_with(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    patience: Patience,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut shutdown = std::pin::pin!(shutdown);
    let (ending, ends) = watch::channel(false);
    let waits = Waits {
        head: patience.head,
        idle: patience.idle,
    };
    let at_most = patience.connections + AGENT_RESERVE + PROBE_RESERVE + CONNECTIONS_BEYOND;
    let open = Arc::new(Connections::new(at_most, waits));
    let host = Host {
        tls,
        router,
        write_within: patience.write,
    };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            (stream, peer) = accept(&listener, &open) => {
                let connection = open.open(peer.ip());
                let host = host.clone();
                connections.spawn(host.accepted(stream, peer, connection, ends.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    ending.send_replace(true);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(patience.drain, finished)
        .await
        .is_err()
    {
        warn!(
            connections = connections.len(),
            "cut off: still busy after the drain deadline"
        );
        connections.shutdown().await;
    }
    Ok(())
}

/// The next connection. What fails here is either one client's business or passes (too many open
/// files): neither ends the service.
async fn accept(listener: &TcpListener, open: &Connections) -> (TcpStream, SocketAddr) {
    const RECOVER: Duration = Duration::from_millis(200);
    // Made before there is somebody to use it: an accepted connection must not be lost when this
    // future is dropped.
    open.room().await;
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_the_clients(&error) => debug!(%error, "a connection came to nothing"),
            Err(error) => {
                warn!(%error, "cannot accept connections, trying again");
                tokio::time::sleep(RECOVER).await;
            }
        }
    }
}

fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// What every connection needs.
#[derive(Clone)]
struct Host {
    tls: Option<TlsAcceptor>,
    router: Router,
    write_within: Duration,
}

impl Host {
    async fn accepted(
        self,
        stream: TcpStream,
        peer: SocketAddr,
        connection: Connection,
        mut ends: watch::Receiver<bool>,
    ) {
        // Without it, small answers wait for the acknowledgement of earlier ones.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "no TCP_NODELAY");
        }
        let Some(tls) = self.tls.clone() else {
            return self.exchange(stream, peer, connection, ends).await;
        };
        // The handshake is part of the time that the first head has.
        let until = connection.deadline().unwrap_or_else(never);
        let encrypted = tokio::select! {
            encrypted = tokio::time::timeout_at(until, tls.accept(stream)) => encrypted,
            () = connection.closed() => return,
            _ = ends.wait_for(|ended| *ended) => return,
        };
        match encrypted {
            Ok(Ok(stream)) => self.exchange(stream, peer, connection, ends).await,
            Ok(Err(error)) => debug!(%error, "a TLS handshake failed"),
            Err(_) => debug!("a TLS handshake took too long"),
        }
    }

    async fn exchange<T: AsyncRead + AsyncWrite + Unpin>(
        self,
        stream: T,
        peer: SocketAddr,
        connection: Connection,
        mut ends: watch::Receiver<bool>,
    ) {
        let router = TowerToHyperService::new(self.router);
        let (is_encrypted, asked) = (self.tls.is_some(), connection.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer.ip()));
            if is_encrypted {
                // What a proxy in front would say.
                let https = HeaderValue::from_static("https");
                request.headers_mut().insert("x-forwarded-proto", https);
            }
            let served = asked.serve().map(|serving| (serving, router.call(request)));
            Box::pin(async move {
                let Some((serving, answer)) = served else {
                    return Err(io::Error::from(io::ErrorKind::ConnectionAborted));
                };
                let response = answer.await.unwrap_or_else(|never| match never {});
                Ok(response.map(|body| holding(body, serving)))
            })
        });
        let wire = Wire::new(stream, self.write_within, connection.clone());
        let mut http = http1::Builder::new()
            .timer(TokioTimer::new())
            // Ours is kept beside the connection, and knows a head from an idle line.
            .header_read_timeout(None)
            .max_buf_size(HEAD_BYTES)
            // Some clients close their half as soon as they have asked, and a start that began shall
            // end whether or not its client is still there.
            .half_close(true)
            .serve_connection(TokioIo::new(wire), service);
        let mut deadline = std::pin::pin!(tokio::time::sleep_until(never()));
        let mut is_ending = false;
        let served = loop {
            let progress = poll_fn(|cx| {
                if let Poll::Ready(served) = http.poll_without_shutdown(cx) {
                    return Poll::Ready(Some(served));
                }
                match connection.deadline() {
                    Some(until) if until != deadline.deadline() => deadline.as_mut().reset(until),
                    Some(_) => {}
                    None => return Poll::Pending,
                }
                deadline.as_mut().poll(cx).map(|()| None)
            });
            tokio::select! {
                served = progress => break served,
                () = connection.closed() => break None,
                _ = ends.wait_for(|ended| *ended), if !is_ending => {
                    is_ending = true;
                    std::pin::Pin::new(&mut http).graceful_shutdown();
                }
            }
        };
        match served {
            // No head in time, or somebody else needs the connection.
            None => return,
            Some(Ok(())) => {}
            Some(Err(error)) => debug!(%error, "a connection ended early"),
        }
        if !is_ending {
            let stream = http.into_parts().io.into_inner();
            tokio::select! {
                () = linger(stream) => {}
                () = connection.closed() => {}
            }
        }
    }
}

/// Closes so that the last answer arrives: closing with unread bytes makes the kernel reset the
/// connection, and the client may lose what it has not read yet.
async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    const WITHIN: Duration = Duration::from_secs(1);
    const AT_MOST_BYTES: u64 = 1024 * 1024;
    if stream.shutdown().await.is_err() {
        return;
    }
    let (mut rest, mut nowhere) = (stream.take(AT_MOST_BYTES), tokio::io::sink());
    let drained = tokio::io::copy(&mut rest, &mut nowhere);
    let _: Result<io::Result<u64>, _> = tokio::time::timeout(WITHIN, drained).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_is_still_sending_when_we_close_can_do_so_in_peace() {
        let (ours, mut theirs) = duplex(1024);
        let sending = async move {
            theirs.write_all(&[0; 100_000]).await.unwrap();
            assert_eq!(
                theirs.read(&mut [0; 1]).await.unwrap(),
                0,
                "our end was announced"
            );
        };
        tokio::join!(linger(ours), sending);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_listened_to_for_ever() {
        let (ours, silent) = duplex(1024);
        linger(ours).await;
        drop(silent);

        let (ours, mut endless) = duplex(1024);
        let sending = async move { while endless.write_all(&[0; 1024]).await.is_ok() {} };
        tokio::join!(linger(ours), sending);
    }
}
