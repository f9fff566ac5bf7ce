use super::csp::{Csp, Policies};
use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing};

check! {
    /// # What
    /// Whether the page requires Trusted Types for scripts.
    ///
    /// # Why
    /// Trusted Types stop strings from becoming code through `innerHTML` and similar sinks of
    /// DOM-based XSS.
    ///
    /// # Scored
    /// Never scored: informative only. Not applicable when they are required.
    ///
    /// # Fix
    /// Add `require-trusted-types-for 'script'` to the Content-Security-Policy, first in
    /// report-only mode.
    ///
    /// # Source
    /// Lighthouse 13.5, `trusted-types-xss`.
    id: "trusted-types-xss",
    pass: "Protection against DOM-based XSS with Trusted Types",
    fail: "Protection against DOM-based XSS with Trusted Types",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/trusted-types-xss",
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
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_policy_that_requires_trusted_types_is_not_applicable() {
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
