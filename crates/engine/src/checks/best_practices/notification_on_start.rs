use super::permission::requested_on_start;
use crate::checks::check;

check! {
    /// # What
    /// The page does not request the notification permission on page load.
    ///
    /// # Why
    /// Visitors distrust permission prompts without context and deny them, and browsers remember
    /// the denial.
    ///
    /// # Scored
    /// Fails when Chromium reports that a script requested the permission without a user gesture.
    ///
    /// # Fix
    /// Request the permission after a user action that leads to notifications, and explain their
    /// purpose.
    ///
    /// # Source
    /// Lighthouse 13.5, `dobetterweb/notification-on-start`.
    id: "notification-on-start",
    pass: "No notification prompt on page load",
    fail: "Notification permission is requested on page load",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/notification-on-start/",
    run: |facts| requested_on_start(facts, "notification permission"),
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn entry(source: &str, text: &str, url: &str) -> String {
        format!(
            r#"{{"source": "{source}", "level": "verbose", "text": "{text}", "url": "{url}", "line": 3}}"#
        )
    }

    #[test]
    fn a_request_on_load_fails_and_is_listed_once() {
        let violation = entry(
            "violation",
            "Only request notification permission in response to a user gesture.",
            "https://example.test/a.js",
        );
        let outcome = Visit::new()
            .with("console", &format!("[{violation},{violation}]"))
            .judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(outcome.details.map(|details| details.len()), Some(1));
    }

    #[test]
    fn other_messages_pass() {
        for other in [
            entry(
                "other",
                "Only request notification permission in response to a user gesture.",
                "https://example.test/a.js",
            ),
            entry(
                "violation",
                "Only request notification permission in response to a user gesture.",
                "",
            ),
            entry(
                "violation",
                "Forced reflow while executing JavaScript took 60ms",
                "https://example.test/a.js",
            ),
        ] {
            let visit = Visit::new().with("console", &format!("[{other}]"));
            assert_eq!(visit.verdict(CHECK), Verdict::Pass, "{other}");
        }
    }

    #[test]
    fn without_a_console_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
