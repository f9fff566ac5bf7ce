//! Connections: accepted, served, and let go in good order.

use std::{future::poll_fn, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
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
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
};
use tracing::{debug, warn};

use crate::{peer::Peer, wire::Wire};

/// A request's head, all of it. Ids and keys are short; what is longer is a mistake or an attack.
const HEAD_BYTES: usize = 16 * 1024;

/// How long others are waited for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For a whole request head, which is also how long an idle connection is kept.
    pub head: Duration,
    /// For a client to read some of its answer.
    pub write: Duration,
    /// For running requests, once the service is asked to end.
    pub drain: Duration,
    /// How many connections are open at a time; the next wait to be accepted.
    pub connections: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
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
    serve_with(listener, router, Patience::default(), shutdown).await
}

/// As [`serve`], with other waits.
pub async fn serve_with(
    listener: TcpListener,
    router: Router,
    patience: Patience,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut shutdown = std::pin::pin!(shutdown);
    let (ending, ends) = watch::channel(false);
    let places = Arc::new(Semaphore::new(patience.connections));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            (place, stream, peer) = accept(&listener, &places) => {
                let served = connection(stream, peer, router.clone(), patience, ends.clone());
                connections.spawn(async move {
                    served.await;
                    drop(place);
                });
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
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (Option<OwnedSemaphorePermit>, TcpStream, SocketAddr) {
    const RECOVER: Duration = Duration::from_millis(200);
    // Fails only for a closed semaphore, which this one never is.
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (place, stream, peer),
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

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    patience: Patience,
    mut ends: watch::Receiver<bool>,
) {
    // Without it, small answers wait for the acknowledgement of earlier ones.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "no TCP_NODELAY");
    }
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer.ip()));
        router.call(request)
    });
    let mut http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .max_buf_size(HEAD_BYTES)
        // Some clients close their half as soon as they have asked, and a start that began shall
        // end whether or not its client is still there.
        .half_close(true)
        .serve_connection(TokioIo::new(Wire::new(stream, patience.write)), service);
    let mut is_ending = false;
    let served = loop {
        tokio::select! {
            served = poll_fn(|cx| http.poll_without_shutdown(cx)) => break served,
            _ = ends.wait_for(|ended| *ended), if !is_ending => {
                is_ending = true;
                std::pin::Pin::new(&mut http).graceful_shutdown();
            }
        }
    };
    if let Err(error) = served {
        debug!(%error, "a connection ended early");
    }
    if !is_ending {
        linger(http.into_parts().io.into_inner()).await;
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
