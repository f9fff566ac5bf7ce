use plumbline_bundle::FailedConnections;
use plumbline_model::check::{ConsoleLine, Details};

use crate::checks::{Outcome, check, count};
use crate::facts::{Console, Facts, Missing, OriginalPlaces};

check! {
    /// # What
    /// Neither the browser nor a script logged an error to the console.
    ///
    /// # Why
    /// Console errors are failed requests, script exceptions and blocked content that affect
    /// visitors.
    ///
    /// # Scored
    /// Fails when the console has an error. Requests blocked by the auditing tool itself do not
    /// count. A failed connection has the error that a visitor gets, not that of the proxy through
    /// which the page was loaded.
    ///
    /// # Fix
    /// Fix the listed errors; each names its source.
    ///
    /// # Source
    /// Lighthouse 13.5, `errors-in-console`.
    id: "errors-in-console",
    pass: "No browser errors in the console",
    fail: "Browser errors in the console",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/errors-in-console/",
    run: run,
}

/// The maximum number of stored lines.
const MAX_LINES: usize = 1000;
/// The maximum length of a stored line.
const MAX_CHARS: usize = 10 * 1024;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let console = facts.get::<Console>()?;
    let connections = facts.get::<FailedConnections>()?;
    let mut items: Vec<ConsoleLine> = console
        .0
        .iter()
        .filter(|entry| entry.level == "error")
        .take(MAX_LINES)
        .filter(|entry| !entry.text.contains("ERR_BLOCKED_BY_CLIENT.Inspector"))
        .map(|entry| ConsoleLine {
            text: connections
                .without_proxy(&entry.text, &entry.url)
                .chars()
                .take(MAX_CHARS)
                .collect(),
            source: entry.source.clone(),
            url: entry.url.clone(),
            line: entry.line,
            column: entry.column,
            original: None,
        })
        .map(|line| OriginalPlaces::add_to_line(facts, line))
        .collect();
    if items.is_empty() {
        return Ok(Outcome::pass());
    }
    items.sort_by(|a, b| a.text.cmp(&b.text));
    let summary = count(items.len(), "error", "errors");
    Ok(Outcome::fail(summary).with(Details::Console { items }))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Details, Verdict};

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(level: &str, text: &str) -> Verdict {
        let console = format!(r#"[{{"source": "network", "level": "{level}", "text": "{text}"}}]"#);
        Visit::new().with("console", &console).verdict(CHECK)
    }

    #[test]
    fn errors_name_their_place_in_the_source() {
        let console = r#"[{"source": "exception", "level": "error", "text": "Uncaught", "line": 0,
            "url": "https://a.test/app.js", "column": 83}]"#;
        let originals = r#"[
            {"url": "https://a.test/app.js", "line": 0, "column": 9,
             "original": {"source": "src/other.ts", "line": 1, "column": 1}},
            {"url": "https://a.test/app.js", "line": 0, "column": 83,
             "original": {"source": "src/cart.ts", "line": 5, "column": 2}}]"#;
        let original = |visit: Visit| match visit.with("console", console).judge(CHECK).details {
            Some(Details::Console { items }) => items[0].original.clone(),
            _ => panic!("the check lists lines of the console"),
        };
        assert_eq!(original(Visit::new()), None);
        let visit = Visit::new().with("original-places", originals);
        let original = original(visit).unwrap();
        assert_eq!((&original.source[..], original.line), ("src/cart.ts", 5));
    }

    #[test]
    fn an_error_fails_and_a_warning_does_not() {
        assert_eq!(verdict("error", "404"), Verdict::Fail);
        assert_eq!(verdict("error", ""), Verdict::Fail);
        assert_eq!(verdict("warning", "404"), Verdict::Pass);
        assert_eq!(
            verdict("error", "net::ERR_BLOCKED_BY_CLIENT.Inspector"),
            Verdict::Pass
        );
        assert_eq!(
            Visit::new().with("console", "[]").verdict(CHECK),
            Verdict::Pass
        );
    }

    #[test]
    fn a_failed_connection_has_the_error_that_a_visitor_gets() {
        let console = r#"[{"source": "network", "level": "error", "url": "https://gone.test/a.js",
            "text": "Failed to load resource: net::ERR_SOCKS_CONNECTION_FAILED"}]"#;
        let failed = r#"[{"host": "gone.test", "port": 443, "error": "ERR_NAME_NOT_RESOLVED"}]"#;
        let outcome = Visit::new()
            .with("console", console)
            .with("failedConnections", failed)
            .judge(CHECK);
        let details = serde_json::to_string(&outcome.details).unwrap();
        assert!(details.contains("net::ERR_NAME_NOT_RESOLVED"), "{details}");
        assert!(!details.contains("SOCKS"), "{details}");
    }

    #[test]
    fn without_a_console_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
