use url::Url;

use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, is_like_localhost};

check! {
    /// # What
    /// A visitor who asks for `http://` ends on `https://`.
    ///
    /// # Why
    /// People and old links still use the insecure address; only a redirect brings them to safety.
    ///
    /// # Scored
    /// Fails when the visit began at an `http://` address and did not end at an `https://` one. Not
    /// applicable when it began at another address or ended on the visitor's own machine.
    ///
    /// # Fix
    /// Answer every `http://` address with a permanent redirect (301 or 308) to `https://`.
    ///
    /// # Source
    /// Lighthouse 13.5, `redirects-http`.
    id: "redirects-http",
    pass: "HTTP leads to HTTPS",
    fail: "HTTP does not lead to HTTPS",
    needs: [],
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let read = |address: &str| {
        Url::parse(address).map_err(|_| Missing(format!("`{address}` is no valid address")))
    };
    let requested = read(&facts.bundle.requested_url)?;
    let reached = read(&facts.bundle.final_url)?;
    let is_local = is_like_localhost(reached.host_str().unwrap_or_default());
    Ok(if requested.scheme() != "http" || is_local {
        Outcome::not_applicable()
    } else if reached.scheme() == "https" {
        Outcome::pass()
    } else {
        Outcome::fail("The page is shown at an insecure address.")
    })
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
    use crate::checks::testing::Visit;

    #[test]
    fn where_the_visit_ends_decides() {
        for (requested, reached, verdict) in [
            ("http://a.test/", "https://a.test/", Verdict::Pass),
            ("http://a.test/", "http://a.test/home", Verdict::Fail),
            ("https://a.test/", "https://a.test/", Verdict::NotApplicable),
            (
                "http://localhost/",
                "http://localhost/",
                Verdict::NotApplicable,
            ),
            ("nonsense", "https://a.test/", Verdict::CouldNotMeasure),
        ] {
            let visit = Visit::to(reached).requested(requested);
            assert_eq!(visit.verdict(CHECK), verdict, "{requested} {reached}");
        }
    }
}
