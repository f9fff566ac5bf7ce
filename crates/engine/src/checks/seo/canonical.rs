use std::collections::BTreeSet;

use url::Url;

use crate::checks::{Details, Outcome, check};
use crate::facts::{Facts, Link, LinkSource, Links, MainResource, Missing, Requests};

check! {
    /// # What
    /// If the page names a canonical address, it names exactly one, in full, and one that makes sense.
    ///
    /// # Why
    /// The canonical address is the one that search engines list. A wrong one hides the page.
    ///
    /// # Scored
    /// Fails when a `rel=canonical` in the head or in a `Link` header is invalid or relative, when
    /// there are several different ones, when it leads to another language of the page, or from
    /// another page to the site's root. Not applicable without one.
    ///
    /// # Fix
    /// Keep one `<link rel="canonical">` in the head, with the full `https://` address of this very page.
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/canonical`.
    id: "canonical",
    pass: "The canonical address is valid",
    fail: "The canonical address is not valid",
    needs: [Links::NAME, Requests::NAME],
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
    let mut named = BTreeSet::new();
    let mut invalid = None;
    let mut relative = None;
    for link in in_head().filter(|link| link.rel == "canonical" && !link.raw_href.is_empty()) {
        match reading(link) {
            Reading::Invalid => invalid = Some(link),
            Reading::Relative => relative = Some(link),
            Reading::Absolute(url) => {
                named.insert(url);
            }
        }
    }
    let failed = |summary: &str, link: &Link| {
        Outcome::fail(summary).with(Details::values([("rel=canonical", &link.raw_href)]))
    };
    if let Some(link) = invalid {
        return Ok(failed("The canonical address is no valid address.", link));
    }
    if let Some(link) = relative {
        return Ok(failed("The canonical address is relative.", link));
    }
    let Some(canonical) = named.pop_first() else {
        return Ok(Outcome::not_applicable());
    };
    if let Some(other) = named.pop_first() {
        return Ok(
            Outcome::fail("Several canonical addresses contradict each other.").with(
                Details::urls(
                    [canonical, other]
                        .into_iter()
                        .chain(named)
                        .map(|url| String::from(url).into()),
                ),
            ),
        );
    }
    let has_language = |url: &Url| {
        in_head().any(|link| {
            link.rel == "alternate" && !link.hreflang.is_empty() && link.href == url.as_str()
        })
    };
    let mistake = if canonical != page && has_language(&page) && has_language(&canonical) {
        Some("The canonical address leads to another language of this page.")
    } else if canonical.origin() == page.origin() && canonical.path() == "/" && page.path() != "/" {
        Some("The canonical address is the site's root, not this page.")
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

enum Reading {
    Invalid,
    Relative,
    Absolute(Url),
}

fn reading(link: &Link) -> Reading {
    let resolves = Url::options()
        .base_url(Url::parse("https://example.com").ok().as_ref())
        .parse(&link.raw_href);
    match (resolves, Url::parse(&link.raw_href), Url::parse(&link.href)) {
        (Ok(_), Ok(_), Ok(url)) => Reading::Absolute(url),
        (Ok(_), Err(_), Ok(_)) => Reading::Relative,
        _ => Reading::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
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
    fn one_full_address_passes() {
        assert_eq!(verdict(&[canonical(PAGE)]), Verdict::Pass);
        assert_eq!(verdict(&[canonical(PAGE), canonical(PAGE)]), Verdict::Pass);
        assert_eq!(verdict(&[canonical("https://other.test/")]), Verdict::Pass);
    }

    #[test]
    fn mistakes_fail() {
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
    fn another_language_of_the_page_is_a_mistake() {
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
    fn no_canonical_address_is_no_fault() {
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
