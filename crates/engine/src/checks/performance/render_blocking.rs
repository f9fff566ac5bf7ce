use plumbline_model::check::{Cell, Details, Findings, Row, Savings, Unit};
use plumbline_trace::{Milestone, Resource, Trace};

use crate::checks::{Outcome, check, count};
use crate::facts::{DrawnByScript, Facts, Missing, is_render_blocking, loaded};
use crate::replay::Replay;

check! {
    /// # What
    /// No style sheet or script besides the document delays the first paint.
    ///
    /// # Why
    /// The browser paints nothing until every render-blocking style sheet and script has been
    /// loaded.
    ///
    /// # Scored
    /// Does not affect the score. Fails when a style sheet or script of the main frame blocked
    /// rendering and finished before the first paint. Resources in the body count only with the
    /// priority of a render-blocking resource.
    ///
    /// # Fix
    /// Inline critical CSS, load other style sheets asynchronously or with a `media` attribute, and
    /// load scripts with `defer` or `async`. If scripts draw the page, ship less of them, or render
    /// the page on the server.
    ///
    /// # Source
    /// Lighthouse 13.5, `render-blocking-insight`; trace engine, insights/RenderBlocking. The time
    /// that the first paint would gain is estimated from the load as it was observed, without these
    /// requests. Scripts that draw the page are not left out: content that is not in the document
    /// as the server sent it waits for them, and the load is then simulated under the audit's
    /// network conditions. No time is estimated for the largest paint: estimates agreed with what
    /// the advice saved in 4 of 11 cases only.
    id: "render-blocking-insight",
    pass: "No render-blocking requests",
    fail: "Render-blocking requests",
    learn: "https://developer.chrome.com/docs/performance/insights/render-blocking",
    run: run,
}

/// Shorter requests may not have blocked rendering at all.
const MIN_WASTED_MS: f64 = 50.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let Some(first_paint_us) = trace.first_us(Milestone::FirstPaint) else {
        return Ok(Outcome::pass());
    };
    let mut blocking: Vec<&Resource> = loaded(&trace)
        .filter(|resource| {
            resource.frame_id() == trace.frames.main_id
                && resource.finish_us <= first_paint_us
                && is_render_blocking(resource)
                && is_early_enough(resource)
        })
        .collect();
    if blocking.is_empty() {
        return Ok(Outcome::pass().with(table([]).into()));
    }
    blocking.sort_by(|a, b| duration_us(b).total_cmp(&duration_us(a)));
    let drawn = facts.get::<DrawnByScript>()?;
    let is_deferrable =
        |resource: &&Resource| !drawn.first_paint || resource.traced_type() != "Script";
    let deferrable = blocking.iter().copied().filter(is_deferrable);
    // The largest paint often comes only when the style sheets apply, or is that of another element
    // without them.
    let saved_ms = saved_ms(facts, &deferrable.collect::<Vec<_>>()).unwrap_or(0.0);
    let summary = count(
        blocking.len(),
        "request blocks the first paint",
        "requests block the first paint",
    );
    let advice = Advice::on(&blocking, *drawn);
    let details: Details = table(blocking.into_iter().map(row)).into();
    Ok(Outcome::fail(summary + advice.reason())
        .with_fix(advice.fix())
        .with(details)
        .with_savings(Savings::first_paint(saved_ms)))
}

/// The findings that the advice on blocking requests depends on.
#[derive(Debug, Clone, Copy)]
struct Advice {
    has_sheet: bool,
    has_script: bool,
    drawn: DrawnByScript,
}

impl Advice {
    fn on(blocking: &[&Resource], drawn: DrawnByScript) -> Self {
        let is_script = |resource: &&Resource| resource.traced_type() == "Script";
        let has_script = blocking.iter().any(is_script);
        Self {
            has_sheet: !blocking.iter().all(is_script),
            has_script,
            drawn: DrawnByScript {
                // Style sheets can be loaded later whatever draws the largest content.
                largest_paint: drawn.largest_paint && has_script,
                ..drawn
            },
        }
    }

