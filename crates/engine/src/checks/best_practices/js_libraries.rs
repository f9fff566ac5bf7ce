use plumbline_model::check::Details;

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Libraries, Missing};

check! {
    /// # What
    /// The well-known front-end libraries that the page uses, with their versions.
    ///
    /// # Why
    /// Old versions have known vulnerabilities, and two libraries for one task cost twice.
    ///
    /// # Scored
    /// Never scored: informative only. Not applicable when none is detected.
    ///
    /// # Fix
    /// Keep libraries up to date, and remove unused ones.
    ///
    /// # Source
    /// Lighthouse 13.5, `dobetterweb/js-libraries`; the list of libraries is our own.
    id: "js-libraries",
    pass: "Detected JavaScript libraries",
    fail: "Detected JavaScript libraries",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/js-libraries/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let libraries = facts.get::<Libraries>()?;
    if libraries.0.is_empty() {
        return Ok(Outcome::not_applicable());
    }
    let summary = count(libraries.0.len(), "library", "libraries");
    let rows = libraries.0.iter().map(|library| {
        [
            library.name.clone(),
            library.version.clone().unwrap_or_default(),
        ]
    });
    Ok(Outcome::informative(summary).with(Details::table(["Library", "Version"], rows)))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn libraries_are_listed_and_never_scored() {
        let visit = |libraries| Visit::new().with("libraries", libraries).verdict(CHECK);
        assert_eq!(
            visit(r#"[{"name": "jQuery", "version": "3.7.1"}]"#),
            Verdict::Informative
        );
        assert_eq!(visit("[]"), Verdict::NotApplicable);
    }

    #[test]
    fn without_evidence_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
