//! The outcome that four checks share: files with their size and the wasted part of it.

use std::collections::HashMap;

use plumbline_trace::Trace;

use crate::checks::{Cell, Findings, Outcome, Row, Savings, Unit, count};
use crate::facts::{Facts, loaded, time_saved_in_steps};

pub(super) struct Wasting {
    /// The URL, or the beginning of an inline text.
    pub(super) name: String,
    pub(super) total_bytes: f64,
    pub(super) wasted_bytes: f64,
    /// The sources within the file, if known.
    pub(super) parts: Vec<Wasting>,
}

/// The granularity of the estimated savings (Lighthouse, byte-efficiency-audit.js).
const STEP_MS: f64 = 10.0;

/// Builds the outcome with the largest waste first. `one` and `many` name the kind of file.
pub(super) fn outcome(facts: &Facts, mut wastes: Vec<Wasting>, one: &str, many: &str) -> Outcome {
    wastes.sort_by(|a, b| b.wasted_bytes.total_cmp(&a.wasted_bytes));
    let wasted_bytes: f64 = wastes.iter().map(|wasting| wasting.wasted_bytes).sum();
    let outcome = match wastes.len() {
        0 => Outcome::pass(),
        number => Outcome::fail(format!(
            "{}: {:.0} KiB could be saved.",
            count(number, one, many),
            wasted_bytes / 1024.0
        )),
    };
    let savings = savings(facts, &wastes);
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("totalBytes", "Transferred", Unit::Bytes),
        ("wastedBytes", "Wasted", Unit::Bytes),
    ])
    .rows(wastes.iter().map(|wasting| {
        let parts = wasting
            .parts
            .iter()
            .map(|part| row(Cell::text(&part.name), part));
        row(Cell::url(&wasting.name), wasting).with(parts)
    }));
    let saved_ms = savings.lcp_ms.unwrap_or(0.0);
    outcome
        .with(table.into())
        .with_figure(saved_ms, Unit::Ms)
        .with_savings(savings.with_bytes(wasted_bytes))
}

fn row(name: Cell, wasting: &Wasting) -> Row {
    let bytes = [wasting.total_bytes, wasting.wasted_bytes].map(Cell::Bytes);
    Row::new([name].into_iter().chain(bytes))
}

fn savings(facts: &Facts, wastes: &[Wasting]) -> Savings {
    let Ok(trace) = facts.get::<Trace>() else {
        return Savings::default();
    };
    let mut ids: HashMap<&str, &str> = HashMap::new();
    for resource in loaded(&trace) {
        ids.entry(&resource.url).or_insert(&resource.id);
    }
    let by_id: Vec<(&str, f64)> = wastes
        .iter()
        .filter_map(|wasting| Some((*ids.get(wasting.name.as_str())?, wasting.wasted_bytes)))
        .collect();
    time_saved_in_steps(facts, &by_id, STEP_MS)
}
