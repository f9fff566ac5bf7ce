use plumbline_entities as entities;

use crate::checks::{Details, Outcome, Verdict, check};
use crate::facts::{Artifact, Facts, MainResource, Missing, Script, Scripts};

check! {
    /// # What
    /// Large scripts of the site itself come with source maps.
    ///
    /// # Why
    /// A source map turns an error in minified code back into the line that you wrote.
    ///
    /// # Scored
    /// Weighs nothing. Fails when a script of the site's own has 500 KiB or more and no usable source
    /// map; other faults of source maps are listed.
    ///
    /// # Fix
    /// Let your bundler write source maps, and serve them where the script's last line says they are.
    ///
    /// # Source
    /// Lighthouse 13.5, `valid-source-maps`; own scripts are those of the same site, as Chromium says.
    id: "valid-source-maps",
    pass: "Large scripts have source maps",
    fail: "Large scripts lack source maps",
    needs: [Scripts::NAME],
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
        let is_fault = !is_usable && script.length >= LARGE && is_own(facts, &script.url);
        let mut faults = Vec::new();
        if is_fault {
            faults.push("a large script without a usable source map".to_owned());
        }
        if let Some(error) = map.and_then(|map| map.error.as_deref()) {
            faults.push(error.to_owned());
        }
        match map.map_or(0, |map| map.sources_without_content) {
            0 => {}
            missing => faults.push(format!("{missing} sources without their text")),
        }
        if map.is_some() || is_fault {
            let rows = if is_fault { &mut failed } else { &mut noted };
            rows.push(row(script, &faults));
        }
    }
    let verdict = if failed.is_empty() {
        Verdict::Pass
    } else {
        Verdict::Fail
    };
    failed.append(&mut noted);
    let details = Details::table(["Script", "Source map", "Fault"], failed);
    Ok(Outcome::new(verdict).with(details))
}

fn row(script: &Script, faults: &[String]) -> [String; 3] {
    let map = script.source_map.as_ref();
    let address = map.and_then(|map| map.url.clone()).unwrap_or_default();
    [script.url.clone(), address, faults.join("; ")]
}

/// Whether it comes from whoever the page is of, known by the table of who serves from where.
fn is_own(facts: &Facts, address: &str) -> bool {
    let page = facts.get::<MainResource>();
    let owner = page.map(|page| entities::of_url(page.0.url.as_str()));
    let is_asked_for = address.starts_with("http");
    is_asked_for && owner.is_ok_and(|owner| owner.is_some() && owner == entities::of_url(address))
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
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
    fn small_scripts_and_those_of_others_need_none() {
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
    fn a_sibling_host_is_of_the_same_site() {
        let sibling = r#"{"url": "https://cdn.example.test/a.js", "length": 999999}"#;
        assert_eq!(verdict(sibling), Verdict::Fail);
    }

    #[test]
    fn another_domain_of_the_same_organisation_is_its_own_too() {
        let script = r#"[{"url": "https://static.xx.fbcdn.net/a.js", "length": 999999}]"#;
        let of = |page: &str| Visit::to(page).with("scripts", script).verdict(CHECK);
        assert_eq!(of("https://www.facebook.com/"), Verdict::Fail);
        assert_eq!(of("https://github.com/"), Verdict::Pass);
    }

    #[test]
    fn without_scripts_listed_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
