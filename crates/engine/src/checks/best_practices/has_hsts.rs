use plumbline_model::check::Details;

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, MainResource, Missing};

check! {
    /// # What
    /// Whether the site sends HTTP Strict Transport Security (HSTS), and with which directives.
    ///
    /// # Why
    /// Without it the first request of a visit may still use HTTP, where it can be intercepted.
    ///
    /// # Scored
    /// Never scored: informative only. Not applicable when the header has no weaknesses.
    ///
    /// # Fix
    /// Send `Strict-Transport-Security: max-age=63072000; includeSubDomains; preload`; start with a
    /// short `max-age`.
    ///
    /// # Source
    /// Lighthouse 13.5, `has-hsts`; RFC 6797.
    id: "has-hsts",
    pass: "HSTS policy",
    fail: "HSTS policy",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/has-hsts",
    run: run,
}

const YEAR_S: f64 = 31_536_000.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let main = facts.get::<MainResource>()?;
    let directives: Vec<String> = main
        .header("strict-transport-security")
        .flat_map(|value| value.split(';'))
        .map(|directive| directive.to_lowercase().split_whitespace().collect())
        .filter(|directive: &String| !directive.is_empty())
        .collect();
    if directives.is_empty() {
        return Ok(Outcome::informative(
            "The page sends no Strict-Transport-Security header.",
        ));
    }
    let rows = weaknesses(&directives);
    if rows.is_empty() {
        return Ok(Outcome::not_applicable());
    }
    let summary = count(rows.len(), "weakness", "weaknesses");
    Ok(Outcome::informative(summary).with(Details::table(
        ["Severity", "Directive", "Description"],
        rows,
    )))
}

fn weaknesses(directives: &[String]) -> Vec<[String; 3]> {
    let mut rows = Vec::new();
    let mut note = |severity: &str, directive: &str, description: &str| {
        rows.push([severity, directive, description].map(str::to_owned));
    };
    let names = |name: &str| directives.iter().any(|directive| directive.contains(name));
    if !names("max-age") {
        note("high", "max-age", "is missing, so the header has no effect");
    }
    if !names("includesubdomains") {
        note("medium", "includeSubDomains", "is missing");
    }
    if !names("preload") {
        note("medium", "preload", "is missing");
    }
    for directive in directives {
        if directive.contains("max-age") {
            let age_s = directive.split('=').nth(1).and_then(leading_number);
            if age_s.is_some_and(|age_s| age_s < YEAR_S) {
                note("high", "max-age", "is below one year");
            }
        } else if directive != "includesubdomains" && directive != "preload" {
            note("low", directive, "is not a directive of this header");
        }
    }
    rows
}

fn leading_number(text: &str) -> Option<f64> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn weaknesses(value: &str) -> (Verdict, usize) {
        let outcome = Visit::new()
            .header("Strict-Transport-Security", value)
            .judge(CHECK);
        (
            outcome.verdict,
            outcome.details.map_or(0, |details| details.len()),
        )
    }

    #[test]
    fn a_strong_header_is_not_applicable() {
        let strong = "max-age=63072000; includeSubDomains; preload";
        assert_eq!(weaknesses(strong), (Verdict::NotApplicable, 0));
        assert_eq!(
            weaknesses(&format!("{strong};")),
            (Verdict::NotApplicable, 0)
        );
    }

    #[test]
    fn weak_invalid_or_missing_headers_are_reported() {
        assert_eq!(weaknesses("max-age=300"), (Verdict::Informative, 3));
        assert_eq!(
            weaknesses("includeSubDomains; preload"),
            (Verdict::Informative, 1)
        );
        let unknown = "max-age=63072000; includeSubDomains; preload; forever";
        assert_eq!(weaknesses(unknown), (Verdict::Informative, 1));
        assert_eq!(Visit::new().verdict(CHECK), Verdict::Informative);
    }

    #[test]
    fn without_a_log_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
