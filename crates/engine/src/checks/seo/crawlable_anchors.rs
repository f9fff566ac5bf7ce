use plumbline_model::check::{Details, ElementDetail};
use url::Url;

use crate::checks::{Outcome, check, count};
use crate::facts::{Anchor, Anchors, Facts, Missing, PageProperties};

check! {
    /// # What
    /// Every link has an `href` that crawlers can follow.
    ///
    /// # Why
    /// Search engines discover pages by following `href`; links that work only through scripts are
    /// not crawled.
    ///
    /// # Scored
    /// Fails when an `<a>` has a `file:`, empty or invalid URL, `javascript:void(0)`, or no `href`
    /// although it has attributes of a link or an event listener. Links with a role, a name or a
    /// `mailto:` URL are ignored, and so are anchors that are only a target.
    ///
    /// # Fix
    /// Put the target URL into `href`. Use a `<button>` for actions.
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/crawlable-anchors`.
    id: "crawlable-anchors",
    pass: "Links are crawlable",
    fail: "Links are not crawlable",
    learn: "https://support.google.com/webmasters/answer/9112205",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let anchors = facts.get::<Anchors>()?;
    let page = facts.get::<PageProperties>()?;
    let base = Url::parse(&page.url).ok();
    let uncrawlable: Vec<ElementDetail> = anchors
        .0
        .iter()
        .filter(|anchor| is_uncrawlable(anchor, base.as_ref()))
        .map(|anchor| ElementDetail::from(&anchor.node))
        .collect();
    if uncrawlable.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(uncrawlable.len(), "link", "links");
    Ok(Outcome::fail(summary).with(Details::elements(uncrawlable)))
}

/// Attributes that an `<a>` may only have together with `href`, by the HTML standard.
const LINK_ATTRIBUTES: [&str; 7] = [
    "target",
    "download",
    "ping",
    "rel",
    "hreflang",
    "type",
    "referrerpolicy",
];

fn is_uncrawlable(anchor: &Anchor, base: Option<&Url>) -> bool {
    let href: String = anchor.raw_href.split_whitespace().collect();
    if !anchor.role.trim().is_empty() || href.starts_with("mailto:") {
        return false;
    }
    if href.is_empty() && !anchor.id.is_empty() {
        return false;
    }
    if href.starts_with("file:") {
        return true;
    }
    if !anchor.name.trim().is_empty() {
        return false;
    }
    let has = |name: &str| {
        anchor
            .attribute_names
            .iter()
            .any(|attribute| attribute == name)
    };
    if !has("href") && !LINK_ATTRIBUTES.into_iter().any(has) {
        return anchor.has_listener;
    }
    anchor.href.is_empty()
        || is_void_script(&href)
        || Url::options().base_url(base).parse(&href).is_err()
}

/// Returns whether the URL contains `javascript:void0`, with or without parentheses.
fn is_void_script(href: &str) -> bool {
    href.split("javascript:void")
        .skip(1)
        .any(|rest| rest.strip_prefix('(').unwrap_or(rest).starts_with('0'))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(anchor: &str) -> Verdict {
        Visit::new()
            .with("page", r#"{"url": "https://example.test/page"}"#)
            .with("anchors", &format!("[{anchor}]"))
            .verdict(CHECK)
    }

    #[test]
    fn a_link_with_a_url_passes() {
        for anchor in [
            r#"{"href": "https://example.test/", "rawHref": "/", "attributeNames": ["href"]}"#,
            r##"{"href": "https://example.test/page#x", "rawHref": "#x", "attributeNames": ["href"]}"##,
            r#"{"href": "javascript:go()", "rawHref": "javascript:go()", "attributeNames": ["href"]}"#,
        ] {
            assert_eq!(verdict(anchor), Verdict::Pass, "{anchor}");
        }
    }

    #[test]
    fn a_link_without_a_target_fails() {
        for anchor in [
            r#"{"href": "file:///x", "rawHref": "file:///x", "attributeNames": ["href"], "name": "n"}"#,
            r#"{"href": "", "rawHref": "", "attributeNames": ["href"]}"#,
            r#"{"href": "", "rawHref": "", "attributeNames": ["rel"]}"#,
            r#"{"href": "javascript:void(0)", "rawHref": "javascript: void(0)", "attributeNames": ["href"]}"#,
            r#"{"href": "javascript:void0", "rawHref": "javascript:void0", "attributeNames": ["href"]}"#,
            r#"{"href": "https://:x", "rawHref": "https://:x", "attributeNames": ["href"]}"#,
            r#"{"attributeNames": ["class"], "hasListener": true}"#,
        ] {
            assert_eq!(verdict(anchor), Verdict::Fail, "{anchor}");
        }
    }

    #[test]
    fn anchors_that_are_not_links_are_ignored() {
        for anchor in [
            r#"{"attributeNames": ["class"]}"#,
            r#"{"attributeNames": ["id", "rel"], "id": "top"}"#,
            r#"{"role": "button", "attributeNames": ["href"]}"#,
            r#"{"name": "top", "attributeNames": ["name", "href"]}"#,
            r#"{"href": "mailto:a@b", "rawHref": " mailto: a@b", "attributeNames": ["href"]}"#,
        ] {
            assert_eq!(verdict(anchor), Verdict::Pass, "{anchor}");
        }
    }

    #[test]
    fn without_links_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
