use super::wasted_bytes::{self, WastefulFile};
use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, Requests, Script, Scripts, TextKind, script_request};

check! {
    /// # What
    /// Scripts are served without unnecessary whitespace and comments.
    ///
    /// # Why
    /// Browsers need neither, but have to download and parse them.
    ///
    /// # Scored
    /// Does not affect the score. Lists scripts of which 10 % or more, and 2 KiB or more as
    /// transferred, are whitespace and comments other than licences.
    ///
    /// # Fix
    /// Enable minification in the build.
    ///
    /// # Source
    /// Lighthouse 13.5, `unminified-javascript`; core/lib/minification-estimator.js. Bytes are
    /// estimated, no time: estimates agreed with what minification saved in 2 of 4 cases only.
    id: "unminified-javascript",
    pass: "Minified JavaScript",
    fail: "Unminified JavaScript",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/unminified-javascript/",
    run: run,
}

const MIN_SHARE: f64 = 0.1;
const MIN_WASTED_BYTES: f64 = 2048.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let scripts = facts.get::<Scripts>()?;
    let requests = facts.get::<Requests>()?;
    if scripts.has_text() && !scripts.0.iter().any(Script::was_read) {
        return Err(Missing(
            "the source text of the scripts was not gathered".to_owned(),
        ));
    }
    let wastes = scripts
        .0
        .iter()
        .filter_map(|script| judge(&requests, script));
    let outcome = wasted_bytes::outcome(facts, wastes.collect(), "script", "scripts");
    Ok(wasted_bytes::without_time(outcome))
}

fn judge(requests: &Requests, script: &Script) -> Option<WastefulFile> {
    let length = script.length as f64;
    let share = 1.0 - script.token_length? as f64 / length;
    let total_bytes = TextKind::Script.body_bytes(script_request(requests, script), length);
    let wasted_bytes = (total_bytes * share).round();
    let is_worth_it = share >= MIN_SHARE && wasted_bytes >= MIN_WASTED_BYTES;
    is_worth_it.then(|| WastefulFile {
        name: if script.is_inline {
            format!("inline: {}…", script.preview)
        } else {
            script.url.clone()
        },
        total_bytes,
        wasted_bytes,
        parts: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(length: u32, token_length: u32) -> Verdict {
        let script = format!(
            r#"[{{"url": "https://a.test/a.js", "length": {length}, "tokenLength": {token_length}}}]"#
        );
        Visit::new().with("scripts", &script).verdict(CHECK)
    }

    #[test]
    fn savings_of_a_tenth_and_2_kib_are_reported() {
        assert_eq!(verdict(20_000, 12_000), Verdict::Fail);
        assert_eq!(
            verdict(20_000, 14_000),
            Verdict::Pass,
            "1,980 bytes as transferred"
        );
        assert_eq!(
            verdict(200_000, 180_100),
            Verdict::Pass,
            "less than a tenth"
        );
        assert_eq!(verdict(0, 0), Verdict::Pass);
    }

    #[test]
    fn without_texts_it_cannot_be_measured() {
        let of_yesterday = r#"[{"url": "https://a.test/a.js", "length": 9}]"#;
        let visit = Visit::new().with("scripts", of_yesterday);
        assert_eq!(visit.verdict(CHECK), Verdict::CouldNotMeasure);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
