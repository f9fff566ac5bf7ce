use super::wasted_bytes::{self, WastefulFile};
use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, Module, Requests, Script, Scripts, transferred_share};

check! {
    /// # What
    /// The page runs most of the JavaScript that it loads.
    ///
    /// # Why
    /// Code that is never called still has to be downloaded and parsed.
    ///
    /// # Scored
    /// Does not affect the score. Lists scripts of which more than 20 KiB, as transferred, belong
    /// to functions that were not called while the page loaded.
    ///
    /// # Fix
    /// Split bundles by page, and load code for interactions on demand.
    ///
    /// # Source
    /// Lighthouse 13.5, `unused-javascript`: by file, with the five largest sources of each file
    /// that has a source map.
    id: "unused-javascript",
    pass: "Little unused JavaScript",
    fail: "Unused JavaScript",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/unused-javascript/",
    run: run,
}

const MIN_WASTED_BYTES: f64 = 20.0 * 1024.0;
/// The unused bytes from which a source of a script is listed.
const MIN_PART_BYTES: f64 = 512.0;
const MAX_PARTS: usize = 5;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let scripts = facts.get::<Scripts>()?;
    let requests = facts.get::<Requests>()?;
    let covered = || scripts.0.iter().filter(|script| script.coverage.is_some());
    if covered().next().is_none() && scripts.has_text() {
        return Err(Missing("JavaScript coverage was not gathered".to_owned()));
    }
    let wastes = covered()
        .filter_map(|script| judge(&requests, script))
        .collect();
    Ok(wasted_bytes::outcome(facts, wastes, "script", "scripts"))
}

fn judge(requests: &Requests, script: &Script) -> Option<WastefulFile> {
    let coverage = script.coverage?;
    if coverage.unused == 0 || coverage.total == 0 {
        return None;
    }
    let share = transferred_share(requests, script);
    let file = WastefulFile {
        name: script.url.clone(),
        total_bytes: (share * coverage.total as f64).round(),
        wasted_bytes: (share * coverage.unused as f64).round(),
        parts: Vec::new(),
    };
    (file.wasted_bytes > MIN_WASTED_BYTES).then(|| WastefulFile {
        parts: parts(script, share),
        ..file
    })
}

/// Returns the sources with the most unused code.
fn parts(script: &Script, share: f64) -> Vec<WastefulFile> {
    let map = script.source_map.as_ref();
    let Some((map, modules)) = map.and_then(|map| Some((map, map.modules.as_ref()?))) else {
        return Vec::new();
    };
    let prefix = common_prefix(modules);
    let mapped: u64 = modules.iter().map(|module| module.length).sum();
    let unmapped = (script.length.saturating_sub(mapped), map.unmapped_unused);
    let mut parts: Vec<(String, u64, u64)> = modules
        .iter()
        .map(|module| {
            let name = if prefix.is_empty() {
                module.source.clone()
            } else {
                format!("…{}", &module.source[prefix.len()..])
            };
            (name, module.length, module.unused)
        })
        .chain([("(unmapped)".to_owned(), unmapped.0, unmapped.1)])
        .collect();
    parts.sort_by_key(|(_, _, unused)| std::cmp::Reverse(*unused));
    let bytes = |units: u64| (units as f64 * share).round();
    parts
        .into_iter()
        .take(MAX_PARTS)
        .map(|(name, length, unused)| WastefulFile {
            name,
            total_bytes: bytes(length),
            wasted_bytes: bytes(unused),
            parts: Vec::new(),
        })
        .filter(|part| part.wasted_bytes >= MIN_PART_BYTES)
        .collect()
}

/// Returns the prefix that all module names share, which is the build's directory. The first and
/// last name in sorted order differ the most.
fn common_prefix(modules: &[Module]) -> &str {
    let names = || modules.iter().map(|module| module.source.as_str());
    let (Some(first), Some(last)) = (names().min(), names().max()) else {
        return "";
    };
    let pairs = first.char_indices().zip(last.chars());
    let end = pairs
        .filter(|((_, a), b)| a != b)
        .map(|((at, _), _)| at)
        .next();
    &first[..end.unwrap_or(first.len())]
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Cell, Details, Verdict};

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(scripts: &str) -> Verdict {
        Visit::new().with("scripts", scripts).verdict(CHECK)
    }

    #[test]
    fn more_than_20_kib_of_uncalled_functions_fail() {
        let script = |unused: u32| {
            format!(
                r#"[{{"url": "https://a.test/a.js", "length": 100000,
                     "coverage": {{"total": 100000, "unused": {unused}}}}}]"#
            )
        };
        // Without its request a script is assumed to be transferred at a third of its length.
        assert_eq!(verdict(&script(63_000)), Verdict::Fail);
        assert_eq!(verdict(&script(62_000)), Verdict::Pass);
        assert_eq!(verdict(&script(0)), Verdict::Pass);
    }

    #[test]
    fn a_page_without_scripts_passes() {
        assert_eq!(verdict("[]"), Verdict::Pass);
    }

    #[test]
    fn without_coverage_it_cannot_be_measured() {
        let of_yesterday = r#"[{"url": "https://a.test/a.js", "length": 100000}]"#;
        assert_eq!(verdict(of_yesterday), Verdict::CouldNotMeasure);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }

    #[test]
    fn the_sources_of_a_bundle_are_listed_separately() {
        let script = r#"[{"url": "https://a.test/a.js", "length": 300000,
            "coverage": {"total": 300000, "unused": 200000},
            "sourceMap": {"unmappedUnused": 9000, "modules": [
                {"source": "build/src/a.js", "length": 200000, "unused": 150000},
                {"source": "build/src/small.js", "length": 1600, "unused": 1500},
                {"source": "build/lib/b.js", "length": 60000, "unused": 40000}]}}]"#;
        let outcome = Visit::new().with("scripts", script).judge(CHECK);
        let Some(Details::Findings(table)) = outcome.details else {
            panic!("no table");
        };
        let rows = table.rows[0].sub_rows.iter();
        let parts: Vec<(&Cell, &Cell)> = rows.map(|row| (&row.cells[0], &row.cells[2])).collect();
        // A third of the length is assumed to be transferred.
        let part = |name: &str, bytes| (Cell::text(name), Cell::Bytes(bytes));
        let expected = [
            part("…src/a.js", 49_500.0),
            part("…lib/b.js", 13_200.0),
            part("(unmapped)", 2_970.0),
        ];
        assert_eq!(
            parts,
            expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>()
        );
    }
}
