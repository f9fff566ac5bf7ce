use crate::checks::{Outcome, check};
use crate::facts::{Facts, Metas, Missing};

check! {
    /// # What
    /// The page has a `<meta name="description">` with text.
    ///
    /// # Why
    /// Search engines often show this text in results. Without it they choose an excerpt of the
    /// page.
    ///
    /// # Scored
    /// Fails when the first such element is missing or blank.
    ///
    /// # Fix
    /// Write one or two sentences for each page that summarise its content.
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/meta-description`.
    id: "meta-description",
    pass: "Document has a meta description",
    fail: "Document has no meta description",
    learn: "https://developer.chrome.com/docs/lighthouse/seo/meta-description/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let metas = facts.get::<Metas>()?;
    Ok(match metas.named("description") {
        None => Outcome::fail("There is no meta description."),
        Some(meta) if meta.content.trim().is_empty() => {
            Outcome::fail("The meta description is empty.")
        }
        Some(_) => Outcome::pass(),
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_description_with_text_passes() {
        for (metas, verdict) in [
            (
                r#"[{"name": "description", "content": "Bread."}]"#,
                Verdict::Pass,
            ),
            (
                r#"[{"name": "description", "content": " \n"}]"#,
                Verdict::Fail,
            ),
            (r#"[{"name": "description"}]"#, Verdict::Fail),
            (r#"[{"name": "author", "content": "me"}]"#, Verdict::Fail),
            ("[]", Verdict::Fail),
        ] {
            assert_eq!(
                Visit::new().with("metas", metas).verdict(CHECK),
                verdict,
                "{metas}"
            );
        }
    }

    #[test]
    fn without_meta_elements_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
