use plumbline_model::check::{Cell, Details, ElementDetail, Findings, Row, Savings, Unit};
use plumbline_trace::Trace;

use super::format_duration;
use crate::checks::{Outcome, check};
use crate::facts::{Facts, LargestContent, Missing, TraceElements};

check! {
    /// # What
    /// How the time to the Largest Contentful Paint divides into time to first byte, load delay,
    /// load duration and render delay.
    ///
    /// # Why
    /// Each phase has different remedies. The longest one offers the largest gain.
    ///
    /// # Scored
    /// Fails when the Largest Contentful Paint takes more than 2.5 s, is informative otherwise. Not
    /// applicable without such a paint.
    ///
    /// # Fix
    /// First byte: respond faster, redirect less. Load delay: put the image into the HTML or
    /// preload it. Load duration: send fewer bytes. Render delay: reduce render-blocking scripts
    /// and styles.
    ///
    /// # Source
    /// Lighthouse 13.5, `lcp-breakdown-insight` (trace_engine, insights/LCPBreakdown.js).
    id: "lcp-breakdown-insight",
    pass: "LCP breakdown",
    fail: "LCP breakdown",
    learn: "https://developer.chrome.com/docs/performance/insights/lcp-breakdown",
    run: run,
}

/// A Largest Contentful Paint up to this is good (web.dev/articles/lcp).
const GOOD_MS: f64 = 2500.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let largest = facts.get::<LargestContent>()?;
    let (Some(paint), Some(document)) = (&largest.paint, &largest.document) else {
        return Ok(Outcome::not_applicable());
    };
    let Some(first_byte_us) = document.timing().map(|timing| timing.first_byte_us()) else {
        return Ok(Outcome::not_applicable());
    };
    let origin_us = trace.navigation.time_origin_us;
    let mut parts = vec![("Time to first byte", origin_us, first_byte_us)];
    match &largest.image {
        None => parts.push(("Element render delay", first_byte_us, paint.ts_us)),
        Some(image) => parts.extend([
            ("Resource load delay", first_byte_us, image.start_us),
            ("Resource load duration", image.start_us, image.finish_us),
            ("Element render delay", image.finish_us, paint.ts_us),
        ]),
    }
    let lcp_ms = trace.since_origin_ms(paint.ts_us);
    let longest = parts
        .iter()
        .max_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)))
        .map_or("", |(label, _, _)| label);
    let summary = format!(
        "Largest Contentful Paint took {}; the longest phase is {}.",
        format_duration(lcp_ms),
        longest.to_lowercase()
    );
    let table = Findings::new([
        ("label", "Phase", Unit::Text),
        ("duration", "Duration", Unit::Ms),
    ])
    .rows(parts.into_iter().map(|(label, from_us, until_us)| {
        Row::new([Cell::text(label), Cell::Ms((until_us - from_us) / 1000.0)])
    }));
    let element = TraceElements::of(facts, paint.node_id);
    let element = element.map(|node| Details::elements([ElementDetail::from(&node)]));
    let outcome = if lcp_ms <= GOOD_MS {
        Outcome::informative(summary)
    } else {
        Outcome::fail(summary)
    };
    Ok(outcome
        .with(Details::parts(
            [Some(table.into()), element].into_iter().flatten(),
        ))
        .with_savings(Savings {
            lcp_ms: Some(0.0),
            ..Savings::default()
        }))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Cell, Details, Verdict};

    use super::CHECK;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    fn durations(details: &Details) -> Vec<f64> {
        let Details::Parts { items } = details else {
            panic!("{details:?}");
        };
        let Details::Findings(table) = &items[0] else {
            panic!("{details:?}");
        };
        let duration = |cell: &Cell| match cell {
            Cell::Ms(ms) => ms.round(),
            other => panic!("{other:?}"),
        };
        table
            .rows
            .iter()
            .map(|row| duration(&row.cells[1]))
            .collect()
    }

    #[test]
    fn text_has_two_phases_and_an_image_four() {
        let text = PageLoad::new()
            .document(100)
            .largest_text(7, 900)
            .judge(CHECK);
        assert_eq!(text.verdict, Verdict::Informative);
        assert_eq!(durations(&text.details.unwrap()), [100.0, 800.0]);

        let image = PageLoad::new()
            .document(100)
            .image("https://a.test/i.png", 300, 1900)
            .largest_image(7, "https://a.test/i.png", 3000)
            .judge(CHECK);
        assert_eq!(image.verdict, Verdict::Fail);
        assert_eq!(
            durations(&image.details.unwrap()),
            [100.0, 200.0, 1600.0, 1100.0]
        );
    }

    #[test]
    fn a_page_without_an_lcp_has_no_phases() {
        let without = PageLoad::new().document(100).judge(CHECK);
        assert_eq!(without.verdict, Verdict::NotApplicable);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }

    #[test]
    fn the_element_is_listed() {
        let outcome = PageLoad::new()
            .document(100)
            .largest_text(7, 900)
            .element(7, "body > h1")
            .judge(CHECK);
        let text = serde_json::to_string(&outcome.details.unwrap()).unwrap();
        assert!(text.contains("body > h1"), "{text}");
    }
}
