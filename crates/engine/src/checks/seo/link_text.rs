use plumbline_model::check::{Details, ElementDetail};

use super::link_words::GENERIC_TEXTS;
use crate::checks::{Outcome, check, count};
use crate::facts::{Anchor, Anchors, Facts, Missing, PageProperties, equal_without_fragment};

check! {
    /// # What
    /// Every link has a descriptive text.
    ///
    /// # Why
    /// Search engines, and people who navigate by links, learn from the link text what a page is
    /// about.
    ///
    /// # Scored
    /// Fails when the whole text of a link is a generic phrase such as "click here" or "more", in
    /// the language of the text if the page declares it, otherwise in any of nine languages. Links
    /// within the page, `mailto:` and `javascript:` links, and those with `rel=nofollow` are
    /// ignored.
    ///
    /// # Fix
    /// Name the target in the link: "read the opening hours" instead of "read more".
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/link-text`.
    id: "link-text",
    pass: "Links have descriptive text",
    fail: "Links do not have descriptive text",
    learn: "https://developer.chrome.com/docs/lighthouse/seo/link-text/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let anchors = facts.get::<Anchors>()?;
    let page = facts.get::<PageProperties>()?;
    let generic: Vec<ElementDetail> = anchors
        .0
        .iter()
        .filter(|anchor| leaves_page(anchor, &page.url) && is_generic(anchor))
        .map(|anchor| {
            let (text, href) = (anchor.text.trim(), &anchor.href);
            ElementDetail::with_note(&anchor.node, format!("“{text}” leads to {href}"))
        })
        .collect();
    if generic.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(generic.len(), "link", "links");
    Ok(Outcome::fail(summary).with(Details::elements(generic)))
}

fn leaves_page(anchor: &Anchor, page_url: &str) -> bool {
    let href = anchor.href.to_lowercase();
    !href.is_empty()
        && !anchor.rel.contains("nofollow")
        && !href.starts_with("javascript:")
        && !href.starts_with("mailto:")
        && !equal_without_fragment(&anchor.href, page_url)
}

fn is_generic(anchor: &Anchor) -> bool {
    let text = anchor.text.trim().to_lowercase();
    let declared = anchor.text_lang.as_deref().filter(|lang| !lang.is_empty());
    let language = declared.and_then(|lang| lang.split('-').next());
    GENERIC_TEXTS
        .iter()
        .filter(|(of, _)| language.is_none_or(|language| language == *of))
        .any(|(_, words)| words.contains(&text.as_str()))
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
    fn a_generic_phrase_fails_and_descriptive_text_passes() {
        let of = |text: &str| {
            verdict(&format!(
                r#"{{"href": "https://a.test/", "text": "{text}"}}"#
            ))
        };
        assert_eq!(of(" Click HERE\\n"), Verdict::Fail);
        assert_eq!(of("weiterlesen"), Verdict::Fail);
        assert_eq!(of("Opening hours"), Verdict::Pass);
        assert_eq!(of("click here for bread"), Verdict::Pass);
        assert_eq!(of(""), Verdict::Pass);
    }

    #[test]
    fn the_text_is_listed_even_if_the_element_has_no_label() {
        let outcome = Visit::new()
            .with("page", r#"{"url": "https://example.test/page"}"#)
            .with(
                "anchors",
                r#"[{"href": "https://a.test/", "text": " more\n", "node": {"label": "svg > a"}}]"#,
            )
            .judge(CHECK);
        let shown = serde_json::to_string(&outcome.details).unwrap();
        assert!(shown.contains("“more” leads to https://a.test/"), "{shown}");
    }

    #[test]
    fn the_declared_language_decides() {
        let of = |lang: &str| {
            verdict(&format!(
                r#"{{"href": "https://a.test/", "text": "mehr", "textLang": "{lang}"}}"#
            ))
        };
        assert_eq!(of("de-CH"), Verdict::Fail);
        assert_eq!(of("en"), Verdict::Pass);
        assert_eq!(of("tlh"), Verdict::Pass);
        assert_eq!(of(""), Verdict::Fail);
    }

    #[test]
    fn links_without_a_target_page_are_ignored() {
        for anchor in [
            r##"{"href": "https://example.test/page#x", "text": "more"}"##,
            r#"{"href": "mailto:a@b", "text": "more"}"#,
            r#"{"href": "JavaScript:go()", "text": "more"}"#,
            r#"{"href": "https://a.test/", "text": "more", "rel": "noopener nofollow"}"#,
            r#"{"href": "", "text": "more"}"#,
        ] {
            assert_eq!(verdict(anchor), Verdict::Pass, "{anchor}");
        }
    }

    #[test]
    fn without_links_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
