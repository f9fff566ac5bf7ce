use crate::checks::{Details, Outcome, check, count};
use crate::facts::{Facts, MainResource, Missing, Requests};

check! {
    /// # What
    /// Whether the site tells browsers to use HTTPS only, and for how long.
    ///
    /// # Why
    /// Without it, the first request of a visit may still go over HTTP, where it can be diverted.
    ///
    /// # Scored
    /// Never: it only informs. Not applicable where there is nothing to remark.
    ///
    /// # Fix
    /// Send `Strict-Transport-Security: max-age=63072000; includeSubDomains; preload`; begin with a short `max-age`.
    ///
    /// # Source
    /// Lighthouse 13.5, `has-hsts`; RFC 6797.
    id: "has-hsts",
    pass: "How strictly the site insists on HTTPS",
    fail: "How strictly the site insists on HTTPS",
    needs: [Requests::NAME],
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
            "No Strict-Transport-Security is sent.",
        ));
    }
    let rows = remarks(&directives);
    if rows.is_empty() {
        return Ok(Outcome::not_applicable());
    }
    let summary = count(rows.len(), "remark", "remarks");
    Ok(Outcome::informative(summary)
        .with(Details::table(["Severity", "Directive", "Remark"], rows)))
}

fn remarks(directives: &[String]) -> Vec<[String; 3]> {
    let mut rows = Vec::new();
    let mut note = |severity: &str, directive: &str, remark: &str| {
        rows.push([severity, directive, remark].map(str::to_owned));
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
            note("low", directive, "is no directive of this header");
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
    use super::CHECK;
    use crate::checks::Verdict;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn remarks(value: &str) -> (Verdict, usize) {
        let outcome = Visit::new()
            .header("Strict-Transport-Security", value)
            .judge(CHECK);
        (
            outcome.verdict,
            outcome.details.map_or(0, |details| details.len()),
        )
    }

    #[test]
    fn a_strong_header_needs_no_remark() {
        let strong = "max-age=63072000; includeSubDomains; preload";
        assert_eq!(remarks(strong), (Verdict::NotApplicable, 0));
        assert_eq!(remarks(&format!("{strong};")), (Verdict::NotApplicable, 0));
    }

    #[test]
    fn weak_wrong_or_missing_headers_are_remarked_on() {
        assert_eq!(remarks("max-age=300"), (Verdict::Informative, 3));
        assert_eq!(
            remarks("includeSubDomains; preload"),
            (Verdict::Informative, 1)
        );
        let unknown = "max-age=63072000; includeSubDomains; preload; forever";
        assert_eq!(remarks(unknown), (Verdict::Informative, 1));
        assert_eq!(Visit::new().verdict(CHECK), Verdict::Informative);
    }

    #[test]
    fn without_a_log_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
