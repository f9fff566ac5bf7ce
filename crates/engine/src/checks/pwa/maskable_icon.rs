use crate::checks::{Outcome, check};
use crate::facts::{Facts, ManifestState, Missing};

check! {
    /// # What
    /// The manifest has a maskable icon.
    ///
    /// # Why
    /// Phones crop icons to circles and other shapes. An icon that is not maskable is shrunk onto a
    /// white background.
    ///
    /// # Scored
    /// Fails unless an icon's `purpose` includes `maskable`.
    ///
    /// # Fix
    /// Add an icon with `"purpose": "maskable"` whose content stays within the inner 80 %.
    ///
    /// # Source
    /// Lighthouse 11.7.1, `maskable-icon`.
    id: "maskable-icon",
    pass: "The manifest has a maskable icon",
    fail: "The manifest has no maskable icon",
    learn: "https://developer.chrome.com/docs/lighthouse/pwa/maskable-icon-audit/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let state = facts.get::<ManifestState>()?;
    Ok(match state.read() {
        Err(reason) => Outcome::fail(reason),
        Ok(manifest) if manifest.has_maskable_icon() => Outcome::pass(),
        Ok(_) => Outcome::fail("No icon of the manifest is maskable."),
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn one_maskable_icon_is_enough() {
        let manifest = |purpose: &str| {
            let data = format!(
                r#"{{"icons": [{{"src": "a.png"}}, {{"src": "b.png", "purpose": "{purpose}"}}]}}"#
            );
            let artifact = serde_json::json!({"url": "https://a.test/m", "data": data});
            Visit::new()
                .with("manifest", &artifact.to_string())
                .verdict(CHECK)
        };
        assert_eq!(manifest("any maskable"), Verdict::Pass);
        assert_eq!(manifest("monochrome"), Verdict::Fail);
        assert_eq!(
            Visit::new().with("manifest", "null").verdict(CHECK),
            Verdict::Fail
        );
    }

    #[test]
    fn without_evidence_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
