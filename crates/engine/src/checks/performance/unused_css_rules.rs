use super::wasted_bytes::{self, WastefulFile};
use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, Requests, StyleSheet, StyleSheets, TextKind};

check! {
    /// # What
    /// The page uses most of the CSS that it loads.
    ///
    /// # Why
    /// Unused rules delay the first paint and cost bytes like all others.
    ///
    /// # Scored
    /// Does not affect the score. Lists style sheets of which more than 10 KiB, as transferred, are
    /// rules that match nothing on the page.
    ///
    /// # Fix
    /// Split style sheets by page, and remove rules that no template uses in the build.
    ///
    /// # Source
    /// Lighthouse 13.5, `unused-css-rules`. Bytes are estimated, no time: estimates agreed with
    /// what the removal of the rules saved in 6 of 10 cases only.
    id: "unused-css-rules",
    pass: "Little unused CSS",
    fail: "Unused CSS",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/unused-css-rules/",
    run: run,
}

const MIN_WASTED_BYTES: f64 = 10.0 * 1024.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let sheets = facts.get::<StyleSheets>()?;
    let requests = facts.get::<Requests>()?;
    let wastes = sheets.0.iter().filter_map(|sheet| judge(&requests, sheet));
    let outcome = wasted_bytes::outcome(facts, wastes.collect(), "style sheet", "style sheets");
    Ok(wasted_bytes::without_time(outcome))
}

fn judge(requests: &Requests, sheet: &StyleSheet) -> Option<WastefulFile> {
    let mut of_url = requests.all.iter().rev();
    let request =
        of_url.find(|request| request.resource_bytes() > 0.0 && request.url.as_str() == sheet.url);
    let total_bytes = TextKind::StyleSheet.body_bytes(request, sheet.length);
    let share = (sheet.length - sheet.used_length) / sheet.length;
    let wasted_bytes = (share * total_bytes).round();
    (wasted_bytes > MIN_WASTED_BYTES).then(|| WastefulFile {
        name: name(sheet),
        total_bytes,
        wasted_bytes,
        parts: Vec::new(),
    })
}

/// Returns the URL of the style sheet, or the beginning of an inline one.
pub(super) fn name(sheet: &StyleSheet) -> String {
    if sheet.has_url() {
        sheet.url.clone()
    } else {
        format!("inline: {}…", sheet.preview)
    }
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(sheet: &str) -> Verdict {
        let sheets = format!("[{sheet}]");
        Visit::new().with("style-sheets", &sheets).verdict(CHECK)
    }

    #[test]
    fn more_than_10_kib_of_unmatched_rules_fail() {
        let of_used = |used: u32| format!(r#"{{"length": 100000, "usedLength": {used}}}"#);
        // Without its request a sheet is assumed to be transferred at a fifth of its length.
        assert_eq!(verdict(&of_used(48_000)), Verdict::Fail);
        assert_eq!(verdict(&of_used(49_000)), Verdict::Pass);
        assert_eq!(verdict(""), Verdict::Pass);
    }

    #[test]
    fn without_the_style_sheets_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
