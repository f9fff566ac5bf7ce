use std::net::SocketAddr;
use std::time::Duration;

use plumbline_catalog::Device;

use crate::Throttle;

/// How the browser reaches the internet.
#[derive(Debug, Clone, PartialEq)]
pub enum NetworkPath {
    /// As the host does.
    Direct,
    /// As the host does, slowed by Chromium itself, request by request: coarser than a proxy.
    Throttled {
        down_kbps: f64,
        up_kbps: f64,
        rtt_ms: f64,
    },
    /// Everything through this SOCKS5 proxy, names included. The browser should have been started
    /// with [`crate::LaunchOptions::only_through_proxy`]: else pages cannot connect in advance.
    Proxy(SocketAddr),
}

/// What to load, as whom, over what, and how long to wait.
#[derive(Debug, Clone)]
pub struct VisitPlan {
    pub url: String,
    pub device: Device,
    pub network: NetworkPath,
    /// How the processor is slowed down.
    pub throttle: Throttle,
    /// For loading, from the navigation on. Preparing and gathering have bounds of their own.
    pub deadline: Duration,
    /// How long the network and the main thread must be quiet. The definition of Time to
    /// Interactive needs more than five seconds.
    pub quiet: Duration,
    /// How long a page that is loaded and quiet may show nothing until it counts as blank.
    pub blank: Duration,
    /// Decoded bytes of all answers together.
    pub max_bytes: u64,
}

impl VisitPlan {
    pub fn new(url: impl Into<String>, device: Device) -> Self {
        Self {
            url: url.into(),
            device,
            network: NetworkPath::Direct,
            throttle: Throttle::NONE,
            deadline: Duration::from_secs(60),
            quiet: Duration::from_millis(5100),
            blank: Duration::from_secs(15),
            max_bytes: 100_000_000,
        }
    }
}
