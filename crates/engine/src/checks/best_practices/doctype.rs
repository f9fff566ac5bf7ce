use crate::checks::{Outcome, check};
use crate::facts::{Doctype, Facts, Issues, MainResource, Missing, PageProperties};

check! {
    /// # What
    /// The document begins with `<!doctype html>`.
    ///
    /// # Why
    /// Without it browsers switch to quirks mode, which emulates the layout bugs of old browsers.
    ///
    /// # Scored
    /// Fails without a doctype, and with one that triggers quirks mode or limited quirks mode.
    ///
    /// # Fix
    /// Make `<!doctype html>` the very first thing in the document.
    ///
    /// # Source
    /// Lighthouse 13.5, `dobetterweb/doctype`; the HTML standard on quirks mode.
    id: "doctype",
    pass: "HTML doctype",
    fail: "No HTML doctype",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/doctype/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let page = facts.get::<PageProperties>()?;
    let Some(doctype) = &page.doctype else {
        return Ok(Outcome::fail("The document has no doctype."));
    };
    Ok(if is_limited_quirks(facts) {
        Outcome::fail("The doctype triggers limited quirks mode.")
    } else if page.compat_mode == "CSS1Compat" {
        Outcome::pass()
    } else {
        Outcome::fail(fault(doctype))
    })
}

/// Returns whether the document is in limited quirks mode. Only Chromium's issues report it;
/// without them it is assumed not to be.
fn is_limited_quirks(facts: &Facts) -> bool {
    let (Ok(issues), Ok(main)) = (facts.get::<Issues>(), facts.get::<MainResource>()) else {
        return false;
    };
    issues
        .quirks_mode
        .iter()
        .any(|issue| issue.is_limited_quirks_mode && issue.frame_id == main.0.exchange.frame_id())
}

fn fault(doctype: &Doctype) -> &'static str {
    if !doctype.public_id.is_empty() {
        "The doctype has a public identifier."
    } else if !doctype.system_id.is_empty() {
        "The doctype has a system identifier."
    } else if doctype.name != "html" {
        "The doctype is not html."
    } else {
        "The document is in quirks mode."
    }
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn visit(compat_mode: &str, doctype: &str) -> Visit {
        let page = format!(r#"{{"compatMode": "{compat_mode}", "doctype": {doctype}}}"#);
        Visit::new().with("page", &page)
    }

    #[test]
    fn standards_mode_passes_and_quirks_mode_fails() {
        let html = r#"{"name": "html", "publicId": "", "systemId": ""}"#;
        assert_eq!(visit("CSS1Compat", html).verdict(CHECK), Verdict::Pass);
        assert_eq!(visit("BackCompat", html).verdict(CHECK), Verdict::Fail);
        assert_eq!(visit("BackCompat", "null").verdict(CHECK), Verdict::Fail);
        let old = r#"{"name": "html", "publicId": "-//W3C//DTD HTML 3.2//EN"}"#;
        assert_eq!(visit("BackCompat", old).verdict(CHECK), Verdict::Fail);
    }

    #[test]
    fn limited_quirks_mode_fails_in_the_main_frame_only() {
        let issue = |frame: &str| {
            format!(
                r#"[{{"details": {{"quirksModeIssueDetails":
                    {{"isLimitedQuirksMode": true, "frameId": "{frame}"}}}}}}]"#
            )
        };
        let page = || visit("CSS1Compat", r#"{"name": "html"}"#);
        assert_eq!(
            page().with("issues", &issue("main-frame")).verdict(CHECK),
            Verdict::Fail
        );
        assert_eq!(
            page().with("issues", &issue("another")).verdict(CHECK),
            Verdict::Pass
        );
    }

    #[test]
    fn without_the_page_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
