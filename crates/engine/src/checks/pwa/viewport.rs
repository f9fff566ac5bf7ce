use plumbline_model::check::Details;

use super::viewport_content::{Value, property};
use crate::checks::{Outcome, check};
use crate::facts::{Facts, Metas, Missing};

check! {
    /// # What
    /// The page has a `<meta name="viewport">` with a width or an initial scale.
    ///
    /// # Why
    /// Without it mobile browsers lay the page out at desktop width and scale it down.
    ///
    /// # Scored
    /// Fails unless the element sets a width or an initial scale, and no initial scale below 1.
    ///
    /// # Fix
    /// Add `<meta name="viewport" content="width=device-width, initial-scale=1">` to the head.
    ///
    /// # Source
    /// Lighthouse 11.7.1, `viewport`.
    id: "viewport",
    pass: "Viewport meta tag with `width` or `initial-scale`",
    fail: "No viewport meta tag with `width` or `initial-scale`",
    learn: "https://developer.chrome.com/docs/lighthouse/pwa/viewport/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let metas = facts.get::<Metas>()?;
    let Some(meta) = metas.named("viewport") else {
        return Ok(Outcome::fail("There is no viewport meta element."));
    };
    let failed = |summary: &str| {
        Outcome::fail(summary).with(Details::values([("content", meta.content.as_str())]))
    };
    let width = property(&meta.content, "width");
    let scale = property(&meta.content, "initial-scale");
    let shrinks = match scale {
        Some(Value::Number(scale)) => scale < 1.0,
        Some(Value::Invalid) => true,
        Some(Value::Word) | None => false,
    };
    let sets = |value| match value {
        Some(Value::Number(number)) => number != 0.0,
        Some(Value::Word) => true,
        Some(Value::Invalid) | None => false,
    };
    let has_scale = matches!(scale, Some(Value::Number(_)));
    Ok(if shrinks {
        failed("The initial scale is below 1.")
    } else if sets(width) || has_scale {
        Outcome::pass()
    } else {
        failed("The viewport sets neither width nor initial scale.")
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_width_or_a_scale_is_required() {
        for (content, verdict) in [
            ("width=device-width", Verdict::Pass),
            ("initial-scale=1", Verdict::Pass),
            ("width=device-width, initial-scale=0.5", Verdict::Fail),
            ("width=device-width, initial-scale=x", Verdict::Fail),
            ("width=0", Verdict::Fail),
            ("user-scalable=no", Verdict::Fail),
            ("", Verdict::Fail),
        ] {
            let metas = format!(r#"[{{"name": "viewport", "content": "{content}"}}]"#);
            assert_eq!(
                Visit::new().with("metas", &metas).verdict(CHECK),
                verdict,
                "{content}"
            );
        }
        assert_eq!(
            Visit::new().with("metas", "[]").verdict(CHECK),
            Verdict::Fail
        );
    }

    #[test]
    fn without_meta_elements_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
