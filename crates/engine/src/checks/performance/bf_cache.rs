use plumbline_model::check::{Cell, Findings, Row, Unit};

use crate::checks::{Outcome, check, count};
use crate::facts::{BackForward, Facts, Missing, NotRestored};

check! {
    /// # What
    /// The browser can keep the page in the back/forward cache (bfcache) when a visitor leaves it.
    ///
    /// # Why
    /// Many navigations go back or forward. The cache makes them instant.
    ///
    /// # Scored
    /// Fails when the page had to be loaded again after navigating away and back at the end of the
    /// visit. Lists the browser's reasons.
    ///
    /// # Fix
    /// Use `pagehide` instead of `unload`, remove `Cache-Control: no-store` where it is not needed,
    /// and close connections on `pagehide`.
    ///
    /// # Source
    /// Lighthouse 13.5, `bf-cache`; DevTools protocol, `Page.backForwardCacheNotUsed`.
    id: "bf-cache",
    pass: "Back/forward cache works",
    fail: "Back/forward cache does not work",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/bf-cache/",
    run: run,
}

/// The kinds of reasons with their labels, in the order of the report: those that the page can fix
/// come first.
const KINDS: [(&str, &str); 3] = [
    ("PageSupportNeeded", "Can be fixed in the page"),
    ("SupportPending", "Not yet supported by the browser"),
    ("Circumstantial", "Cannot be fixed in the page"),
];

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let back_forward = facts.get::<BackForward>()?;
    if back_forward.was_restored || back_forward.reasons.is_empty() {
        return Ok(Outcome::pass());
    }
    let mut rows = Vec::new();
    let mut frames = 0;
    for (kind, label) in KINDS {
        let of_kind: Vec<&NotRestored> = back_forward
            .reasons
            .iter()
            .filter(|entry| entry.kind == kind)
            .collect();
        let mut names: Vec<&str> = Vec::new();
        for entry in &of_kind {
            if !names.contains(&entry.reason.as_str()) {
                names.push(&entry.reason);
            }
        }
        for name in names {
            let urls = of_kind.iter().filter(|entry| entry.reason == name);
            let urls: Vec<Row> = urls
                .filter_map(|entry| entry.frame_url.as_ref())
                .map(|url| Row::new([Cell::url(url), Cell::Nothing, Cell::Nothing]))
                .collect();
            frames += urls.len();
            let cells = [in_words(name), label.to_owned(), name.to_owned()];
            rows.push(Row::new(cells.map(Cell::Text)).with(urls));
        }
    }
    let summary = count(frames.max(rows.len()), "reason", "reasons");
    let table = Findings::new([
        ("reason", "Reason", Unit::Text),
        ("failureType", "Failure type", Unit::Text),
        ("protocolReason", "Chromium reason", Unit::Text),
    ])
    .rows(rows);
    Ok(Outcome::fail(format!("The browser reported {summary}.")).with(table.into()))
}

/// Turns an identifier into words: `UnloadHandlerExistsInMainFrame` becomes
/// `Unload handler exists in main frame`.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    let mut was_upper = true;
    for (at, letter) in name.char_indices() {
        let is_upper = letter.is_ascii_uppercase();
        if is_upper && !was_upper {
            words.push(' ');
        }
        match at {
            0 => words.push(letter),
            _ => words.push(letter.to_ascii_lowercase()),
        }
        was_upper = is_upper;
    }
    words
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::{CHECK, in_words};
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_page_that_was_not_restored_has_reasons() {
        let judge = |json: &str| Visit::new().with("back-forward-cache", json).judge(CHECK);
        let outcome = judge(r#"{"wasRestored": true, "reasons": []}"#);
        assert_eq!(outcome.verdict, Verdict::Pass);
        let lost = judge(
            r#"{"wasRestored": false, "reasons": [
                {"reason": "WebSocket", "kind": "Circumstantial", "frameUrl": "https://a.test/"},
                {"reason": "UnloadHandler", "kind": "PageSupportNeeded", "frameUrl": "https://a.test/"},
                {"reason": "UnloadHandler", "kind": "PageSupportNeeded", "frameUrl": "https://b.test/"}]}"#,
        );
        assert_eq!(lost.verdict, Verdict::Fail);
        assert_eq!(
            lost.summary.as_deref(),
            Some("The browser reported 3 reasons.")
        );
        let text = serde_json::to_string(&lost.details.unwrap()).unwrap();
        assert!(text.find("UnloadHandler").unwrap() < text.find("WebSocket").unwrap());
        assert!(text.contains("https://b.test/"));
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }

    #[test]
    fn reason_names_are_split_into_words() {
        assert_eq!(in_words("UnloadHandlerExists"), "Unload handler exists");
        assert_eq!(in_words("WebRTC"), "Web rtc");
    }
}
