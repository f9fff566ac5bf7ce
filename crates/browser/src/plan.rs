use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plumbline_catalog::Device;
use plumbline_seam::{Consent, Expectation, SavedState, Steps, View, VisitState};

use crate::{BrowserVersion, Throttle, steps};

/// How the browser reaches the internet.
#[derive(Debug, Clone, PartialEq)]
pub enum NetworkPath {
    /// A direct connection through the network of the host.
    Direct,
    /// A connection through this SOCKS5 proxy, including name resolution. The browser should have
    /// been started with [`crate::LaunchOptions::only_through_proxy`]; otherwise pages cannot
    /// connect in advance.
    Proxy(SocketAddr),
}

/// The artifacts that a visit gathers when the page is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gathering {
    /// All artifacts.
    Everything,
    /// The artifacts that depend on how the page loaded. This takes a fraction of the time.
    Load,
}

/// The parameters of a visit: URL, device, network, CPU throttling, and limits.
#[derive(Debug, Clone)]
pub struct VisitPlan {
    pub url: String,
    pub device: Device,
    pub network: NetworkPath,
    /// How the CPU is throttled.
    pub throttle: Throttle,
    /// Maximum duration of loading, from the navigation on. Preparing and gathering have their own
    /// limits.
    pub deadline: Duration,
    /// How long the network and the main thread must be idle. The definition of Time to Interactive
    /// needs more than five seconds.
    pub idle: Duration,
    /// How long a page that is loaded and idle may show nothing until it counts as blank.
    pub blank: Duration,
    /// Maximum number of decoded bytes of all responses together.
    pub max_bytes: u64,
    pub gathering: Gathering,
    /// True if a main document with status 400 or above is measured. Otherwise it is a failure.
    pub allow_error_status: bool,
    /// The time at which the dates of pages begin, in milliseconds since 1970. If it is set, random
    /// numbers repeat in every visit, too. Workers are not affected.
    pub repeatable_since_ms: Option<i64>,
    /// Requests that the browser blocks: patterns whose parts between asterisks occur in a URL in
    /// this order.
    pub blocked_urls: Vec<String>,
    /// The state that is seeded into the profile before the visit, if there is one.
    pub state: Option<Box<VisitState>>,
    /// The state of a saved session, which is seeded before that of the visit.
    pub saved: Option<Arc<SavedState>>,
    /// Conditions that the page must meet while the saved session is valid.
    pub session_expect: Option<Box<Expectation>>,
    /// Conditions that the page must meet. Otherwise it is a failure.
    pub expect: Option<Box<Expectation>>,
    /// Steps that are performed before the visit, in its profile.
    pub steps: Steps,
    /// The choice in the consent dialog of the page, after the steps.
    pub consent: Consent,
    /// The content of the browser's cache before the visit.
    pub view: View,
    /// How the browser reaches the internet while the steps are performed. A browser that was not
    /// started with [`crate::LaunchOptions::only_through_proxy`] uses `network` instead.
    pub steps_network: NetworkPath,
    /// Maximum number of controls that [`crate::interact`] makes inputs on. It is 0 for a visit:
    /// with inputs, all requests are paused for a decision, which would disturb a measured load.
    pub interactions: u8,
    /// Steps that [`crate::measure_flow`] performs and measures.
    pub flow: Steps,
}

impl VisitPlan {
    /// Creates a plan with a direct network, without throttling, and with default limits.
    pub fn new(url: impl Into<String>, device: Device) -> Self {
        Self {
            url: url.into(),
            device,
            network: NetworkPath::Direct,
            throttle: Throttle::NONE,
            deadline: Duration::from_secs(60),
            idle: Duration::from_millis(5100),
            blank: Duration::from_secs(15),
            max_bytes: 100_000_000,
            gathering: Gathering::Everything,
            allow_error_status: false,
            repeatable_since_ms: None,
            blocked_urls: Vec::new(),
            state: None,
            saved: None,
            session_expect: None,
            expect: None,
            steps: Steps::default(),
            consent: Consent::None,
            view: View::First,
            steps_network: NetworkPath::Direct,
            interactions: 0,
            flow: Steps::default(),
        }
    }

    /// Returns the maximum duration of everything that is done before the visit.
    pub fn steps_deadline(&self) -> Duration {
        if self.has_steps() {
            steps::DEADLINE
        } else {
            Duration::ZERO
        }
    }

    /// Returns whether something is done before the visit.
    pub(crate) fn has_steps(&self) -> bool {
        !self.steps.is_empty() || !self.consent.is_none() || !self.view.is_first()
    }

    /// Returns the user agent that is sent by a browser of this version.
    pub(crate) fn user_agent(&self, version: &BrowserVersion) -> String {
        let agent = self.device.user_agent(version.major());
        let state = self.state.as_ref();
        match state.and_then(|state| state.user_agent_suffix.as_ref()) {
            Some(suffix) => format!("{agent} {suffix}"),
            None => agent,
        }
    }
}
