//! The servers at the far end of a link: real ones, recorded ones, or none.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream as StdStream};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plumbline_clock::{PageClock, PageTime};
use tokio::net::TcpStream;

use super::dial::connect;
use super::server_time::wait_until_due;
use super::{Resolution, Resolver};

/// The servers that the connections of a link end at.
#[derive(Clone, Default)]
pub enum Servers {
    /// Servers are looked up and connected to.
    #[default]
    Real,
    /// Servers are looked up and connected to, and every connection passes through a recorder.
    Recorded(Arc<dyn Recorder>),
    /// Connections end at a replayer. Nothing is looked up or connected to, so the guard is not
    /// asked.
    Replayed(Arc<dyn Replayer>),
}

/// Relays and records the connections of a link.
pub trait Recorder: Send + Sync + 'static {
    /// Takes over a connection and returns at once.
    fn record(&self, connection: RecordedConnection);
}

/// A connection between the browser and a server, to be relayed by a recorder.
#[derive(Debug)]
pub struct RecordedConnection {
    pub host: String,
    pub port: u16,
    /// The browser's end.
    pub browser: StdStream,
    /// The connection to the server.
    pub server: StdStream,
    /// The address of the server, which the guard has permitted.
    pub address: SocketAddr,
    /// The real duration of the handshake with the server.
    pub connect_time: Duration,
}

/// Answers the connections of a link in place of their servers.
pub trait Replayer: Send + Sync + 'static {
    /// Returns whether a name has an address.
    fn resolves(&self, host: &str) -> bool;

    /// Returns how a server responds to a handshake.
    fn handshake(&self, host: &str, port: u16) -> ReplayedHandshake;

    /// Takes over a connection and returns at once. The runtime of the caller is that of the link,
    /// whose thread delivers what is sent without waiting for another one.
    fn serve(&self, connection: ReplayedConnection);
}

/// A connection of the browser to a replayed server.
#[derive(Debug)]
pub struct ReplayedConnection {
    pub host: String,
    pub port: u16,
    /// The browser's end. What is sent enters the emulated network at once.
    pub browser: StdStream,
    pub arrivals: Arrivals,
}

/// The page times at which the bytes of a browser arrive at a replayed server.
#[derive(Debug, Clone)]
pub struct Arrivals {
    clock: Arc<PageClock>,
    /// The last one; `None` where there is no emulated network.
    last: Arc<Mutex<Option<PageTime>>>,
}

/// The arrival of a request at a replayed server.
#[derive(Debug, Clone)]
pub struct Arrival {
    clock: Arc<PageClock>,
    at: PageTime,
}

impl Arrivals {
    pub(super) fn new(clock: &Arc<PageClock>) -> Self {
        Self {
            clock: Arc::clone(clock),
            last: Arc::default(),
        }
    }

    pub(super) fn set_last(&self, at: PageTime) {
        *self.last.lock() = Some(at);
    }

    /// Returns the arrival of the bytes that were received last.
    pub fn last(&self) -> Arrival {
        let last = *self.last.lock();
        Arrival {
            at: last.unwrap_or_else(|| self.clock.now()),
            clock: Arc::clone(&self.clock),
        }
    }
}

impl Arrival {
    /// Waits until so much page time has passed since the arrival.
    pub async fn elapsed(&self, time: Duration) {
        wait_until_due(&self.clock, self.at + time).await;
    }
}

/// The response of a replayed server to a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayedHandshake {
    /// The connection is established after a time.
    Accepted(Duration),
    /// The connection is refused.
    Refused,
    /// There is no route to the server.
    Unreachable,
    /// Nothing is ever answered.
    Silent,
}

/// The addresses of replayed servers. None of them is connected to.
pub(super) struct ReplayedNames(pub(super) Arc<dyn Replayer>);

impl Resolver for ReplayedNames {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolution<'a> {
        let addresses = if self.0.resolves(host) {
            vec![PLACEHOLDER_ADDRESS]
        } else {
            Vec::new()
        };
        Box::pin(async { Ok(addresses) })
    }
}

/// An address for documentation (RFC 5737), which no server has.
const PLACEHOLDER_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Returns the two ends of a connection inside this process. The first behaves like a connection to
/// a server, with its buffer of `buffer_bytes`.
pub(super) async fn connected_pair(
    buffer_bytes: Option<u32>,
) -> io::Result<(TcpStream, StdStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (near, _) = connect(listener.local_addr()?, buffer_bytes).await?;
    // The handshake is complete, so this does not block. Another process may have been faster.
    let (far, peer) = listener.accept()?;
    if near.local_addr()? != peer {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    far.set_nonblocking(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}
