use serde::Deserialize;

/// A network profile at packet level: packet headers count towards the bandwidth.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    pub id: String,
    /// Display name, which includes bandwidth and round trip.
    pub name: String,
    /// The kind of line, by which lists group networks.
    #[serde(default)]
    pub kind: NetworkKind,
    pub down_kbps: f64,
    pub up_kbps: f64,
    /// Full round trip time added to the real path.
    pub rtt_ms: f64,
    pub loss_pct: f64,
    /// Deadline of one visit, which is longer on slow networks.
    pub deadline_s: u32,
    pub source: String,
}

/// A kind of line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkKind {
    /// A cellular network.
    Mobile,
    /// A line into a building, and Wi-Fi behind it.
    Fixed,
    /// A network of a catalog that does not state the kind.
    #[default]
    Other,
}

impl NetworkKind {
    /// The kinds in the order of lists.
    pub const ALL: [Self; 3] = [Self::Mobile, Self::Fixed, Self::Other];

    /// Returns the heading of the networks of this kind.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Mobile => "Mobile networks",
            Self::Fixed => "Fixed lines and Wi-Fi",
            Self::Other => "Other networks",
        }
    }
}
