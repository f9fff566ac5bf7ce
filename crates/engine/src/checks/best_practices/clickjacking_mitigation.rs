use super::csp;
use crate::checks::{Outcome, check};
use crate::facts::{Facts, MainResource, Missing};

check! {
    /// # What
    /// Whether a response header restricts which sites may embed the page in a frame.
    ///
    /// # Why
    /// Another site can overlay an invisible frame of the page and trick visitors into clicking in
    /// it.
    ///
    /// # Scored
    /// Never scored: informative only. Not applicable when a policy is set.
    ///
    /// # Fix
    /// Send `Content-Security-Policy: frame-ancestors 'self'`, or `X-Frame-Options: SAMEORIGIN`.
    ///
    /// # Source
    /// Lighthouse 13.5, `clickjacking-mitigation`.
    id: "clickjacking-mitigation",
    pass: "Clickjacking protection by XFO or CSP",
    fail: "Clickjacking protection by XFO or CSP",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/clickjacking-mitigation",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let main = facts.get::<MainResource>()?;
    let by_csp = csp::in_headers(&main)
        .iter()
        .any(|policy| policy.contains("frame-ancestors"));
    let by_option = main.header("x-frame-options").any(|value| {
        let value: String = value.to_lowercase().split_whitespace().collect();
        value == "deny" || value == "sameorigin"
    });
    Ok(if by_csp || by_option {
        Outcome::not_applicable()
    } else {
        Outcome::informative("No frame control policy: any site may embed this page in a frame.")
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_page_with_a_policy_is_not_applicable() {
        let visit = |name, value| Visit::new().header(name, value).verdict(CHECK);
        assert_eq!(
            visit("X-Frame-Options", " SameOrigin"),
            Verdict::NotApplicable
        );
        assert_eq!(
            visit("Content-Security-Policy", "frame-ancestors 'none'"),
            Verdict::NotApplicable
        );
        assert_eq!(
            visit("X-Frame-Options", "ALLOW-FROM x"),
            Verdict::Informative
        );
        assert_eq!(Visit::new().verdict(CHECK), Verdict::Informative);
    }

    #[test]
    fn without_a_log_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
