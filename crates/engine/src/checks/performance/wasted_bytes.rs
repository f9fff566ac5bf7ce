//! The outcome that four checks share: files with their size and the wasted part of it.

use std::collections::HashMap;

use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};
use plumbline_model::size::size;
use plumbline_trace::Trace;

use crate::checks::{Outcome, count};
use crate::facts::{Facts, loaded, time_saved_in_steps};

pub(super) struct WastefulFile {
    /// The URL, or the beginning of an inline text.
    pub(super) name: String,
    pub(super) total_bytes: f64,
    pub(super) wasted_bytes: f64,
    /// The sources within the file, if known.
    pub(super) parts: Vec<WastefulFile>,
}

/// The granularity of the estimated savings (Lighthouse, byte-efficiency-audit.js).
const STEP_MS: f64 = 10.0;

/// Builds the outcome with the largest waste first. `one` and `many` name the kind of file.
pub(super) fn outcome(
    facts: &Facts,
    mut files: Vec<WastefulFile>,
    one: &str,
    many: &str,
) -> Outcome {
    files.sort_by(|a, b| b.wasted_bytes.total_cmp(&a.wasted_bytes));
    let wasted_bytes: f64 = files.iter().map(|file| file.wasted_bytes).sum();
    let outcome = match files.len() {
        0 => Outcome::pass(),
        number => Outcome::fail(format!(
            "{}: {} could be saved.",
            count(number, one, many),
            size(wasted_bytes)
        )),
    };
    let savings = savings(facts, &files);
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("totalBytes", "Transferred", Unit::Bytes),
        ("wastedBytes", "Wasted", Unit::Bytes),
    ])
    .rows(files.iter().map(|file| {
        let parts = file
            .parts
            .iter()
            .map(|part| row(Cell::text(&part.name), part));
        row(Cell::url(&file.name), file).with(parts)
    }));
    let saved_ms = savings.lcp_ms.or(savings.fcp_ms).unwrap_or(0.0);
    outcome
        .with(table.into())
        .with_figure(saved_ms, Unit::Ms)
        .with_savings(savings.with_bytes(wasted_bytes))
}

/// Leaves out the time that a check would save, because it does not agree with what its advice
/// saves (docs/measuring.md, "Estimated savings").
pub(super) fn without_time(outcome: Outcome) -> Outcome {
    let savings = outcome.savings.and_then(|savings| savings.wasted_bytes);
    Outcome {
        savings: savings.map(Savings::bytes),
        figure: None,
        ..outcome
    }
}

fn row(name: Cell, file: &WastefulFile) -> Row {
    let bytes = [file.total_bytes, file.wasted_bytes].map(Cell::Bytes);
    Row::new([name].into_iter().chain(bytes))
}

fn savings(facts: &Facts, files: &[WastefulFile]) -> Savings {
    let Ok(trace) = facts.get::<Trace>() else {
        return Savings::default();
    };
    let mut ids: HashMap<&str, &str> = HashMap::new();
    for resource in loaded(&trace) {
        ids.entry(&resource.url).or_insert(&resource.id);
    }
    let by_id: Vec<(&str, f64)> = files
        .iter()
        .filter_map(|file| Some((*ids.get(file.name.as_str())?, file.wasted_bytes)))
        .collect();
    time_saved_in_steps(facts, &by_id, STEP_MS)
}
