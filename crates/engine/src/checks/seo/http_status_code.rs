use crate::checks::{Outcome, check};
use crate::facts::{Facts, MainResource, Missing};

check! {
    /// # What
    /// The HTTP status of the document is below 400.
    ///
    /// # Why
    /// Search engines do not index pages that respond with an error.
    ///
    /// # Scored
    /// Fails when the status of the document, after redirects, is 400 to 599.
    ///
    /// # Fix
    /// Respond with 200 for a page that exists. If the page has moved, redirect to its new URL.
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/http-status-code`.
    id: "http-status-code",
    pass: "Successful HTTP status code",
    fail: "Unsuccessful HTTP status code",
    learn: "https://developer.chrome.com/docs/lighthouse/seo/http-status-code/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let status = facts.get::<MainResource>()?.0.status();
    Ok(match status {
        Some(status @ 400..=599) => Outcome::fail(format!("The status code is {status}.")),
        _ => Outcome::pass(),
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn an_error_status_fails() {
        for (status, verdict) in [
            (200, Verdict::Pass),
            (304, Verdict::Pass),
            (399, Verdict::Pass),
            (400, Verdict::Fail),
            (404, Verdict::Fail),
            (599, Verdict::Fail),
        ] {
            assert_eq!(
                Visit::new().status(status).verdict(CHECK),
                verdict,
                "{status}"
            );
        }
    }

    #[test]
    fn without_a_log_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
