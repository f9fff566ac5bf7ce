use plumbline_model::check::Details;

use super::language::is_language;
use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, LinkSource, Links, Missing, PageLink};

check! {
    /// # What
    /// Every `rel=alternate` with `hreflang` has a valid language code and an absolute URL.
    ///
    /// # Why
    /// `hreflang` tells search engines which language version to show. An invalid one is ignored.
    ///
    /// # Scored
    /// Fails when one in the head or in a `Link` header has an unknown language, or a URL without
    /// `http:` or `https:`.
    ///
    /// # Fix
    /// Use language codes of ISO 639 (`de`, `pt-BR`, or `x-default`) and absolute URLs.
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/hreflang`; language codes from the IANA Language Subtag Registry.
    id: "hreflang",
    pass: "Valid `hreflang`",
    fail: "Invalid `hreflang`",
    learn: "https://developer.chrome.com/docs/lighthouse/seo/hreflang/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let links = facts.get::<Links>()?;
    let invalid: Vec<[String; 3]> = links
        .0
        .iter()
        .filter(|link| {
            link.source != LinkSource::Body && link.rel == "alternate" && !link.hreflang.is_empty()
        })
        .filter_map(|link| {
            let errors = errors(link);
            (!errors.is_empty()).then(|| {
                [
                    link.hreflang.clone(),
                    link.raw_href.clone(),
                    errors.join("; "),
                ]
            })
        })
        .collect();
    if invalid.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(invalid.len(), "invalid link", "invalid links");
    Ok(Outcome::fail(summary).with(Details::table(["Language", "URL", "Error"], invalid)))
}

fn errors(link: &PageLink) -> Vec<&'static str> {
    let mut errors = Vec::new();
    let tag = link.hreflang.to_lowercase();
    // Only the language is validated, not script and region.
    let language = tag.split('-').next().unwrap_or_default();
    if tag != "x-default" && !is_language(language) {
        errors.push("unknown language");
    }
    let href = link.raw_href.to_lowercase();
    if !(href.starts_with("http:") || href.starts_with("https:")) {
        errors.push("not an absolute URL");
    }
    errors
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(hreflang: &str, href: &str) -> Verdict {
        let link = format!(
            r#"[{{"rel": "Alternate", "hreflang": "{hreflang}", "rawHref": "{href}", "source": "head"}}]"#
        );
        Visit::new().with("links", &link).verdict(CHECK)
    }

    #[test]
    fn language_and_url_must_be_valid() {
        assert_eq!(verdict("de-AT", "https://a.test/"), Verdict::Pass);
        assert_eq!(verdict("x-Default", "HTTP://a.test/"), Verdict::Pass);
        assert_eq!(verdict("xx", "https://a.test/"), Verdict::Fail);
        assert_eq!(verdict("  de", "https://a.test/"), Verdict::Fail);
        assert_eq!(verdict("de", "/de"), Verdict::Fail);
        assert_eq!(verdict("de", "//a.test/"), Verdict::Fail);
        assert_eq!(verdict("", "/de"), Verdict::Pass, "not a language link");
    }

    #[test]
    fn a_header_counts_like_an_element() {
        let visit = Visit::new()
            .with("links", "[]")
            .header("link", r#"</de>; rel="alternate"; hreflang="de""#);
        assert_eq!(visit.verdict(CHECK), Verdict::Fail);
    }

    #[test]
    fn without_links_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
