//! The only port that a browser for visits through a proxy can reach.
//!
//! A proxy has to be named when the browser starts, long before a spare knows its visit. (Contexts
//! that name their own proxy later exist, but pages in them cannot connect in advance: Chromium 156
//! ignores `<link rel=preconnect>` there, which would measure a slower web.) So each browser is
//! given a port of ours as its proxy, and the visit says where that leads.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};

/// For each direction of each connection.
const BUFFER_BYTES: usize = 32 << 10;

#[derive(Debug)]
pub(crate) struct WayOut {
    listener: TcpListener,
}

impl WayOut {
    /// Opens a port on this machine's loopback interface.
    pub(super) fn open() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }

    /// Uses a listener that does not block and that the browser can reach.
    pub(super) fn on(listener: TcpListener) -> Self {
        Self { listener }
    }

    pub(super) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Leads every connection to the proxy, until the relay is dropped.
    pub(crate) fn lead_to(self, proxy: SocketAddr) -> std::io::Result<Relay> {
        // What the browser wanted for itself while it waited is of no visit.
        while self.listener.accept().is_ok() {}
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((browser, _)) => _ = connections.spawn(join(browser, proxy)),
                        Err(error) => tracing::debug!(%error, "a connection was not taken"),
                    },
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        Ok(Relay(accepting))
    }
}

/// Dropping it ends all its connections.
pub(crate) struct Relay(JoinHandle<()>);

impl Drop for Relay {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An end or an error of either side ends the other.
async fn join(mut browser: TcpStream, proxy: SocketAddr) -> std::io::Result<()> {
    let mut upstream = TcpStream::connect(proxy).await?;
    browser.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    copy_bidirectional_with_sizes(&mut browser, &mut upstream, BUFFER_BYTES, BUFFER_BYTES).await?;
    Ok(())
}
