//! The result of one check: its verdict, and the details and savings that belong to it.

mod details;
mod findings;
mod node;
mod savings;

use serde::{Deserialize, Serialize};

pub use details::{ChecklistItem, ConsoleLine, Details, ElementDetail, Table, UrlDetail, Value};
pub use findings::{Cell, Column, Findings, Row, SourceLocation, Unit};
pub use node::{Node, Rect};
pub use savings::Savings;

use crate::category::Group;

/// The result of a check on a page, with the texts that explain it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    pub id: String,
    /// The title for the verdict.
    pub title: String,
    pub verdict: Verdict,
    /// The score from 0 to 1; `None` for a verdict that does not count.
    pub score: Option<f64>,
    /// The weight in the category; 0 if the check is not applicable or informative.
    pub weight: f64,
    pub group: Group,
    /// The result in a few words or one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    pub why: String,
    pub fix: String,
    /// The URL of a page with more about the check; `None` in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learn_more: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
    /// The estimated savings from following the advice, if they can be estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub savings: Option<Savings>,
    /// The number that the verdict is based on, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub value: f64,
    pub unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    Pass,
    Fail,
    /// The page has nothing that the check applies to.
    NotApplicable,
    /// The check reports information and never counts towards the score.
    Informative,
    /// The evidence that the check needs is missing.
    CouldNotMeasure,
}

impl Verdict {
    /// Returns 1 or 0 for a verdict that counts, and `None` for one that does not.
    pub fn score(self) -> Option<f64> {
        match self {
            Self::Pass => Some(1.0),
            Self::Fail => Some(0.0),
            Self::NotApplicable | Self::Informative | Self::CouldNotMeasure => None,
        }
    }
}
