use std::collections::BTreeSet;

use plumbline_model::check::Details;
use url::Url;

use crate::checks::{Outcome, check};
use crate::facts::{Facts, LinkSource, Links, MainResource, Missing, PageLink};

check! {
    /// # What
    /// The page has at most one `rel=canonical`, and its URL is absolute and plausible.
    ///
    /// # Why
    /// Search engines list the canonical URL. A wrong one can remove the page from search results.
    ///
    /// # Scored
    /// Fails when a `rel=canonical` in the head or in a `Link` header is invalid or relative, when
    /// there are several different ones, when it points to another `hreflang` version, or to the
    /// site's root from another page. Not applicable without one.
    ///
    /// # Fix
    /// Keep one `<link rel="canonical">` in the head, with the absolute `https://` URL of this
    /// page.
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/canonical`.
    id: "canonical",
    pass: "Valid `rel=canonical`",
    fail: "Invalid `rel=canonical`",
    learn: "https://developer.chrome.com/docs/lighthouse/seo/canonical/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let page = facts.get::<MainResource>()?.0.url.clone();
    let links = facts.get::<Links>()?;
    let in_head = || {
        links
            .0
            .iter()
            .filter(|link| link.source != LinkSource::Body)
    };
    let mut canonicals = BTreeSet::new();
    let mut invalid = None;
    let mut relative = None;
    for link in in_head().filter(|link| link.rel == "canonical" && !link.raw_href.is_empty()) {
        match parse_href(link) {
            Href::Invalid => invalid = Some(link),
            Href::Relative => relative = Some(link),
            Href::Absolute(url) => {
                canonicals.insert(url);
            }
        }
    }
    let failed = |summary: &str, link: &PageLink| {
        Outcome::fail(summary).with(Details::values([("rel=canonical", &link.raw_href)]))
    };
    if let Some(link) = invalid {
        return Ok(failed("The canonical URL is invalid.", link));
    }
    if let Some(link) = relative {
        return Ok(failed("The canonical URL is relative.", link));
    }
    let Some(canonical) = canonicals.pop_first() else {
        return Ok(Outcome::not_applicable());
    };
    if let Some(other) = canonicals.pop_first() {
        return Ok(
            Outcome::fail("There are several conflicting canonical URLs.").with(Details::urls(
                [canonical, other]
                    .into_iter()
                    .chain(canonicals)
                    .map(|url| String::from(url).into()),
            )),
        );
    }
    let has_language = |url: &Url| {
        in_head().any(|link| {
            link.rel == "alternate" && !link.hreflang.is_empty() && link.href == url.as_str()
        })
    };
    let mistake = if canonical != page && has_language(&page) && has_language(&canonical) {
        Some("The canonical URL points to another language version of this page.")
    } else if canonical.origin() == page.origin() && canonical.path() == "/" && page.path() != "/" {
        Some("The canonical URL is the site's root, not this page.")
    } else {
        None
    };
    Ok(match mistake {
        Some(summary) => {
            Outcome::fail(summary).with(Details::urls([String::from(canonical).into()]))
        }
        None => Outcome::pass(),
    })
}

enum Href {
    Invalid,
    Relative,
    Absolute(Url),
}

fn parse_href(link: &PageLink) -> Href {
    let resolves = Url::options()
        .base_url(Url::parse("https://example.com").ok().as_ref())
        .parse(&link.raw_href);
    match (resolves, Url::parse(&link.raw_href), Url::parse(&link.href)) {
        (Ok(_), Ok(_), Ok(url)) => Href::Absolute(url),
        (Ok(_), Err(_), Ok(_)) => Href::Relative,
        _ => Href::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{PAGE, Visit, verdict_without_evidence};

    fn canonical(href: &str) -> String {
        let url = url::Url::parse(PAGE).unwrap();
        let resolved = url.join(href).map(String::from).unwrap_or_default();
        format!(
            r#"{{"rel": "canonical", "href": "{resolved}", "rawHref": "{href}", "source": "head"}}"#
        )
    }

    fn verdict(links: &[String]) -> Verdict {
        Visit::new()
            .with("links", &format!("[{}]", links.join(",")))
            .verdict(CHECK)
    }

    #[test]
    fn one_absolute_url_passes() {
        assert_eq!(verdict(&[canonical(PAGE)]), Verdict::Pass);
        assert_eq!(verdict(&[canonical(PAGE), canonical(PAGE)]), Verdict::Pass);
        assert_eq!(verdict(&[canonical("https://other.test/")]), Verdict::Pass);
    }

    #[test]
    fn invalid_canonical_links_fail() {
        assert_eq!(verdict(&[canonical("/page")]), Verdict::Fail, "relative");
        assert_eq!(
            verdict(&[canonical("https:// no")]),
            Verdict::Fail,
            "invalid"
        );
        assert_eq!(
            verdict(&[canonical(PAGE), canonical("https://other.test/")]),
            Verdict::Fail,
            "contradiction"
        );
        assert_eq!(
            verdict(&[canonical("https://example.test/")]),
            Verdict::Fail,
            "root"
        );
    }

    #[test]
    fn another_language_version_as_canonical_fails() {
        let alternate = |href: &str| {
            format!(
                r#"{{"rel": "alternate", "hreflang": "de", "href": "{href}", "rawHref": "{href}"}}"#
            )
        };
        let german = "https://example.test/de/page";
        assert_eq!(
            verdict(&[canonical(german), alternate(german), alternate(PAGE)]),
            Verdict::Fail
        );
        assert_eq!(
            verdict(&[canonical(german), alternate(german)]),
            Verdict::Pass
        );
    }

    #[test]
    fn a_header_counts_like_an_element() {
        let visit = |value| Visit::new().with("links", "[]").header("Link", value);
        assert_eq!(
            visit("<https://example.test/page>; rel=canonical").verdict(CHECK),
            Verdict::Pass
        );
        assert_eq!(
            visit("</page>; rel=canonical").verdict(CHECK),
            Verdict::Fail
        );
    }

    #[test]
    fn a_page_without_a_canonical_link_is_not_applicable() {
        assert_eq!(verdict(&[]), Verdict::NotApplicable);
        let in_body = r#"{"rel": "canonical", "href": "x", "rawHref": "x", "source": "body"}"#;
        assert_eq!(verdict(&[in_body.to_owned()]), Verdict::NotApplicable);
        let without_href = r#"{"rel": "canonical", "href": "", "rawHref": ""}"#;
        assert_eq!(verdict(&[without_href.to_owned()]), Verdict::NotApplicable);
    }

    #[test]
    fn without_links_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
