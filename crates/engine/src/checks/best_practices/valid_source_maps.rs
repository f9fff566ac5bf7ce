use plumbline_model::check::{Details, Verdict};
use plumbline_vendored::entities;

use crate::checks::{Outcome, check};
use crate::facts::{Facts, MainResource, Missing, Script, Scripts};

check! {
    /// # What
    /// Large first-party scripts have source maps.
    ///
    /// # Why
    /// Source maps let developers debug minified code in production.
    ///
    /// # Scored
    /// Does not affect the score. Fails when a first-party script of 500 KiB or more has no usable
    /// source map; other errors in source maps are listed.
    ///
    /// # Fix
    /// Generate source maps in the build, and serve them at the URL in the script's
    /// `sourceMappingURL` comment.
    ///
    /// # Source
    /// Lighthouse 13.5, `valid-source-maps`; first-party scripts are those of the page's
    /// organisation.
    id: "valid-source-maps",
    pass: "Source maps for large scripts",
    fail: "Missing source maps for large scripts",
    learn: "https://developer.chrome.com/docs/devtools/javascript/source-maps/",
    run: run,
}

const LARGE: u64 = 500 * 1024;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let scripts = facts.get::<Scripts>()?;
    let mut failed = Vec::new();
    let mut noted = Vec::new();
    for script in &scripts.0 {
        let map = script.source_map.as_ref();
        let is_usable = map.is_some_and(|map| map.error.is_none());
        let is_failure = !is_usable && script.length >= LARGE && is_own(facts, &script.url);
        let mut errors = Vec::new();
        if is_failure {
            errors.push("large script without a usable source map".to_owned());
        }
        if let Some(error) = map.and_then(|map| map.error.as_deref()) {
            errors.push(error.to_owned());
        }
        match map.map_or(0, |map| map.sources_without_content) {
            0 => {}
            missing => errors.push(format!("{missing} sources without content")),
        }
        if map.is_some() || is_failure {
            let rows = if is_failure { &mut failed } else { &mut noted };
            rows.push(row(script, &errors));
        }
    }
    let verdict = if failed.is_empty() {
        Verdict::Pass
    } else {
        Verdict::Fail
    };
    failed.append(&mut noted);
    let details = Details::table(["Script", "Source map", "Error"], failed);
    Ok(Outcome::new(verdict).with(details))
}

fn row(script: &Script, errors: &[String]) -> [String; 3] {
    let map = script.source_map.as_ref();
    let url = map.and_then(|map| map.url.clone()).unwrap_or_default();
    [script.url.clone(), url, errors.join("; ")]
}

/// Returns whether the script is served by the page's organisation.
fn is_own(facts: &Facts, url: &str) -> bool {
    let page = facts.get::<MainResource>();
    let owner = page.map(|page| entities::organisation_or_domain(page.0.url.as_str()));
    let is_from_network = url.starts_with("http");
    is_from_network
        && owner
            .is_ok_and(|owner| owner.is_some() && owner == entities::organisation_or_domain(url))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(script: &str) -> Verdict {
        Visit::new()
            .with("scripts", &format!("[{script}]"))
            .verdict(CHECK)
    }

    #[test]
    fn a_large_script_of_the_site_needs_a_map() {
        let own = r#""url": "https://example.test/a.js", "length": 512000"#;
        assert_eq!(verdict(&format!("{{{own}}}")), Verdict::Fail);
        let broken = format!(r#"{{{own}, "sourceMap": {{"url": "a.map", "error": "404"}}}}"#);
        assert_eq!(verdict(&broken), Verdict::Fail);
        let good = format!(r#"{{{own}, "sourceMap": {{"url": "a.map"}}}}"#);
        assert_eq!(verdict(&good), Verdict::Pass);
    }

    #[test]
    fn small_and_third_party_scripts_need_no_map() {
        assert_eq!(
            verdict(r#"{"url": "https://example.test/a.js", "length": 511999}"#),
            Verdict::Pass
        );
        assert_eq!(
            verdict(r#"{"url": "https://cdn.test/a.js", "length": 999999}"#),
            Verdict::Pass
        );
        assert_eq!(
            verdict(r#"{"url": "webpack://a.js", "length": 999999}"#),
            Verdict::Pass
        );
        assert_eq!(verdict(""), Verdict::Pass);
    }

    #[test]
    fn a_sibling_host_belongs_to_the_same_site() {
        let sibling = r#"{"url": "https://cdn.example.test/a.js", "length": 999999}"#;
        assert_eq!(verdict(sibling), Verdict::Fail);
    }

    #[test]
    fn another_domain_of_the_same_organisation_is_first_party() {
        let script = r#"[{"url": "https://static.xx.fbcdn.net/a.js", "length": 999999}]"#;
        let of = |page: &str| Visit::to(page).with("scripts", script).verdict(CHECK);
        assert_eq!(of("https://www.facebook.com/"), Verdict::Fail);
        assert_eq!(of("https://github.com/"), Verdict::Pass);
    }

    #[test]
    fn without_the_scripts_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
