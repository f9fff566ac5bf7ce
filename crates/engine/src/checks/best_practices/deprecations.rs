use plumbline_model::check::{ConsoleLine, Details};

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Issues, Missing, OriginalPlaces};

check! {
    /// # What
    /// The page uses no deprecated browser features.
    ///
    /// # Why
    /// Deprecated features will be removed from the browser, and the page may break then.
    ///
    /// # Scored
    /// Fails when Chromium reports the use of a deprecated feature.
    ///
    /// # Fix
    /// Look up the listed feature on chromestatus.com and use its replacement. If a library uses
    /// the feature, update the library.
    ///
    /// # Source
    /// Lighthouse 13.5, `deprecations`.
    id: "deprecations",
    pass: "No deprecated APIs",
    fail: "Deprecated APIs are used",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/deprecations/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let issues = facts.get::<Issues>()?;
    let items: Vec<ConsoleLine> = issues
        .deprecations
        .iter()
        .map(|issue| ConsoleLine {
            text: issue.kind.clone(),
            source: "deprecation".to_owned(),
            url: issue.source_code_location.url.clone(),
            line: issue.source_code_location.line_number,
            column: issue.source_code_location.column_number,
            original: None,
        })
        .map(|line| OriginalPlaces::add_to_line(facts, line))
        .collect();
    if items.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(items.len(), "deprecation warning", "deprecation warnings");
    Ok(Outcome::fail(summary).with(Details::Console { items }))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_deprecated_feature_fails() {
        let issue = r#"[{"code": "DeprecationIssue", "details": {"deprecationIssueDetails": {
            "type": "UnloadHandler", "sourceCodeLocation":
                {"url": "https://example.test/a.js", "lineNumber": 1, "columnNumber": 2}}}}]"#;
        assert_eq!(
            Visit::new().with("issues", issue).verdict(CHECK),
            Verdict::Fail
        );
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
