//! Permissions asked for before the visitor did anything: Chromium reports each as a violation.

use crate::checks::{ConsoleLine, Details, Outcome};
use crate::facts::{Console, Facts, Missing};

/// Fails when a violation's text holds the phrase.
pub(super) fn asked_on_start(facts: &Facts, phrase: &str) -> Result<Outcome, Missing> {
    let console = facts.get::<Console>()?;
    let mut asked: Vec<ConsoleLine> = Vec::new();
    let violations = console.0.iter().filter(|entry| {
        entry.source == "violation" && !entry.url.is_empty() && entry.text.contains(phrase)
    });
    for entry in violations {
        let line = ConsoleLine {
            text: entry.text.clone(),
            source: entry.source.clone(),
            url: entry.url.clone(),
            line: entry.line,
            column: entry.column,
        };
        let is_known = asked.iter().any(|known| {
            (&known.url, known.line, known.column) == (&line.url, line.line, line.column)
        });
        if !is_known {
            asked.push(line);
        }
    }
    if asked.is_empty() {
        return Ok(Outcome::pass());
    }
    Ok(Outcome::fail("A script asks as soon as the page loads.")
        .with(Details::Console { items: asked }))
}
