use serde::Deserialize;

/// A network profile, at packet level: headers use the line too.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    pub id: String,
    /// For people; carries bandwidth and round trip.
    pub name: String,
    pub down_kbps: f64,
    pub up_kbps: f64,
    /// The full round trip.
    pub rtt_ms: f64,
    pub loss_pct: f64,
    /// The longest that one visit may take: slow networks are slow by right.
    pub deadline_s: u32,
    pub source: String,
}
