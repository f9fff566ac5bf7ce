//! The parts that the service is built from: stores, catalog, clock, limits, and its optional
//! parts.

use std::{sync::Arc, time::Duration};

use plumbline_catalog::Catalog;
use plumbline_store::{AgentStore, Blobs, FailureLimit, PageStore, Store};
use tokio::sync::watch;

use crate::{
    dispatch::Dispatcher,
    field::FieldSource,
    logo::Logo,
    metrics::{BrowserCounts, Metrics},
    phases::AuditPhases,
    time::{Clock, system_time},
    uploads::Uploads,
    vault::Vault,
};

/// The dependencies and settings of the service.
#[derive(Clone)]
pub struct App {
    /// Accounts, audits and reports.
    pub store: Arc<dyn Store>,
    /// The devices, networks and locations that can be chosen.
    pub catalog: Arc<Catalog>,
    /// Decides which hosts may be audited.
    pub may_visit: MayVisit,
    /// The evidence of audits, by attempt; `None` if evidence is not stored.
    pub bundles: Option<Arc<dyn Blobs>>,
    /// The current time.
    pub clock: Clock,
    /// The limits on what clients may request.
    pub limits: Limits,
    /// The web pages; without them, only the API is served.
    pub pages: Option<Pages>,
    /// The interface for agents on other machines; without it, only an agent in the same process
    /// performs audits.
    pub agents: Option<Agents>,
    /// The counters that `/metrics` shows.
    pub metrics: Arc<Metrics>,
    /// The bearer token that `/metrics` requires; without one it is public.
    pub metrics_token: Option<String>,
    /// Counts the browsers of the agent in this process, if there is one.
    pub browsers: Option<BrowserCounter>,
    /// The field data for the history page of a URL.
    pub field: Option<Arc<dyn FieldSource>>,
    /// The secrets of clients; `None` if the service has no key for them.
    pub vault: Option<Arc<Vault>>,
    /// Turns true when the service shuts down; long polls are then answered at once.
    pub stopping: watch::Receiver<bool>,
}

/// Returns the number of browsers since the process started.
pub type BrowserCounter = Arc<dyn Fn() -> BrowserCounts + Send + Sync>;

/// Decides whether a host may be audited at all, without resolving it. Takes the host as a URL
/// writes it (lower case, punycode, IPv6 in brackets) and the port.
pub type MayVisit = Arc<dyn Fn(&str, u16) -> bool + Send + Sync>;

/// The parts that serve agents on other machines.
#[derive(Clone)]
pub struct Agents {
    /// Leases audits to agents and accepts their reports.
    pub dispatcher: Arc<Dispatcher>,
    /// The tokens and the presence of agents.
    pub store: Arc<dyn AgentStore>,
    /// Unfinished uploads of evidence.
    pub uploads: Uploads,
}

/// The parts that serve web pages.
#[derive(Clone)]
pub struct Pages {
    /// Sessions, shares, and lists of audits.
    pub store: Arc<dyn PageStore>,
    /// Packed report media, by attempt.
    pub media: Arc<dyn Blobs>,
    /// The phases of running audits.
    pub phases: AuditPhases,
    /// The operator's logo, for printed reports.
    pub logo: Option<Arc<Logo>>,
}

impl App {
    /// Creates an app with the system's clock, the default limits and no optional parts.
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
            vault: None,
            stopping: watch::channel(false).1,
        }
    }
}

/// The limits on what one client may request.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Starts per key and minute, in bursts up to the whole; 0 means no limit. A batch counts each
    /// of its audits.
    pub starts_per_minute: u32,
    /// Other requests per key and minute; 0 means no limit.
    pub requests_per_minute: u32,
    /// Wrong keys per address and minute; 0 means no limit.
    pub failed_keys_per_minute: u32,
    /// Whether a trusted proxy is in front, which sets `X-Forwarded-For` and serves browsers over
    /// HTTPS.
    pub behind_proxy: bool,
    /// Whether the server itself accepts HTTPS and nothing else.
    pub serves_https: bool,
    /// Waiting and running audits of one account; 0 means no limit.
    pub unfinished_per_account: u64,
    /// Audits of one account that end without measurements, per hour; 0 means no limit. They are
    /// refunded, so credits do not limit them.
    pub failed_audits_per_hour: u32,
    /// Audits of one batch.
    pub batch_audits: usize,
    /// The size of a request body.
    pub body_bytes: usize,
    /// The length of a URL.
    pub url_chars: usize,
    /// How long a client may take to send a body.
    pub body_read: Duration,
    /// How long any response may take, including the arrival of the request's body.
    pub answer: Duration,
    /// The number of ordinary requests that are served concurrently; probes and agents have
    /// reserves of their own. One address may use half of it, and the long polls and event streams
    /// of one key or one address a quarter of it.
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
    /// Whether browsers use HTTPS.
    pub(crate) fn uses_https(&self) -> bool {
        self.behind_proxy || self.serves_https
    }

    /// The limit on unfinished audits of an account, if there is one.
    pub(crate) fn unfinished_audits(&self) -> Option<u64> {
        Some(self.unfinished_per_account).filter(|at_most| *at_most > 0)
    }

    /// The limit on failed audits of an account, if there is one.
    pub(crate) fn failed_audits(&self) -> Option<FailureLimit> {
        let limit = FailureLimit {
            max_failures: self.failed_audits_per_hour,
            window: Duration::from_secs(60 * 60),
        };
        Some(limit).filter(|limit| limit.max_failures > 0)
    }
}
