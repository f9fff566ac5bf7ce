use super::link_words::EMPTY_WORDS;
use crate::checks::{Details, ElementFound, Outcome, check, count};
use crate::facts::{Anchor, Anchors, Artifact, Facts, Missing, Page, same_but_fragment};

check! {
    /// # What
    /// The text of every link says where it leads.
    ///
    /// # Why
    /// Search engines, and people who jump from link to link, know a page by the words that link to it.
    ///
    /// # Scored
    /// Fails when the whole text of a link is an empty phrase such as "click here" or "more", in the
    /// language of the text where the page states it, else in any of nine languages. Links within
    /// the page, by `mailto:` or `javascript:`, and with `rel=nofollow` are left alone.
    ///
    /// # Fix
    /// Name the target in the link: "read the opening hours" instead of "read more".
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/link-text`.
    id: "link-text",
    pass: "Link texts say where they lead",
    fail: "Some link texts say nothing",
    needs: [Anchors::NAME, Page::NAME],
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let anchors = facts.get::<Anchors>()?;
    let page = facts.get::<Page>()?;
    let vague: Vec<ElementFound> = anchors
        .0
        .iter()
        .filter(|anchor| leads_away(anchor, &page.url) && says_nothing(anchor))
        .map(|anchor| {
            let (text, href) = (anchor.text.trim(), &anchor.href);
            ElementFound::noting(&anchor.node, format!("“{text}” leads to {href}"))
        })
        .collect();
    if vague.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(vague.len(), "link", "links");
    Ok(Outcome::fail(summary).with(Details::elements(vague)))
}

fn leads_away(anchor: &Anchor, page_url: &str) -> bool {
    let href = anchor.href.to_lowercase();
    !href.is_empty()
        && !anchor.rel.contains("nofollow")
        && !href.starts_with("javascript:")
        && !href.starts_with("mailto:")
        && !same_but_fragment(&anchor.href, page_url)
}

fn says_nothing(anchor: &Anchor) -> bool {
    let text = anchor.text.trim().to_lowercase();
    let stated = anchor.text_lang.as_deref().filter(|lang| !lang.is_empty());
    let language = stated.and_then(|lang| lang.split('-').next());
    EMPTY_WORDS
        .iter()
        .filter(|(of, _)| language.is_none_or(|language| language == *of))
        .any(|(_, words)| words.contains(&text.as_str()))
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
    fn an_empty_phrase_fails_and_words_pass() {
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
    fn the_words_are_named_also_where_the_element_has_no_label() {
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
    fn the_stated_language_decides() {
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
    fn links_that_lead_to_no_page_are_left_alone() {
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
