use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};
use plumbline_trace::Trace;

use super::document_latency::{TARGET_MS, TOO_SLOW_MS, server_response_ms};
use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, document};

check! {
    /// # What
    /// The server responds quickly to the document request.
    ///
    /// # Why
    /// Nothing can load or be shown before the server has responded.
    ///
    /// # Scored
    /// Does not affect the score. Fails above 600 ms from the end of the request to the first byte
    /// of the response, not counting the emulated round trip.
    ///
    /// # Fix
    /// Cache pages that are the same for all visitors, and look for slow database queries.
    ///
    /// # Source
    /// Lighthouse 13.5, `server-response-time`.
    id: "server-response-time",
    pass: "Server response time is short",
    fail: "Server response time is long",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/time-to-first-byte/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let document = document(&trace)?;
    let response_ms = server_response_ms(facts, document)?;
    let summary = format!("The server took {response_ms} ms to respond.");
    let outcome = if response_ms > TOO_SLOW_MS {
        Outcome::fail(summary)
    } else {
        Outcome::pass().with_summary(summary)
    };
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("responseTime", "Time spent", Unit::Ms),
    ])
    .rows([Row::new([Cell::url(&document.url), Cell::Ms(response_ms)])]);
    let saved_ms = (response_ms - TARGET_MS).max(0.0);
    Ok(outcome
        .with(table.into())
        .with_figure(response_ms, Unit::Ms)
        .with_savings(Savings::paints(saved_ms, saved_ms)))
}
