//! Bypasses of a Content Security Policy, by the rules of Google's CSP Evaluator as Lighthouse
//! 13.5 applies them (csp_evaluator 1.1, lighthouse_checks). The messages are our own.

use super::csp::{Csp, KEYWORDS, is_directive, is_hash, is_nonce, nonce};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) directive: String,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    High,
    Medium,
    Syntax,
}

impl Severity {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Syntax => "syntax",
        }
    }
}

fn finding(severity: Severity, directive: &str, text: impl Into<String>) -> Finding {
    Finding {
        severity,
        directive: directive.to_owned(),
        text: text.into(),
    }
}

/// Returns the weaknesses that let an injected script run. A script has to pass all policies, so
/// only weaknesses that all of them share count.
pub(super) fn bypasses(policies: &[Csp]) -> Vec<Finding> {
    let effective: Vec<Csp> = policies.iter().map(Csp::effective).collect();
    let with_script: Vec<Csp> = effective
        .iter()
        .filter(|csp| csp.values(csp.deciding("script-src")).is_some())
        .cloned()
        .collect();
    [
        in_every(policies, missing_script_src),
        in_every(policies, missing_object_src),
        missing_base_uri(policies),
        in_every(&with_script, host_allowlist),
        in_every(&with_script, inline_scripts),
        in_every(&effective, wildcards),
        in_every(&effective, plain_schemes),
    ]
    .concat()
}

/// Returns the fallbacks for old browsers that a strict policy lacks.
pub(super) fn missing_fallbacks(policies: &[Csp]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for finding in policies.iter().flat_map(fallback_faults) {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings
}

/// Returns the syntax errors of a policy.
pub(super) fn syntax(csp: &Csp) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directive, values) in &csp.directives {
        let mut note = |text: String| findings.push(finding(Severity::Syntax, directive, text));
        if !is_directive(directive) {
            note("is not a CSP directive".to_owned());
        }
        if ["reflected-xss", "referrer", "disown-opener", "prefetch-src"].contains(&&**directive) {
            note("is deprecated".to_owned());
        }
        for value in values {
            if let Some(nonce) = nonce(value) {
                if nonce.len() < 8 {
                    note("has a nonce of fewer than 8 characters".to_owned());
                }
                if !is_nonce(value) {
                    note("has a nonce that is not base64".to_owned());
                }
            }
            if is_directive(value) {
                note(format!(
                    "contains `{value}`: a semicolon seems to be missing"
                ));
            }
            if is_invalid_keyword(directive, value) {
                note(format!("contains `{value}`, which is not a valid keyword"));
            }
        }
    }
    findings
}

fn in_every(policies: &[Csp], faults: fn(&Csp) -> Vec<Finding>) -> Vec<Finding> {
    let Some((first, others)) = policies.split_first() else {
        return Vec::new();
    };
    let others: Vec<Vec<Finding>> = others.iter().map(faults).collect();
    faults(first)
        .into_iter()
        .filter(|finding| others.iter().all(|other| other.contains(finding)))
        .collect()
}

fn missing_script_src(csp: &Csp) -> Vec<Finding> {
    if csp.values("script-src").is_some() || csp.values("default-src").is_some() {
        return Vec::new();
    }
    vec![finding(
        Severity::High,
        "script-src",
        "is missing: any script may run",
    )]
}

fn missing_object_src(csp: &Csp) -> Vec<Finding> {
    let values = csp
        .values("object-src")
        .or_else(|| csp.values("default-src"));
    if values.is_some_and(|values| !values.is_empty()) {
        return Vec::new();
    }
    vec![finding(
        Severity::High,
        "object-src",
        "is missing: plugins may run scripts. Set it to 'none' if you can",
    )]
}

fn missing_base_uri(policies: &[Csp]) -> Vec<Finding> {
    let needs_it = |csp: &Csp| {
        let values = csp.script_values();
        let has_nonce = values.iter().any(|value| is_nonce(value));
        let has_hash = values.iter().any(|value| is_hash(value));
        has_nonce || (has_hash && values.iter().any(|value| value == "'strict-dynamic'"))
    };
    if !policies.iter().any(needs_it) || policies.iter().any(|csp| csp.values("base-uri").is_some())
    {
        return Vec::new();
    }
    vec![finding(
        Severity::High,
        "base-uri",
        "is missing: an injected <base> can redirect relative script URLs. Set it to 'none' or 'self'",
    )]
}

fn host_allowlist(csp: &Csp) -> Vec<Finding> {
    let values = csp.script_values();
    let has_host = values.iter().any(|value| !value.starts_with('\''));
    if !has_host || values.iter().any(|value| value == "'strict-dynamic'") {
        return Vec::new();
    }
    vec![finding(
        Severity::High,
        csp.deciding("script-src"),
        "allows whole hosts, which can often be bypassed. Use nonces or hashes with 'strict-dynamic'",
    )]
}

fn inline_scripts(csp: &Csp) -> Vec<Finding> {
    let mut findings = Vec::new();
    for directive in csp.deciding_on(&["script-src", "script-src-attr", "script-src-elem"]) {
        for value in csp.values(directive).unwrap_or_default() {
            let text = match value.as_str() {
                "'unsafe-inline'" => "allows any inline script. Use nonces or hashes",
                "'unsafe-hashes'" => "allows inline event handlers by their hashes",
                _ => continue,
            };
            findings.push(finding(Severity::High, directive, text));
        }
    }
    findings
}

