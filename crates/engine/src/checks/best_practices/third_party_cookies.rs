use std::collections::BTreeSet;

use plumbline_model::check::Details;

use crate::checks::{Outcome, check, count};
use crate::facts::{CookieIssue, Facts, Issues, Missing};

check! {
    /// # What
    /// The page sets and sends no third-party cookies.
    ///
    /// # Why
    /// Many browsers block them already, which breaks features that depend on them.
    ///
    /// # Scored
    /// Fails when Chromium warns about or excludes a third-party cookie.
    ///
    /// # Fix
    /// Use first-party cookies, partitioned cookies (`Partitioned`), or the Storage Access API.
    ///
    /// # Source
    /// Lighthouse 13.5, `third-party-cookies`.
    id: "third-party-cookies",
    pass: "No third-party cookies",
    fail: "Third-party cookies are used",
    learn: "https://privacysandbox.google.com/cookies/prepare/overview",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let issues = facts.get::<Issues>()?;
    let mut identities = BTreeSet::new();
    let rows: Vec<[String; 2]> = issues
        .cookies
        .iter()
        .filter(|issue| is_third_party(issue))
        .filter_map(|issue| {
            let name = issue.cookie.as_ref().map(|cookie| cookie.name.clone());
            let name = name.filter(|name| !name.is_empty());
            let name = name.or_else(|| issue.raw_cookie_line.clone())?;
            let is_new = !name.is_empty() && identities.insert(identity(issue));
            is_new.then(|| [name, issue.cookie_url.clone().unwrap_or_default()])
        })
        .collect();
    if rows.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(rows.len(), "cookie", "cookies");
    Ok(Outcome::fail(summary).with(Details::table(["Cookie", "URL"], rows)))
}

fn is_third_party(issue: &CookieIssue) -> bool {
    let has = |reasons: &[String], reason: &str| reasons.iter().any(|given| given == reason);
    has(&issue.cookie_warning_reasons, "WarnThirdPartyPhaseout")
        || has(&issue.cookie_exclusion_reasons, "ExcludeThirdPartyPhaseout")
}

fn identity(issue: &CookieIssue) -> String {
    match (&issue.cookie, &issue.raw_cookie_line) {
        (Some(cookie), _) => format!("{};{};{}", cookie.domain, cookie.path, cookie.name),
        (None, line) => line.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn issue(details: &str) -> String {
        format!(r#"{{"details": {{"cookieIssueDetails": {{{details}}}}}}}"#)
    }

    #[test]
    fn a_third_party_cookie_fails_and_is_listed_once() {
        let cookie = issue(
            r#""cookie": {"name": "id", "path": "/", "domain": ".ads.test"},
               "cookieWarningReasons": ["WarnThirdPartyPhaseout"], "cookieExclusionReasons": [],
               "cookieUrl": "https://ads.test/""#,
        );
        let outcome = Visit::new()
            .with("issues", &format!("[{cookie},{cookie}]"))
            .judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(outcome.details.map(|details| details.len()), Some(1));
    }

    #[test]
    fn other_cookie_issues_pass() {
        let other = issue(
            r#""cookie": {"name": "id"}, "cookieWarningReasons": ["WarnSameSiteNoneInsecure"]"#,
        );
        let nameless = issue(r#""cookieExclusionReasons": ["ExcludeThirdPartyPhaseout"]"#);
        for issues in [
            "[]".to_owned(),
            format!("[{other}]"),
            format!("[{nameless}]"),
        ] {
            assert_eq!(
                Visit::new().with("issues", &issues).verdict(CHECK),
                Verdict::Pass,
                "{issues}"
            );
        }
    }

    #[test]
    fn without_the_issues_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
