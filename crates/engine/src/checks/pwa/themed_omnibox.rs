use crate::checks::{Outcome, check};
use crate::facts::{Facts, ManifestState, Metas, Missing};

check! {
    /// # What
    /// The page sets a theme colour for the address bar.
    ///
    /// # Why
    /// With a theme colour the address bar and the installed app's window match the page.
    ///
    /// # Scored
    /// Fails unless there is a `<meta name="theme-color">` with a value and a `theme_color` in the
    /// manifest.
    ///
    /// # Fix
    /// Set both to the same colour.
    ///
    /// # Source
    /// Lighthouse 11.7.1, `themed-omnibox`.
    id: "themed-omnibox",
    pass: "Theme colour for the address bar",
    fail: "No theme colour for the address bar",
    learn: "https://developer.chrome.com/docs/lighthouse/pwa/themed-omnibox/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let state = facts.get::<ManifestState>()?;
    let metas = facts.get::<Metas>()?;
    let mut errors = Vec::new();
    match state.read() {
        Err(reason) => errors.push(reason),
        Ok(manifest)
            if manifest
                .theme_color
                .as_deref()
                .unwrap_or_default()
                .is_empty() =>
        {
            errors.push("The manifest has no theme_color.");
        }
        Ok(_) => {}
    }
    match metas.named("theme-color") {
        None => errors.push("There is no theme-color meta element."),
        Some(meta) if meta.content.is_empty() => {
            errors.push("The theme-color meta element is empty.");
        }
        Some(_) => {}
    }
    Ok(if errors.is_empty() {
        Outcome::pass()
    } else {
        Outcome::fail(errors.join(" "))
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn manifest_and_meta_element_must_both_have_the_colour() {
        let themed = r#"{"url": "https://a.test/m", "data": "{\"theme_color\": \"red\"}"}"#;
        let plain = r#"{"url": "https://a.test/m", "data": "{}"}"#;
        let meta = r#"[{"name": "theme-color", "content": "red"}]"#;
        let empty = r#"[{"name": "theme-color", "content": ""}]"#;
        for (manifest, metas, verdict) in [
            (themed, meta, Verdict::Pass),
            (themed, "[]", Verdict::Fail),
            (themed, empty, Verdict::Fail),
            (plain, meta, Verdict::Fail),
            ("null", meta, Verdict::Fail),
        ] {
            let visit = Visit::new().with("manifest", manifest).with("metas", metas);
            assert_eq!(visit.verdict(CHECK), verdict, "{manifest} {metas}");
        }
    }

    #[test]
    fn without_evidence_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
