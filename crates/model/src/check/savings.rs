use serde::{Deserialize, Serialize};

/// The estimated savings from following a check's advice, computed as Lighthouse does. A figure is
/// absent where the advice does not concern it, and 0 where it does but saves nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Savings {
    /// The number of bytes that would not have to be transferred.
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

    /// Creates savings for first and largest contentful paint.
    pub fn paints(fcp_ms: f64, lcp_ms: f64) -> Self {
        Self {
            fcp_ms: Some(fcp_ms),
            lcp_ms: Some(lcp_ms),
            ..Self::default()
        }
    }

    /// Creates savings for the first contentful paint only.
    pub fn first_paint(fcp_ms: f64) -> Self {
        Self {
            fcp_ms: Some(fcp_ms),
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
