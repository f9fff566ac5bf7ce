use crate::checks::{Cell, Findings, Outcome, Row, Unit, check, count};
use crate::facts::{Artifact, BackForward, Facts, Missing, NotRestored};

check! {
    /// # What
    /// The browser can keep the page when a visitor leaves it, and show it at once when they come back.
    ///
    /// # Why
    /// Many navigations are steps back or forward. From this cache they take no time at all.
    ///
    /// # Scored
    /// Fails when the page, left and returned to after it was measured, had to be loaded again; the browser says
    /// why.
    ///
    /// # Fix
    /// Use `pagehide` instead of `unload`, drop `Cache-Control: no-store` where it is not needed, and close
    /// connections when the page is hidden.
    ///
    /// # Source
    /// Lighthouse 13.5, `bf-cache`; DevTools protocol, `Page.backForwardCacheNotUsed`.
    id: "bf-cache",
    pass: "The page can be kept for going back to",
    fail: "The page cannot be kept for going back to",
    needs: [BackForward::NAME],
    run: run,
}

/// In the order of the report: first what the page itself can change.
const KINDS: [(&str, &str); 3] = [
    ("PageSupportNeeded", "The page can be changed"),
    ("SupportPending", "The browser does not support it yet"),
    ("Circumstantial", "Not in the page's hands"),
];

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let found = facts.get::<BackForward>()?;
    if found.was_restored || found.reasons.is_empty() {
        return Ok(Outcome::pass());
    }
    let mut rows = Vec::new();
    let mut frames = 0;
    for (kind, label) in KINDS {
        let of_kind: Vec<&NotRestored> = found
            .reasons
            .iter()
            .filter(|why| why.kind == kind)
            .collect();
        let mut names: Vec<&str> = Vec::new();
        for why in &of_kind {
            if !names.contains(&why.reason.as_str()) {
                names.push(&why.reason);
            }
        }
        for name in names {
            let urls = of_kind.iter().filter(|why| why.reason == name);
            let urls: Vec<Row> = urls
                .filter_map(|why| why.frame_url.as_ref())
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
        ("failureType", "Who can change it", Unit::Text),
        ("protocolReason", "The browser's word", Unit::Text),
    ])
    .rows(rows);
    Ok(Outcome::fail(format!("The browser gave {summary}.")).with(table.into()))
}

/// `UnloadHandlerExistsInMainFrame`: Unload handler exists in main frame.
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
    use super::{CHECK, in_words};
    use crate::checks::Verdict;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_page_that_had_to_be_loaded_again_says_why() {
        let judge = |json: &str| Visit::new().with("back-forward-cache", json).judge(CHECK);
        let kept = judge(r#"{"wasRestored": true, "reasons": []}"#);
        assert_eq!(kept.verdict, Verdict::Pass);
        let lost = judge(
            r#"{"wasRestored": false, "reasons": [
                {"reason": "WebSocket", "kind": "Circumstantial", "frameUrl": "https://a.test/"},
                {"reason": "UnloadHandler", "kind": "PageSupportNeeded", "frameUrl": "https://a.test/"},
                {"reason": "UnloadHandler", "kind": "PageSupportNeeded", "frameUrl": "https://b.test/"}]}"#,
        );
        assert_eq!(lost.verdict, Verdict::Fail);
        assert_eq!(lost.summary.as_deref(), Some("The browser gave 3 reasons."));
        let text = serde_json::to_string(&lost.details.unwrap()).unwrap();
        assert!(text.find("UnloadHandler").unwrap() < text.find("WebSocket").unwrap());
        assert!(text.contains("https://b.test/"));
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }

    #[test]
    fn the_browsers_word_is_taken_apart() {
        assert_eq!(in_words("UnloadHandlerExists"), "Unload handler exists");
        assert_eq!(in_words("WebRTC"), "Web rtc");
    }
}
