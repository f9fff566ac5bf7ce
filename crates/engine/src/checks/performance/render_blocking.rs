use plumbline_trace::{Milestone, Resource, Trace};

use crate::checks::{Cell, Details, Findings, Outcome, Row, Savings, Unit, check, count};
use crate::facts::{Facts, LargestContent, Missing, TRACE, is_render_blocking, loaded};
use crate::replay::Replay;

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
    /// the load would take less without them, on the line it was measured on.
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
    let saved_ms = saved_ms(facts, &blocking);
    let summary = count(
        blocking.len(),
        "request blocks the first paint",
        "requests block the first paint",
    );
    // An image comes at its own time, whatever blocked the first paint (trace engine, insights/RenderBlocking).
    let is_image = facts.get::<LargestContent>()?.image.is_some();
    let lcp_saved_ms = if is_image { 0.0 } else { saved_ms };
    let details: Details = table(blocking.into_iter().map(row)).into();
    Ok(Outcome::fail(format!("{summary}."))
        .with(details)
        .saving(Savings::paints(saved_ms, lcp_saved_ms)))
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

/// What the first paint would gain without them; nothing where nothing can be said of the line.
fn saved_ms(facts: &Facts, blocking: &[&Resource]) -> f64 {
    let ids: Vec<&str> = blocking
        .iter()
        .map(|resource| resource.id.as_str())
        .collect();
    facts
        .get::<Replay>()
        .ok()
        .and_then(|replay| replay.saved_ms_by_deferring(&ids, MIN_WASTED_MS))
        .unwrap_or(0.0)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::traced::Traced;
    use super::CHECK;
    use crate::checks::Verdict;

    const SHEET: &str = "https://example.test/a.css";

    fn blocking() -> serde_json::Value {
        json!({"renderBlocking": "blocking", "resourceType": "Stylesheet", "priority": "VeryHigh"})
    }

    fn sheet(sent: serde_json::Value) -> Traced {
        Traced::new().resource("2.1", SHEET, sent, json!({}))
    }

    #[test]
    fn what_chromium_calls_blocking_and_came_before_the_first_paint_is_listed() {
        let outcome = sheet(blocking()).judge_on_slow_line(CHECK);
        assert_eq!(outcome.verdict, Verdict::Fail);
        // On the warm connection: half a round trip there, 19 ms at the server, half a round trip back.
        assert_eq!(outcome.savings.unwrap().fcp_ms, Some(169.0));
        assert_eq!(sheet(json!({})).judge(CHECK).verdict, Verdict::Pass);
        let of_other_frame = json!({"renderBlocking": "blocking", "frame": "G"});
        assert_eq!(sheet(of_other_frame).judge(CHECK).verdict, Verdict::Pass);
    }

    #[test]
    fn the_largest_paint_gains_only_where_it_is_no_image() {
        let saved = |traced: Traced| {
            let savings = traced.judge_on_slow_line(CHECK).savings.unwrap();
            (savings.fcp_ms, savings.lcp_ms)
        };
        let blocked = || sheet(blocking());
        assert_eq!(saved(blocked()), (Some(169.0), Some(169.0)));
        let image = "https://example.test/a.png";
        let candidate =
            json!({"candidateIndex": 1, "nodeId": 7, "navigationId": "N", "isMainFrame": true});
        let with_image = blocked()
            .resource("2.2", image, json!({"resourceType": "Image"}), json!({}))
            .event(
                "LargestImagePaint::Candidate",
                json!({"frame": "F", "data": {"DOMNodeId": 7, "imageUrl": image}}),
            )
            .event(
                "largestContentfulPaint::Candidate",
                json!({"frame": "F", "data": candidate}),
            );
        assert_eq!(saved(with_image), (Some(169.0), Some(0.0)));
    }

    #[test]
    fn what_came_after_the_first_paint_did_not_block_it() {
        let late = Traced::new().loads(
            "2.1",
            SHEET,
            150,
            1500,
            json!({"renderBlocking": "blocking"}),
            json!({}),
            json!({}),
        );
        assert_eq!(late.judge(CHECK).verdict, Verdict::Pass);
    }

    #[test]
    fn in_the_body_only_the_priority_of_a_blocking_resource_counts() {
        for (kind, priority, verdict) in [
            ("Script", "High", Verdict::Fail),
            ("Script", "Low", Verdict::Pass),
            ("Stylesheet", "VeryHigh", Verdict::Fail),
            ("Stylesheet", "High", Verdict::Pass),
        ] {
            let sent = json!({"renderBlocking": "in_body_parser_blocking", "priority": priority, "resourceType": kind});
            assert_eq!(
                sheet(sent).judge(CHECK).verdict,
                verdict,
                "{kind} {priority}"
            );
        }
    }
}
