use plumbline_trace::{Milestone, Resource, Trace};

use crate::checks::{Cell, Details, Findings, Outcome, Row, Savings, Unit, check, count};
use crate::facts::{Facts, Missing, TRACE, document, is_render_blocking, loaded};

check! {
    /// # What
    /// Nothing has to be loaded before the first paint but the document.
    ///
    /// # Why
    /// The browser paints nothing until every blocking style sheet and script has arrived.
    ///
    /// # Scored
    /// Weighs nothing. Fails when a style sheet or script of the main frame blocked rendering and was there before
    /// the first paint. What was met in the body counts with the priority of a blocking resource only.
    ///
    /// # Fix
    /// Put what the first screen needs into the document, load other styles for the media they are for, and give
    /// scripts `defer` or `async`.
    ///
    /// # Source
    /// Lighthouse 13.5, `render-blocking-insight`; trace engine, insights/RenderBlocking. The time saved is what
    /// lay between the document and the last blocking resource, where Lighthouse simulates.
    id: "render-blocking-insight",
    pass: "Nothing blocks the first paint",
    fail: "Requests block the first paint",
    needs: [TRACE],
    run: run,
}

/// Shorter ones may not have blocked at all.
const MIN_WASTED_MS: f64 = 50.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let Some(first_paint_us) = trace.first_us(Milestone::FirstPaint) else {
        return Ok(Outcome::pass());
    };
    let mut blocking: Vec<&Resource> = loaded(&trace)
        .filter(|resource| {
            resource.frame == trace.frames.main_id
                && resource.finish_us <= first_paint_us
                && is_render_blocking(resource)
                && is_early_enough(resource)
        })
        .collect();
    if blocking.is_empty() {
        return Ok(Outcome::pass().with(table([]).into()));
    }
    blocking.sort_by(|a, b| duration_us(b).total_cmp(&duration_us(a)));
    let saved_ms = saved_ms(&trace, &blocking);
    let summary = count(
        blocking.len(),
        "request blocks the first paint",
        "requests block the first paint",
    );
    let details: Details = table(blocking.into_iter().map(row)).into();
    Ok(Outcome::fail(format!("{summary}."))
        .with(details)
        .saving(Savings::paints(saved_ms, saved_ms)))
}

/// What the parser meets in the body blocks only what comes after it; only with the priority of a blocking
/// resource did it matter for the first paint.
fn is_early_enough(resource: &Resource) -> bool {
    resource.render_blocking != "in_body_parser_blocking"
        || resource.priority == "VeryHigh"
        || (resource.resource_type == "Script" && resource.priority == "High")
}

fn duration_us(resource: &Resource) -> f64 {
    resource.end_us - resource.start_us
}

fn saved_ms(trace: &Trace, blocking: &[&Resource]) -> f64 {
    let last_us = blocking
        .iter()
        .filter(|resource| duration_us(resource) >= MIN_WASTED_MS * 1000.0)
        .map(|resource| resource.finish_us)
        .fold(0.0, f64::max);
    document(trace).map_or(0.0, |document| {
        ((last_us - document.finish_us) / 1000.0).round().max(0.0)
    })
}

fn table(rows: impl IntoIterator<Item = Row>) -> Findings {
    Findings::new([
        ("url", "URL", Unit::Url),
        ("totalBytes", "Transferred", Unit::Bytes),
        ("wastedMs", "Duration", Unit::Ms),
    ])
    .rows(rows)
}

fn row(resource: &Resource) -> Row {
    let wasted_ms = (duration_us(resource) / 1000.0).round();
    Row::new([
        Cell::url(&resource.url),
        Cell::Bytes(resource.transfer_bytes),
        match wasted_ms >= MIN_WASTED_MS {
            true => Cell::Ms(wasted_ms),
            false => Cell::Nothing,
        },
    ])
}
