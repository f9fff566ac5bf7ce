//! The link: a SOCKS5 proxy of one visit, with the network's model and the guard inside.
//!
//! Everything runs on one thread of the link's own: a packet that is due is read, delayed and
//! written without waiting for other threads, which on a busy machine is most of the error.
//!
//! One task per connection: it reads the request (`socks`), finds and connects the host
//! (`dial`, where the guard decides) and moves the bytes (`carry`) over the `wire`.

mod bytes_in_order;
mod carry;
mod dial;
mod direct;
mod meter;
mod record;
mod resolve;
mod service_hosts;
mod socks;
mod spare;
mod timer;
mod wire;

#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use direct::connect_guarded;
pub use record::{Outcome, Record};
pub use resolve::{Resolution, Resolver, SystemResolver};

use carry::Ending;
use dial::Wish;
use meter::Meter;
use record::Ledger;
use resolve::Names;
use socks::Request;
use spare::Spares;
use wire::Wire;

use crate::model::{Algorithm, Setup};
use crate::{Guard, LineProfile, LinkError, Refusal};

/// What a link is opened with.
#[derive(Clone)]
pub struct LinkConfig {
    pub profile: LineProfile,
    pub guard: Arc<Guard>,
    pub resolver: Arc<dyn Resolver>,
    /// Payload in both directions; when it is crossed everything is cut.
    pub max_bytes: u64,
    /// Hosts that only the browser's own services use; a leading dot stands for all hosts below.
    pub refused_hosts: Vec<String>,
    pub lookup_timeout: Duration,
    pub connect_timeout: Duration,
    /// How the emulated hosts send.
    pub algorithm: Algorithm,
    /// For losses and the senders' own dice: the same seed, the same network.
    pub seed: u64,
}

impl LinkConfig {
    /// The defaults: the machine's resolver, 100 MB, Chromium's own services refused.
    pub fn new(profile: LineProfile, guard: Arc<Guard>) -> Self {
        let services = service_hosts::BROWSER_SERVICES;
        Self {
            profile,
            guard,
            resolver: Arc::new(SystemResolver),
            max_bytes: 100_000_000,
            refused_hosts: services.iter().map(|h| (*h).to_owned()).collect(),
            lookup_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(20),
            algorithm: Algorithm::default(),
            seed: 1,
        }
    }
}

/// Bytes of payload that a link has carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    pub up: u64,
    pub down: u64,
}

/// An open link. Dropping it closes the listener and cuts every connection.
pub struct Link {
    shared: Arc<Shared>,
    closing: watch::Sender<bool>,
    closed: oneshot::Receiver<()>,
}

struct Shared {
    address: SocketAddr,
    guard: Arc<Guard>,
    resolver: Arc<dyn Resolver>,
    names: Names,
    spares: Spares,
    ledger: Arc<Ledger>,
    /// `None` on a line without limits.
    wire: Option<Arc<Wire>>,
    max_bytes: u64,
    over_limit: watch::Sender<bool>,
    refused_hosts: Vec<String>,
    lookup_timeout: Duration,
    connect_timeout: Duration,
    upstream_buffer_bytes: Option<u32>,
    lifted: AtomicBool,
    /// What the link was opened in, so that the lines it logs carry the audit's fields.
    span: tracing::Span,
    logged_refusals: AtomicUsize,
}

impl Shared {
    /// For connections from now on: none on a line without limits.
    fn upstream_buffer_bytes(&self) -> Option<u32> {
        self.upstream_buffer_bytes
            .filter(|_| !self.lifted.load(Relaxed))
    }

    fn wire(&self) -> Option<&Arc<Wire>> {
        self.wire.as_ref().filter(|_| !self.lifted.load(Relaxed))
    }

