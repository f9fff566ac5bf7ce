use std::collections::BTreeSet;

use plumbline_model::check::Details;

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Issues, Missing};

check! {
    /// # What
    /// Chromium reported no issues that affect visitors in the Issues panel of DevTools.
    ///
    /// # Why
    /// Issues are rejected cookies and blocked content, which the page itself cannot detect.
    ///
    /// # Scored
    /// Fails on mixed content, cookie problems, responses blocked by a cross-origin policy, heavy
    /// ads, and content blocked by the Content Security Policy.
    ///
    /// # Fix
    /// Open the Issues panel in DevTools: it explains each issue and names the code behind it.
    ///
    /// # Source
    /// Lighthouse 13.5, `dobetterweb/inspector-issues`.
    id: "inspector-issues",
    pass: "No issues in the Issues panel",
    fail: "Issues were logged in the Issues panel",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let issues = facts.get::<Issues>()?;
    let mixed_content = issues.mixed_content.iter().map(|issue| {
        let request = issue.request.as_ref().map(|request| request.url.as_str());
        request
            .filter(|url| !url.is_empty())
            .unwrap_or(&issue.main_resource_url)
    });
    let cookies = issues.cookies.iter().map(|issue| {
        let request = issue.request.as_ref().map(|request| request.url.as_str());
        request
            .filter(|url| !url.is_empty())
            .or(issue.cookie_url.as_deref())
            .unwrap_or_default()
    });
    let mut rows = Vec::new();
    rows.extend(kind("Mixed content", mixed_content));
    rows.extend(kind("Cookie", cookies));
    let blocked = issues.blocked_by_response.iter().map(String::as_str);
    rows.extend(kind("Blocked by a cross-origin policy", blocked));
    rows.extend(kind("Heavy ad", (0..issues.heavy_ads).map(|_| "")));
    let blocked_by_csp = issues.content_security_policy.iter().map(String::as_str);
    rows.extend(kind("Content Security Policy", blocked_by_csp));
    if rows.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(rows.len(), "issue", "issues");
    Ok(Outcome::fail(summary).with(Details::table(["Issue", "URL"], rows)))
}

/// Returns one row for each URL of a kind of issue, or one without a URL if none is known.
fn kind<'a>(name: &str, urls: impl Iterator<Item = &'a str>) -> Vec<[String; 2]> {
    let mut urls: BTreeSet<&str> = urls.collect();
    if urls.len() > 1 {
        urls.remove("");
    }
    urls.into_iter()
        .map(|url| [name.to_owned(), url.to_owned()])
        .collect()
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(issue: &str) -> Verdict {
        Visit::new()
            .with("issues", &format!(r#"[{{"details": {issue}}}]"#))
            .verdict(CHECK)
    }

    #[test]
    fn issues_that_affect_visitors_fail() {
        for issue in [
            r#"{"mixedContentIssueDetails": {"insecureURL": "http://a.test/"}}"#,
            r#"{"cookieIssueDetails": {"cookieUrl": "https://a.test/"}}"#,
            r#"{"blockedByResponseIssueDetails": {"request": {"requestId": "main", "url": "https://a.test/"}}}"#,
            r#"{"heavyAdIssueDetails": {}}"#,
            r#"{"contentSecurityPolicyIssueDetails": {"blockedURL": "https://a.test/"}}"#,
            r#"{"contentSecurityPolicyIssueDetails": {}}"#,
        ] {
            assert_eq!(verdict(issue), Verdict::Fail, "{issue}");
        }
    }

    #[test]
    fn other_issues_and_those_of_requests_never_made_pass() {
        for issue in [
            "{}",
            r#"{"quirksModeIssueDetails": {}}"#,
            r#"{"cookieIssueDetails": {"request": {"requestId": "unheard-of"}}}"#,
        ] {
            assert_eq!(verdict(issue), Verdict::Pass, "{issue}");
        }
        assert_eq!(
            Visit::new().with("issues", "[]").verdict(CHECK),
            Verdict::Pass
        );
    }

    #[test]
    fn without_the_issues_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
