use url::Url;

use crate::checks::{Details, ElementFound, Outcome, check, count};
use crate::facts::{Anchor, Anchors, Artifact, Facts, Missing, Page};

check! {
    /// # What
    /// Every link has an `href` that leads somewhere.
    ///
    /// # Why
    /// Search engines find further pages by following `href`; a link that only works by script leads nowhere.
    ///
    /// # Scored
    /// Fails when an `<a>` has a `file:` address, an empty or invalid one, `javascript:void(0)`, or
    /// no `href` although it has attributes of a link or a script listens to it. Links with a role,
    /// a name, or a `mailto:` address are left alone, and so are anchors that are only a target.
    ///
    /// # Fix
    /// Put the real address into `href`. Use a `<button>` for what is an action and not a place.
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/crawlable-anchors`.
    id: "crawlable-anchors",
    pass: "Links can be followed",
    fail: "Some links cannot be followed by search engines",
    needs: [Anchors::NAME, Page::NAME],
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let anchors = facts.get::<Anchors>()?;
    let page = facts.get::<Page>()?;
    let base = Url::parse(&page.url).ok();
    let dead: Vec<ElementFound> = anchors
        .0
        .iter()
        .filter(|anchor| is_dead_end(anchor, base.as_ref()))
        .map(|anchor| ElementFound::from(&anchor.node))
        .collect();
    if dead.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(dead.len(), "link", "links");
    Ok(Outcome::fail(summary).with(Details::elements(dead)))
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

fn is_dead_end(anchor: &Anchor, base: Option<&Url>) -> bool {
    let written: String = anchor.raw_href.split_whitespace().collect();
    if !anchor.role.trim().is_empty() || written.starts_with("mailto:") {
        return false;
    }
    if written.is_empty() && !anchor.id.is_empty() {
        return false;
    }
    if written.starts_with("file:") {
        return true;
    }
    if !anchor.name.trim().is_empty() {
        return false;
    }
    let has = |name: &str| anchor.attribute_names.iter().any(|given| given == name);
    if !has("href") && !LINK_ATTRIBUTES.into_iter().any(has) {
        return anchor.has_listener;
    }
    anchor.href.is_empty()
        || does_nothing(&written)
        || Url::options().base_url(base).parse(&written).is_err()
}

/// `javascript:void0` with or without its brackets, anywhere in the address.
fn does_nothing(written: &str) -> bool {
    written
        .split("javascript:void")
        .skip(1)
        .any(|rest| rest.strip_prefix('(').unwrap_or(rest).starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(anchor: &str) -> Verdict {
        Visit::new()
            .with("page", r#"{"url": "https://example.test/page"}"#)
            .with("anchors", &format!("[{anchor}]"))
            .verdict(CHECK)
    }

    #[test]
    fn a_link_with_an_address_passes() {
        for anchor in [
            r#"{"href": "https://example.test/", "rawHref": "/", "attributeNames": ["href"]}"#,
            r##"{"href": "https://example.test/page#x", "rawHref": "#x", "attributeNames": ["href"]}"##,
            r#"{"href": "javascript:go()", "rawHref": "javascript:go()", "attributeNames": ["href"]}"#,
        ] {
            assert_eq!(verdict(anchor), Verdict::Pass, "{anchor}");
        }
    }

    #[test]
    fn a_link_that_leads_nowhere_fails() {
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
    fn what_only_looks_like_a_dead_link_is_left_alone() {
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
