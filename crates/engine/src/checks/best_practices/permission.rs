//! Permission requests without a user gesture, which Chromium reports as violations in the console.

use plumbline_model::check::{ConsoleLine, Details};

use crate::checks::Outcome;
use crate::facts::{Console, Facts, Missing, OriginalPlaces};

/// Returns an outcome that fails when the text of a violation contains the phrase.
pub(super) fn requested_on_start(facts: &Facts, phrase: &str) -> Result<Outcome, Missing> {
    let console = facts.get::<Console>()?;
    let mut requests: Vec<ConsoleLine> = Vec::new();
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
            original: None,
        };
        let line = OriginalPlaces::add_to_line(facts, line);
        let is_listed = requests.iter().any(|other| {
            (&other.url, other.line, other.column) == (&line.url, line.line, line.column)
        });
        if !is_listed {
            requests.push(line);
        }
    }
    if requests.is_empty() {
        return Ok(Outcome::pass());
    }
    Ok(
        Outcome::fail("A script requests the permission on page load.")
            .with(Details::Console { items: requests }),
    )
}
