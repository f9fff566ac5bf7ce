use super::unused_css_rules::name;
use super::wasted_bytes::{self, WastefulFile};
use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, Requests, StyleSheet, StyleSheets, TextKind};

check! {
    /// # What
    /// Style sheets are served without unnecessary whitespace and comments.
    ///
    /// # Why
    /// Browsers need neither, and style sheets usually block the first paint.
    ///
    /// # Scored
    /// Does not affect the score. Lists style sheets of which 5 % or more, and 2 KiB or more as
    /// transferred, are whitespace and comments other than licences.
    ///
    /// # Fix
    /// Enable minification in the build.
    ///
    /// # Source
    /// Lighthouse 13.5, `unminified-css`; core/lib/minification-estimator.js. Bytes are estimated,
    /// no time: estimates agreed with what minification saved in 1 of 3 cases only.
    id: "unminified-css",
    pass: "Minified CSS",
    fail: "Unminified CSS",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/unminified-css/",
    run: run,
}

const MIN_SHARE: f64 = 0.05;
const MIN_WASTED_BYTES: f64 = 2048.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let sheets = facts.get::<StyleSheets>()?;
    let requests = facts.get::<Requests>()?;
    let wastes = sheets.0.iter().filter_map(|sheet| judge(&requests, sheet));
    let outcome = wasted_bytes::outcome(facts, wastes.collect(), "style sheet", "style sheets");
    Ok(wasted_bytes::without_time(outcome))
}

fn judge(requests: &Requests, sheet: &StyleSheet) -> Option<WastefulFile> {
    let mut all = requests.all.iter();
    let request = all.find(|request| request.url.as_str() == sheet.url);
    let total_bytes = TextKind::StyleSheet.transfer_bytes(request, sheet.length);
    let share = 1.0 - sheet.token_length / sheet.length;
    let wasted_bytes = (total_bytes * share).round();
    let is_worth_it = share >= MIN_SHARE && wasted_bytes >= MIN_WASTED_BYTES;
    is_worth_it.then(|| WastefulFile {
        name: name(sheet),
        total_bytes,
        wasted_bytes,
        parts: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::json;

    use super::super::traced::{Traced, conditions_slowed_by};
    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(length: u32, token_length: u32) -> Verdict {
        let sheets = format!(r#"[{{"length": {length}, "tokenLength": {token_length}}}]"#);
        Visit::new().with("style-sheets", &sheets).verdict(CHECK)
    }

    #[test]
    fn savings_of_a_twentieth_and_2_kib_are_reported() {
        assert_eq!(verdict(100_000, 80_000), Verdict::Fail);
        assert_eq!(
            verdict(20_000, 12_000),
            Verdict::Pass,
            "1,600 bytes as transferred"
        );
        assert_eq!(
            verdict(1_000_000, 960_000),
            Verdict::Pass,
            "less than a twentieth"
        );
    }

    #[test]
    fn bytes_are_estimated_and_no_time() {
        let url = "https://example.test/a.css";
        let sheets = json!([{"url": url, "length": 100_000, "tokenLength": 50_000}]);
        let outcome = Traced::new()
            .resource("2.1", url, json!({"resourceType": "Stylesheet"}), json!({}))
            .visit()
            .with("conditions", &conditions_slowed_by(1.0).to_string())
            .with("style-sheets", &sheets.to_string())
            .judge(CHECK);
        let savings = outcome.savings.unwrap();
        assert!(savings.wasted_bytes > Some(0.0));
        assert_eq!((savings.fcp_ms, savings.lcp_ms), (None, None));
        assert_eq!(outcome.figure, None);
    }

    #[test]
    fn without_the_style_sheets_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
