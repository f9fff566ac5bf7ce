use plumbline_model::check::Details;

use crate::checks::{Outcome, check};
use crate::facts::{Facts, MainResource, Missing};

check! {
    /// # What
    /// Whether a Cross-Origin-Opener-Policy (COOP) isolates the page's window from other sites'
    /// windows.
    ///
    /// # Why
    /// Without it a site that opens this page in a new window keeps a reference to that window.
    ///
    /// # Scored
    /// Never scored: informative only. Not applicable when the header is sent and valid.
    ///
    /// # Fix
    /// Send `Cross-Origin-Opener-Policy: same-origin`, or `same-origin-allow-popups` if you open
    /// windows of other sites.
    ///
    /// # Source
    /// Lighthouse 13.5, `origin-isolation`.
    id: "origin-isolation",
    pass: "Origin isolation with COOP",
    fail: "Origin isolation with COOP",
    learn: "https://web.dev/articles/why-coop-coep#coop",
    run: run,
}

const POLICIES: [&str; 4] = [
    "unsafe-none",
    "same-origin-allow-popups",
    "same-origin",
    "noopener-allow-popups",
];

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let main = facts.get::<MainResource>()?;
    let values: Vec<String> = main
        .header("cross-origin-opener-policy")
        .map(|value| value.to_lowercase().split_whitespace().collect())
        .collect();
    if values.is_empty() {
        return Ok(Outcome::informative(
            "The page sends no Cross-Origin-Opener-Policy header.",
        ));
    }
    let unknown = values
        .iter()
        .find(|value| !POLICIES.contains(&value.as_str()));
    Ok(match unknown {
        None => Outcome::not_applicable(),
        Some(value) => Outcome::informative("The Cross-Origin-Opener-Policy header is invalid.")
            .with(Details::values([("Cross-Origin-Opener-Policy", value)])),
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_valid_header_is_not_applicable() {
        let visit = |value| {
            Visit::new()
                .header("Cross-Origin-Opener-Policy", value)
                .verdict(CHECK)
        };
        assert_eq!(visit("Same-Origin"), Verdict::NotApplicable);
        assert_eq!(visit("same-site"), Verdict::Informative);
        assert_eq!(Visit::new().verdict(CHECK), Verdict::Informative);
    }

    #[test]
    fn without_a_log_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
