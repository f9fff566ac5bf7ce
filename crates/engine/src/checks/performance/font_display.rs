use plumbline_trace::{Resource, Trace};

use crate::checks::{Cell, Findings, Outcome, Row, Savings, Unit, check, count};
use crate::facts::{Facts, Missing, TRACE};

check! {
    /// # What
    /// Text can be read while its font is loading.
    ///
    /// # Why
    /// Without a word in the style sheet the browser hides text for up to three seconds, waiting for the font.
    ///
    /// # Scored
    /// Weighs nothing. Lists fonts that were loaded with a `font-display` of `block`, `fallback` or `auto`.
    ///
    /// # Fix
    /// Write `font-display: swap` or `optional` into the font's `@font-face`.
    ///
    /// # Source
    /// Lighthouse 13.5, `font-display-insight`; trace engine, insights/FontDisplay.
    id: "font-display-insight",
    pass: "Text is shown while fonts load",
    fail: "Text is hidden while fonts load",
    needs: [TRACE],
    run: run,
}

/// No browser hides text for longer.
const MAX_HIDDEN_MS: f64 = 3000.0;
const STEP_MS: f64 = 5.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let origin_us = trace.navigation.time_origin_us;
    let mut fonts: Vec<(&Resource, f64)> = trace
        .resources
        .remote_fonts
        .iter()
        .filter(|font| font.ts_us >= origin_us)
        .filter(|font| matches!(font.display.as_str(), "block" | "fallback" | "auto"))
        .filter_map(|font| {
            let resource = trace.resources.by_id(&font.resource_id)?;
            let hidden_ms = (resource.finish_us - resource.send_start_us) / 1000.0;
            let hidden_ms = (hidden_ms / STEP_MS).floor() * STEP_MS;
            (hidden_ms != 0.0).then_some((resource, hidden_ms.min(MAX_HIDDEN_MS)))
        })
        .collect();
    fonts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let outcome = match fonts.first() {
        None => Outcome::pass(),
        Some((_, longest_ms)) => Outcome::fail(format!(
            "{} text hidden.",
            count(fonts.len(), "font leaves", "fonts leave")
        ))
        .saving(Savings {
            fcp_ms: Some(*longest_ms),
            ..Savings::default()
        }),
    };
    let table = Findings::new([
        ("url", "Font", Unit::Url),
        ("wastedMs", "Text hidden for up to", Unit::Ms),
    ])
    .rows(
        fonts
            .iter()
            .map(|(resource, ms)| Row::new([Cell::url(&resource.url), Cell::Ms(*ms)])),
    );
    Ok(outcome.with(table.into()))
}
