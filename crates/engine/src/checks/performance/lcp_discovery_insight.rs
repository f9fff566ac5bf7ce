use plumbline_model::check::{Details, ElementDetail, Savings};

use crate::checks::{Outcome, check};
use crate::facts::{Facts, LargestContent, Missing, TraceElements};

check! {
    /// # What
    /// The LCP image is discoverable in the HTML, loaded eagerly, and has a high fetch priority.
    ///
    /// # Why
    /// An image that is discovered only through a script or a style sheet is requested late, which
    /// delays the Largest Contentful Paint.
    ///
    /// # Scored
    /// Fails when the image has `loading="lazy"`, lacks `fetchpriority="high"`, or was not
    /// requested by the HTML parser or a preload. Not applicable when the LCP element is not an
    /// image that was requested.
    ///
    /// # Fix
    /// Put an `<img fetchpriority="high">` into the HTML, without `loading="lazy"`, or preload the
    /// image with `<link rel="preload" as="image" fetchpriority="high">`.
    ///
    /// # Source
    /// Lighthouse 13.5, `lcp-discovery-insight` (trace_engine, insights/LCPDiscovery.js).
    id: "lcp-discovery-insight",
    pass: "LCP request discovery is early",
    fail: "LCP request discovery is late",
    learn: "https://developer.chrome.com/docs/performance/insights/lcp-discovery",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let largest = facts.get::<LargestContent>()?;
    let (Some(paint), Some(document), Some(image)) =
        (&largest.paint, &largest.document, &largest.image)
    else {
        return Ok(Outcome::not_applicable());
    };
    let is_hinted = image.fetch_priority_hint == "high";
    let by_document =
        image.initiator_kind == "parser" && image.initiator_url.as_ref() == Some(&document.url);
    let is_discoverable = image.is_link_preload || by_document;
    let is_eager = !paint.is_lazy || image.is_link_preload;
    let hint = match (is_hinted, image.is_link_preload) {
        (true, _) => "`fetchpriority=\"high\"` is set",
        (false, true) => "`fetchpriority=\"high\"` should be set on the image's preload",
        (false, false) => "`fetchpriority=\"high\"` should be set",
    };
    let checklist = Details::checklist([
        ("priorityHinted", hint.to_owned(), is_hinted),
        (
            "requestDiscoverable",
            "The image is discoverable in the HTML".to_owned(),
            is_discoverable,
        ),
        (
            "eagerlyLoaded",
            "`loading=\"lazy\"` is not set".to_owned(),
            is_eager,
        ),
    ]);
    let element = TraceElements::of(facts, paint.node_id);
    let with_url = |node| ElementDetail::with_note(&node, image.url.as_str());
    let element = element.map(|node| Details::elements([with_url(node)]));
    let outcome = if is_hinted && is_discoverable && is_eager {
        Outcome::pass()
    } else {
        Outcome::fail(format!(
            "The request for {} could start earlier.",
            image.url
        ))
    };
    Ok(outcome
        .with(Details::parts(
            [Some(checklist), element].into_iter().flatten(),
        ))
        .with_savings(Savings {
            lcp_ms: Some(0.0),
            ..Savings::default()
        }))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::Outcome;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    const IMAGE: &str = "https://a.test/i.png";

    fn judged(hint: &str, initiator: &str, loading: &str) -> Outcome {
        PageLoad::new()
            .document(100)
            .image_requested_by(IMAGE, 300, 1900, hint, initiator)
            .largest_image_loading(7, IMAGE, 3000, loading)
            .judge(CHECK)
    }

    #[test]
    fn an_image_must_be_discoverable_prioritised_and_not_lazy() {
        assert_eq!(judged("high", "parser", "eager").verdict, Verdict::Pass);
        assert_eq!(judged("auto", "parser", "eager").verdict, Verdict::Fail);
        assert_eq!(judged("high", "script", "eager").verdict, Verdict::Fail);
        assert_eq!(judged("high", "parser", "lazy").verdict, Verdict::Fail);
    }

    #[test]
    fn text_needs_no_discovery() {
        let text = PageLoad::new()
            .document(100)
            .largest_text(7, 900)
            .judge(CHECK);
        assert_eq!(text.verdict, Verdict::NotApplicable);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
