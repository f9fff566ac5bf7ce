use super::wasted_bytes::{self, Wasting};
use crate::checks::{Outcome, check};
use crate::facts::{Artifact, Facts, Missing, Requests, StyleSheet, StyleSheets, TextKind};

check! {
    /// # What
    /// Style sheets are for the page that loads them.
    ///
    /// # Why
    /// The first paint waits for every rule, also for those that match nothing.
    ///
    /// # Scored
    /// Weighs nothing. Lists style sheets of which more than 10 KiB, as transferred, are in rules that match nothing
    /// on the page as it stands.
    ///
    /// # Fix
    /// Split styles by page, and let your bundler leave out what no template uses.
    ///
    /// # Source
    /// Lighthouse 13.5, `unused-css-rules`.
    id: "unused-css-rules",
    pass: "Few style rules are loaded in vain",
    fail: "Style rules are loaded in vain",
    needs: [StyleSheets::NAME, Requests::NAME],
    run: run,
}

const MIN_WASTED_BYTES: f64 = 10.0 * 1024.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let sheets = facts.get::<StyleSheets>()?;
    let requests = facts.get::<Requests>()?;
    let found = sheets.0.iter().filter_map(|sheet| judge(&requests, sheet));
    Ok(wasted_bytes::outcome(
        facts,
        found.collect(),
        "style sheet",
        "style sheets",
    ))
}

fn judge(requests: &Requests, sheet: &StyleSheet) -> Option<Wasting> {
    let mut of_url = requests.all.iter().rev();
    let request =
        of_url.find(|request| request.resource_bytes > 0.0 && request.url.as_str() == sheet.url);
    let total_bytes = TextKind::StyleSheet.body_bytes(request, sheet.length);
    let share = (sheet.length - sheet.used_length) / sheet.length;
    let wasted_bytes = (share * total_bytes).round();
    (wasted_bytes > MIN_WASTED_BYTES).then(|| Wasting {
        name: name(sheet),
        total_bytes,
        wasted_bytes,
        parts: Vec::new(),
    })
}

/// The address, or how the text begins.
pub(super) fn name(sheet: &StyleSheet) -> String {
    match sheet.has_address() {
        true => sheet.url.clone(),
        false => format!("inline: {}…", sheet.preview),
    }
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(sheet: &str) -> Verdict {
        let sheets = format!("[{sheet}]");
        Visit::new().with("style-sheets", &sheets).verdict(CHECK)
    }

    #[test]
    fn more_than_10_kib_of_rules_without_a_match_are_too_many() {
        let of_used = |used: u32| format!(r#"{{"length": 100000, "usedLength": {used}}}"#);
        // Without its request a sheet is taken to have come at a fifth of its length.
        assert_eq!(verdict(&of_used(48_000)), Verdict::Fail);
        assert_eq!(verdict(&of_used(49_000)), Verdict::Pass);
        assert_eq!(verdict(""), Verdict::Pass);
    }

    #[test]
    fn without_style_sheets_listed_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
