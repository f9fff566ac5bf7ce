use plumbline_model::scoring::MetricKind;

use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing};
use crate::metrics::Measured;

check! {
    /// # What
    /// Elements stay where they are while the page loads.
    ///
    /// # Why
    /// An agent that reads positions from a screenshot clicks on something else if the layout
    /// shifts before it acts.
    ///
    /// # Scored
    /// Fails when the score of Cumulative Layout Shift is below 0.9, which is the case above 0.1.
    ///
    /// # Fix
    /// Reserve space for images, advertisements and late content. The performance category lists
    /// the shifts and what caused them.
    ///
    /// # Source
    /// Lighthouse 13.5, `metrics/cumulative-layout-shift`.
    id: "cumulative-layout-shift",
    pass: "The layout is stable",
    fail: "The layout shifts",
    learn: "https://web.dev/articles/cls",
    run: run,
}

/// The score from which Lighthouse shows an audit as passed.
const MIN_PASSING_SCORE: f64 = 0.9;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let cls = facts.get::<Measured>()?.cls;
    let value = cls.map_err(|error| Missing(error.to_string()))?;
    let score = MetricKind::Cls.score(facts.mode, value);
    let outcome = if score >= MIN_PASSING_SCORE {
        Outcome::pass()
    } else {
        Outcome::fail("")
    };
    let summary = format!("Cumulative Layout Shift {value:.3}");
    Ok(outcome.with_summary(summary).with_score(score))
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::Mode;
    use plumbline_model::check::Verdict;

    use super::*;
    use crate::checks::testing::{Visit, verdict_without_evidence};
    use crate::metrics::MetricError;

    fn judge(cls: Result<f64, MetricError>) -> Result<Outcome, Missing> {
        let bundle = Visit::new().bundle();
        let facts = Facts::new(&bundle, Mode::Mobile);
        let missing = Err(MetricError::NoFirstContentfulPaint);
        facts.insert(Measured {
            fcp: missing,
            lcp: missing,
            cls,
            tbt: missing,
            tti: missing,
            si: missing,
            first_paint_ms: None,
            dom_content_loaded_ms: None,
            load_ms: None,
            trace_end_ms: 0.0,
        });
        run(&facts)
    }

    #[test]
    fn the_verdict_follows_the_score_of_the_metric() {
        for (cls, verdict, score) in [
            (0.0, Verdict::Pass, 1.0),
            (0.1, Verdict::Pass, 0.9),
            (0.11, Verdict::Fail, 0.87),
            (1.0, Verdict::Fail, 0.02),
        ] {
            let outcome = judge(Ok(cls)).unwrap();
            assert_eq!(
                (outcome.verdict, outcome.score),
                (verdict, Some(score)),
                "{cls}"
            );
        }
    }

    #[test]
    fn without_the_metric_it_cannot_be_measured() {
        assert!(judge(Err(MetricError::UnweightedShifts)).is_err());
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
