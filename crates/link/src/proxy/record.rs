//! Records of all connections that the browser requested. The browser itself does not know how they
//! ended: it reports every failure behind a SOCKS proxy as the same error.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;

use plumbline_clock::{PageClock, PageTime};

use crate::guard::Refusal;

/// How an attempt to connect ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionOutcome {
    /// The attempt has not ended yet.
    Pending,
    Connected,
    /// The guard refused the host or one of its addresses.
    Blocked(Refusal),
    /// The host is used only by the browser's own services.
    BrowserService,
    NameNotFound,
    /// The name could not be looked up in time.
    LookupTimedOut,
    ConnectionRefused,
    ConnectTimedOut,
    /// There is no route to the host.
    Unreachable,
    /// The link had already reached its limit of bytes.
    OverLimit,
    /// Any other error of the operating system.
    Failed(String),
}

/// One connection that the browser requested. Times are measured from the opening of the link.
#[derive(Debug, Clone)]
pub struct ConnectionRecord {
    pub host: String,
    pub port: u16,
    /// The address that was connected to, or tried last.
    pub address: Option<SocketAddr>,
    pub outcome: ConnectionOutcome,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub requested_at: Duration,
    /// Time at which the outcome was reported to the browser.
    pub decided_at: Option<Duration>,
    pub ended_at: Option<Duration>,
}

/// Maximum number of records; older ones are dropped, so that a page cannot exhaust the memory.
const MAX_RECORDS: usize = 10_000;

/// The connections of a link, and the number of bytes that they have transferred.
#[derive(Debug)]
pub(super) struct ConnectionLog {
    clock: Arc<PageClock>,
    opened_at: PageTime,
    entries: Mutex<VecDeque<Arc<ConnectionLogEntry>>>,
    /// Payload of all connections in both directions.
    pub(super) bytes: AtomicU64,
}

#[derive(Debug)]
pub(super) struct ConnectionLogEntry {
    clock: Arc<PageClock>,
    link_opened_at: PageTime,
    host: String,
    port: u16,
    requested_at: Duration,
    pub(super) bytes_up: AtomicU64,
    pub(super) bytes_down: AtomicU64,
    state: Mutex<RecordState>,
}

#[derive(Debug)]
struct RecordState {
    address: Option<SocketAddr>,
    outcome: ConnectionOutcome,
    decided_at: Option<Duration>,
    ended_at: Option<Duration>,
}

impl ConnectionLog {
    pub(super) fn new(clock: Arc<PageClock>) -> Self {
        Self {
            opened_at: clock.now(),
            clock,
            entries: Mutex::default(),
            bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn add(&self, host: &str, port: u16) -> Arc<ConnectionLogEntry> {
        let entry = Arc::new(ConnectionLogEntry {
            clock: Arc::clone(&self.clock),
            link_opened_at: self.opened_at,
            host: host.to_owned(),
            port,
            requested_at: self.clock.now() - self.opened_at,
            bytes_up: AtomicU64::new(0),
            bytes_down: AtomicU64::new(0),
            state: Mutex::new(RecordState {
                address: None,
                outcome: ConnectionOutcome::Pending,
                decided_at: None,
                ended_at: None,
            }),
        });
        let mut entries = self.entries.lock();
        if entries.len() == MAX_RECORDS {
            entries.pop_front();
        }
        entries.push_back(Arc::clone(&entry));
        entry
    }

    pub(super) fn records(&self) -> Vec<ConnectionRecord> {
        self.entries.lock().iter().map(|e| e.record()).collect()
    }
}

impl ConnectionLogEntry {
    /// Returns the page time since the link was opened.
    fn elapsed(&self) -> Duration {
        self.clock.now() - self.link_opened_at
    }

    pub(super) fn set_address(&self, address: SocketAddr) {
        self.state.lock().address = Some(address);
    }

    pub(super) fn set_outcome(&self, outcome: ConnectionOutcome) {
        let now = self.elapsed();
        let mut state = self.state.lock();
        if outcome != ConnectionOutcome::Connected {
            state.ended_at = Some(now);
        }
        state.outcome = outcome;
        state.decided_at = Some(now);
    }

    pub(super) fn end(&self) {
        self.state.lock().ended_at = Some(self.elapsed());
    }

    fn record(&self) -> ConnectionRecord {
        let state = self.state.lock();
        ConnectionRecord {
            host: self.host.clone(),
            port: self.port,
            address: state.address,
            outcome: state.outcome.clone(),
            bytes_up: self.bytes_up.load(Relaxed),
            bytes_down: self.bytes_down.load(Relaxed),
            requested_at: self.requested_at,
            decided_at: state.decided_at,
            ended_at: state.ended_at,
        }
    }
}
