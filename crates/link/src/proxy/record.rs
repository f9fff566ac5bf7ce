//! What became of every connection the browser asked for. The browser itself cannot tell: it
//! reports every failure behind a SOCKS proxy as the same error.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::guard::Refusal;

/// How an attempt to connect ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Still on its way.
    Pending,
    Connected,
    /// The guard said no.
    Blocked(Refusal),
    /// A host that only the browser's own services use.
    BrowserService,
    NameNotFound,
    /// The name could not be looked up in time.
    LookupTimedOut,
    ConnectionRefused,
    ConnectTimedOut,
    /// Nothing leads there.
    Unreachable,
    /// The link had already carried as much as it may.
    OverLimit,
    /// Anything else the operating system said.
    Failed(String),
}

/// One connection that was asked for. Times count from the opening of the link.
#[derive(Debug, Clone)]
pub struct Record {
    pub host: String,
    pub port: u16,
    /// The address connected to, or last tried.
    pub address: Option<SocketAddr>,
    pub outcome: Outcome,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub asked: Duration,
    /// When the outcome was known to the browser.
    pub decided: Option<Duration>,
    pub ended: Option<Duration>,
}

/// Beyond this many attempts only the newest are kept: a page must not fill our memory.
const MAX_RECORDS: usize = 10_000;

#[derive(Debug)]
pub(super) struct Ledger {
    opened: Instant,
    entries: Mutex<std::collections::VecDeque<Arc<Entry>>>,
    pub(super) bytes_up: AtomicU64,
    pub(super) bytes_down: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Entry {
    opened: Instant,
    host: String,
    port: u16,
    asked: Duration,
    pub(super) bytes_up: AtomicU64,
    pub(super) bytes_down: AtomicU64,
    fate: Mutex<Fate>,
}

#[derive(Debug)]
struct Fate {
    address: Option<SocketAddr>,
    outcome: Outcome,
    decided: Option<Duration>,
    ended: Option<Duration>,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            opened: Instant::now(),
            entries: Mutex::default(),
            bytes_up: AtomicU64::new(0),
            bytes_down: AtomicU64::new(0),
        }
    }

    pub(super) fn ask(&self, host: &str, port: u16) -> Arc<Entry> {
        let entry = Arc::new(Entry {
            opened: self.opened,
            host: host.to_owned(),
            port,
            asked: self.opened.elapsed(),
            bytes_up: AtomicU64::new(0),
            bytes_down: AtomicU64::new(0),
            fate: Mutex::new(Fate {
                address: None,
                outcome: Outcome::Pending,
                decided: None,
                ended: None,
            }),
        });
        let mut entries = lock(&self.entries);
        if entries.len() == MAX_RECORDS {
            entries.pop_front();
        }
        entries.push_back(Arc::clone(&entry));
        entry
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes_up.load(Relaxed) + self.bytes_down.load(Relaxed)
    }

    pub(super) fn records(&self) -> Vec<Record> {
        lock(&self.entries).iter().map(|e| e.record()).collect()
    }

    /// The last attempt that was decided, else the last that is pending.
    pub(super) fn outcome_for(&self, host: &str, port: u16) -> Option<Outcome> {
        let entries = lock(&self.entries);
        let mut asked = entries.iter().rev().filter(|e| e.is_for(host, port));
        let last = asked.next().map(|e| e.outcome())?;
        if last != Outcome::Pending {
            return Some(last);
        }
        let decided = asked.map(|e| e.outcome()).find(|o| *o != Outcome::Pending);
        Some(decided.unwrap_or(Outcome::Pending))
    }
}

impl Entry {
    pub(super) fn trying(&self, address: SocketAddr) {
        lock(&self.fate).address = Some(address);
    }

    pub(super) fn decide(&self, outcome: Outcome) {
        let now = self.opened.elapsed();
        let mut fate = lock(&self.fate);
        if outcome != Outcome::Connected {
            fate.ended = Some(now);
        }
        fate.outcome = outcome;
        fate.decided = Some(now);
    }

    pub(super) fn end(&self) {
        lock(&self.fate).ended = Some(self.opened.elapsed());
    }

    fn outcome(&self) -> Outcome {
        lock(&self.fate).outcome.clone()
    }

    fn is_for(&self, host: &str, port: u16) -> bool {
        let plain = |h: &str| {
            let h = h.trim_start_matches('[').trim_end_matches(']');
            h.trim_end_matches('.').to_ascii_lowercase()
        };
        self.port == port && plain(&self.host) == plain(host)
    }

    fn record(&self) -> Record {
        let fate = lock(&self.fate);
        Record {
            host: self.host.clone(),
            port: self.port,
            address: fate.address,
            outcome: fate.outcome.clone(),
            bytes_up: self.bytes_up.load(Relaxed),
            bytes_down: self.bytes_down.load(Relaxed),
            asked: self.asked,
            decided: fate.decided,
            ended: fate.ended,
        }
    }
}

/// Nothing that holds these locks can leave what they guard half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
