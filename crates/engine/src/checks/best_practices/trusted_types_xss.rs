use super::csp::{Csp, Policies};
use crate::checks::{Outcome, check};
use crate::facts::{Artifact, Facts, Metas, Missing, Requests};

check! {
    /// # What
    /// Whether the page requires Trusted Types for scripts.
    ///
    /// # Why
    /// They stop text from becoming code in `innerHTML` and its like, where most injected scripts get in.
    ///
    /// # Scored
    /// Never: it only informs. Not applicable where they are required.
    ///
    /// # Fix
    /// Add `require-trusted-types-for 'script'` to the Content-Security-Policy, first in report-only mode.
    ///
    /// # Source
    /// Lighthouse 13.5, `trusted-types-xss`.
    id: "trusted-types-xss",
    pass: "Protection from injected scripts by Trusted Types",
    fail: "Protection from injected scripts by Trusted Types",
    needs: [Requests::NAME, Metas::NAME],
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let policies = Policies::of(facts)?;
    let requires = |policy: &String| {
        let csp = Csp::parse(policy);
        let sinks = csp.values("require-trusted-types-for").unwrap_or_default();
        sinks.iter().any(|sink| sink == "'script'")
    };
    Ok(
        if policies.headers.iter().chain(&policies.metas).any(requires) {
            Outcome::not_applicable()
        } else {
            Outcome::informative("No policy requires Trusted Types.")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_policy_that_requires_them_needs_no_remark() {
        let visit = |policy| {
            Visit::new()
                .with("metas", "[]")
                .header("content-security-policy", policy)
                .verdict(CHECK)
        };
        assert_eq!(
            visit("Require-Trusted-Types-For 'script'"),
            Verdict::NotApplicable
        );
        assert_eq!(visit("script-src 'self'"), Verdict::Informative);
    }

    #[test]
    fn without_evidence_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
