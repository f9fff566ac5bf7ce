//! The link: a SOCKS5 proxy for one visit that contains the network model and the guard.
//!
//! Everything runs on one thread per link: a packet that is due is read, delayed and written
//! without waiting for other threads, which on a busy machine is the largest part of the error.
//!
//! There is one task per connection. It reads the request (`socks`), looks up and connects to the
//! host (`dial`, where the guard decides), and relays the bytes (`relay`) through the emulated
//! network (`emulator`). The connections of a replayer run on the thread as well.

mod backup;
mod byte_queue;
mod dial;
mod direct;
mod emulator;
mod handshake;
mod meter;
mod record;
mod relay;
mod resolve;
mod server_time;
mod servers;
mod service_hosts;
mod socks;

#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use plumbline_clock::{PageClock, ServingThread};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use direct::connect_guarded;
pub use record::{ConnectionOutcome, ConnectionRecord};
pub use resolve::{Resolution, Resolver, SystemResolver};
pub use servers::{
    Arrival, Arrivals, RecordedConnection, Recorder, ReplayedConnection, ReplayedHandshake,
    Replayer, Servers,
};

use backup::Backups;
use dial::{Dialed, PendingConnection};
use emulator::NetworkEmulator;
use meter::Meter;
use record::ConnectionLog;
use relay::RelayEnd;
use resolve::LookupCache;
use servers::ReplayedNames;
use socks::ConnectRequest;

use crate::model::Setup;
use crate::{Guard, LineProfile, LinkError, Refusal};

/// The configuration of a link.
#[derive(Clone)]
pub struct LinkConfig {
    pub profile: LineProfile,
    /// Clock of the visit; by default one that shows real time.
    pub clock: Option<Arc<PageClock>>,
    pub guard: Arc<Guard>,
    pub resolver: Arc<dyn Resolver>,
    pub servers: Servers,
    /// Limit on the payload in both directions; when it is exceeded, all connections are reset.
    pub max_bytes: u64,
    /// Hosts that only the browser's own services use; a leading dot matches all subdomains.
    pub refused_hosts: Vec<String>,
    pub lookup_timeout: Duration,
    pub connect_timeout: Duration,
    /// True if refusals are expected: they are then logged at level debug only.
    pub expects_refusals: bool,
    /// Seed of random packet loss and of the senders' random choices; the same seed gives the same
    /// network.
    pub seed: u64,
}

impl LinkConfig {
    /// Creates a configuration with defaults: the system's resolver, a limit of 100 MB, and
    /// Chromium's own services refused.
    pub fn new(profile: LineProfile, guard: Arc<Guard>) -> Self {
        let services = service_hosts::BROWSER_SERVICES;
        Self {
            profile,
            clock: None,
            guard,
            resolver: Arc::new(SystemResolver),
            servers: Servers::Real,
            max_bytes: 100_000_000,
            refused_hosts: services.iter().map(|h| (*h).to_owned()).collect(),
            lookup_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(20),
            expects_refusals: false,
            seed: 1,
        }
    }
}

/// An open link. Dropping it closes the listener and resets all connections.
pub struct Link {
    shared: Arc<Shared>,
    closing: watch::Sender<bool>,
    closed: oneshot::Receiver<()>,
}

struct Shared {
    address: SocketAddr,
    clock: Arc<PageClock>,
    guard: Arc<Guard>,
    resolver: Arc<dyn Resolver>,
    servers: Servers,
    lookups: LookupCache,
    backups: Backups,
    log: Arc<ConnectionLog>,
    /// The emulated network; `None` on a line without limits.
    emulator: Option<Arc<NetworkEmulator>>,
    max_bytes: u64,
    over_limit: watch::Sender<bool>,
    refused_hosts: Vec<String>,
    lookup_timeout: Duration,
    connect_timeout: Duration,
    upstream_buffer_bytes: Option<u32>,
    limits_removed: AtomicBool,
    /// Span in which the link was opened, so that its log lines have the audit's fields.
    span: tracing::Span,
    logged_refusals: AtomicUsize,
}

impl Shared {
    /// Returns the receive buffer size for new connections to servers; `None` on a line without
    /// limits.
    fn upstream_buffer_bytes(&self) -> Option<u32> {
        self.upstream_buffer_bytes
            .filter(|_| !self.limits_removed.load(Relaxed))
    }

    /// Returns whether no server is connected to.
    fn is_replayed(&self) -> bool {
        matches!(self.servers, Servers::Replayed(_))
    }