    /// Tells the operator, and nobody else, which address was refused. A page must not fill the log.
    fn log_refusal(&self, request: &Request, refusal: &Refusal) {
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

/// A client that does not say what it wants is gone or none of ours.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How many refusals of one link are logged for every operator to see; the rest are for debugging.
const MAX_LOGGED_REFUSALS: usize = 20;

impl Link {
    /// Listens on a free port of 127.0.0.1.
    pub async fn open(config: LinkConfig) -> Result<Self, LinkError> {
        let profile = config.profile.checked()?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LinkError::Thread)?;
        let listener = listen(&runtime).map_err(LinkError::Listen)?;
        let address = listener.local_addr().map_err(LinkError::Listen)?;
        let wire = if profile.is_unlimited() {
            None
        } else {
            let _within = runtime.enter();
            let wire = Wire::new(setup(&config, profile)).map_err(LinkError::Thread)?;
            Some(Arc::new(wire))
        };
        let shared = Arc::new(Shared {
            address,
            guard: config.guard,
            resolver: config.resolver,
            names: Names::default(),
            spares: Spares::default(),
            ledger: Arc::new(Ledger::new()),
            upstream_buffer_bytes: wire.as_ref().map(|_| upstream_buffer_bytes(profile)),
            wire,
            lifted: AtomicBool::new(false),
            span: tracing::Span::current(),
            logged_refusals: AtomicUsize::new(0),
            max_bytes: config.max_bytes,
            over_limit: watch::Sender::new(false),
            refused_hosts: config.refused_hosts,
            lookup_timeout: config.lookup_timeout,
            connect_timeout: config.connect_timeout,
        });
        let closing = watch::Sender::new(false);
        let (ended, closed) = oneshot::channel();
        let accepting = accept(listener, Arc::clone(&shared), closing.subscribe());
        std::thread::Builder::new()
            .name("link".into())
            .spawn(move || {
                come_first();
                runtime.block_on(accepting);
                // A name that is still being looked up must not hold anybody.
                runtime.shutdown_background();
                let _ = ended.send(());
            })
            .map_err(LinkError::Thread)?;
        Ok(Self {
            shared,
            closing,
            closed,
        })
    }

    /// Where the browser is to find the proxy.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Ends the emulation: from now on everything passes as fast as the machine and its own line
    /// let it, connections that are open included.
    pub fn remove_limits(&self) {
        if let Some(wire) = &self.shared.wire {
            self.shared.lifted.store(true, Relaxed);
            wire.remove_limits();
        }
    }

    /// How the last attempt to reach this host and port ended; `None` if nobody tried.
    pub fn outcome_for(&self, host: &str, port: u16) -> Option<Outcome> {
        self.shared.ledger.outcome_for(host, port)
    }

    /// Every connection that was asked for, in order.
    pub fn records(&self) -> Vec<Record> {
        self.shared.ledger.records()
    }

    pub fn bytes(&self) -> Traffic {
        let ledger = &self.shared.ledger;
        Traffic {
            up: ledger.bytes_up.load(Relaxed),
            down: ledger.bytes_down.load(Relaxed),
        }
    }

    /// Whether the cap on bytes was crossed and everything cut.
    pub fn over_limit(&self) -> bool {
        *self.shared.over_limit.borrow()
    }

    /// Closes the listener, cuts every connection and waits until they are gone.
    pub async fn close(mut self) {
        self.closing.send_replace(true);
        if timeout(CLOSE_TIMEOUT, &mut self.closed).await.is_err() {
            tracing::warn!("the link did not close in {CLOSE_TIMEOUT:?}");
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.closing.send_replace(true);
    }
}

fn listen(runtime: &Runtime) -> io::Result<TcpListener> {
    let _within = runtime.enter();
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Asks for this thread to be preferred: it needs little time, but when it is due. Only a
/// privileged process gets it; without, the link works all the same.
fn come_first() {
    const NICENESS: i32 = -10;
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "the link runs at ordinary priority");
    }
}

fn setup(config: &LinkConfig, profile: LineProfile) -> Setup {
    Setup {
        down_kbps: profile.down_kbps,
        up_kbps: profile.up_kbps,
        rtt_ns: (profile.rtt_ms * 1e6) as u64,
        loss_share: profile.loss_pct / 100.0,
        algorithm: config.algorithm,
        seed: config.seed,
    }
}

/// Small enough that servers feel the line's pace, large enough to fill the line from a server
/// that is really 150 ms away.
fn upstream_buffer_bytes(profile: LineProfile) -> u32 {
    let kbps = profile.down_kbps.unwrap_or(100_000.0);
    let in_150_ms = kbps / 8.0 * 150.0;
    (in_150_ms as u32)
        .saturating_add(32 * 1024)
        .clamp(64 * 1024, 4 << 20)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut closing: watch::Receiver<bool>) {
    let mut serving = JoinSet::new();
    if let Some(wire) = shared.wire.clone() {
        serving.spawn(async move {
            if let Err(error) = wire.drive().await {
                tracing::error!(%error, "the link's timer failed");
            }
        });
    }
    loop {
        tokio::select! {
            _ = closing.changed() => {
                // First nobody comes in any more, then everybody leaves.
                drop(listener);
                return serving.shutdown().await;
            }
            Some(_) = serving.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    let wish = Wish::now(&shared);
                    serving.spawn(serve(Arc::clone(&shared), client, wish));
                }
                Err(error) => {
                    // Most likely out of file descriptors: some will be free again soon.
                    tracing::warn!(%error, "the link could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            },
        }
    }
}

async fn serve(shared: Arc<Shared>, mut client: TcpStream, wish: Wish) {
    let asked = async {
        client.set_nodelay(true)?;
        socks::accept(&mut client).await
    };
    let Ok(Ok(Some(request))) = timeout(REQUEST_TIMEOUT, asked).await else {
        return;
    };
    let entry = shared.ledger.ask(&request.host, request.port);
    let mut over_limit = shared.over_limit.subscribe();
    let refused = if *over_limit.borrow_and_update() {
        Some(Outcome::OverLimit)
    } else if service_hosts::matches(&shared.refused_hosts, &request.host) {
        Some(Outcome::BrowserService)
    } else {
        None
    };
    let dialed = match refused {
        Some(outcome) => Err(outcome),
        None => wish.dial(&shared, &request, &entry).await,
    };
    let dialed = match dialed {
        Ok(dialed) => dialed,
        Err(outcome) => {
            if let Outcome::Blocked(refusal) = &outcome {
                shared.log_refusal(&request, refusal);
            } else {
                tracing::debug!(host = %request.host, port = request.port, ?outcome, "not connected");
            }
            let reply = outcome.reply();
            entry.decide(outcome);
            // The client may have lost patience; its record is complete without it.
            let _ = socks::reply(&mut client, reply).await;
            return;
        }
    };
    entry.decide(Outcome::Connected);
    let meter = Meter {
        entry: Arc::clone(&entry),
        ledger: Arc::clone(&shared.ledger),
        max_bytes: shared.max_bytes,
        over_limit: shared.over_limit.clone(),
    };
    let mut server = dialed.stream;
    let ending = tokio::select! {
        ending = carry(&shared, &mut client, &mut server, dialed.rtt, &meter) => ending,
        _ = over_limit.wait_for(|over| *over) => Ending::Broken,
    };
    entry.end();
    if ending == Ending::Broken {
        // Closing without lingering resets the connection.
        let _ = client.set_zero_linger();
        let _ = server.set_zero_linger();
    }
}

async fn carry(
    shared: &Shared,
    client: &mut TcpStream,
    server: &mut TcpStream,
    rtt: Duration,
    meter: &Meter,
) -> Ending {
    let carrier = shared.wire().map(|wire| wire.establish(rtt));
    if socks::reply(client, socks::Reply::Succeeded).await.is_err() {
        return Ending::Broken;
    }
    match carrier {
        Some(carrier) => carry::over_the_wire(&carrier, client, server, meter).await,
        None => carry::straight_across(client, server, meter).await,
    }
}
