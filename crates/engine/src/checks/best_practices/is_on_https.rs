use plumbline_model::check::{Details, UrlDetail};

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Issues, Missing, Requests, shorten_data_url};

check! {
    /// # What
    /// The page and all its resources are loaded over HTTPS.
    ///
    /// # Why
    /// Unencrypted traffic can be read and changed in transit, and browsers restrict many features
    /// to HTTPS.
    ///
    /// # Scored
    /// Fails when a request went to an insecure URL other than localhost, or when the browser
    /// blocked, upgraded or warned about mixed content.
    ///
    /// # Fix
    /// Serve the site over HTTPS and change the listed URLs to `https://`.
    ///
    /// # Source
    /// Lighthouse 13.5, `is-on-https`.
    id: "is-on-https",
    pass: "Uses HTTPS",
    fail: "Does not use HTTPS for all requests",
    learn: "https://developer.chrome.com/docs/lighthouse/pwa/is-on-https/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let requests = facts.get::<Requests>()?;
    let issues = facts.get::<Issues>()?;
    let mut insecure: Vec<UrlDetail> = Vec::new();
    for request in requests
        .all
        .iter()
        .filter(|request| !requests.is_secure(request))
    {
        let url = shorten_data_url(request.url.as_str());
        if !insecure.iter().any(|entry| entry.url == url) {
            let exchange = &request.exchange;
            let is_loaded = exchange.response.is_some() && exchange.failure.is_none();
            let note = if is_loaded { "loaded" } else { "requested" };
            insecure.push(UrlDetail::with_note(url, note));
        }
    }
    for issue in &issues.mixed_content {
        let note = match issue.resolution_status.as_str() {
            "MixedContentAutomaticallyUpgraded" => "upgraded to HTTPS by the browser",
            "MixedContentBlocked" => "blocked by the browser",
            "MixedContentWarning" => "loaded with a warning",
            other => other,
        };
        let existing = insecure
            .iter_mut()
            .find(|entry| entry.url == issue.insecure_url);
        match existing {
            Some(entry) => entry.note = Some(note.to_owned()),
            None => insecure.push(UrlDetail::with_note(&issue.insecure_url, note)),
        }
    }
    if insecure.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(insecure.len(), "insecure request", "insecure requests");
    Ok(Outcome::fail(summary).with(Details::urls(insecure)))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Details, UrlDetail, Verdict};

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_page_over_https_passes_and_so_does_one_on_this_machine() {
        assert_eq!(
            Visit::new().with("issues", "[]").verdict(CHECK),
            Verdict::Pass
        );
        let local = Visit::to("http://localhost:8000/").with("issues", "[]");
        assert_eq!(local.verdict(CHECK), Verdict::Pass);
    }

    #[test]
    fn one_insecure_request_fails() {
        let outcome = Visit::new()
            .with("issues", "[]")
            .requests("http://cdn.test/a.js", "Script", "text/javascript")
            .requests("http://cdn.test/a.js", "Script", "text/javascript")
            .judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(outcome.details.map(|details| details.len()), Some(1));
    }

    #[test]
    fn a_failed_request_is_listed_as_requested() {
        let visit = |method: &str| {
            Visit::new()
                .with("issues", "[]")
                .requests("http://cdn.test/a.js", "Script", "text/javascript")
                .ended_by(method)
                .judge(CHECK)
        };
        for (method, note) in [
            ("Network.loadingFinished", "loaded"),
            ("Network.loadingFailed", "requested"),
        ] {
            let outcome = visit(method);
            assert_eq!(outcome.verdict, Verdict::Fail);
            let expected = UrlDetail::with_note("http://cdn.test/a.js", note);
            assert_eq!(outcome.details, Some(Details::urls([expected])));
        }
    }

    #[test]
    fn mixed_content_fails_even_when_the_browser_upgraded_it() {
        let issues = r#"[{"code": "MixedContentIssue", "details": {"mixedContentIssueDetails": {
            "insecureURL": "http://a.test/x.png", "mainResourceURL": "https://example.test/page",
            "resolutionStatus": "MixedContentAutomaticallyUpgraded"}}}]"#;
        assert_eq!(
            Visit::new().with("issues", issues).verdict(CHECK),
            Verdict::Fail
        );
    }

    #[test]
    fn without_evidence_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
        assert_eq!(Visit::new().verdict(CHECK), Verdict::CouldNotMeasure);
    }
}
