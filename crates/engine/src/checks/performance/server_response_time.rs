use plumbline_trace::Trace;

use super::document_latency::{TARGET_MS, TOO_SLOW_MS, server_response_ms};
use crate::checks::{Cell, Findings, Outcome, Row, Savings, Unit, check};
use crate::facts::{Facts, Missing, TRACE, document};

check! {
    /// # What
    /// The server answers the request for the document soon.
    ///
    /// # Why
    /// A visitor sees nothing while the server thinks.
    ///
    /// # Scored
    /// Weighs nothing. Fails above 600 ms from the end of the request to the first byte of the answer, the emulated
    /// round trip aside.
    ///
    /// # Fix
    /// Cache what is the same for everybody, and look for slow queries.
    ///
    /// # Source
    /// Lighthouse 13.5, `server-response-time`.
    id: "server-response-time",
    pass: "The server answers soon",
    fail: "The server answers late",
    needs: [TRACE],
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let document = document(&trace)?;
    let response_ms = server_response_ms(facts, document)?;
    let summary = format!("The document took {response_ms} ms.");
    let outcome = match response_ms > TOO_SLOW_MS {
        true => Outcome::fail(summary),
        false => Outcome::pass().because(summary),
    };
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("responseTime", "Time spent", Unit::Ms),
    ])
    .rows([Row::new([Cell::url(&document.url), Cell::Ms(response_ms)])]);
    let saved_ms = (response_ms - TARGET_MS).max(0.0);
    Ok(outcome
        .with(table.into())
        .measuring(response_ms, Unit::Ms)
        .saving(Savings::paints(saved_ms, saved_ms)))
}
