use url::Url;

use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, is_localhost};

check! {
    /// # What
    /// HTTP requests are redirected to HTTPS.
    ///
    /// # Why
    /// Visitors and old links still use the insecure URL; only a redirect protects them.
    ///
    /// # Scored
    /// Fails when the visit started at an `http://` URL and did not end at an `https://` one. Not
    /// applicable when it started at another URL or ended on localhost.
    ///
    /// # Fix
    /// Redirect every `http://` URL permanently (301 or 308) to `https://`.
    ///
    /// # Source
    /// Lighthouse 13.5, `redirects-http`.
    id: "redirects-http",
    pass: "HTTP is redirected to HTTPS",
    fail: "HTTP is not redirected to HTTPS",
    learn: "https://developer.chrome.com/docs/lighthouse/pwa/redirects-http/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let parse =
        |url: &str| Url::parse(url).map_err(|_| Missing(format!("`{url}` is not a valid URL")));
    let requested_url = parse(&facts.bundle.requested_url)?;
    let final_url = parse(&facts.bundle.final_url)?;
    let is_local = is_localhost(final_url.host_str().unwrap_or_default());
    Ok(if requested_url.scheme() != "http" || is_local {
        Outcome::not_applicable()
    } else if final_url.scheme() == "https" {
        Outcome::pass()
    } else {
        Outcome::fail("The page is shown at an insecure URL.")
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::Visit;

    #[test]
    fn the_final_url_decides() {
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
