use plumbline_model::check::{Cell, Findings, Row, SourceLocation, Unit};
use plumbline_trace::{Resource, Trace};

use crate::checks::{Outcome, check, count};
use crate::facts::{
    Facts, Legacy, Missing, OriginalPlaces, Script, Scripts, compression, loaded, time_saved,
};

check! {
    /// # What
    /// Scripts contain no polyfills or transforms that current browsers do not need.
    ///
    /// # Why
    /// Every visitor downloads and runs polyfills and transpiled code whose features browsers
    /// support natively.
    ///
    /// # Scored
    /// Does not affect the score. Lists scripts of the main frame with 5,000 bytes or more of
    /// polyfills and transforms that no Baseline browser needs, and where in the script they are.
    ///
    /// # Fix
    /// Set the transpiler's browser targets (browserslist) to those you support, and remove
    /// polyfills that none of them needs.
    ///
    /// # Source
    /// Lighthouse 13.5, `legacy-javascript-insight`; trace engine, insights/LegacyJavaScript;
    /// legacy-javascript 0.0.1.
    id: "legacy-javascript-insight",
    pass: "No legacy JavaScript",
    fail: "Legacy JavaScript",
    learn: "https://developer.chrome.com/docs/performance/insights/legacy-javascript",
    run: run,
}

const MIN_BYTES: f64 = 5000.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let scripts = facts.get::<Scripts>()?;
    let trace = facts.get::<Trace>()?;
    if scripts.has_text() && !scripts.0.iter().any(Script::was_read) {
        return Err(Missing(
            "the source text of the scripts was not gathered".to_owned(),
        ));
    }
    let mut legacy_scripts: Vec<(&Script, &Legacy, Option<&Resource>, f64)> = scripts
        .0
        .iter()
        .filter(|script| script.frame.is_empty() || script.frame == trace.frames.main_id)
        .filter_map(|script| Some((script, script.legacy.as_ref()?)))
        .filter(|(_, legacy)| legacy.bytes >= MIN_BYTES)
        .map(|(script, legacy)| {
            let resource = loaded(&trace).find(|resource| resource.url == script.url);
            let bytes = (legacy.bytes * resource.map_or(1.0, compression)).round();
            (script, legacy, resource, bytes)
        })
        .collect();
    legacy_scripts.sort_by(|a, b| b.3.total_cmp(&a.3));
    let wasted: Vec<(&str, f64)> = legacy_scripts
        .iter()
        .filter_map(|(_, _, resource, bytes)| Some((resource.as_ref()?.id.as_str(), *bytes)))
        .collect();
    let wasted_bytes: f64 = wasted.iter().map(|(_, bytes)| bytes).sum();
    let outcome = match legacy_scripts.len() {
        0 => Outcome::pass(),
        number => Outcome::fail(format!(
            "{} code that current browsers do not need.",
            count(number, "script ships", "scripts ship")
        )),
    };
    let table = Findings::new([
        ("url", "Script", Unit::Url),
        ("signal", "Polyfill or transform", Unit::Text),
        ("wastedBytes", "Wasted", Unit::Bytes),
    ])
    .rows(
        legacy_scripts
            .iter()
            .map(|(script, legacy, _, bytes)| row(facts, script, legacy, *bytes)),
    );
    Ok(outcome
        .with(table.into())
        .with_savings(time_saved(facts, &wasted).with_bytes(wasted_bytes)))
}

fn row(facts: &Facts, script: &Script, legacy: &Legacy, bytes: f64) -> Row {
    let parts = legacy.signals.iter().map(|signal| {
        let place = SourceLocation {
            url: script.url.clone(),
            line: signal.line,
            column: signal.column,
            ..SourceLocation::default()
        };
        let place = OriginalPlaces::add_to(facts, place);
        Row::new([Cell::Source(place), Cell::text(&signal.name), Cell::Nothing])
    });
    Row::new([Cell::url(&script.url), Cell::Nothing, Cell::Bytes(bytes)]).with(parts)
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::json;

    use super::super::traced::Traced;
    use super::CHECK;

    const SCRIPT: &str = "https://example.test/a.js";

    fn judge(script: &str) -> (Verdict, Option<f64>) {
        let gzip = json!({"headers": [{"name": "content-encoding", "value": "gzip"}]});
        let traced = Traced::new().loads(
            "2.1",
            SCRIPT,
            150,
            500,
            json!({}),
            gzip,
            json!({"encodedDataLength": 5000, "decodedBodyLength": 10_000}),
        );
        let outcome = traced
            .visit()
            .with("scripts", &format!("[{script}]"))
            .judge(CHECK);
        (
            outcome.verdict,
            outcome.savings.and_then(|savings| savings.wasted_bytes),
        )
    }

    #[test]
    fn from_5000_bytes_on_legacy_code_counts_by_transfer_size() {
        let script = |bytes: u32, frame: &str| {
            format!(
                r#"{{"url": "{SCRIPT}", "frame": "{frame}", "length": 9, "tokenLength": 9,
                    "legacy": {{"bytes": {bytes}, "signals": [{{"name": "Math.log2"}}]}}}}"#
            )
        };
        assert_eq!(judge(&script(6000, "F")), (Verdict::Fail, Some(3000.0)));
        assert_eq!(judge(&script(4999, "F")).0, Verdict::Pass);
        assert_eq!(
            judge(&script(6000, "G")).0,
            Verdict::Pass,
            "another frame's"
        );
        let unread = r#"{"url": "x", "length": 9}"#;
        assert_eq!(judge(unread).0, Verdict::CouldNotMeasure);
        let empty = r#"{"url": "x", "length": 0}"#;
        assert_eq!(judge(empty).0, Verdict::Pass, "nothing is missing of it");
    }
}
