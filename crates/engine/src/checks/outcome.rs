use serde::{Deserialize, Serialize};

use super::{Details, Savings, Unit};

/// What a check says about a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub verdict: Verdict,
    /// What was found, in a few words or one sentence.
    pub summary: Option<String>,
    pub details: Option<Details>,
    pub savings: Option<Savings>,
    pub figure: Option<Figure>,
    /// What is worth knowing although the verdict stands.
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
    /// There was nothing on the page to judge.
    NotApplicable,
    /// Worth knowing, never counted.
    Informative,
    /// The evidence is not there.
    CouldNotMeasure,
}

impl Verdict {
    /// 1 or 0 where the check counts; none where it does not.
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
        Self::new(Verdict::Fail).because(summary)
    }

    pub fn informative(summary: impl Into<String>) -> Self {
        Self::new(Verdict::Informative).because(summary)
    }

    pub fn could_not_measure(reason: impl Into<String>) -> Self {
        Self::new(Verdict::CouldNotMeasure).because(reason)
    }

    pub fn with(mut self, details: Details) -> Self {
        self.details = Some(details);
        self
    }

    pub fn saving(mut self, savings: Savings) -> Self {
        self.savings = Some(savings);
        self
    }

    /// The one number that the verdict goes by.
    pub fn measuring(mut self, value: f64, unit: Unit) -> Self {
        self.figure = Some(Figure { value, unit });
        self
    }

    pub fn because(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }
}
