//! Field data of a page's visitors from the Chrome UX Report: plain data.
//!
//! It is not part of a visit's evidence. The code that stores a report adds it
//! (docs/decisions/0016-field-data.md); evaluating a bundle again neither requests nor restores it.

use plumbline_catalog::FormFactor;
use serde::{Deserialize, Serialize};

/// The percentile of all figures: three of four visits were at least as good.
pub const PERCENTILE: u8 = 75;

/// One record of the dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldData {
    /// The scope of the figures: the page, or all pages of its origin.
    pub record: RecordScope,
    /// The page or origin, as the dataset names it.
    pub subject: String,
    pub form_factor: FormFactor,
    pub percentile: u8,
    pub collection_period: Option<Period>,
    pub metrics: FieldMetrics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordScope {
    Url,
    Origin,
}

/// A collection period with its first and last day as `YYYY-MM-DD`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Period {
    pub first_date: String,
    pub last_date: String,
}

/// The metrics of a record; `None` where the dataset has no figures, as for First Input Delay since
/// 2024.
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
    /// The 75th percentile in milliseconds; layout shift has no unit.
    pub p75: f64,
    pub shares: Option<Shares>,
}

/// The fractions of all visits by rating, from 0 to 1 each, adding up to about 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shares {
    pub good: f64,
    pub needs_improvement: f64,
    pub poor: f64,
}

/// The figures over time, the oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldHistory {
    pub record: RecordScope,
    pub subject: String,
    pub form_factor: FormFactor,
    pub periods: Vec<Period>,
    /// The 75th percentile of each period by metric; `None` for periods without figures.
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

    /// Returns the thresholds: values up to the first are good, above the second poor. Source:
    /// web.dev/articles/defining-core-web-vitals-thresholds and the pages of FCP, TTFB and FID
    /// there; the bounds of the dataset's own bins.
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

/// The reason why there is no field data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FieldReason {
    /// The operator has set no API key, so nothing was requested.
    NoKey,
    /// The host is not public, or only allowed by the operator, so nothing was requested.
    NotPublic,
    /// Neither the page nor its origin is in the dataset for this form factor.
    NotInDataset,
    /// The response had not arrived when the visit ended.
    TimedOut,
    /// The API's quota per minute was exceeded.
    Quota,
    /// The API rejected the operator's key.
    KeyRefused,
    /// The API rejected the request.
    Rejected,
    /// The response could not be parsed.
    BadAnswer,
    /// The API could not be reached, or had an internal error.
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

    /// Returns the name that is written to reports.
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
    fn a_reason_has_the_same_name_in_json_and_in_text() {
        for reason in FieldReason::ALL {
            let written = serde_json::to_value(reason).unwrap();
            assert_eq!(written, reason.as_str());
        }
    }
}
