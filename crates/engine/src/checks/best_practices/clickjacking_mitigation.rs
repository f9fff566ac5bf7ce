use super::csp;
use crate::checks::{Outcome, check};
use crate::facts::{Facts, MainResource, Missing, Requests};

check! {
    /// # What
    /// Whether the page says who may show it in a frame.
    ///
    /// # Why
    /// Another site can lay a page invisibly over its own and let visitors click what they do not see.
    ///
    /// # Scored
    /// Never: it only informs. Not applicable where a policy is stated.
    ///
    /// # Fix
    /// Send `Content-Security-Policy: frame-ancestors 'self'`, or `X-Frame-Options: SAMEORIGIN`.
    ///
    /// # Source
    /// Lighthouse 13.5, `clickjacking-mitigation`.
    id: "clickjacking-mitigation",
    pass: "Protection from being framed by other sites",
    fail: "Protection from being framed by other sites",
    needs: [Requests::NAME],
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
        Outcome::informative("Any site may show this page in a frame.")
    })
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_stated_policy_needs_no_remark() {
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
