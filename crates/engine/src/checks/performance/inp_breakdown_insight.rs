use plumbline_model::check::{Cell, Details, ElementDetail, Findings, Row, Savings, Unit};
use plumbline_trace::{Interaction, Trace};

use super::format_duration;
use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, TraceElements};

check! {
    /// # What
    /// How the time of the longest interaction divides into input delay, processing and
    /// presentation delay.
    ///
    /// # Why
    /// Each of these phases makes the page feel unresponsive.
    ///
    /// # Scored
    /// Fails when the longest interaction took more than 200 ms, is informative below that. Not
    /// applicable without interactions, as in a plain visit.
    ///
    /// # Fix
    /// Split long tasks, do less work in event listeners, and defer work that does not affect the
    /// next frame.
    ///
    /// # Source
    /// Lighthouse 13.5, `inp-breakdown-insight` (trace_engine, insights/INPBreakdown.js).
    id: "inp-breakdown-insight",
    pass: "INP breakdown",
    fail: "INP breakdown",
    learn: "https://developer.chrome.com/docs/performance/insights/inp-breakdown",
    run: run,
}

/// An interaction up to this is good (web.dev/articles/inp).
const GOOD_US: f64 = 200_000.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let origin_us = trace.navigation.time_origin_us;
    let mut longest: Option<&Interaction> = None;
    for interaction in &trace.interactions {
        let in_load = origin_us < interaction.end_us;
        if in_load
            && longest.is_none_or(|longest| interaction.duration_us() > longest.duration_us())
        {
            longest = Some(interaction);
        }
    }
    let Some(longest) = longest else {
        return Ok(Outcome::not_applicable());
    };
    let row = |label: &str, dur_us: f64| Row::new([Cell::text(label), Cell::Ms(dur_us / 1000.0)]);
    let table = Findings::new([
        ("label", "Phase", Unit::Text),
        ("duration", "Duration", Unit::Ms),
    ])
    .rows([
        row(
            "Input delay",
            longest.processing_start_us - longest.start_us,
        ),
        row(
            "Processing duration",
            longest.processing_end_us - longest.processing_start_us,
        ),
        row(
            "Presentation delay",
            longest.end_us - longest.processing_end_us,
        ),
    ]);
    let element = TraceElements::of(facts, longest.node_id);
    let element = element.map(|node| Details::elements([ElementDetail::from(&node)]));
    let summary = format!(
        "The longest interaction took {}.",
        format_duration(longest.duration_us() / 1000.0)
    );
    let outcome = if longest.duration_us() <= GOOD_US {
        Outcome::informative(summary)
    } else {
        Outcome::fail(summary)
    };
    Ok(outcome
        .with(Details::parts(
            [Some(table.into()), element].into_iter().flatten(),
        ))
        .with_savings(Savings {
            inp_ms: Some(0.0),
            ..Savings::default()
        }))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    #[test]
    fn the_longest_interaction_is_reported() {
        assert_eq!(PageLoad::new().judge(CHECK).verdict, Verdict::NotApplicable);
        let quick = PageLoad::new().click(500, 200).judge(CHECK);
        assert_eq!(quick.verdict, Verdict::Informative);
        let slow = PageLoad::new().click(500, 100).click(900, 201).judge(CHECK);
        assert_eq!(slow.verdict, Verdict::Fail);
        assert_eq!(
            slow.summary.unwrap(),
            "The longest interaction took 201 ms."
        );
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
