//! The progress of a running audit, as its agent reports it.

use serde::{Deserialize, Serialize};

/// The position of a visit within its audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VisitNumber {
    /// The run, from 1.
    pub run: u32,
    /// The visit within the run, from 1.
    pub number: u32,
    /// The maximum number of visits of a run.
    pub max: u32,
    pub reason: VisitReason,
}

/// The reason why a page is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VisitReason {
    /// The page was not visited before in this run.
    First,
    /// The machine was busy during all visits so far.
    Disturbed,
    /// The score is uncertain.
    Uncertain,
}
