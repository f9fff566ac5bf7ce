use plumbline_model::check::Details;

use crate::checks::{Outcome, check};
use crate::facts::{Facts, Installability, InstallabilityError, ManifestState, Missing};

check! {
    /// # What
    /// The page meets the browser's requirements for installation as an app.
    ///
    /// # Why
    /// An installed app has an icon on the home screen and its own window.
    ///
    /// # Scored
    /// Fails when Chromium reports an installability error, other than for the incognito mode of
    /// the visit, or when the manifest is missing or not valid JSON.
    ///
    /// # Fix
    /// Link a manifest with `name`, `start_url`, `display: standalone` and a square icon of 144
    /// pixels or more, and serve the page over HTTPS.
    ///
    /// # Source
    /// Lighthouse 11.7.1, `installable-manifest`.
    id: "installable-manifest",
    pass: "The page can be installed as an app",
    fail: "The page cannot be installed as an app",
    learn: "https://developer.chrome.com/docs/lighthouse/pwa/installable-manifest/",
    run: run,
}

/// Installability errors that are not the page's fault: the incognito mode of the visit, the
/// restart of the check, and a warning about a requirement that never took effect.
const IGNORED_ERRORS: [&str; 3] = [
    "in-incognito",
    "warn-not-offline-capable",
    "pipeline-restarted",
];

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let errors = facts.get::<Installability>()?;
    let manifest = facts.get::<ManifestState>()?;
    let mut reasons: Vec<[String; 2]> = errors
        .0
        .iter()
        .filter(|error| !IGNORED_ERRORS.contains(&error.error_id.as_str()))
        .map(|error| [explain(error), error.error_id.clone()])
        .collect();
    if let (true, Err(reason)) = (reasons.is_empty(), manifest.read()) {
        reasons.push([reason.to_owned(), "manifest".to_owned()]);
    }
    if reasons.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = reasons[0][0].clone();
    Ok(Outcome::fail(summary).with(Details::table(["Reason", "Id"], reasons)))
}

fn explain(error: &InstallabilityError) -> String {
    let size = || {
        let argument = error.error_arguments.first();
        argument.map_or("144", |argument| argument.value.as_str())
    };
    match error.error_id.as_str() {
        "not-in-main-frame" => "The page is not loaded in the main frame.",
        "not-from-secure-origin" => "The page is not served over HTTPS.",
        "no-manifest" => "The page has no link to a manifest.",
        "start-url-not-valid" => "The manifest's start_url is not valid.",
        "manifest-missing-name-or-short-name" => "The manifest has neither name nor short_name.",
        "manifest-display-not-supported" => {
            "The manifest's display is not standalone, fullscreen or minimal-ui."
        }
        "manifest-display-override-not-supported" => {
            "The first display_override is not standalone, fullscreen or minimal-ui."
        }
        "manifest-empty" | "manifest-parsing-or-network-error" => {
            "The manifest could not be fetched or parsed."
        }
        "manifest-missing-suitable-icon" | "no-acceptable-icon" => {
            return format!(
                "The manifest has no square PNG, SVG or WebP icon of {} pixels for any purpose.",
                size()
            );
        }
        "cannot-download-icon" => "An icon of the manifest could not be fetched.",
        "no-icon-available" => "An icon of the manifest is empty or broken.",
        "url-not-supported-for-webapk" => {
            "A URL in the manifest contains a user name, a password or a port."
        }
        "prefer-related-applications" => {
            "The manifest prefers another app (prefer_related_applications)."
        }
        "manifest-location-changed" => "The manifest's URL changed while it was fetched.",
        "not-offline-capable" => "The page does not work offline.",
        other => return format!("Chromium reports: {other}."),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(errors: &str, manifest: &str) -> Verdict {
        Visit::new()
            .with("installability", errors)
            .with("manifest", manifest)
            .verdict(CHECK)
    }

    const GOOD: &str = r#"{"url": "https://example.test/m.json", "data": "{}"}"#;

    #[test]
    fn a_page_without_installability_errors_passes() {
        assert_eq!(verdict("[]", GOOD), Verdict::Pass);
        let private = r#"[{"errorId": "in-incognito", "errorArguments": []}]"#;
        assert_eq!(verdict(private, GOOD), Verdict::Pass);
    }

    #[test]
    fn any_installability_error_fails() {
        for id in [
            "no-manifest",
            "manifest-missing-suitable-icon",
            "never-heard-of",
        ] {
            let errors = format!(
                r#"[{{"errorId": "{id}", "errorArguments": [{{"name": "n", "value": "144"}}]}}]"#
            );
            assert_eq!(verdict(&errors, GOOD), Verdict::Fail, "{id}");
        }
        assert_eq!(verdict("[]", "null"), Verdict::Fail);
        assert_eq!(
            verdict("[]", r#"{"url": "https://a.test/", "data": "{"}"#),
            Verdict::Fail
        );
    }

    #[test]
    fn without_evidence_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
