use serde::{Deserialize, Serialize};

use super::{Details, Savings, Unit};

/// The result of a check on a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub verdict: Verdict,
    /// The result in a few words or one sentence.
    pub summary: Option<String>,
    pub details: Option<Details>,
    pub savings: Option<Savings>,
    pub figure: Option<Figure>,
    /// Remarks that do not change the verdict.
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

impl Outcome {
    pub fn new(verdict: Verdict) -> Self {
        Self {
            verdict,
            summary: None,
            details: None,
            savings: None,
            figure: None,
            warnings: Vec::new(),
        }
    }

    pub fn pass() -> Self {
        Self::new(Verdict::Pass)
    }

    pub fn not_applicable() -> Self {
        Self::new(Verdict::NotApplicable)
    }

    pub fn fail(summary: impl Into<String>) -> Self {
        Self::new(Verdict::Fail).with_summary(summary)
    }

    pub fn informative(summary: impl Into<String>) -> Self {
        Self::new(Verdict::Informative).with_summary(summary)
    }

    pub fn could_not_measure(reason: impl Into<String>) -> Self {
        Self::new(Verdict::CouldNotMeasure).with_summary(reason)
    }

    pub fn with(mut self, details: Details) -> Self {
        self.details = Some(details);
        self
    }

    pub fn with_savings(mut self, savings: Savings) -> Self {
        self.savings = Some(savings);
        self
    }

    /// Sets the number that the verdict is based on.
    pub fn with_figure(mut self, value: f64, unit: Unit) -> Self {
        self.figure = Some(Figure { value, unit });
        self
    }

    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }
}
