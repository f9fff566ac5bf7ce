use plumbline_model::check::{Details, ElementDetail};

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Inputs, Missing};

check! {
    /// # What
    /// Visitors can paste into every input field.
    ///
    /// # Why
    /// Password managers paste. Visitors who have to type choose shorter passwords and make
    /// mistakes.
    ///
    /// # Scored
    /// A paste event is sent to every field that is not read-only; fails when the page cancels one.
    ///
    /// # Fix
    /// Remove the handlers that cancel `paste`.
    ///
    /// # Source
    /// Lighthouse 13.5, `dobetterweb/paste-preventing-inputs`.
    id: "paste-preventing-inputs",
    pass: "Input fields allow pasting",
    fail: "Input fields prevent pasting",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/paste-preventing-inputs/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let inputs = facts.get::<Inputs>()?;
    let preventing: Vec<ElementDetail> = inputs
        .0
        .iter()
        .filter(|input| input.prevents_paste)
        .map(|input| ElementDetail::from(&input.node))
        .collect();
    if preventing.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(preventing.len(), "field", "fields");
    Ok(Outcome::fail(summary).with(Details::elements(preventing)))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_field_that_prevents_pasting_fails() {
        for (inputs, verdict) in [
            ("[]", Verdict::Pass),
            (
                r#"[{"type": "text", "preventsPaste": false}, {"type": "text"}]"#,
                Verdict::Pass,
            ),
            (
                r#"[{"type": "password", "preventsPaste": true}]"#,
                Verdict::Fail,
            ),
        ] {
            assert_eq!(
                Visit::new().with("inputs", inputs).verdict(CHECK),
                verdict,
                "{inputs}"
            );
        }
    }

    #[test]
    fn without_the_fields_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