    /// Returns the end of the summary.
    fn reason(self) -> &'static str {
        match self.drawn {
            DrawnByScript {
                first_paint: true, ..
            } => ". This page is drawn by script.",
            DrawnByScript {
                largest_paint: true,
                ..
            } => ". The largest content is drawn by script.",
            _ => ".",
        }
    }

    fn fix(self) -> String {
        let (first, largest) = (self.drawn.first_paint, self.drawn.largest_paint);
        let parts = [
            (
                first,
                "Ship less of the scripts that draw this page, or render it on the server.",
            ),
            (
                self.has_sheet,
                "Inline critical CSS, and load other style sheets asynchronously or with a `media` \
                 attribute.",
            ),
            (
                self.has_script && !first,
                "Load scripts with `defer` or `async`.",
            ),
            (
                largest && !first,
                "Ship less of the scripts that draw the largest content, or render it on the server.",
            ),
        ];
        let parts = parts.iter().filter(|(applies, _)| *applies);
        parts.map(|(_, text)| *text).collect::<Vec<_>>().join(" ")
    }
}

/// Returns whether a resource can have delayed the first paint. One in the body blocks only the
/// content after it, so it counts only with the priority of a render-blocking resource.
fn is_early_enough(resource: &Resource) -> bool {
    resource.render_blocking != "in_body_parser_blocking"
        || resource.priority == "VeryHigh"
        || (resource.traced_type() == "Script" && resource.priority == "High")
}

fn duration_us(resource: &Resource) -> f64 {
    resource.notified_us - resource.start_us
}