    fn emulator(&self) -> Option<&Arc<NetworkEmulator>> {
        self.emulator
            .as_ref()
            .filter(|_| !self.limits_removed.load(Relaxed))
    }

    /// Logs which address was refused, for the operator only. The number of lines is limited, so
    /// that a page cannot flood the log.
    fn log_refusal(&self, request: &ConnectRequest, refusal: &Refusal) {
        let (host, port, reason) = (&request.host, request.port, refusal.reason.code());
        self.span.in_scope(|| {
            if self.logged_refusals.fetch_add(1, Relaxed) < MAX_LOGGED_REFUSALS {
                tracing::info!(host, port, reason, %refusal, "connection refused by the guard");
            } else {
                tracing::debug!(host, port, reason, %refusal, "connection refused by the guard");
            }
        });
    }
}

/// Maximum time for a client to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of refusals per link that are logged at level info; further ones have level debug.
const MAX_LOGGED_REFUSALS: usize = 20;

impl Link {
    /// Opens a link that listens on a free port of 127.0.0.1.
    pub fn open(config: LinkConfig) -> Result<Self, LinkError> {
        let profile = config.profile.validated()?;
        let clock = match &config.clock {
            Some(clock) => Arc::clone(clock),
            None => Arc::new(PageClock::private().map_err(LinkError::Clock)?),
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LinkError::Thread)?;
        let listener = listen(&runtime).map_err(LinkError::Listen)?;
        let address = listener.local_addr().map_err(LinkError::Listen)?;
        let emulator = if profile.is_unlimited() {
            None
        } else {
            let _runtime = runtime.enter();
            let setup = model_setup(&config, profile);
            let emulator =
                NetworkEmulator::new(setup, Arc::clone(&clock)).map_err(LinkError::Thread)?;
            Some(Arc::new(emulator))
        };
        let shared = Arc::new(Shared {
            address,
            guard: config.guard,
            resolver: match &config.servers {
                Servers::Replayed(replayer) => Arc::new(ReplayedNames(Arc::clone(replayer))),
                Servers::Real | Servers::Recorded(_) => config.resolver,
            },
            servers: config.servers,
            lookups: LookupCache::default(),
            backups: Backups::default(),
            log: Arc::new(ConnectionLog::new(Arc::clone(&clock))),
            clock,
            upstream_buffer_bytes: emulator.as_ref().map(|_| upstream_buffer_bytes(profile)),
            emulator,
            limits_removed: AtomicBool::new(false),
            span: tracing::Span::current(),
            logged_refusals: AtomicUsize::new(if config.expects_refusals {
                MAX_LOGGED_REFUSALS
            } else {
                0
            }),
            max_bytes: config.max_bytes,
            over_limit: watch::Sender::new(false),
            refused_hosts: config.refused_hosts,
            lookup_timeout: config.lookup_timeout,
            connect_timeout: config.connect_timeout,
        });
        let closing = watch::Sender::new(false);
        let (closed_sender, closed) = oneshot::channel();
        let served_clock = Arc::clone(&shared.clock);
        let accept_loop = accept_connections(listener, Arc::clone(&shared), closing.subscribe());
        std::thread::Builder::new()
            .name("link".into())
            .spawn(move || {
                let _registered = ServingThread::register(&served_clock);
                runtime.block_on(accept_loop);
                // Closing must not wait for a lookup that is still running.
                runtime.shutdown_background();
                let _ = closed_sender.send(());
            })
            .map_err(LinkError::Thread)?;
        Ok(Self {
            shared,
            closing,
            closed,
        })
    }

    /// Returns the address of the SOCKS5 proxy.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Ends the emulation: from now on all traffic, including that of open connections, is as fast
    /// as the machine and its own line.
    pub fn remove_limits(&self) {
        if let Some(emulator) = &self.shared.emulator {
            self.shared.limits_removed.store(true, Relaxed);
            emulator.remove_limits();
        }
    }

    /// Returns the records of all requested connections, in order.
    pub fn records(&self) -> Vec<ConnectionRecord> {
        self.shared.log.records()
    }

    /// Returns whether the limit on bytes was exceeded and all connections were reset.
    pub fn over_limit(&self) -> bool {
        *self.shared.over_limit.borrow()
    }

