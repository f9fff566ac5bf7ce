use plumbline_model::check::{Details, Figure, Savings, Unit, Verdict};

/// The result of a check on a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub verdict: Verdict,
    /// The score from 0 to 1, if it is not the one of the verdict.
    pub score: Option<f64>,
    /// The result in a few words or one sentence.
    pub summary: Option<String>,
    /// The advice for this page, if the check's documentation has advice for several cases.
    pub fix: Option<String>,
    pub details: Option<Details>,
    pub savings: Option<Savings>,
    pub figure: Option<Figure>,
    /// Remarks that do not change the verdict.
    pub warnings: Vec<String>,
}

impl Outcome {
    pub fn new(verdict: Verdict) -> Self {
        Self {
            verdict,
            score: None,
            summary: None,
            fix: None,
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

    pub fn with_score(mut self, score: f64) -> Self {
        self.score = Some(score);
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

    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }
}
