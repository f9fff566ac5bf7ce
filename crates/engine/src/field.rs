//! What visitors of a page met in the field: plain data, as the Chrome UX Report has it.
//!
//! It is no evidence of a visit: who hands in a report adds it (docs/decisions/0017-field-data.md), and
//! judging a bundle again neither asks for it nor makes it up.

use plumbline_catalog::FormFactor;
use serde::{Deserialize, Serialize};

/// The percentile that all figures are: three of four visits were at least as good.
pub const PERCENTILE: u8 = 75;

/// One record of the dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldData {
    /// Whether the figures are the page's own, or of all pages of its origin.
    pub record: RecordOf,
    /// The page or origin, as the dataset names it.
    pub subject: String,
    pub form_factor: FormFactor,
    pub percentile: u8,
    pub collection_period: Option<Period>,
    pub metrics: FieldMetrics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordOf {
    Url,
    Origin,
}

/// First and last day, `YYYY-MM-DD`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Period {
    pub first_date: String,
    pub last_date: String,
}

/// None where the dataset has none; First Input Delay since 2024.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldMetrics {
    pub fcp: Option<FieldMetric>,
    pub lcp: Option<FieldMetric>,
    pub fid: Option<FieldMetric>,
    pub cls: Option<FieldMetric>,
    pub inp: Option<FieldMetric>,
    pub ttfb: Option<FieldMetric>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldMetric {
    /// Milliseconds; layout shift has no unit.
    pub p75: f64,
    pub shares: Option<Shares>,
}

/// Parts of all visits, 0 to 1 each, adding up to about 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shares {
    pub good: f64,
    pub needs_improvement: f64,
    pub poor: f64,
}

/// The same figures over time, the oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldHistory {
    pub record: RecordOf,
    pub subject: String,
    pub form_factor: FormFactor,
    pub periods: Vec<Period>,
    /// By metric: the 75th percentile of each period, none where the period has none.
    pub p75s: Vec<(FieldKind, Vec<Option<f64>>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    Fcp,
    Lcp,
    Fid,
    Cls,
    Inp,
    Ttfb,
}

impl FieldKind {
    pub const ALL: [Self; 6] = [
        Self::Fcp,
        Self::Lcp,
        Self::Fid,
        Self::Cls,
        Self::Inp,
        Self::Ttfb,
    ];

    /// Good up to the first, poor above the second. Source: web.dev/articles/defining-core-web-vitals-thresholds
    /// and the pages of FCP, TTFB and FID there; the bounds of the dataset's own bins.
    pub fn limits(self) -> [f64; 2] {
        match self {
            Self::Fcp => [1800.0, 3000.0],
            Self::Lcp => [2500.0, 4000.0],
            Self::Fid => [100.0, 300.0],
            Self::Cls => [0.1, 0.25],
            Self::Inp => [200.0, 500.0],
            Self::Ttfb => [800.0, 1800.0],
        }
    }
}

impl FieldMetrics {
    pub fn get(&self, kind: FieldKind) -> Option<FieldMetric> {
        match kind {
            FieldKind::Fcp => self.fcp,
            FieldKind::Lcp => self.lcp,
            FieldKind::Fid => self.fid,
            FieldKind::Cls => self.cls,
            FieldKind::Inp => self.inp,
            FieldKind::Ttfb => self.ttfb,
        }
    }

    pub fn set(&mut self, kind: FieldKind, metric: Option<FieldMetric>) {
        *match kind {
            FieldKind::Fcp => &mut self.fcp,
            FieldKind::Lcp => &mut self.lcp,
            FieldKind::Fid => &mut self.fid,
            FieldKind::Cls => &mut self.cls,
            FieldKind::Inp => &mut self.inp,
            FieldKind::Ttfb => &mut self.ttfb,
        } = metric;
    }
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FieldReason {
    /// The operator gave no key: nothing was sent to anybody.
    NoKey,
    /// The host is not a public one, or one that only the operator let be visited: nothing was sent.
    NotPublic,
    /// Neither the page nor its origin is in the dataset for this form factor.
    NotInDataset,
    /// The answer had not arrived when the visit ended.
    TimedOut,
    /// More was asked than the dataset answers in a minute.
    Quota,
    /// The dataset does not accept the operator's key.
    KeyRefused,
    /// The dataset did not accept the question.
    Rejected,
    /// What came back could not be read.
    BadAnswer,
    /// The dataset could not be reached, or had a fault.
    Unavailable,
}

impl FieldReason {
    pub const ALL: [Self; 9] = [
        Self::NoKey,
        Self::NotPublic,
        Self::NotInDataset,
        Self::TimedOut,
        Self::Quota,
        Self::KeyRefused,
        Self::Rejected,
        Self::BadAnswer,
        Self::Unavailable,
    ];

    /// As it is written in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoKey => "NO_KEY",
            Self::NotPublic => "NOT_PUBLIC",
            Self::NotInDataset => "NOT_IN_DATASET",
            Self::TimedOut => "TIMED_OUT",
            Self::Quota => "QUOTA",
            Self::KeyRefused => "KEY_REFUSED",
            Self::Rejected => "REJECTED",
            Self::BadAnswer => "BAD_ANSWER",
            Self::Unavailable => "UNAVAILABLE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_called_alike_everywhere() {
        for reason in FieldReason::ALL {
            let written = serde_json::to_value(reason).unwrap();
            assert_eq!(written, reason.as_str());
        }
    }
}
