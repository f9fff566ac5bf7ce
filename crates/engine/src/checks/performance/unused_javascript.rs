use super::wasted_bytes::{self, Wasting};
use crate::checks::{Outcome, check};
use crate::facts::{Artifact, Facts, Missing, Requests, Script, Scripts, TextKind, script_request};

check! {
    /// # What
    /// Scripts run on the page that loads them.
    ///
    /// # Why
    /// What is loaded and not run costs bytes, and time to read.
    ///
    /// # Scored
    /// Weighs nothing. Lists scripts of which more than 20 KiB, as transferred, belong to functions that were not
    /// called while the page loaded.
    ///
    /// # Fix
    /// Split bundles by page, and load what a click needs when it is clicked.
    ///
    /// # Source
    /// Lighthouse 13.5, `unused-javascript`. Parts of a bundle are not told apart by its source map.
    id: "unused-javascript",
    pass: "Little JavaScript is loaded in vain",
    fail: "JavaScript is loaded in vain",
    needs: [Scripts::NAME, Requests::NAME],
    run: run,
}

const MIN_WASTED_BYTES: f64 = 20.0 * 1024.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let scripts = facts.get::<Scripts>()?;
    let requests = facts.get::<Requests>()?;
    let covered = || scripts.0.iter().filter(|script| script.coverage.is_some());
    if covered().next().is_none() && !scripts.0.is_empty() {
        return Err(Missing("which functions ran was not gathered".to_owned()));
    }
    let found = covered()
        .filter_map(|script| judge(&requests, script))
        .collect();
    Ok(wasted_bytes::outcome(facts, found, "script", "scripts"))
}

fn judge(requests: &Requests, script: &Script) -> Option<Wasting> {
    let coverage = script.coverage?;
    if coverage.unused == 0 || coverage.total == 0 {
        return None;
    }
    let request = script_request(requests, script);
    let length = request
        .map(|request| request.resource_bytes)
        .filter(|bytes| *bytes > 0.0)
        .unwrap_or(script.length as f64);
    let share = TextKind::Script.body_bytes(request, length) / length;
    let wasting = Wasting {
        name: script.url.clone(),
        total_bytes: (share * coverage.total as f64).round(),
        wasted_bytes: (share * coverage.unused as f64).round(),
    };
    (wasting.wasted_bytes > MIN_WASTED_BYTES).then_some(wasting)
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(scripts: &str) -> Verdict {
        Visit::new().with("scripts", scripts).verdict(CHECK)
    }

    #[test]
    fn more_than_20_kib_in_functions_that_never_ran_are_too_much() {
        let script = |unused: u32| {
            format!(
                r#"[{{"url": "https://a.test/a.js", "length": 100000,
                     "coverage": {{"total": 100000, "unused": {unused}}}}}]"#
            )
        };
        // Without its request a script is taken to have come at a third of its length.
        assert_eq!(verdict(&script(63_000)), Verdict::Fail);
        assert_eq!(verdict(&script(62_000)), Verdict::Pass);
        assert_eq!(verdict(&script(0)), Verdict::Pass);
    }

    #[test]
    fn a_page_without_scripts_wastes_none() {
        assert_eq!(verdict("[]"), Verdict::Pass);
    }

    #[test]
    fn without_coverage_it_cannot_be_measured() {
        let of_yesterday = r#"[{"url": "https://a.test/a.js", "length": 100000}]"#;
        assert_eq!(verdict(of_yesterday), Verdict::CouldNotMeasure);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