    /// Closes the listener, resets all connections and waits until they have ended.
    pub async fn close(mut self) {
        self.closing.send_replace(true);
        if timeout(CLOSE_TIMEOUT, &mut self.closed).await.is_err() {
            tracing::warn!("link not closed after {CLOSE_TIMEOUT:?}");
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.closing.send_replace(true);
    }
}

fn listen(runtime: &Runtime) -> io::Result<TcpListener> {
    let _runtime = runtime.enter();
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

fn model_setup(config: &LinkConfig, profile: LineProfile) -> Setup {
    Setup {
        down_kbps: profile.down_kbps,
        up_kbps: profile.up_kbps,
        rtt_ns: (profile.rtt_ms * 1e6) as u64,
        loss_share: profile.loss_pct / 100.0,
        seed: config.seed,
    }
}

/// Returns the receive buffer size for connections to servers: small enough that servers experience
/// the line's speed, large enough to fill the line from a server that is really 150 ms away.
fn upstream_buffer_bytes(profile: LineProfile) -> u32 {
    let kbps = profile.down_kbps.unwrap_or(100_000.0);
    let bytes_in_150_ms = kbps / 8.0 * 150.0;
    (bytes_in_150_ms as u32)
        .saturating_add(32 * 1024)
        .clamp(64 * 1024, 4 << 20)
}

async fn accept_connections(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut closing: watch::Receiver<bool>,
) {
    let mut tasks = JoinSet::new();
    if let Some(emulator) = shared.emulator.clone() {
        tasks.spawn(async move {
            if let Err(error) = emulator.run().await {
                tracing::error!(%error, "timer of the link failed");
            }
        });
    }
    loop {
        tokio::select! {
            _ = closing.changed() => {
                // No new connections while the open ones are closed.
                drop(listener);
                return tasks.shutdown().await;
            }
            Some(_) = tasks.join_next() => {}
            result = listener.accept() => match result {
                Ok((client, _)) => {
                    let pending = PendingConnection::start(&shared);
                    tasks.spawn(serve(Arc::clone(&shared), client, pending));
                }
                Err(error) => {
                    // Probably out of file descriptors, some of which will soon be free again.
                    tracing::warn!(%error, "link failed to accept a connection");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            },
        }
    }
}

async fn serve(shared: Arc<Shared>, mut client: TcpStream, pending: PendingConnection) {
    let read_request = async {
        client.set_nodelay(true)?;
        socks::accept(&mut client).await
    };
    let Ok(Ok(Some(request))) = timeout(REQUEST_TIMEOUT, read_request).await else {
        return;
    };
    let entry = shared.log.add(&request.host, request.port);
    let mut over_limit = shared.over_limit.subscribe();
    let refusal = if *over_limit.borrow_and_update() {
        Some(ConnectionOutcome::OverLimit)
    } else if service_hosts::matches(&shared.refused_hosts, &request.host) {
        Some(ConnectionOutcome::BrowserService)
    } else {
        None
    };
    let result = match refusal {
        Some(outcome) => Err(outcome),
        None => pending.dial(&shared, &request, &entry).await,
    };
    let dialed = match result {
        Ok(dialed) => dialed,
        Err(outcome) => {
            if let ConnectionOutcome::Blocked(refusal) = &outcome {
                shared.log_refusal(&request, refusal);
            } else {
                tracing::debug!(host = %request.host, port = request.port, ?outcome, "not connected");
            }
            let reply = outcome.reply();
            entry.set_outcome(outcome);
            // The client may have closed the connection; its record is complete in any case.
            let _ = socks::send_reply(&mut client, reply).await;
            return;
        }
    };
    entry.set_outcome(ConnectionOutcome::Connected);
    let meter = Meter {
        entry: Arc::clone(&entry),
        log: Arc::clone(&shared.log),
        max_bytes: shared.max_bytes,
        over_limit: shared.over_limit.clone(),
    };
    let end = tokio::select! {
        end = relay(&shared, &mut client, &dialed, &meter) => end,
        _ = over_limit.wait_for(|over| *over) => RelayEnd::Reset,
    };
    entry.end();
    if end == RelayEnd::Reset {
        // With a linger time of zero, closing resets the connection.
        let _ = client.set_zero_linger();
        let _ = dialed.stream.set_zero_linger();
    }
}

async fn relay(
    shared: &Shared,
    client: &mut TcpStream,
    dialed: &Dialed,
    meter: &Meter,
) -> RelayEnd {
    let emulated = shared
        .emulator()
        .map(|emulator| emulator.establish(dialed.rtt));
    let reply = socks::Reply::Succeeded;
    if socks::send_reply(client, reply).await.is_err() {
        return RelayEnd::Reset;
    }
    relay::relay(emulated.as_ref(), client, dialed, meter).await
}
