use serde::Deserialize;

/// A network profile at packet level: packet headers count towards the bandwidth.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    pub id: String,
    /// Display name, which includes bandwidth and round trip.
    pub name: String,
    pub down_kbps: f64,
    pub up_kbps: f64,
    /// Full round trip time added to the real path.
    pub rtt_ms: f64,
    pub loss_pct: f64,
    /// Deadline of one visit, which is longer on slow networks.
    pub deadline_s: u32,
    pub source: String,
}