/// Returns the time that the first contentful paint would gain if it did not wait for the requests;
/// `None` if it did not occur or the load cannot be replayed.
fn saved_ms(facts: &Facts, blocking: &[&Resource]) -> Option<f64> {
    let ids: Vec<&str> = blocking
        .iter()
        .map(|resource| resource.id.as_str())
        .collect();
    let replay = facts.get::<Replay>().ok()?;
    replay.saved_ms_by_deferring(&ids, MIN_WASTED_MS)
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
        Cell::Bytes(resource.transfer_bytes() as f64),
        if wasted_ms >= MIN_WASTED_MS {
            Cell::Ms(wasted_ms)
        } else {
            Cell::Nothing
        },
    ])
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Savings, Verdict};
    use serde_json::json;

    use super::super::traced::{Traced, conditions_slowed_by};
    use super::CHECK;

    const SHEET: &str = "https://example.test/a.css";

    fn blocking() -> serde_json::Value {
        json!({"renderBlocking": "blocking", "resourceType": "Stylesheet", "priority": "VeryHigh"})
    }

    fn sheet(sent: serde_json::Value) -> Traced {
        Traced::new().resource("2.1", SHEET, sent, json!({}))
    }

    #[test]
    fn blocking_requests_that_end_before_the_first_paint_are_listed() {
        let outcome = sheet(blocking()).judge_on_slow_network(CHECK);
        assert_eq!(outcome.verdict, Verdict::Fail);
        // The page begins 149 ms after the navigation, and its first paint takes 75 ms instead of
        // 100. What kept it from being painted at 600 ms came with the sheet.
        assert_eq!(outcome.savings.unwrap().fcp_ms, Some(775.0));
        assert_eq!(sheet(json!({})).judge(CHECK).verdict, Verdict::Pass);
        let of_other_frame = json!({"renderBlocking": "blocking", "frame": "G"});
        assert_eq!(sheet(of_other_frame).judge(CHECK).verdict, Verdict::Pass);
    }

    #[test]
    fn nothing_is_promised_for_the_largest_paint() {
        let savings = sheet(blocking()).judge_on_slow_network(CHECK).savings;
        assert_eq!(savings, Some(Savings::first_paint(775.0)));
    }

    #[test]
    fn scripts_that_draw_the_page_cannot_be_deferred() {
        let script =
            json!({"renderBlocking": "blocking", "resourceType": "Script", "priority": "High"});
        let outcome = |content: serde_json::Value| {
            let document = json!({"start": "", "content": content});
            Traced::new()
                .resource(
                    "2.1",
                    "https://example.test/a.js",
                    script.clone(),
                    json!({}),
                )
                .visit()
                .with("conditions", &conditions_slowed_by(1.0).to_string())
                .with("main-document", &document.to_string())
                .judge(CHECK)
        };
        let drawn = outcome(json!({"text": "", "isCut": false, "elements": 0}));
        assert_eq!(drawn.savings.unwrap().fcp_ms, Some(0.0));
        assert!(!drawn.fix.unwrap().contains("defer"));
        let summary = drawn.summary.unwrap();
        assert!(
            summary.ends_with("This page is drawn by script."),
            "{summary}"
        );
        for served in [
            json!({"text": "Hello", "isCut": false, "elements": 0}),
            json!({"text": "", "isCut": false, "elements": 1}),
            // A bundle of an earlier version.
            json!(null),
        ] {
            let outcome = outcome(served.clone());
            assert!(outcome.savings.unwrap().fcp_ms > Some(100.0), "{served}");
            assert!(!outcome.summary.unwrap().contains("script"));
            assert_eq!(
                outcome.fix.as_deref(),
                Some("Load scripts with `defer` or `async`.")
            );
        }
    }

    #[test]
    fn a_page_of_scripts_that_do_not_block_is_drawn_by_script_as_well() {
        let document = json!({"start": "", "content": {"text": "", "isCut": false, "elements": 0}});
        let outcome = sheet(blocking())
            .visit()
            .with("main-document", &document.to_string())
            .judge(CHECK);
        assert_eq!(
            outcome.summary.as_deref(),
            Some("1 request blocks the first paint. This page is drawn by script.")
        );
        let fix = outcome.fix.unwrap();
        assert!(fix.starts_with("Ship less of the scripts that draw this page"));
        assert!(fix.contains("Inline critical CSS") && !fix.contains("defer"));
    }

    #[test]
    fn a_style_sheet_alone_has_no_advice_on_scripts() {
        let fix = sheet(blocking()).judge(CHECK).fix.unwrap();
        assert!(
            fix.contains("Inline critical CSS") && !fix.contains("script"),
            "{fix}"
        );
    }

    #[test]
    fn only_content_that_scripts_add_is_drawn_by_script() {
        let summary = |label: &str, selector: &str| {
            let script =
                json!({"renderBlocking": "blocking", "resourceType": "Script", "priority": "High"});
            let candidate =
                json!({"candidateIndex": 1, "nodeId": 7, "navigationId": "N", "isMainFrame": true});
            let content = json!({"text": "Loading the editor", "isCut": false, "elements": 0});
            let node = json!({"label": label, "selector": selector});
            let outcome = Traced::new()
                .resource("2.1", "https://example.test/a.js", script, json!({}))
                .event(
                    "largestContentfulPaint::Candidate",
                    json!({"frame": "F", "data": candidate}),
                )
                .visit()
                .with("conditions", &conditions_slowed_by(1.0).to_string())
                .with(
                    "main-document",
                    &json!({"start": "", "content": content}).to_string(),
                )
                .with(
                    "trace-elements",
                    &json!([{"nodeId": 7, "node": node}]).to_string(),
                )
                .judge(CHECK);
            // The first paint waits for the script, not for what it draws.
            assert!(outcome.savings.unwrap().fcp_ms > Some(100.0));
            outcome.summary.unwrap()
        };
        let drawn = summary("GET /pets", "div > p");
        assert!(
            drawn.contains("The largest content is drawn by script"),
            "{drawn}"
        );
        assert!(!summary("Loading the editor", "p").contains("script"));
        // With `text-transform: uppercase`, and with punctuation that the server sends otherwise.
        assert!(!summary("LOADING THE “EDITOR”", "p").contains("script"));
        assert!(!summary("div.picture", "div.picture").contains("script"));
    }

    #[test]
    fn requests_that_end_after_the_first_paint_are_not_blocking() {
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
