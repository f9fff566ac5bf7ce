//! The HTTP face of the service: the contract's operations, those added to it, an operator's probes
//! and figures, agents' steps, and the pages for people.
//!
//! What there is to ask for is listed in `router.rs`; what can go wrong, and how it is answered, in
//! `errors.rs`; `api/` has one file per resource. Everything about one request that is not its
//! subject (id, deadline, panic, log line) is in `door.rs`; everything about one connection (slow,
//! rude and malformed clients) in `serve.rs`, `connections.rs` and `wire.rs`; how many requests are
//! served at a time, and how many of one client, in `places.rs`. What clients are told about all this is
//! in `openapi/`. `webhooks.rs` is a loop of its own beside them.

mod agents;
mod answer;
mod api;
mod auth;
mod connections;
mod door;
mod errors;
mod field;
mod held;
mod leftover;
mod metrics;
mod notes;
mod openapi;
mod pages;
mod peer;
mod places;
mod query;
mod rate;
mod router;
mod serve;
pub mod summaries;
mod target;
mod time;
mod tls;
mod webhooks;
mod wire;

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use plumbline_catalog::Catalog;
use plumbline_store::{Blobs, FailureLimit, Store, Timestamp};
use tokio::sync::watch;

pub use agents::{
    Agents, Asker, Beside, DEFAULT_LEASE, Desk, DeskParts, EMBEDDED, TokenScope, Uploads,
};
pub use field::FieldSource;
pub use metrics::{AuditFigures, BrowserCounts, Metrics};
pub use pages::{Pages, Phases};
pub use router::router;
pub use serve::{Patience, serve, serve_with};
pub use tls::{TlsError, TlsFiles};
pub use webhooks::{
    Post, WEBHOOK_HEAD_TIMEOUT, WEBHOOK_RETRIES, WEBHOOK_TIMEOUT, WebhookRequest, deliver_webhooks,
};

/// Everything the service answers from.
#[derive(Clone)]
pub struct App {
    pub store: Arc<dyn Store>,
    pub catalog: Arc<Catalog>,
    pub may_visit: MayVisit,
    /// The evidence of audits, by attempt; none where it is not kept.
    pub bundles: Option<Arc<dyn Blobs>>,
    pub clock: Clock,
    pub limits: Limits,
    /// Without, there is only the API.
    pub pages: Option<Pages>,
    /// Without, only an agent in the same process does audits.
    pub agents: Option<Agents>,
    pub metrics: Arc<Metrics>,
    /// Who reads the metrics must present it as a bearer token; without one anybody may.
    pub metrics_token: Option<String>,
    pub browsers: Option<CountBrowsers>,
    /// What visitors met, for the history of an address.
    pub field: Option<Arc<dyn FieldSource>>,
    /// Turns true when the service is to end: whoever waits on purpose is answered then.
    pub stopping: watch::Receiver<bool>,
}

/// How many browsers there were.
pub type CountBrowsers = Arc<dyn Fn() -> BrowserCounts + Send + Sync>;

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
            agents: None,
            metrics: Arc::default(),
            metrics_token: None,
            browsers: None,
            field: None,
            stopping: watch::channel(false).1,
        }
    }
}

/// What one client may ask for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Starts per key and minute, in bursts up to the whole; 0 is no limit. A batch counts as many.
    pub starts_per_minute: u32,
    /// Other requests per key and minute; 0 is no limit.
    pub requests_per_minute: u32,
    /// Wrong keys per address and minute; 0 is no limit.
    pub failed_keys_per_minute: u32,
    /// Whether a proxy of ours stands in front, which wrote `X-Forwarded-For` and speaks HTTPS with
    /// browsers.
    pub behind_proxy: bool,
    /// Whether the server itself accepts HTTPS and nothing else.
    pub serves_https: bool,
    /// Audits of one account that wait or run; 0 is no limit.
    pub unfinished_per_account: u64,
    /// Audits of one account that end without measurements, per hour; 0 is no limit. They are
    /// refunded, so credits do not bound them.
    pub failed_audits_per_hour: u32,
    /// Audits of one batch.
    pub batch_audits: usize,
    pub body_bytes: usize,
    pub url_chars: usize,
    /// How long a client may take to send a body.
    pub body_read: Duration,
    /// How long any answer may take, the body's arrival included.
    pub answer: Duration,
    /// How many ordinary requests are served at a time; probes and agents have places beside them.
    /// One address may hold half of the places, and the waits and event streams of one key or one
    /// address a quarter of them.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            starts_per_minute: 600,
            requests_per_minute: 60_000,
            failed_keys_per_minute: 300,
            behind_proxy: false,
            serves_https: false,
            unfinished_per_account: 10_000,
            failed_audits_per_hour: 500,
            batch_audits: 500,
            body_bytes: 64 * 1024,
            url_chars: 2048,
            body_read: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            connections: 2048,
        }
    }
}

impl Limits {
    pub(crate) fn unfinished_audits(&self) -> Option<u64> {
        Some(self.unfinished_per_account).filter(|at_most| *at_most > 0)
    }

    pub(crate) fn failed_audits(&self) -> Option<FailureLimit> {
        let limit = FailureLimit {
            max_failures: self.failed_audits_per_hour,
            window: Duration::from_secs(60 * 60),
        };
        Some(limit).filter(|limit| limit.max_failures > 0)
    }
}

fn system_time() -> Timestamp {
    // A clock before 1970 is read as 1970: keys then count as not expired, and nothing breaks.
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(0).plus(since_epoch)
}
