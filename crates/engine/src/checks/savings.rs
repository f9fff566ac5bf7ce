use serde::{Deserialize, Serialize};

/// What following a check's advice would give, estimated as Lighthouse estimates it. A figure is absent
/// where the advice is not about it, and 0 where it is and gives nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Savings {
    /// Bytes that need not have come over the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wasted_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fcp_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lcp_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tbt_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inp_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cls: Option<f64>,
}

impl Savings {
    pub fn bytes(wasted_bytes: f64) -> Self {
        Self {
            wasted_bytes: Some(wasted_bytes),
            ..Self::default()
        }
    }

    /// Of both paints.
    pub fn paints(fcp_ms: f64, lcp_ms: f64) -> Self {
        Self {
            fcp_ms: Some(fcp_ms),
            lcp_ms: Some(lcp_ms),
            ..Self::default()
        }
    }

    pub fn with_bytes(self, wasted_bytes: f64) -> Self {
        Self {
            // A sum of nothing is -0.
            wasted_bytes: Some(wasted_bytes + 0.0),
            ..self
        }
    }
}
