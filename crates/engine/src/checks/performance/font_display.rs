use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};
use plumbline_trace::{Milestone, Resource, Trace};

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, is_render_blocking, loaded};

check! {
    /// # What
    /// Text is visible while its web font loads.
    ///
    /// # Why
    /// By default browsers hide text for up to three seconds while its font loads.
    ///
    /// # Scored
    /// Does not affect the score. Lists fonts that were loaded with `font-display: block`,
    /// `fallback` or `auto`.
    ///
    /// # Fix
    /// Set `font-display: swap` or `optional` in the font's `@font-face` rule.
    ///
    /// # Source
    /// Lighthouse 13.5, `font-display-insight`; trace engine, insights/FontDisplay. Unlike there,
    /// the first paint is estimated to gain the time of a font only if it came soon after the font:
    /// one that came before it or much later did not wait for it.
    id: "font-display-insight",
    pass: "Font display keeps text visible",
    fail: "Font display hides text",
    learn: "https://developer.chrome.com/docs/performance/insights/font-display",
    run: run,
}

/// The longest time for which browsers hide text.
const MAX_HIDDEN_MS: f64 = 3000.0;
const STEP_MS: f64 = 5.0;
/// The longest time that a slow phone takes to lay out and paint text when its font has come. A
/// paint that comes later waited for something else.
const MAX_RENDERING_MS: f64 = 300.0;

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
    let saved_ms = fonts.iter().map(|font| paint_saved_ms(&trace, font));
    let outcome = match saved_ms.reduce(f64::max) {
        None => Outcome::pass(),
        Some(saved_ms) => Outcome::fail(format!(
            "{} text while loading.",
            count(fonts.len(), "font hides", "fonts hide")
        ))
        .with_savings(Savings {
            fcp_ms: Some(saved_ms),
            ..Savings::default()
        }),
    };
    let table = Findings::new([
        ("url", "Font", Unit::Url),
        ("wastedMs", "Text hidden for", Unit::Ms),
    ])
    .rows(
        fonts
            .iter()
            .map(|(resource, ms)| Row::new([Cell::url(&resource.url), Cell::Ms(*ms)])),
    );
    Ok(outcome.with(table.into()))
}

/// Returns the time for which the first contentful paint waited for a font that hid text for so
/// long. A paint before the end of the font was not delayed by it, unless the browser gave up, and
/// one long after it was delayed by something else.
fn paint_saved_ms(trace: &Trace, (font, hidden_ms): &(&Resource, f64)) -> f64 {
    let Some(paint_us) = trace.first_us(Milestone::FirstContentfulPaint) else {
        return 0.0;
    };
    if font.finish_us > paint_us && *hidden_ms < MAX_HIDDEN_MS {
        return 0.0;
    }
    if paint_us - font.finish_us > MAX_RENDERING_MS * 1000.0 {
        return 0.0;
    }
    // Text could not be painted before the requests that block rendering.
    let blocking = loaded(trace).filter(|it| is_render_blocking(it) && it.finish_us <= paint_us);
    let since_us = blocking
        .map(|it| it.finish_us)
        .fold(font.send_start_us, f64::max);
    let waited_ms = (paint_us - since_us) / 1000.0;
    (waited_ms.min(*hidden_ms) / STEP_MS).floor().max(0.0) * STEP_MS
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::json;

    use super::super::traced::Traced;
    use super::CHECK;

    #[test]
    fn fonts_that_hide_text_are_listed_with_their_load_times() {
        for (display, verdict) in [
            ("auto", Verdict::Fail),
            ("block", Verdict::Fail),
            ("fallback", Verdict::Fail),
            ("swap", Verdict::Pass),
            ("optional", Verdict::Pass),
        ] {
            let url = "https://example.test/f.woff2";
            let outcome = Traced::new()
                .resource("2.7", url, json!({}), json!({}))
                .event(
                    "BeginRemoteFontLoad",
                    json!({"id": 7, "url": url, "display": display}),
                )
                .judge(CHECK);
            assert_eq!(outcome.verdict, verdict, "{display}");
            let saved = outcome.savings.and_then(|savings| savings.fcp_ms);
            assert_eq!(saved, (verdict == Verdict::Fail).then_some(0.0));
        }
    }

    #[test]
    fn a_paint_before_the_font_or_long_after_it_does_not_gain_from_it() {
        let saved = |to_ms: u64| {
            let url = "https://example.test/f.woff2";
            let font = json!({"id": 7, "url": url, "display": "block"});
            let outcome = Traced::new()
                .loads("2.7", url, 150, to_ms, json!({}), json!({}), json!({}))
                .event("BeginRemoteFontLoad", font)
                .judge(CHECK);
            assert_eq!(outcome.verdict, Verdict::Fail);
            outcome.savings.unwrap().fcp_ms
        };
        // The first paint is at one second.
        assert_eq!(saved(990), Some(840.0));
        assert_eq!(saved(1010), Some(0.0));
        // Whatever the page did for most of the time, it was not waiting for the font.
        assert_eq!(saved(500), Some(0.0));
        // The browser shows text in another font after three seconds, which is too late here.
        assert_eq!(saved(3500), Some(850.0));
    }
}
