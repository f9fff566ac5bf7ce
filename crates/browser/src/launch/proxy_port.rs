//! The only port that a browser can connect to if it is restricted to a proxy.
//!
//! The proxy has to be configured when the browser starts, when the visit of a spare is not known
//! yet. (Browser contexts with their own proxy can be created later, but pages in them cannot
//! connect in advance: Chromium 156 ignores `<link rel=preconnect>` there, which would measure a
//! slower web.) So each browser gets a port of this process as its proxy, and the visit forwards
//! connections from it to the proxy.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use plumbline_clock::{PageClock, ServingThread};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Buffer size for each direction of each connection.
const BUFFER_BYTES: usize = 32 << 10;

/// The pause after a connection could not be accepted.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct ProxyPort {
    listener: TcpListener,
}

impl ProxyPort {
    /// Opens a port on this machine's loopback interface.
    pub(super) fn open() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }

    /// Uses a non-blocking listener that the browser can connect to.
    pub(super) fn on(listener: TcpListener) -> Self {
        Self { listener }
    }

    pub(super) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Forwards all connections to the proxy until the forwarder is closed or dropped. There must
    /// be no other forwarder. A thread of its own does this, whose work the clock of the browser
    /// waits for: other tasks of this process would delay the page's packets, and a delay lasts
    /// longer in page time.
    pub(crate) fn forward_to(
        &self,
        proxy: SocketAddr,
        clock: &Arc<PageClock>,
    ) -> std::io::Result<Forwarder> {
        // Connections that the browser made for itself while it was idle are not part of the visit.
        while self.listener.accept().is_ok() {}
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _runtime = runtime.enter();
            tokio::net::TcpListener::from_std(self.listener.try_clone()?)?
        };
        let clock = Arc::clone(clock);
        let (close, closing) = oneshot::channel();
        let (ended_sender, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("forwarder".to_owned())
            .spawn(move || {
                let registration = ServingThread::register(&clock);
                runtime.block_on(async {
                    tokio::select! {
                        () = forward_all(listener, proxy) => {}
                        _ = closing => {}
                    }
                });
                drop((runtime, registration));
                // Nobody waits for it if the forwarder was dropped.
                let _ = ended_sender.send(());
            })?;
        Ok(Forwarder { close, ended })
    }
}

/// A thread that forwards connections. Dropping it ends all of them.
pub(crate) struct Forwarder {
    /// Ends the thread when it is dropped.
    close: oneshot::Sender<Infallible>,
    ended: oneshot::Receiver<()>,
}

impl Forwarder {
    /// Ends all connections.
    pub(crate) async fn close(self) {
        drop(self.close);
        // It fails if the thread panicked, which ends all connections, too.
        let _ = self.ended.await;
    }
}

/// Forwards all connections, without an end.
async fn forward_all(listener: tokio::net::TcpListener, proxy: SocketAddr) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            result = listener.accept() => match result {
                Ok((browser, _)) => _ = connections.spawn(forward(browser, proxy)),
                Err(error) => {
                    tracing::debug!(%error, "failed to accept a connection");
                    // Without free file descriptors it would fail at once again.
                    sleep(PAUSE_AFTER_ERROR).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Forwards one connection. The end of either side, or an error, ends both.
async fn forward(mut browser: TcpStream, proxy: SocketAddr) -> std::io::Result<()> {
    let mut upstream = TcpStream::connect(proxy).await?;
    browser.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    copy_bidirectional_with_sizes(&mut browser, &mut upstream, BUFFER_BYTES, BUFFER_BYTES).await?;
    Ok(())
}
