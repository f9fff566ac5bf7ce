use plumbline_model::check::Details;

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Manifest, ManifestState, Missing};

check! {
    /// # What
    /// The manifest has everything that a custom splash screen needs.
    ///
    /// # Why
    /// The splash screen is shown while the installed app starts; without one the screen is white.
    ///
    /// # Scored
    /// Fails unless the manifest has a name, a background colour, a theme colour and a square PNG
    /// icon of 512 pixels or more.
    ///
    /// # Fix
    /// Add the listed members to the manifest.
    ///
    /// # Source
    /// Lighthouse 11.7.1, `splash-screen`.
    id: "splash-screen",
    pass: "The app has a custom splash screen",
    fail: "The app has no custom splash screen",
    learn: "https://developer.chrome.com/docs/lighthouse/pwa/splash-screen/",
    run: run,
}

const ICON_PX: f64 = 512.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let state = facts.get::<ManifestState>()?;
    let manifest = match state.read() {
        Ok(manifest) => manifest,
        Err(reason) => return Ok(Outcome::fail(reason)),
    };
    let missing = missing(manifest);
    if missing.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(missing.len(), "member is missing", "members are missing");
    let rows = missing.into_iter().map(|member| [member.to_owned()]);
    Ok(Outcome::fail(summary).with(Details::table(["Missing in the manifest"], rows)))
}

fn missing(manifest: &Manifest) -> Vec<&'static str> {
    let is_given = |value: &Option<String>| value.as_ref().is_some_and(|text| !text.is_empty());
    [
        (is_given(&manifest.name), "name"),
        (is_given(&manifest.background_color), "background_color"),
        (is_given(&manifest.theme_color), "theme_color"),
        (
            manifest.has_png_of_px(ICON_PX),
            "a PNG icon of 512×512 or more",
        ),
    ]
    .into_iter()
    .filter(|(is_there, _)| !is_there)
    .map(|(_, member)| member)
    .collect()
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(manifest: serde_json::Value) -> Verdict {
        let artifact = serde_json::json!(
            {"url": "https://example.test/m.json", "data": manifest.to_string()});
        Visit::new()
            .with("manifest", &artifact.to_string())
            .verdict(CHECK)
    }

    #[test]
    fn all_four_members_are_required() {
        let whole = serde_json::json!({"name": "App", "background_color": "#fff",
            "theme_color": "#000", "icons": [{"src": "i.png", "sizes": "512x512"}]});
        assert_eq!(verdict(whole.clone()), Verdict::Pass);
        for part in ["name", "background_color", "theme_color", "icons"] {
            let mut manifest = whole.clone();
            manifest.as_object_mut().unwrap().remove(part);
            assert_eq!(verdict(manifest), Verdict::Fail, "{part}");
        }
    }

    #[test]
    fn a_page_without_a_manifest_fails() {
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
