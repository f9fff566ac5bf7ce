use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};
use plumbline_trace::{DomSize, LargeUpdate, Trace, UpdateKind};

use super::element_cell;
use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing};

check! {
    /// # What
    /// The number of elements in the document, its depth, the most children of one element, and
    /// whether style or layout updates were slow.
    ///
    /// # Why
    /// A large DOM uses memory and makes style and layout updates slower.
    ///
    /// # Scored
    /// Informative when a layout of more than 100 boxes, or a style recalculation of more than 300
    /// elements, took 40 ms or more; passes otherwise. Not applicable when the trace has no DOM
    /// statistics.
    ///
    /// # Fix
    /// Create elements when they are needed, remove those that are never shown, and virtualise long
    /// lists.
    ///
    /// # Source
    /// Lighthouse 13.5, `dom-size-insight` (trace_engine, insights/DOMSize.js).
    id: "dom-size-insight",
    pass: "DOM size",
    fail: "DOM size",
    learn: "https://developer.chrome.com/docs/performance/insights/dom-size",
    run: run,
}

const SLOW_US: f64 = 40_000.0;
const MANY_BOXES: f64 = 100.0;
const MANY_ELEMENTS: f64 = 300.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let origin_us = trace.navigation.time_origin_us;
    let Some(size) = largest(&trace) else {
        return Ok(Outcome::not_applicable());
    };
    let (Some(deepest), Some(widest)) = (size.deepest, size.widest) else {
        return Ok(Outcome::not_applicable());
    };
    let is_slow = |update: &&LargeUpdate| {
        let many = match update.kind {
            UpdateKind::Layout => MANY_BOXES,
            UpdateKind::Style => MANY_ELEMENTS,
        };
        update.dur_us >= SLOW_US
            && update.count > many
            && origin_us < update.start_us + update.dur_us
    };
    let slow = trace.documents.large_updates.iter().filter(is_slow).count();
    let row = |statistic: &str, node: Option<i64>, value: f64| {
        let node = node.map_or(Cell::Nothing, |node| element_cell(facts, Some(node)));
        Row::new([Cell::text(statistic), node, Cell::Number(value)])
    };
    let table = Findings::new([
        ("statistic", "Statistic", Unit::Text),
        ("node", "Element", Unit::Element),
        ("value", "Value", Unit::Number),
    ])
    .rows([
        row("Elements", None, size.elements),
        row("DOM depth", Some(deepest.0), deepest.1),
        row("Most children", Some(widest.0), widest.1),
    ]);
    let summary = format!("{} elements.", size.elements);
    let outcome = match slow {
        0 => Outcome::pass().with_summary(summary),
        _ => Outcome::informative(format!(
            "{summary} {} 40 ms or more.",
            count(
                slow,
                "style or layout update took",
                "style or layout updates took"
            )
        )),
    };
    let outcome = outcome.with_figure(size.elements, Unit::Number);
    Ok(outcome.with(table.into()).with_savings(Savings {
        inp_ms: Some(0.0),
        ..Savings::default()
    }))
}

/// Returns the statistics of the loaded document at its largest, the first where several are equal.
fn largest(trace: &Trace) -> Option<&DomSize> {
    let origin_us = trace.navigation.time_origin_us;
    let process = trace.navigation.main_threads.last()?.process_id;
    let mut largest: Option<&DomSize> = None;
    for size in &trace.documents.sizes {
        let is_ours = size.process_id == process && size.ts_us > origin_us;
        if is_ours && largest.is_none_or(|largest| size.elements > largest.elements) {
            largest = Some(size);
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    #[test]
    fn only_slow_updates_of_many_elements_are_listed() {
        let sized = || PageLoad::new().dom_size(500, 1200);
        assert_eq!(sized().judge(CHECK).verdict, Verdict::Pass);
        let slow = |boxes, dur_ms| sized().layout(600, dur_ms, boxes).judge(CHECK).verdict;
        assert_eq!(slow(101, 40), Verdict::Informative);
        assert_eq!(slow(100, 40), Verdict::Pass);
        assert_eq!(slow(101, 39), Verdict::Pass);
        assert_eq!(PageLoad::new().judge(CHECK).verdict, Verdict::NotApplicable);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }

    #[test]
    fn the_largest_dom_counts() {
        let outcome = PageLoad::new()
            .dom_size(500, 1200)
            .dom_size(600, 900)
            .judge(CHECK);
        assert_eq!(outcome.summary.as_deref(), Some("1200 elements."));
    }
}