/// The directives through which scripts can be injected.
const XSS_DIRECTIVES: [&str; 5] = [
    "script-src",
    "script-src-attr",
    "script-src-elem",
    "object-src",
    "base-uri",
];

fn wildcards(csp: &Csp) -> Vec<Finding> {
    xss_values(csp, |value| {
        let host = value.split_once("://").map_or(value, |(_, host)| host);
        let host = host.strip_prefix("//").unwrap_or(host);
        (host == "*").then(|| format!("contains `{value}`, which allows every host"))
    })
}

fn plain_schemes(csp: &Csp) -> Vec<Finding> {
    xss_values(csp, |value| {
        ["data:", "http:", "https:"]
            .contains(&value)
            .then(|| format!("contains `{value}`, which allows every host"))
    })
}

fn xss_values(csp: &Csp, fault: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for directive in csp.deciding_on(&XSS_DIRECTIVES) {
        let values = csp.values(directive).unwrap_or_default();
        let faults = values.iter().filter_map(|value| fault(value));
        findings.extend(faults.map(|text| finding(Severity::High, directive, text)));
    }
    findings
}

fn fallback_faults(csp: &Csp) -> Vec<Finding> {
    let values = csp.script_values();
    let has = |keyword: &str| values.iter().any(|value| value == keyword);
    let mut findings = Vec::new();
    let mut note =
        |text| findings.push(finding(Severity::Medium, csp.deciding("script-src"), text));
    if csp.has_nonce_or_hash() && !has("'unsafe-inline'") {
        note(
            "could add 'unsafe-inline' for old browsers; newer ones ignore it next to nonces and hashes",
        );
    }
    let is_host =
        |value: &String| ["http:", "https:", "*"].contains(&value.as_str()) || value.contains('.');
    if has("'strict-dynamic'") && !values.iter().any(is_host) {
        note(
            "could add https: and http: for old browsers; newer ones ignore them next to 'strict-dynamic'",
        );
    }
    findings
}

fn is_invalid_keyword(directive: &str, value: &str) -> bool {
    let lacks_quotes = KEYWORDS
        .iter()
        .any(|keyword| keyword.trim_matches('\'') == value)
        || ["nonce-", "sha256-", "sha384-", "sha512-"]
            .iter()
            .any(|start| value.starts_with(start));
    if lacks_quotes {
        return true;
    }
    if !value.starts_with('\'') {
        return false;
    }
    match directive {
        "require-trusted-types-for" => value != "'script'",
        "trusted-types" => value != "'allow-duplicates'" && value != "'none'",
        _ => !KEYWORDS.contains(&value) && !is_hash(value) && !is_nonce(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(policies: &[&str]) -> Vec<String> {
        let policies: Vec<Csp> = policies.iter().map(|policy| Csp::parse(policy)).collect();
        bypasses(&policies)
            .into_iter()
            .map(|finding| finding.directive)
            .collect()
    }

    const STRICT: &str = "script-src 'nonce-abcd1234' 'strict-dynamic' 'unsafe-inline' https:; \
                          object-src 'none'; base-uri 'none'";

    #[test]
    fn a_strict_policy_has_no_bypass() {
        assert!(of(&[STRICT]).is_empty());
        assert!(missing_fallbacks(&[Csp::parse(STRICT)]).is_empty());
        assert!(syntax(&Csp::parse(STRICT)).is_empty());
        assert!(of(&[]).is_empty());
    }

    #[test]
    fn bypasses_are_reported() {
        assert_eq!(of(&["img-src *"]), ["script-src", "object-src"]);
        assert_eq!(
            of(&["script-src 'unsafe-inline'; object-src 'none'"]),
            ["script-src"]
        );
        assert_eq!(
            of(&["script-src cdn.test; object-src 'none'"]),
            ["script-src"]
        );
        assert_eq!(of(&["default-src 'self' https://*"]).len(), 2);
        assert_eq!(
            of(&["script-src 'nonce-abcd1234'; object-src 'none'"]),
            ["base-uri"]
        );
        assert_eq!(of(&["default-src data:"]).len(), 2);
    }

    #[test]
    fn one_policy_without_the_bypass_is_enough() {
        assert!(of(&["script-src *", STRICT]).is_empty());
        assert_eq!(of(&["script-src *", "script-src *"]).len(), 3);
    }

    #[test]
    fn old_browsers_need_fallbacks() {
        let csp = Csp::parse("script-src 'nonce-abcd1234' 'strict-dynamic'");
        assert_eq!(missing_fallbacks(&[csp.clone(), csp]).len(), 2);
    }

    #[test]
    fn syntax_errors_are_reported() {
        for (policy, faults) in [
            ("script-src self", 1),
            ("script-src 'nonce-abc'", 1),
            ("script-src 'nonce-ab!'", 3),
            ("script-src x.test object-src", 1),
            ("scripts-src 'self'", 1),
            ("referrer origin", 1),
            (
                "trusted-types 'none'; require-trusted-types-for 'script'",
                0,
            ),
            ("require-trusted-types-for 'scripts'", 1),
        ] {
            assert_eq!(syntax(&Csp::parse(policy)).len(), faults, "{policy}");
        }
    }
}
