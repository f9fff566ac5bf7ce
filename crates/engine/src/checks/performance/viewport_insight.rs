use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};
use plumbline_trace::{InteractionKind, Trace};

use super::element_cell;
use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing};

check! {
    /// # What
    /// The viewport is optimised for mobile screens.
    ///
    /// # Why
    /// Otherwise browsers delay each tap by up to 300 ms to detect a double tap.
    ///
    /// # Scored
    /// Fails when the browser drew a frame that it did not consider mobile-optimised, after the
    /// viewport element was parsed.
    ///
    /// # Fix
    /// Add `<meta name="viewport" content="width=device-width, initial-scale=1">` to the head.
    ///
    /// # Source
    /// Lighthouse 13.5, `viewport-insight` (trace_engine, insights/Viewport.js).
    id: "viewport-insight",
    pass: "Viewport is optimised for mobile",
    fail: "Viewport is not optimised for mobile",
    learn: "https://developer.chrome.com/docs/performance/insights/viewport",
    run: run,
}

/// The shortest input delay that is attributed to waiting for a second tap.
const WAITED_US: f64 = 50_000.0;
/// The longest time that browsers wait for a second tap.
const LONGEST_WAIT_MS: f64 = 300.0;
/// Shorter interactions are ignored.
const LONG_US: f64 = 200_000.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let origin_us = trace.navigation.time_origin_us;
    let documents = &trace.documents;
    let meta = documents
        .viewport_metas
        .iter()
        .find(|(ts_us, _)| *ts_us > origin_us);
    let from_us = meta.map_or(origin_us, |(ts_us, _)| ts_us.max(origin_us));
    let mut drawn = documents
        .commits
        .iter()
        .filter(|(ts_us, _)| *ts_us > origin_us && *ts_us >= from_us)
        .peekable();
    if drawn.peek().is_none() {
        return Ok(Outcome::pass().warning("The trace has no drawn frames."));
    }
    let fits = drawn.all(|(_, fits)| *fits);
    let node = meta.map_or(Cell::Nothing, |(_, node)| element_cell(facts, Some(*node)));
    let table = Findings::new([("node", "Element", Unit::Element)]).rows([Row::new([node])]);
    let saved_ms = if fits { 0.0 } else { longest_wait_ms(&trace) };
    let outcome = match (fits, meta) {
        (true, _) => Outcome::pass(),
        (false, Some(_)) => Outcome::fail("The viewport meta element is not optimised for mobile."),
        (false, None) => Outcome::fail("There is no viewport meta element."),
    };
    Ok(outcome.with(table.into()).with_savings(Savings {
        inp_ms: Some(saved_ms),
        ..Savings::default()
    }))
}

fn longest_wait_ms(trace: &Trace) -> f64 {
    trace
        .interactions
        .iter()
        .filter(|interaction| {
            interaction.kind == InteractionKind::Pointer && interaction.duration_us() > LONG_US
        })
        .map(|interaction| interaction.processing_start_us - interaction.start_us)
        .filter(|waited_us| *waited_us >= WAITED_US)
        .fold(0.0, f64::max)
        .min(LONGEST_WAIT_MS * 1000.0)
        / 1000.0
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    #[test]
    fn frames_drawn_before_the_viewport_was_known_do_not_count() {
        let page = |fits_later| {
            PageLoad::new()
                .drawn(100, false)
                .viewport(3, 200)
                .drawn(300, fits_later)
                .judge(CHECK)
                .verdict
        };
        assert_eq!(page(true), Verdict::Pass);
        assert_eq!(page(false), Verdict::Fail);
        assert_eq!(
            PageLoad::new().drawn(100, false).judge(CHECK).verdict,
            Verdict::Fail
        );
        assert_eq!(PageLoad::new().judge(CHECK).verdict, Verdict::Pass);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
