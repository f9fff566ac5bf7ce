use plumbline_model::check::Details;

use super::csp::{Csp, Policies};
use super::csp_findings::{bypasses, missing_fallbacks, syntax};
use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing};

check! {
    /// # What
    /// Whether the Content Security Policy (CSP) would stop injected scripts.
    ///
    /// # Why
    /// Cross-site scripting (XSS) is among the most common attacks. A strict policy makes it
    /// harmless.
    ///
    /// # Scored
    /// Never scored: informative only. Not applicable when the policy has no weaknesses.
    ///
    /// # Fix
    /// Send a policy with nonces or hashes and `'strict-dynamic'`, `object-src 'none'` and
    /// `base-uri 'none'`.
    ///
    /// # Source
    /// Lighthouse 13.5, `csp-xss`; CSP Level 3.
    id: "csp-xss",
    pass: "Content Security Policy against XSS attacks",
    fail: "Content Security Policy against XSS attacks",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/csp-xss/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let policies = Policies::of(facts)?;
    let parse = |policies: &[String]| -> Vec<Csp> {
        policies.iter().map(|policy| Csp::parse(policy)).collect()
    };
    let in_headers = parse(&policies.headers);
    let all = [in_headers.clone(), parse(&policies.metas)].concat();
    if all.is_empty() {
        return Ok(Outcome::informative(
            "The page has no Content Security Policy.",
        ));
    }
    let mut rows: Vec<[String; 3]> = [
        all.iter().flat_map(syntax).collect(),
        bypasses(&all),
        missing_fallbacks(&all),
    ]
    .concat()
    .into_iter()
    .map(|finding| {
        [
            finding.severity.as_str().to_owned(),
            finding.directive,
            finding.text,
        ]
    })
    .collect();
    let headers_alone_fail = in_headers.is_empty() || !bypasses(&in_headers).is_empty();
    if !policies.metas.is_empty() && headers_alone_fail {
        let text =
            "A policy in a <meta> element takes effect late; send it as a header.".to_owned();
        rows.push(["medium".to_owned(), String::new(), text]);
    }
    if rows.is_empty() {
        return Ok(Outcome::not_applicable());
    }
    let summary = count(rows.len(), "weakness", "weaknesses");
    Ok(Outcome::informative(summary).with(Details::table(
        ["Severity", "Directive", "Description"],
        rows,
    )))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    const STRICT: &str = "script-src 'nonce-abcd1234' 'strict-dynamic' 'unsafe-inline' https:; \
                          object-src 'none'; base-uri 'none'";

    fn meta(policy: &str) -> String {
        format!(r#"[{{"httpEquiv": "content-security-policy", "content": "{policy}"}}]"#)
    }

    #[test]
    fn a_strict_policy_is_not_applicable() {
        let visit = Visit::new()
            .with("metas", "[]")
            .header("Content-Security-Policy", STRICT);
        assert_eq!(visit.verdict(CHECK), Verdict::NotApplicable);
    }

    #[test]
    fn weak_late_or_missing_policies_are_reported() {
        let none = Visit::new().with("metas", "[]");
        assert_eq!(none.verdict(CHECK), Verdict::Informative);
        let late = Visit::new().with("metas", &meta(STRICT));
        assert_eq!(late.verdict(CHECK), Verdict::Informative);
        let weak = Visit::new()
            .with("metas", "[]")
            .header("content-security-policy", "default-src *, img-src *");
        assert_eq!(weak.verdict(CHECK), Verdict::Informative);
    }

    #[test]
    fn without_evidence_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
