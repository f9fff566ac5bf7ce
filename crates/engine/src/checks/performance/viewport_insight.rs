use plumbline_trace::{InteractionKind, Trace};

use super::element_cell;
use crate::checks::{Cell, Findings, Outcome, Row, Savings, Unit, check};
use crate::facts::{Facts, Missing, TRACE};

check! {
    /// # What
    /// The page is laid out for mobile screens.
    ///
    /// # Why
    /// Where it is not, browsers wait up to 300 ms after each tap, in case it is the first of two.
    ///
    /// # Scored
    /// Fails when a frame was drawn that the browser did not find fit for mobile screens, once the viewport was
    /// known.
    ///
    /// # Fix
    /// Add `<meta name="viewport" content="width=device-width, initial-scale=1">` to the head.
    ///
    /// # Source
    /// Lighthouse 13.5, `viewport-insight` (trace_engine, insights/Viewport.js).
    id: "viewport-insight",
    pass: "The viewport is set for mobile screens",
    fail: "The viewport is not set for mobile screens",
    needs: [TRACE],
    run: run,
}

/// What an input must have waited to be counted, and the longest that browsers wait for a second tap.
const WAITED_US: f64 = 50_000.0;
const LONGEST_WAIT_MS: f64 = 300.0;
/// Shorter interactions are not looked at.
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
        return Ok(Outcome::pass().warning("The trace holds no frame that was drawn."));
    }
    let fits = drawn.all(|(_, fits)| *fits);
    let node = meta.map_or(Cell::Nothing, |(_, node)| element_cell(facts, Some(*node)));
    let table = Findings::new([("node", "Element", Unit::Element)]).rows([Row::new([node])]);
    let saved_ms = if fits { 0.0 } else { longest_wait_ms(&trace) };
    let outcome = match (fits, meta) {
        (true, _) => Outcome::pass(),
        (false, Some(_)) => Outcome::fail("The viewport meta element does not fit mobile screens."),
        (false, None) => Outcome::fail("There is no viewport meta element."),
    };
    Ok(outcome.with(table.into()).saving(Savings {
        inp_ms: Some(saved_ms),
        ..Savings::default()
    }))
}

fn longest_wait_ms(trace: &Trace) -> f64 {
    trace
        .interactions
        .iter()
        .filter(|of| of.kind == InteractionKind::Pointer && of.duration_us() > LONG_US)
        .map(|of| of.processing_start_us - of.start_us)
        .filter(|waited_us| *waited_us >= WAITED_US)
        .fold(0.0, f64::max)
        .min(LONGEST_WAIT_MS * 1000.0)
        / 1000.0
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
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
