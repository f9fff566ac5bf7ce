//! The HTTP face of the service: the six operations of the contract, the whole
//! report, the two probes, and the pages for people.
//!
//! What there is to ask for is listed in `router.rs`; what can go wrong, and how it is answered, in
//! `errors.rs`; `api/` has one file per resource. Everything about one request that is not its
//! subject (id, deadline, panic, log line) is in `door.rs`; everything about one connection (slow,
//! rude and malformed clients) in `serve.rs` and `wire.rs`.

mod answer;
mod api;
mod auth;
mod door;
mod errors;
mod leftover;
mod pages;
mod rate;
mod router;
mod serve;
mod target;
mod wire;

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use plumbline_catalog::Catalog;
use plumbline_store::{FileBlobs, Store, Timestamp};

pub use pages::{Pages, Phases};
pub use router::router;
pub use serve::{Patience, serve, serve_with};

/// Everything the service answers from.
#[derive(Clone)]
pub struct App {
    pub store: Arc<dyn Store>,
    pub catalog: Arc<Catalog>,
    pub may_visit: MayVisit,
    /// The evidence of audits, by audit id; none where it is not kept.
    pub bundles: Option<FileBlobs>,
    pub clock: Clock,
    pub limits: Limits,
    /// Without, there is only the API.
    pub pages: Option<Pages>,
}

/// Whether a host may be audited at all, judged without resolving it. Takes the host as a URL
/// writes it (lower case, punycode, IPv6 in brackets) and the port.
pub type MayVisit = Arc<dyn Fn(&str, u16) -> bool + Send + Sync>;

/// What time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

impl App {
    /// With the system's clock and the default limits.
    pub fn new(store: Arc<dyn Store>, catalog: Arc<Catalog>, may_visit: MayVisit) -> Self {
        Self {
            store,
            catalog,
            may_visit,
            bundles: None,
            clock: Arc::new(system_time),
            limits: Limits::default(),
            pages: None,
        }
    }
}

/// What one client may ask for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Starts per key and minute, in bursts up to the whole; 0 is no limit.
    pub starts_per_minute: u32,
    pub body_bytes: usize,
    pub url_chars: usize,
    /// How long a client may take to send a body.
    pub body_read: Duration,
    /// How long any answer may take, the body's arrival included.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            starts_per_minute: 600,
            body_bytes: 64 * 1024,
            url_chars: 2048,
            body_read: Duration::from_secs(10),
            answer: Duration::from_secs(30),
        }
    }
}

fn system_time() -> Timestamp {
    // A clock before 1970 is read as 1970: keys then count as not expired, and nothing breaks.
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(0).plus(since_epoch)
}
